//! Checks whether a table below a compaction's output may hold a key, for ascending keys.

use std::sync::Arc;

use base::UserOrder;

use super::entries::KeyNotBelow;
use crate::version::level::ends_before;
use crate::version::table_file::TableFile;
use crate::version::version::Version;

/// Checks the levels below `output_level`, for ascending keys from `lower` on. Positions only advance, so a walk over
/// all keys visits every file once.
pub fn key_not_below(version: Arc<Version>, output_level: usize, lower: Option<&[u8]>) -> KeyNotBelow {
    let order = version.order().user.clone();
    let used = (output_level + 1..version.num_levels()).filter(|&level| !version.level(level).is_empty());
    let first = |level: usize| match lower {
        None => 0,
        Some(lower) => version.level(level).partition_point(|file| ends_before(&order, &file.meta, lower)),
    };
    let mut places: Vec<(usize, usize)> = used.map(|level| (level, first(level))).collect();
    let order = order.clone();
    Box::new(move |user_key| {
        places.iter_mut().all(|(level, at)| is_outside(version.level(*level), &order, at, user_key))
    })
}

/// Whether no file of a level spans the key. Advances `at` to the first file not ending before the key.
fn is_outside(files: &[Arc<TableFile>], order: &UserOrder, at: &mut usize, user_key: &[u8]) -> bool {
    let rest = files.get(*at..).unwrap_or(&[]);
    *at += rest.iter().take_while(|file| ends_before(order, &file.meta, user_key)).count();
    let next = files.get(*at);
    next.is_none_or(|file| order.compare(file.smallest_user_key(), user_key).is_gt())
}

#[cfg(test)]
mod tests {
    use base::key::encode;
    use base::{SeqNo, ValueKind};

    use super::*;
    use crate::cursor::testing::{FakeTable, VersionMaker};

    #[test]
    fn files_of_all_deeper_levels_count_and_no_others() {
        let mut maker = VersionMaker::default();
        let point = |key: &str| encode(key.as_bytes(), SeqNo(1), ValueKind::Value);
        let exclusive = |key: &str| encode(key.as_bytes(), SeqNo::MAX, ValueKind::RangeDeletion);
        for (level, first, last) in [
            (1, point("a"), point("z")),
            (2, point("b"), point("c")),
            (2, point("f"), exclusive("h")),
            (3, point("k"), point("l")),
        ] {
            maker.add(level, (first, last), FakeTable::new(Vec::new(), None));
        }
        let version = Arc::new(maker.build());
        let outside = |lower: Option<&[u8]>| {
            let mut not_below = key_not_below(version.clone(), 1, lower);
            let keys = ('a'..='m').filter(|key| lower.is_none_or(|lower| [*key as u8].as_slice() >= lower));
            keys.filter(|key| not_below(&[*key as u8])).collect::<String>()
        };
        assert_eq!(outside(None), "adehijm");
        assert_eq!(outside(Some(b"g")), "hijm");
        assert!(key_not_below(version.clone(), 3, None)(b"k"), "the output level itself is not below");
    }
}
