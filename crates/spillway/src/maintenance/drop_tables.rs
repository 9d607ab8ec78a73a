//! Drops whole tables within a key range: frees space at once, without reading or writing data. Keeps V1-V3.

use std::sync::Arc;

use base::{FileNumber, Result, UserOrder};

use crate::core::family::Family;
use crate::core::install::Change;
use crate::core::{Core, FamilyState};
use crate::maintenance::checkpoint::Copier;
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

impl Copier<'_> {
    /// See [`Database::drop_tables_in_range`](crate::internal::Database::drop_tables_in_range).
    pub fn drop_tables_in_range(
        &self,
        family: &Arc<Family>,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<usize> {
        let core = self.core;
        core.check_writable()?;
        core.check_family(family)?;
        let range = KeyRange { order: &family.order().user, start, end };
        loop {
            let dropped = range.tables_in(core, family);
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
