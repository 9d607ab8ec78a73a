//! What a load needs: arithmetic, with constants that were measured. docs/operations.md says how.

use std::time::Duration;

use spillway::internal::options::CompactionStyle;

/// Bytes of a log record beside its key and value, where each write is a batch of its own.
const LOG_ENTRY_BYTES: f64 = 36.0;

/// Bytes of an entry in a memtable beside its key and value.
const MEMTABLE_ENTRY_BYTES: f64 = 44.0;

/// Bytes of an entry in a table beside its key and value, index included.
const TABLE_ENTRY_BYTES: f64 = 6.0;

/// Bytes of a block, and of its entry in the index beside a key.
const BLOCK_BYTES: f64 = 4096.0;
const INDEX_ENTRY_BYTES: f64 = 12.0;

/// Bytes of a filter for each entry: 10 bits.
const FILTER_ENTRY_BYTES: f64 = 1.25;

/// Bytes that compactions write for each byte flushed: into the first level, and for each deeper one.
const BASE_LEVEL_WRITES: f64 = 1.7;
const DEEPER_LEVEL_WRITES: f64 = 2.05;

/// The same of universal compaction: at least, and for each doubling of the data over a memtable.
const UNIVERSAL_WRITES: f64 = 1.8;
const UNIVERSAL_DOUBLING_WRITES: f64 = 0.38;

/// Bytes of tables for each byte of data that is not overwritten.
const LEVEL_SPACE: f64 = 1.1;
const UNIVERSAL_SPACE: f64 = 1.65;

/// Bytes that one processor compacts in a second, written and before compression, with LZ4 or Snappy.
const COMPACTED_PER_S: f64 = 200e6;

/// Bytes of log replayed in a second.
const REPLAYED_PER_S: f64 = 130e6;

/// The part of a database that is set aside for a full disk.
const RESERVE: f64 = 1.0 / 16.0;

/// Times that a level is larger than the one above it.
const LEVEL_FACTOR: f64 = 10.0;

/// Memtables of level 0 that are compacted together.
const LEVEL0_TABLES: f64 = 4.0;

/// Memtables at the most: one written to, one flushed, one made ahead.
const MEMTABLES: f64 = 3.0;

/// Seconds in which a memtable should not be full.
const MEMTABLE_SECONDS: f64 = 10.0;

const MEMTABLE_BYTES_MIN: f64 = (64 << 20) as f64;
const MEMTABLE_BYTES_MAX: f64 = (1 << 30) as f64;

/// Least cache that is advised.
const CACHE_BYTES_MIN: f64 = (32 << 20) as f64;

/// What a program writes and keeps. Rates are of a second.
#[derive(Clone, Debug)]
pub struct Load {
    pub writes: f64,
    pub key_bytes: f64,
    pub value_bytes: f64,
    /// Different entries at most, by their number or by their age.
    pub entries: Option<f64>,
    pub keep: Option<Duration>,
    pub style: CompactionStyle,
    /// Stored size of data over its size.
    pub ratio: f64,
    /// The part of the data that most reads ask for.
    pub hot: f64,
    pub write_buffer_bytes: Option<f64>,
}

/// Bytes on disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    pub tables: f64,
    /// Outputs of compactions whose inputs are not deleted yet.
    pub compactions: f64,
    pub logs: f64,
    pub reserve: f64,
}

/// Bytes in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    pub memtables: f64,
    pub indexes: f64,
    pub filters: f64,
    pub blocks: f64,
}

/// Bytes written to the disk for each byte of keys and values.
#[derive(Clone, Debug, PartialEq)]
pub struct Writes {
    pub log: f64,
    pub flushes: f64,
    pub compactions: f64,
}

/// What a load needs.
#[derive(Clone, Debug)]
pub struct Needs {
    pub entries: f64,
    /// Keys and values.
    pub data_bytes: f64,
    pub disk: Disk,
    pub memory: Memory,
    pub writes: Writes,
    /// Bytes of keys and values in a second.
    pub data_per_s: f64,
    pub write_buffer_bytes: f64,
    /// Processors that compactions keep busy.
    pub compaction_processors: f64,
    /// Levels with tables, level 0 left out.
    pub levels: u32,
    /// Time to open after a crash.
    pub replay: Duration,
}

impl Disk {
    pub fn total(&self) -> f64 {
        self.tables + self.compactions + self.logs + self.reserve
    }
}

impl Memory {
    /// Without what reads gain from.
    pub fn needed(&self) -> f64 {
        self.memtables + self.indexes + self.filters
    }

    /// What the block cache should hold.
    pub fn cache(&self) -> f64 {
        (self.indexes + self.filters + self.blocks).max(CACHE_BYTES_MIN)
    }
}

