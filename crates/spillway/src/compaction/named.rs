//! Compaction of tables that a caller names, on the caller's thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base::options::CompressionKind;
use base::{FileNumber, Result};

use super::manual::{Call, CompactRangeOptions};
use super::pick::FilesRequest;
use crate::compaction::job::Compactor;
use crate::core::family::Family;
use crate::core::plan::Pick;

/// Options of a compaction of named tables, with RocksDB's names and defaults.
#[derive(Clone, Debug)]
pub struct CompactFilesOptions {
    /// `Disable`: as the level's tables are compressed.
    pub compression: CompressionKind,
    /// Bytes of a new table, at most.
    pub output_file_size_limit: u64,
    /// 0 takes the database's option.
    pub max_subcompactions: usize,
    /// Tables may go to their level as they are.
    pub allow_trivial_move: bool,
    /// Ends the call once true.
    pub canceled: Option<Arc<AtomicBool>>,
}

impl Default for CompactFilesOptions {
    fn default() -> Self {
        CompactFilesOptions {
            compression: CompressionKind::Disable,
            output_file_size_limit: u64::MAX,
            max_subcompactions: 0,
            allow_trivial_move: false,
            canceled: None,
        }
    }
}

impl CompactFilesOptions {
    fn apply(&self, pick: Pick) -> Pick {
        let compression = match self.compression {
            CompressionKind::Disable => pick.compression,
            compression => compression,
        };
        let output_file_bytes = self.output_file_size_limit;
        // As in RocksDB, tables end at that limit only.
        let (grandparents, grandparent_bytes_max) = (Vec::new(), u64::MAX);
        Pick { compression, output_file_bytes, grandparents, grandparent_bytes_max, ..pick }
    }
}

impl Compactor {
    /// Compacts tables into a level. Waits while running compactions are in the way. Returns the new tables.
    pub(crate) fn compact_files(
        &self,
        family: &Arc<Family>,
        files: &BTreeSet<FileNumber>,
        output_level: usize,
        options: &CompactFilesOptions,
    ) -> Result<Vec<FileNumber>> {
        let _awaited = self.core.context.throttle.await_compactions();
        let as_range = CompactRangeOptions {
            max_subcompactions: options.max_subcompactions,
            canceled: options.canceled.clone(),
            ..CompactRangeOptions::default()
        };
        let call = Call { compactor: self, core: &self.core, family, start: None, end: None, options: &as_range };
        let request = FilesRequest { files, output_level, may_move: options.allow_trivial_move };
        while let Some((mut plan, _)) = call.next_step(&|picker| picker.named(&request))? {
            if !plan.pick.trivial_move {
                plan.pick = Arc::new(options.apply((*plan.pick).clone()));
            }
            if let Some(made) = call.run(plan)? {
                return Ok(made);
            }
        }
        Ok(Vec::new())
    }
}
