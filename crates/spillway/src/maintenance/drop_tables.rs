//! Dropping whole tables of a range of keys: space comes back at once, and nothing is read or written for it. Keeps V1-V3.

use std::sync::Arc;

use base::{FileNumber, Result, UserOrder};

use crate::api::db::Db;
use crate::core::family::Family;
use crate::core::install::Change;
use crate::core::{Core, FamilyState};
use crate::version::edit::VersionEdit;
use crate::version::table_file::TableFile;

impl Db {
    /// Drops the tables of a family all of whose keys lie from `start` through `end`, `None` being the end of the key space.
    /// Tables of level 0 stay, as do those that a compaction reads or that have no level yet, and whatever is in memory: what
    /// is left of the range is for a range deletion, or [`IngestRequest::excise`](crate::IngestRequest::excise), to remove.
    /// Older versions of a key may reappear where a table above theirs goes. Iterators go on with what they saw; snapshots
    /// do not see any more what was dropped. Returns how many tables went.
    ///
    /// # Errors
    /// `ReadOnly`, `Closed`; a failure of the MANIFEST, after which the database is read-only (D4).
    pub fn drop_tables_in_range(
        &self,
        family: &Arc<Family>,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<usize> {
        let core = self.core();
        core.check_writable()?;
        core.check_family(family)?;
        let range = KeyRange { order: &family.order().user, start, end };
        loop {
            let dropped = core.tables_in(family, &range);
            let mut edit = VersionEdit::new(family.id());
            edit.deleted.clone_from(&dropped);
            let change = Change { edit, inputs: &dropped, compaction: None, flushed: &[], adopted: &[] };
            if dropped.is_empty() || core.install(change)? {
                core.drive_if_inline();
                return Ok(dropped.len());
            }
            family.check_live()?; // a compaction was faster (V2): what it made of them may go
        }
    }
}

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

impl Core {
    /// The tables of a range below level 0 that no compaction reads, with their levels.
    fn tables_in(&self, family: &Family, range: &KeyRange<'_>) -> Vec<(usize, FileNumber)> {
        let state = self.state.lock();
        let Some(FamilyState { version, compactions, .. }) = state.families.get(&family.id()) else {
            return Vec::new();
        };
        let below_zero = version.all_files().filter(|(level, _)| *level > 0);
        let goes = |file: &TableFile| range.has_all_of(file) && !compactions.is_busy(file.number());
        below_zero.filter(|(_, file)| goes(file)).map(|(level, file)| (level, file.number())).collect()
    }
}
