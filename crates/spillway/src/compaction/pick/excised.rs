//! Files of which excises left little: what is left is rewritten, and they go. The last level is never due by its size, and
//! sizes of levels are those of what is left, so nothing else would.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::FileNumber;

use super::Picker;
use crate::compaction::plan::{Pick, Reason};
use crate::version::table_file::TableFile;

/// A file is kept while tables count this part of it.
const COUNTED_PART: u64 = 4;

/// So much is to come free: small files cost more syncs than they are worth one by one.
const EXCISED_BYTES_MIN: u64 = 1 << 20;

impl Picker<'_> {
    /// What is left in files of which excises took most: below level 0 rewritten where it is, so that no virtual table
    /// comes of it.
    pub(super) fn mostly_excised(&self) -> Option<Pick> {
        let files = self.files_to_free();
        if files.is_empty() {
            return None;
        }
        let wanted = |file: &Arc<TableFile>| file.meta.is_virtual() && files.contains(&file.meta.physical_number());
        let mut of_level0 = self.version.level(0).iter().filter(|file| wanted(file));
        let pick = of_level0.find_map(|file| self.rewritten_from_level0(file, Reason::Excised));
        pick.or_else(|| (1..self.version.num_levels()).find_map(|level| self.left_in(level, &wanted)))
    }

    /// The first run of a level's wanted files that are free.
    fn left_in(&self, level: usize, wanted: &impl Fn(&Arc<TableFile>) -> bool) -> Option<Pick> {
        let files = self.version.level(level);
        let mut at = 0;
        while let Some(skipped) = files.get(at..)?.iter().position(wanted) {
            let run = self.bounded(files, at + skipped..files.len(), wanted);
            at = run.end;
            if let Some(pick) = self.in_place(level, run, Reason::Excised) {
                return Some(pick);
            }
        }
        None
    }

    /// Files of which tables count little, where they are enough.
    fn files_to_free(&self) -> BTreeSet<FileNumber> {
        let is_little = |counted_bytes: u64, file_bytes: u64| counted_bytes < file_bytes / COUNTED_PART;
        let mut metas = self.version.all_files().map(|(_, file)| &file.meta);
        // Most families have none: nothing is gathered for them.
        if !metas.any(|meta| meta.is_virtual() && is_little(meta.file_bytes, meta.physical_bytes())) {
            return BTreeSet::new();
        }
        let mut shared = self.version.shared_files();
        shared.retain(|_, file| is_little(file.counted_bytes, file.file_bytes));
        let excised_bytes: u64 = shared.values().map(|file| file.excised_bytes()).sum();
        if excised_bytes < EXCISED_BYTES_MIN { BTreeSet::new() } else { shared.into_keys().collect() }
    }
}
