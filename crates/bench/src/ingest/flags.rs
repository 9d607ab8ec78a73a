//! What `ingest` can be told.

use std::path::PathBuf;
use std::time::Duration;

use base::{Error, Result};
use spillway::IngestMode;

use crate::flags::choices::{Choices, Named, Numbers, one_of};
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Overlap,
    Writers,
    Load,
}

impl Named for Part {
    const ALL: &'static [(&'static str, Part)] =
        &[("overlap", Part::Overlap), ("writers", Part::Writers), ("load", Part::Load)];
}

impl Named for IngestMode {
    const ALL: &'static [(&'static str, IngestMode)] = &[
        ("blocking", IngestMode::Blocking),
        ("flush-first", IngestMode::FlushFirst),
        ("direct", IngestMode::Direct),
        ("flushable", IngestMode::Flushable),
    ];
}

/// Where a database lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    Memory,
    Disk,
}

impl Named for Store {
    const ALL: &'static [(&'static str, Store)] = &[("memory", Store::Memory), ("disk", Store::Disk)];
}

/// Which tables are ingested under the writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// Of `--table_keys` keys spread over the writers' whole range, one each `--interval_ms`.
    Small,
    /// Of `--big_table_mib`, each over its own slice of the writers' range, one each `--big_interval_ms`.
    Big,
    /// Those of `--tables`, over and over, one each `--interval_ms`.
    Given,
}

impl Named for Tables {
    const ALL: &'static [(&'static str, Tables)] =
        &[("small", Tables::Small), ("big", Tables::Big), ("given", Tables::Given)];
}

/// How tables get into the database's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bring {
    Link,
    Copy,
}

impl Named for Bring {
    const ALL: &'static [(&'static str, Bring)] = &[("link", Bring::Link), ("copy", Bring::Copy)];
}

/// Which keys the writers write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyShape {
    /// Even numbers, in eight big-endian bytes and eight digits.
    Numbers,
    /// A code point as in UnicodeData.txt, then a number that never comes again: between that file's keys.
    CodePoints,
}

impl Named for KeyShape {
    const ALL: &'static [(&'static str, KeyShape)] =
        &[("numbers", KeyShape::Numbers), ("codepoints", KeyShape::CodePoints)];
}

one_of!(Bring, KeyShape);

flags::flags! {
    /// What a run of `ingest` was asked to do.
    pub struct IngestFlags;

    /// An empty or new folder for databases and tables. They are deleted at the end.
    db: String = String::new();
    /// Of overlap, writers and load, or all.
    part: Choices<Part> = Choices(vec![Part::Overlap, Part::Writers, Part::Load]);
    /// Of blocking, flush-first, direct and flushable, or all.
    mode: Choices<IngestMode> = Choices(IngestMode::ALL.iter().map(|(_, mode)| *mode).collect());
    /// writers: also a run beside which each table is only copied into a file that is synced, which an ingest that links need not do.
    copy: bool = false;
    /// Every block is read, and its checksum and the order of keys are checked, before a table is taken.
    verify: bool = false;
    /// overlap: memory, disk, or all.
    stores: Choices<Store> = Choices(vec![Store::Memory, Store::Disk]);
    /// overlap: how many memtables hold keys of the table's range when it is ingested.
    memtables: Numbers = Numbers(vec![1, 2, 3, 4, 5, 8, 16, 32]);
    /// overlap: bytes of a memtable.
    memtable_size: usize = 262144;
    /// overlap: keys of the table.
    overlap_keys: u64 = 100;
    /// overlap: how often each is measured, on a new database each time.
    repeats: u32 = 20;
    /// overlap: the caller sleeps before the ingest, rather than waiting awake: its processor has been others' meanwhile.
    asleep: bool = false;
    /// writers: small (a table of --table_keys each --interval_ms), big (of --big_table_mib each --big_interval_ms), or
    /// given (--tables).
    loads: Choices<Tables> = Choices(vec![Tables::Small, Tables::Big]);
    /// writers: no (the log is written), yes (and synced before a write returns), or all.
    sync: Choices<bool> = Choices(vec![false, true]);
    /// writers: threads that write.
    writers: u64 = 2;
    /// writers: writes a second, all threads together.
    rate: u64 = 20_000;
    /// writers: the same where writes are synced.
    sync_rate: u64 = 1000;
    /// writers: seconds that are measured of each run.
    seconds: f64 = 10.0;
    /// writers: seconds of writing before that, without ingests.
    warmup: f64 = 0.5;
    /// writers: how often each mode takes its turn beside a run without ingests; load: how often each way.
    rounds: u32 = 10;
    /// writers: numbers that small tables and writers draw keys from.
    key_range: u64 = 1_000_000;
    /// writers: keys of a small table.
    table_keys: u64 = 2000;
    /// writers: from the start of one ingest of a small or given table to the next.
    interval_ms: u64 = 100;
    /// writers: size of a big table.
    big_table_mib: u64 = 64;
    /// writers: from the start of one ingest of a big table to the next.
    big_interval_ms: u64 = 1000;
    /// writers: tables to ingest, for --loads=given.
    tables: Files = Files::default();
    /// writers: link (link_files) or copy.
    bring: Bring = Bring::Link;
    /// writers: numbers or codepoints (as keys in UnicodeData.txt).
    keys: KeyShape = KeyShape::Numbers;
    /// writers: a write is waited for in sleep until so many microseconds before its time, then awake.
    spin_us: u64 = 25;
    /// writers: percent of the processors' time; a run during which the machine's host gave more to others is made again, up to ten times.
    stolen_max: f64 = 100.0;
    /// writers: the databases of the last round stay, each in the folder of its load and mode.
    keep: bool = false;
    /// load: rows of the data set.
    rows: u64 = 1_000_000;
    /// load: the command line's program; next to this one where not given.
    spillway: String = String::new();
    /// load: the program of RocksDB that loads rows.
    ldb: String = "ldb".to_owned();
    /// load: the program of RocksDB that makes rows itself.
    db_bench: String = "db_bench".to_owned();
    /// Bytes of a value.
    value_size: usize = 100;
    /// Bytes of a memtable, except in overlap.
    write_buffer_size: usize = 64 << 20;
    /// Where random numbers start.
    seed: u64 = 1;
    /// A file for JSON lines; alone or `-` for standard output.
    json: JsonTarget = JsonTarget::default();
    /// writers: a file for a picture (SVG) of the latencies.
    plot: String = String::new();
}

