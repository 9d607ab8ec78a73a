//! What `ingest` can be told.

use std::path::PathBuf;
use std::time::Duration;

use base::{Error, Result};
use spillway::IngestMode;

use crate::beside::Plan;
use crate::flags::choices::{Choices, Named};
use crate::flags::{self, FlagValue, JsonTarget, split_list};

/// Files, in the order given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files(pub Vec<PathBuf>);

impl FlagValue for Files {
    fn read(text: &str) -> Option<Self> {
        split_list(text).map(|items| Files(items.into_iter().map(PathBuf::from).collect()))
    }

    fn show(&self) -> String {
        self.0.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(",")
    }
}

impl Named for IngestMode {
    const ALL: &'static [(&'static str, IngestMode)] = &[
        ("blocking", IngestMode::Blocking),
        ("flush-first", IngestMode::FlushFirst),
        ("direct", IngestMode::Direct),
        ("flushable", IngestMode::Flushable),
    ];
}

/// Which keys the writers write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyShape {
    /// Even numbers, in eight big-endian bytes and eight digits.
    Numbers,
    /// A code point as in UnicodeData.txt, then a number that never comes again: between that file's keys.
    CodePoints,
}

impl FlagValue for KeyShape {
    fn read(text: &str) -> Option<Self> {
        match text {
            "numbers" => Some(KeyShape::Numbers),
            "codepoints" => Some(KeyShape::CodePoints),
            _ => None,
        }
    }

    fn show(&self) -> String {
        match self {
            KeyShape::Numbers => "numbers".to_owned(),
            KeyShape::CodePoints => "codepoints".to_owned(),
        }
    }
}

flags::flags! {
    /// What a run of `ingest` was asked to do.
    pub struct IngestFlags;

    /// An empty or new folder for databases and tables. They are deleted at the end.
    db: String = String::new();
    /// Of blocking, flush-first, direct and flushable, or all.
    mode: Choices<IngestMode> = Choices(IngestMode::ALL.iter().map(|(_, mode)| *mode).collect());
    /// Syncs the log at every write.
    sync: bool = false;
    /// Threads that write.
    writers: u64 = 2;
    /// Writes a second, all threads together.
    rate: u64 = 20_000;
    /// Seconds that are measured of each run.
    seconds: f64 = 4.0;
    /// Seconds of writing before that, without ingests.
    warmup: f64 = 0.3;
    /// How often each mode takes its turn beside a run without ingests.
    rounds: u32 = 5;
    /// Numbers that tables and writers draw keys from.
    key_range: u64 = 1_000_000;
    /// Keys of a table, spread over all numbers.
    table_keys: u64 = 2000;
    /// From the start of one ingest to the next.
    interval_ms: u64 = 100;
    /// Tables to ingest, over and over, in place of such as are made.
    tables: Files = Files::default();
    /// numbers or codepoints (as keys in UnicodeData.txt).
    keys: KeyShape = KeyShape::Numbers;
    /// The databases of the last round stay, each in the folder of its mode.
    keep: bool = false;
    /// Bytes of a value.
    value_size: usize = 100;
    /// Bytes of a memtable.
    write_buffer_size: usize = 64 << 20;
    /// Where random numbers start.
    seed: u64 = 1;
    /// A file for JSON lines; alone or `-` for standard output.
    json: JsonTarget = JsonTarget::default();
}

impl IngestFlags {
    /// # Errors
    /// `InvalidArgument`: the flag that is unknown, or whose value does not fit.
    pub fn parse(given: &[String]) -> Result<IngestFlags> {
        let flags: IngestFlags = flags::parse(given)?;
        let refuse = |message: &str| Err(Error::invalid_argument(message));
        if flags.db.is_empty() {
            return refuse("--db=DIR is missing");
        }
        if [flags.writers, flags.rate, flags.rounds.into(), flags.table_keys, flags.interval_ms].contains(&0) {
            return refuse("--writers, --rate, --rounds, --table_keys and --interval_ms must be at least 1");
        }
        if flags.key_range / 2 < flags.table_keys {
            return refuse("--key_range must be twice --table_keys or more");
        }
        if !(flags.seconds > 0.0 && flags.warmup >= 0.0) {
            return refuse("--seconds must be more than 0, and --warmup not less");
        }
        Ok(flags)
    }

    pub fn plan(&self) -> Plan {
        Plan {
            writers: self.writers,
            rate: self.rate,
            warmup: Duration::from_secs_f64(self.warmup),
            measured: Duration::from_secs_f64(self.seconds),
            interval: Duration::from_millis(self.interval_ms),
        }
    }

    /// The conditions that a result does not name elsewhere.
    pub fn conditions(&self) -> String {
        format!(
            "--seconds={} --warmup={} --key_range={} --table_keys={} --interval_ms={} --value_size={} --write_buffer_size={} --keys={} \
             --seed={}",
            self.seconds,
            self.warmup,
            self.key_range,
            self.table_keys,
            self.interval_ms,
            self.value_size,
            self.write_buffer_size,
            self.keys.show(),
            self.seed
        )
    }
}
