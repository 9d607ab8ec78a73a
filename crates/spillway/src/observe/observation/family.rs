//! A family's part of a reading.

use super::{WriteGate, plain};

plain! {
    /// A family.
    pub struct ObservedFamily {
        /// The family's number.
        pub id: u32,
        /// The family's name, as it was given: escape it before it is shown.
        pub name: String,
        /// Memtables.
        pub memtables: ObservedMemtables,
        /// The levels, level 0 first.
        pub levels: Vec<ObservedLevel>,
        /// Tables of all levels.
        pub tables: u64,
        /// Bytes of the tables of all levels.
        pub table_bytes: u64,
        /// Bytes to rewrite until every level is within its target.
        pub pending_compaction_bytes: u64,
        /// What this family does to writers: its full memtables or its compaction debt.
        pub gate: WriteGate,
        /// Why, by a name of [`StallCause::name`](crate::StallCause::name); `None` if writes go freely.
        pub gate_cause: Option<String>,
        /// How far its compactions are behind, from 0 to 1: writers are stopped at 1.
        pub debt: f64,
        /// Ingests in its queue, without a level yet.
        pub queued_ingests: u64,
        /// Their tables.
        pub queued_tables: u64,
        /// Bytes of their tables.
        pub queued_table_bytes: u64,
        /// Seconds since the oldest of them arrived, by the wall clock; 0 if there is none.
        pub oldest_queued_ingest_s: u64,
        /// Flushes since the open.
        pub flushes: ObservedWork,
        /// Tables that were ingested and given a level since the open.
        pub ingested_tables: u64,
        /// Bytes of those tables.
        pub ingested_bytes: u64,
    }

    /// The memtables of a family.
    pub struct ObservedMemtables {
        /// The representation, such as `skip_list`.
        pub kind: String,
        /// Bytes used in the memtable that takes writes.
        pub mutable_bytes: u64,
        /// Entries in it.
        pub mutable_entries: u64,
        /// Deletions among them.
        pub mutable_deletions: u64,
        /// Bytes at which it is switched (`write_buffer_size`).
        pub capacity_bytes: u64,
        /// Memtables that wait for a flush, or are being flushed.
        pub sealed: u64,
        /// Their bytes.
        pub sealed_bytes: u64,
        /// Most memtables, the mutable one included (`max_write_buffer_number`).
        pub number_max: u64,
        /// A memtable made ahead is there.
        pub has_spare: bool,
        /// Memory of all of them, with those that only readers keep.
        pub total_bytes: u64,
        /// A flush runs.
        pub is_flushing: bool,
    }

    /// A level of a family.
    pub struct ObservedLevel {
        /// The level's number.
        pub level: u32,
        /// Tables.
        pub tables: u64,
        /// Their bytes.
        pub bytes: u64,
        /// Size above which the level is compacted; `None` for level 0 and for levels meant to stay empty.
        pub target_bytes: Option<u64>,
        /// Compaction score: due from 1 on; `None` for the last level.
        pub score: Option<f64>,
        /// Tables that running compactions read.
        pub busy_tables: u64,
        /// Bytes of those tables.
        pub busy_bytes: u64,
        /// Compactions with output in this level since the open.
        pub compactions: ObservedWork,
        /// Ranges of the tables, for a picture: at most [`SPANS_MAX`]; neighbours are joined where there are more. Of level
        /// 0 newest first, else ascending.
        pub spans: Vec<ObservedSpan>,
    }

    /// The range of a table, or of neighbours.
    pub struct ObservedSpan {
        /// Tables, one in most cases.
        pub tables: u64,
        /// Their bytes.
        pub bytes: u64,
        /// Number of the first table.
        pub number: u64,
        /// Where the range begins and ends among all bounds of the family's shown tables: 0 is the first key, 1 the last.
        /// Ranks, in the family's order: any order of keys can be drawn.
        pub from: f64,
        /// See `from`.
        pub to: f64,
        /// The first user key, escaped, cut after 48 bytes.
        pub smallest: String,
        /// The last user key, likewise.
        pub largest: String,
        /// Running compactions read one of the tables.
        pub is_busy: bool,
    }

    /// Work of jobs since the open.
    pub struct ObservedWork {
        /// Jobs.
        pub jobs: u64,
        /// Their time, in microseconds.
        pub micros: u64,
        /// Bytes of tables read.
        pub read_bytes: u64,
        /// Of these, read from levels above the output's.
        pub read_above_bytes: u64,
        /// Bytes of tables written.
        pub written_bytes: u64,
        /// Bytes of tables moved to the level as they are.
        pub moved_bytes: u64,
        /// Entries read.
        pub entries_read: u64,
        /// Entries left out: overwritten or deleted.
        pub entries_dropped: u64,
    }
}

/// Most spans of a level.
pub const SPANS_MAX: usize = 200;

impl ObservedFamily {
    /// Bytes written to tables for each byte flushed or ingested; 0 before the first.
    pub fn write_amplification(&self) -> f64 {
        let new = self.flushes.written_bytes + self.ingested_bytes;
        let compacted: u64 = self.levels.iter().map(|level| level.compactions.written_bytes).sum();
        if new == 0 { 0.0 } else { (self.flushes.written_bytes + compacted) as f64 / new as f64 }
    }

    /// A level; `None` past the last.
    pub fn level(&self, level: usize) -> Option<&ObservedLevel> {
        self.levels.get(level)
    }
}