impl Writes {
    pub fn total(&self) -> f64 {
        self.log + self.flushes + self.compactions
    }
}

impl Load {
    fn entry_bytes(&self) -> f64 {
        self.key_bytes + self.value_bytes
    }

    /// Different entries that are there after a time long enough.
    fn entries(&self) -> f64 {
        let by_age = self.keep.map_or(f64::INFINITY, |keep| self.writes * keep.as_secs_f64());
        by_age.min(self.entries.unwrap_or(f64::INFINITY))
    }

    fn write_buffer_bytes(&self) -> f64 {
        let filled = self.writes * (self.entry_bytes() + MEMTABLE_ENTRY_BYTES) * MEMTABLE_SECONDS;
        let wanted = 2f64.powf(filled.max(1.0).log2().ceil());
        self.write_buffer_bytes.unwrap_or_else(|| wanted.clamp(MEMTABLE_BYTES_MIN, MEMTABLE_BYTES_MAX))
    }

    /// Stored bytes of one entry in a table.
    fn stored_entry_bytes(&self) -> f64 {
        (self.entry_bytes() + TABLE_ENTRY_BYTES) * self.ratio
    }

    pub fn needs(&self) -> Needs {
        let (entries, write_buffer_bytes) = (self.entries(), self.write_buffer_bytes());
        let live_bytes = entries * self.stored_entry_bytes();
        let flushed_bytes =
            write_buffer_bytes / (self.entry_bytes() + MEMTABLE_ENTRY_BYTES) * self.stored_entry_bytes();
        let levels = levels(live_bytes, LEVEL0_TABLES * flushed_bytes);
        let shape = self.shape(live_bytes, flushed_bytes, levels);
        let flushes = self.stored_entry_bytes() / self.entry_bytes();
        let writes = Writes {
            log: (self.entry_bytes() + LOG_ENTRY_BYTES) / self.entry_bytes(),
            flushes,
            compactions: flushes * shape.rewrites,
        };
        let data_per_s = self.writes * self.entry_bytes();
        let log_bytes = MEMTABLES * write_buffer_bytes / (self.entry_bytes() + MEMTABLE_ENTRY_BYTES)
            * (self.entry_bytes() + LOG_ENTRY_BYTES);
        let tables = live_bytes * shape.space;
        let disk = Disk { tables, compactions: shape.room, logs: log_bytes, reserve: RESERVE * (tables + log_bytes) };
        let blocks = entries * (self.entry_bytes() + TABLE_ENTRY_BYTES) / BLOCK_BYTES;
        let memory = Memory {
            memtables: MEMTABLES * write_buffer_bytes,
            indexes: blocks * (self.key_bytes + INDEX_ENTRY_BYTES) * shape.space,
            filters: entries * FILTER_ENTRY_BYTES * shape.space,
            blocks: self.hot * entries * (self.entry_bytes() + TABLE_ENTRY_BYTES),
        };
        Needs {
            entries,
            data_bytes: entries * self.entry_bytes(),
            compaction_processors: data_per_s * writes.compactions / self.ratio / COMPACTED_PER_S,
            replay: Duration::from_secs_f64(log_bytes / REPLAYED_PER_S),
            levels,
            disk,
            memory,
            writes,
            data_per_s,
            write_buffer_bytes,
        }
    }

    fn shape(&self, live_bytes: f64, flushed_bytes: f64, levels: u32) -> Shape {
        match self.style {
            CompactionStyle::Fifo => Shape { rewrites: 0.0, space: 1.0, room: 0.0 },
            CompactionStyle::Universal => {
                let doublings = (live_bytes / flushed_bytes).max(1.0).log2();
                let rewrites = UNIVERSAL_WRITES + UNIVERSAL_DOUBLING_WRITES * doublings;
                Shape { rewrites, space: UNIVERSAL_SPACE, room: live_bytes }
            }
            _ => {
                let rewrites = BASE_LEVEL_WRITES + DEEPER_LEVEL_WRITES * f64::from(levels - 1);
                Shape {
                    rewrites,
                    space: LEVEL_SPACE,
                    room: live_bytes.min(LEVEL_FACTOR * LEVEL0_TABLES * flushed_bytes),
                }
            }
        }
    }
}

/// What a compaction style makes of the data.
struct Shape {
    /// Bytes written for each byte flushed.
    rewrites: f64,
    /// Bytes of tables for each byte of live ones.
    space: f64,
    /// Bytes of outputs that stand beside their inputs.
    room: f64,
}

/// Levels for so many bytes, where the first has `base_bytes` at most.
fn levels(bytes: f64, base_bytes: f64) -> u32 {
    let above = (bytes / base_bytes).max(1.0).log(LEVEL_FACTOR).ceil();
    1 + (above as u32).min(6)
}
