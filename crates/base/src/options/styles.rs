//! Options of the compaction styles other than by level, under RocksDB's names.

use crate::error::{Error, Result};
use crate::options::choices::CompactionStopStyle;
use crate::options::known;
use crate::options::row::{ANY, Load, nested_group, option_table, within};
use crate::options::string;

option_table! {
    for_each: ($) for_each_universal_option;
    /// How universal compaction chooses sorted runs: a table of level 0 is a run, and so is each deeper level.
    struct UniversalOptions = "compaction_options_universal", unhonoured: known::UNIVERSAL;

    /// Percent by which the next older run may be larger than the newer ones together, to be merged with them.
    size_ratio: u32 = 1, ANY, RocksDb, Mutable;
    /// Runs that one compaction merges at least.
    min_merge_width: u32 = 2, ANY, RocksDb, Mutable;
    /// Runs that one compaction merges at most, unless it is there to save space.
    max_merge_width: u32 = u32::MAX, ANY, RocksDb, Mutable;
    /// Bytes of all runs but the oldest, in percent of the oldest, at which all are merged.
    max_size_amplification_percent: u32 = 200, ANY, RocksDb, Mutable;
    /// Percent of all bytes, the oldest, to compress: newer tables are written without. Negative: all are compressed.
    compression_size_percent: i32 = -1, within(-1.0, 100.0), RocksDb, Mutable;
    /// Runs at most, though more compactions are needed: -1 for `level0_file_num_compaction_trigger`, 0 for as many as
    /// `size_ratio` leaves between `write_buffer_size` and the largest run.
    max_read_amp: i32 = -1, ANY, Spillway, Mutable;
    /// What the next older run is compared with: the newer ones together, or the one before it.
    stop_style: CompactionStopStyle = CompactionStopStyle::TotalSize, ANY, RocksDb, Mutable;
    /// Tables without overlap go to their level as they are.
    allow_trivial_move: bool = false, ANY, RocksDb, Mutable;
}

nested_group!(UniversalOptions, string::print_nested);

option_table! {
    for_each: ($) for_each_fifo_option;
    /// What FIFO compaction keeps: it deletes whole tables, the oldest first.
    struct FifoOptions = "compaction_options_fifo", unhonoured: known::FIFO;

    /// Bytes of tables above which the oldest are deleted.
    max_table_files_size: u64 = 1 << 30, ANY, RocksDb, Mutable;
    /// The same under RocksDB's newer name, which counts instead if it is not 0.
    max_data_files_size: u64 = 0, ANY, Spillway, Mutable;
    /// Merges small tables of level 0 if there are `level0_file_num_compaction_trigger` of them.
    allow_compaction: bool = false, ANY, RocksDb, Mutable;
}

nested_group!(FifoOptions, string::print_nested);

impl FifoOptions {
    fn set_nested(&mut self, text: &str, load: &mut Load) -> Result<()> {
        string::apply(self, text, load)
    }

    /// Bytes of tables to keep at most.
    pub fn most_bytes(&self) -> u64 {
        if self.max_data_files_size > 0 { self.max_data_files_size } else { self.max_table_files_size }
    }
}

impl UniversalOptions {
    fn set_nested(&mut self, text: &str, load: &mut Load) -> Result<()> {
        string::apply(self, text, load)
    }

    /// # Errors
    /// `Unsupported`, in RocksDB's words: fewer runs allowed than start a compaction.
    pub(super) fn check_beside(&self, level0_file_num_compaction_trigger: i32) -> Result<()> {
        let wrong = match self.max_read_amp {
            ..-1 => "should be at least -1.",
            1.. if self.max_read_amp < level0_file_num_compaction_trigger => {
                "limits the number of sorted runs but is smaller than the compaction trigger level0_file_num_compaction_trigger."
            }
            _ => return Ok(()),
        };
        Err(Error::unsupported(format!("CompactionOptionsUniversal::max_read_amp {wrong}")))
    }
}
