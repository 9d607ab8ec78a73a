//! Drops whole tables within a key range: frees space at once, without reading or writing data. Keeps V1-V3.

use std::sync::Arc;

use base::{Error, FileNumber, Result, UserOrder};

use crate::core::family::Family;
use crate::core::install::Change;
use crate::core::{Core, FamilyState};
use crate::manage::checkpoint::Copier;
use crate::version::edit::VersionEdit;
use crate::version::table_file::TableFile;

/// User keys from `start` through `end`.
struct KeyRange<'a> {
    order: &'a UserOrder,
    start: Option<&'a [u8]>,
    end: Option<&'a [u8]>,
}

impl KeyRange<'_> {
    fn has_all_of(&self, table: &TableFile) -> bool {
        let from = |start| self.order.compare(start, table.smallest_user_key()).is_le();
        let through = |end| self.order.compare(table.largest_user_key(), end).is_le();
        self.start.is_none_or(from) && self.end.is_none_or(through)
    }
}

impl KeyRange<'_> {
    /// Tables within the range below level 0, with their levels. Skips inputs of running compactions.
    fn tables_in(&self, core: &Core, family: &Family) -> Vec<(usize, FileNumber)> {
        let state = core.state.lock();
        let Some(FamilyState { version, compactions, .. }) = state.families.get(&family.id()) else {
            return Vec::new();
        };
        let below_zero = version.all_files().filter(|(level, _)| *level > 0);
        let goes = |file: &TableFile| self.has_all_of(file) && !compactions.is_busy(file.number());
        below_zero.filter(|(_, file)| goes(file)).map(|(level, file)| (level, file.number())).collect()
    }
}

/// The level of a table with nothing older below it.
///
/// # Errors
/// `InvalidArgument`: there is no such table, or something is below it, or a compaction reads it.
fn level_of_oldest(number: FileNumber, core: &Core, family: &Family) -> Result<usize> {
    let refused = |why: &str| Error::invalid_argument(format!("table {} cannot be dropped: {why}", number.0));
    let state = core.state.lock();
    let Some(FamilyState { version, compactions, .. }) = state.families.get(&family.id()) else {
        return Err(refused("its family was dropped"));
    };
    let Some((level, _)) = version.all_files().find(|(_, file)| file.number() == number) else {
        return Err(refused("there is none of this number in a level"));
    };
    let is_last_of_zero = version.level(0).last().is_some_and(|file| file.number() == number);
    if version.all_files().any(|(other, _)| other > level) || (level == 0 && !is_last_of_zero) {
        return Err(refused("there are older tables"));
    }
    if compactions.is_busy(number) {
        return Err(refused("a compaction reads it"));
    }
    Ok(level)
}

impl Copier<'_> {
    /// See [`Database::drop_tables_in_range`](crate::internal::Database::drop_tables_in_range).
    pub fn drop_tables_in_range(
        &self,
        family: &Arc<Family>,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<usize> {
        let range = KeyRange { order: &family.order().user, start, end };
        self.drop_chosen(family, |core| Ok(range.tables_in(core, family)))
    }

    /// See [`Database::drop_table`](crate::internal::Database::drop_table).
    pub fn drop_table(&self, family: &Arc<Family>, number: FileNumber) -> Result<()> {
        self.drop_chosen(family, |core| level_of_oldest(number, core, family).map(|level| vec![(level, number)]))
            .map(drop)
    }

    fn drop_chosen(
        &self,
        family: &Arc<Family>,
        choose: impl Fn(&Core) -> Result<Vec<(usize, FileNumber)>>,
    ) -> Result<usize> {
        let core = self.core;
        core.check_writable()?;
        core.check_family(family)?;
        core.sync_published()?;
        loop {
            let dropped = choose(core)?;
            let mut edit = VersionEdit::new(family.id());
            edit.deleted.clone_from(&dropped);
            let change = Change {
                edit,
                inputs: &dropped,
                compaction: None,
                flushed: &[],
                adopted: &[],
                uncovers: true,
                keeps_content: false,
            };
            if dropped.is_empty() || self.installer.install(change)? {
                core.drive_if_inline();
                return Ok(dropped.len());
            }
            family.check_live()?; // a compaction installed first (V2): its outputs may be droppable
        }
    }
}
