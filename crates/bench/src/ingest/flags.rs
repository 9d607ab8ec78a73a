//! The flags of `ingest`.

use std::path::PathBuf;
use std::time::Duration;

use base::{Error, Result};
use clap::ValueEnum;
use spillway::internal::IngestMode;

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

/// The keys of the writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum KeyShape {
    /// Even numbers, in eight big-endian bytes and eight digits.
    Numbers,
    /// A code point as in UnicodeData.txt, then a slash and a unique number: new keys between the keys of --tables.
    CodePoints,
}

flags! {
    /// Flags of `spillway bench ingest`.
    pub struct IngestFlags;

    /// Empty or new folder for databases and tables. They are deleted at the end.
    db: PathBuf;
    /// Ingest modes, separated by commas; all if not given.
    #[arg(value_enum, value_delimiter = ',')]
    mode: Vec<Mode>;
    /// Syncs the log at every write.
    sync: bool;
    /// Writing threads.
    writers: u64 = 2;
    /// Writes a second, all threads together.
    rate: u64 = 20_000;
    /// Seconds of each run with ingests, all measured.
    seconds: f64 = 4.0;
    /// Seconds of writing before, without ingests and not measured.
    warmup: f64 = 0.3;
    /// Number of runs of each mode.
    rounds: u32 = 5;
    /// Range of the numbers in keys, of tables and writers.
    key_range: u64 = 1_000_000;
    /// Keys of a table, spread over the whole range.
    table_keys: u64 = 2000;
    /// Milliseconds from the start of one ingest to the next.
    interval_ms: u64 = 100;
    /// Tables to ingest, over and over, instead of generated ones; separated by commas.
    #[arg(value_delimiter = ',')]
    tables: Vec<PathBuf>;
    /// Keys of the writers.
    #[arg(value_enum)]
    keys: KeyShape = KeyShape::Numbers;
    /// Keeps the databases of the last round, each in a folder named by its mode.
    keep: bool;
    /// Counts everything (`statistics`), and lets `spillway serve` and `spillway top` look (`observe_socket`).
    live: bool;
    /// Bytes of a value.
    value_size: usize = 100;
    /// Bytes of a memtable.
    write_buffer_size: usize = 64 << 20;
    /// Seed of random numbers.
    seed: u64 = 1;
    /// File to write results to, as JSON lines.
    json: Option<PathBuf>;
}

impl IngestFlags {
    /// # Errors
    /// `InvalidArgument`: a flag's value is not allowed; the message names the flag.
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

    /// The conditions of a result, apart from its own fields.
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