impl IngestFlags {
    /// # Errors
    /// `InvalidArgument`: the flag that is unknown, or whose value does not fit.
    pub fn parse(given: &[String]) -> Result<IngestFlags> {
        let flags: IngestFlags = flags::parse(given)?;
        if flags.db.is_empty() {
            return Err(Error::invalid_argument("--db=DIR is missing"));
        }
        let at_least_one = [
            ("memtables", flags.memtables.0.iter().copied().min().unwrap_or(0) as u64),
            ("overlap_keys", flags.overlap_keys),
            ("repeats", flags.repeats.into()),
            ("writers", flags.writers),
            ("rate", flags.rate),
            ("sync_rate", flags.sync_rate),
            ("rounds", flags.rounds.into()),
            ("table_keys", flags.table_keys),
            ("interval_ms", flags.interval_ms),
            ("big_table_mib", flags.big_table_mib),
            ("big_interval_ms", flags.big_interval_ms),
            ("rows", flags.rows),
        ];
        if let Some((name, _)) = at_least_one.iter().find(|(_, value)| *value == 0) {
            return Err(Error::invalid_argument(format!("--{name} must be at least 1")));
        }
        if flags.loads.0.contains(&Tables::Given) == flags.tables.0.is_empty() {
            return Err(Error::invalid_argument("--loads=given and --tables go together"));
        }
        if flags.key_range / 2 < flags.table_keys {
            return Err(Error::invalid_argument("--key_range must be twice --table_keys or more"));
        }
        if !(flags.seconds > 0.0 && flags.warmup >= 0.0) {
            return Err(Error::invalid_argument("--seconds must be more than 0, and --warmup not less"));
        }
        Ok(flags)
    }

    /// From one ingest to the next.
    pub fn interval(&self, tables: Tables) -> Duration {
        Duration::from_millis(match tables {
            Tables::Small | Tables::Given => self.interval_ms,
            Tables::Big => self.big_interval_ms,
        })
    }

    /// Ingests that begin within a run.
    pub fn ingests_of_a_run(&self, tables: Tables) -> u64 {
        ((self.seconds / self.interval(tables).as_secs_f64()).floor() as u64).max(1)
    }

    /// The conditions of a part that its results do not name elsewhere.
    pub fn conditions(&self, part: Part) -> String {
        match part {
            Part::Overlap => format!(
                "--memtable_size={} --overlap_keys={} --value_size={} --repeats={} --asleep={} --verify={} --seed={}",
                self.memtable_size,
                self.overlap_keys,
                self.value_size,
                self.repeats,
                self.asleep,
                self.verify,
                self.seed
            ),
            Part::Writers => format!(
                "--seconds={} --warmup={} --key_range={} --table_keys={} --interval_ms={} --big_table_mib={} \
                 --big_interval_ms={} --bring={} --verify={} --value_size={} --write_buffer_size={} --spin_us={} --keys={} \
                 --seed={}",
                self.seconds,
                self.warmup,
                self.key_range,
                self.table_keys,
                self.interval_ms,
                self.big_table_mib,
                self.big_interval_ms,
                self.bring.show(),
                self.verify,
                self.value_size,
                self.write_buffer_size,
                self.spin_us,
                self.keys.show(),
                self.seed
            ),
            Part::Load => format!(
                "--rows={} --value_size={} --write_buffer_size={} --seed={}",
                self.rows, self.value_size, self.write_buffer_size, self.seed
            ),
        }
    }
}
