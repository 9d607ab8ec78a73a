//! Whether a key has changed since a number: what a transaction asks at its commit. Keeps Q1, V1.
//!
//! The history above the number must be whole: a snapshot at or below it keeps jobs from forgetting numbers, and from
//! dropping entries that a deletion hides.

use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{LookupKey, Result, SeqNo};
use table::TableReadOptions;

use crate::queue::flushable::Flushable;
use crate::queue::view::ReadView;
use crate::version::level::overlaps;
use crate::version::table_file::TableFile;

/// Whether the view has an entry of the key, or a range tombstone over it, above `since`. Looks into memory and, if
/// tables are younger than `since`, into those. Copies and keeps no value.
///
/// # Errors
/// `Corruption`, `Io`: a table could not be read.
pub fn has_changed(view: &ReadView, user_key: &[u8], since: SeqNo) -> Result<bool> {
    let key = LookupKey::new(user_key, SeqNo::MAX);
    let search = Search { key: &key, user_key, since, options: TableReadOptions::default() };
    if let Some(changed) = search.in_flushable(&*view.mutable)? {
        return Ok(changed);
    }
    for flushable in &view.queue {
        if let Some(changed) = search.in_flushable(&**flushable)? {
            return Ok(changed);
        }
    }
    search.in_tables(view)
}

struct Search<'a> {
    key: &'a LookupKey,
    user_key: &'a [u8],
    since: SeqNo,
    options: TableReadOptions,
}

impl Search<'_> {
    /// The answer, once the newest entry is met. Entries and tombstones of older sources are older (Q1).
    fn in_flushable(&self, flushable: &dyn Flushable) -> Result<Option<bool>> {
        if flushable.largest_seq().is_some_and(|largest| largest <= self.since) {
            return Ok(None);
        }
        if self.is_covered(flushable.tombstones(&self.options)?.as_deref()) {
            return Ok(Some(true));
        }
        Ok(flushable.newest(self.key, &self.options)?.map(|seq| seq > self.since))
    }

    fn in_tables(&self, view: &ReadView) -> Result<bool> {
        let version = &*view.version;
        if version.largest_seq() <= self.since {
            return Ok(false);
        }
        let order = &version.order().user;
        let holds = |file: &&Arc<TableFile>| overlaps(order, &file.meta, Some(self.user_key), Some(self.user_key));
        for file in version.level(0).iter().filter(holds) {
            if let Some(changed) = self.in_table(file)? {
                return Ok(changed);
            }
        }
        for level in 1..version.num_levels() {
            // Neighbours may share one key: the newest entry may be in either.
            let mut met = None;
            for file in version.candidates(level, self.user_key) {
                met = met.max(self.in_table(file)?);
            }
            if let Some(changed) = met {
                return Ok(changed);
            }
        }
        Ok(false)
    }

    fn in_table(&self, file: &TableFile) -> Result<Option<bool>> {
        if file.meta.largest_seq <= self.since {
            return Ok(None);
        }
        file.read_by(&self.options, |table| {
            if self.is_covered(table.tombstones().as_deref()) {
                return Ok(Some(true));
            }
            let mut newest = None;
            table.get(self.key, &self.options, &mut |seq, _, _| {
                newest = Some(seq);
                false
            })?;
            Ok(newest.map(|seq| seq > self.since))
        })
    }

    fn is_covered(&self, tombstones: Option<&FragmentedTombstones>) -> bool {
        tombstones.and_then(|all| all.covering(self.user_key, SeqNo::MAX)).is_some_and(|seq| seq > self.since)
    }
}
