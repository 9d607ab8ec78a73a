//! Options of compaction styles.

use capi::boundary::settings::Row;
use capi::options::styles::{FIFO_ROWS, Fifo, UNIVERSAL_ROWS, Universal};

use crate::boundary::settings::{fields, settings};

pub mod universal {
    use super::*;

    const OWN: &[Row<Universal>] = fields! { Universal;
        "max_merge_width" => group.max_merge_width;
    };

    settings! { ["CompactionOptionsUniversal"], Universal, [UNIVERSAL_ROWS, OWN];
        i32, set "setSizeRatio", get "sizeRatio" => "size_ratio";
        i32, set "setMinMergeWidth", get "minMergeWidth" => "min_merge_width";
        i32, set "setMaxMergeWidth", get "maxMergeWidth" => "max_merge_width";
        i32, set "setMaxSizeAmplificationPercent", get "maxSizeAmplificationPercent"
            => "max_size_amplification_percent";
        i32, set "setCompressionSizePercent", get "compressionSizePercent" => "compression_size_percent";
        i8, set "setStopStyle", get "stopStyle" => "stop_style";
        bool, set "setAllowTrivialMove", get "allowTrivialMove" => "allow_trivial_move";
    }
}

pub mod fifo {
    use super::*;

    settings! { ["CompactionOptionsFIFO"], Fifo, [FIFO_ROWS];
        i64, set "setMaxTableFilesSize", get "maxTableFilesSize" => "max_table_files_size";
        i64, set "setMaxDataFilesSize", get "maxDataFilesSize" => "max_data_files_size";
        bool, set "setAllowCompaction", get "allowCompaction" => "allow_compaction";
        bool, set "setUseKvRatioCompaction", get "useKvRatioCompaction" => "use_kv_ratio_compaction";
    }
}
