//! What `ingest` can be told.

use std::path::PathBuf;
use std::time::Duration;

use base::{Error, Result};
use clap::ValueEnum;
use spillway::IngestMode;

use crate::beside::Plan;
use crate::flags::{flags, name_of};

/// A run's mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// The same writers without ingests.
    #[value(skip)]
    None,
    Blocking,
    FlushFirst,
    Direct,
    Flushable,
}

impl Mode {
    pub fn name(self) -> String {
        if self == Mode::None { "none".to_owned() } else { name_of(self) }
    }

    pub fn of_engine(self) -> IngestMode {
        match self {
            Mode::Blocking => IngestMode::Blocking,
            Mode::FlushFirst => IngestMode::FlushFirst,
            Mode::Direct => IngestMode::Direct,
            Mode::None | Mode::Flushable => IngestMode::Flushable,
        }
    }
}

/// Which keys the writers write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum KeyShape {
    /// Even numbers, in eight big-endian bytes and eight digits.
    Numbers,
    /// A code point as in UnicodeData.txt, then a number that never comes again: between that file's keys.
    CodePoints,
}

flags! {
    /// Times writers beside ingests.
    pub struct IngestFlags;

    /// An empty or new folder for databases and tables. They are deleted at the end.
    db: PathBuf;
    /// Modes of ingests; all where none is named.
    #[arg(value_enum, value_delimiter = ',')]
    mode: Vec<Mode>;
    /// Syncs the log at every write.
    sync: bool;
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
    #[arg(value_delimiter = ',')]
    tables: Vec<PathBuf>;
    /// What the writers write.
    #[arg(value_enum)]
    keys: KeyShape = KeyShape::Numbers;
    /// The databases of the last round stay, each in the folder of its mode.
    keep: bool;
    /// Bytes of a value.
    value_size: usize = 100;
    /// Bytes of a memtable.
    write_buffer_size: usize = 64 << 20;
    /// Where random numbers start.
    seed: u64 = 1;
    /// A file for JSON lines.
    json: Option<PathBuf>;
}

impl IngestFlags {
    /// # Errors
    /// `InvalidArgument`: the flag whose value does not fit.
    pub fn check(&self) -> Result<()> {
        let refuse = |message: &str| Err(Error::invalid_argument(message));
        if [self.writers, self.rate, self.rounds.into(), self.table_keys, self.interval_ms].contains(&0) {
            return refuse("--writers, --rate, --rounds, --table_keys and --interval_ms must be at least 1");
        }
        if self.key_range / 2 < self.table_keys {
            return refuse("--key_range must be twice --table_keys or more");
        }
        if !(self.seconds > 0.0 && self.warmup >= 0.0) {
            return refuse("--seconds must be more than 0, and --warmup not less");
        }
        Ok(())
    }

    /// The modes of the runs, by turns.
    pub fn modes(&self) -> Vec<Mode> {
        let asked = if self.mode.is_empty() { Mode::value_variants() } else { &self.mode };
        std::iter::once(Mode::None).chain(asked.iter().copied()).collect()
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
        let keys = name_of(self.keys);
        format!(
            "--seconds={} --warmup={} --key_range={} --table_keys={} --interval_ms={} --value_size={} --write_buffer_size={} --keys={keys} \
             --seed={}",
            self.seconds,
            self.warmup,
            self.key_range,
            self.table_keys,
            self.interval_ms,
            self.value_size,
            self.write_buffer_size,
            self.seed
        )
    }
}
