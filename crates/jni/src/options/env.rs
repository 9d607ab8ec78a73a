//! `EnvOptions`: how files are opened. Without effect here, kept for getters.

use capi::boundary::settings::Row;
use capi::kept::number::Number;
use capi::kept::{Keeps, Kept};
use capi::options::Options;

use super::database;
use crate::boundary::natives;
use crate::boundary::settings::{kept, set_by_name, settings};
use crate::objects::limiter::RateLimit;

#[derive(Clone, Default)]
pub struct EnvSettings {
    kept: Kept,
}

impl Keeps for EnvSettings {
    fn keep(&mut self, name: &'static str, number: Number, default: Number) {
        self.kept.keep(name, number, default);
    }

    fn keep_field(&mut self, name: &'static str, number: Number, taken: bool) {
        self.kept.keep_field(name, number, taken);
    }

    fn kept(&self, name: &'static str) -> Option<Number> {
        self.kept.kept(name)
    }
}

const ROWS: &[Row<EnvSettings>] = kept! { EnvSettings;
    "use_mmap_reads": bool = false;
    "use_mmap_writes": bool = true;
    "use_direct_reads": bool = false;
    "use_direct_writes": bool = false;
    "allow_fallocate": bool = true;
    "set_fd_cloexec": bool = true;
    "bytes_per_sync": i64 = 0;
    "fallocate_with_keep_size": bool = true;
    "compaction_readahead_size": i64 = 0;
    "random_access_max_buffer_size": i64 = 0;
    "writable_file_max_buffer_size": i64 = 1 << 20;
};

settings! { ["EnvOptions"], EnvSettings, [ROWS];
    bool, set "setUseMmapReads", get "useMmapReads" => "use_mmap_reads";
    bool, set "setUseMmapWrites", get "useMmapWrites" => "use_mmap_writes";
    bool, set "setUseDirectReads", get "useDirectReads" => "use_direct_reads";
    bool, set "setUseDirectWrites", get "useDirectWrites" => "use_direct_writes";
    bool, set "setAllowFallocate", get "allowFallocate" => "allow_fallocate";
    bool, set "setSetFdCloexec", get "setFdCloexec" => "set_fd_cloexec";
    i64, set "setBytesPerSync", get "bytesPerSync" => "bytes_per_sync";
    bool, set "setFallocateWithKeepSize", get "fallocateWithKeepSize" => "fallocate_with_keep_size";
    i64, set "setCompactionReadaheadSize", get "compactionReadaheadSize" => "compaction_readahead_size";
    i64, set "setRandomAccessMaxBufferSize", get "randomAccessMaxBufferSize" => "random_access_max_buffer_size";
    i64, set "setWritableFileMaxBufferSize", get "writableFileMaxBufferSize" => "writable_file_max_buffer_size";
}

/// Options of files by the database's options of the same meaning.
const OF_DATABASE: [(&str, &str); 10] = [
    ("use_mmap_reads", "allow_mmap_reads"),
    ("use_mmap_writes", "allow_mmap_writes"),
    ("use_direct_reads", "use_direct_reads"),
    ("use_direct_writes", "use_direct_io_for_flush_and_compaction"),
    ("allow_fallocate", "allow_fallocate"),
    ("set_fd_cloexec", "is_fd_close_on_exec"),
    ("bytes_per_sync", "bytes_per_sync"),
    ("compaction_readahead_size", "compaction_readahead_size"),
    ("random_access_max_buffer_size", "random_access_max_buffer_size"),
    ("writable_file_max_buffer_size", "writable_file_max_buffer_size"),
];

fn of_database(options: &Options) -> EnvSettings {
    let mut settings = EnvSettings::default();
    for (name, of) in OF_DATABASE {
        if let Some(row) = database::TABLES.iter().copied().flatten().find(|row| row.name == of) {
            set_by_name(TABLES, &mut settings, name, (row.get)(options));
        }
    }
    settings
}

pub mod others {
    use super::*;

    natives! { "EnvOptions";
        "newEnvOptions__J" => fn(_env, options: &Options) -> Box<EnvSettings> {
            Ok(Box::new(of_database(options)))
        }

        "setRateLimiter" => fn(_env, _options: &mut EnvSettings, _limit: Option<&RateLimit>) -> () {
            capi::kept::warn("env_options_rate_limiter", "set");
            Ok(())
        }
    }
}
