//! Ranges of a family's tables as ranks among all their bounds: a picture of the levels for any order of keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{FileNumber, UserOrder};

use crate::observe::{ObservedSpan, SPANS_MAX};
use crate::version::table_file::TableFile;
use crate::version::version::Version;

/// Bytes of a key that are shown.
const SHOWN_BYTES_MAX: usize = 48;

/// Neighbours of a level drawn as one.
struct Group<'a> {
    files: &'a [Arc<TableFile>],
    smallest: &'a [u8],
    largest: &'a [u8],
}

impl<'a> Group<'a> {
    fn of(order: &UserOrder, files: &'a [Arc<TableFile>]) -> Option<Self> {
        let smallest = files.iter().map(|file| file.smallest_user_key()).min_by(|a, b| order.compare(a, b))?;
        let largest = files.iter().map(|file| file.largest_user_key()).max_by(|a, b| order.compare(a, b))?;
        Some(Group { files, smallest, largest })
    }

    fn span(&self, bounds: &Bounds<'_>, busy: &BTreeSet<FileNumber>) -> ObservedSpan {
        ObservedSpan {
            tables: self.files.len() as u64,
            bytes: self.files.iter().map(|file| file.meta.file_bytes).sum(),
            number: self.files.first().map_or(0, |file| file.number().0),
            from: bounds.rank(self.smallest),
            to: bounds.rank(self.largest),
            smallest: shown(self.smallest),
            largest: shown(self.largest),
            is_busy: !busy.is_empty() && self.files.iter().any(|file| busy.contains(&file.number())),
        }
    }
}

/// All bounds in the family's order, each once.
struct Bounds<'a> {
    order: &'a UserOrder,
    keys: Vec<&'a [u8]>,
}

impl<'a> Bounds<'a> {
    fn new(order: &'a UserOrder, mut keys: Vec<&'a [u8]>) -> Self {
        keys.sort_unstable_by(|a, b| order.compare(a, b));
        keys.dedup_by(|a, b| order.compare(a, b).is_eq());
        Bounds { order, keys }
    }

    /// The key's place, from 0 to 1.
    fn rank(&self, key: &[u8]) -> f64 {
        let place = self.keys.partition_point(|other| self.order.compare(other, key).is_lt());
        place as f64 / self.keys.len().saturating_sub(1).max(1) as f64
    }
}

/// The spans of each level.
pub(super) fn of(version: &Version, busy: &BTreeSet<FileNumber>) -> Vec<Vec<ObservedSpan>> {
    let order = &version.order().user;
    let groups_of = |level: usize| {
        let files = version.level(level);
        let together = files.len().div_ceil(SPANS_MAX).max(1);
        files.chunks(together).filter_map(|files| Group::of(order, files)).collect::<Vec<_>>()
    };
    let levels: Vec<_> = (0..version.num_levels()).map(groups_of).collect();
    let keys = levels.iter().flatten().flat_map(|group| [group.smallest, group.largest]).collect();
    let bounds = Bounds::new(order, keys);
    levels.iter().map(|groups| groups.iter().map(|group| group.span(&bounds, busy)).collect()).collect()
}

fn shown(key: &[u8]) -> String {
    let cut = key.get(..SHOWN_BYTES_MAX).unwrap_or(key);
    let text = cut.escape_ascii().to_string();
    if cut.len() < key.len() { text + "..." } else { text }
}
