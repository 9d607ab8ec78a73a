//! Metrics of families and levels: one metric after the other, each with all families.

use super::MICROS;
use super::text::{Kind, Text};
use crate::observe::{ObservedFamily, ObservedLevel};
use Kind::{Counter, Gauge};

type OfFamily = (&'static str, Kind, &'static str, fn(&ObservedFamily) -> f64);

const OF_FAMILY: [OfFamily; 13] = [
    ("spillway_memtable_bytes", Gauge, "Memory of all memtables.", |family| family.memtables.total_bytes as f64),
    ("spillway_mutable_memtable_bytes", Gauge, "Bytes used in the memtable that takes writes.", |family| {
        family.memtables.mutable_bytes as f64
    }),
    ("spillway_sealed_memtables", Gauge, "Memtables that wait for a flush.", |family| family.memtables.sealed as f64),
    (
        "spillway_pending_compaction_bytes",
        Gauge,
        "Bytes to rewrite until every level is within its target.",
        |family| family.pending_compaction_bytes as f64,
    ),
    ("spillway_family_tables", Gauge, "Tables.", |family| family.tables as f64),
    ("spillway_family_table_bytes", Gauge, "Bytes of tables.", |family| family.table_bytes as f64),
    ("spillway_family_debt_ratio", Gauge, "How far compactions are behind: writers stop at 1.", |family| family.debt),
    ("spillway_flushes", Counter, "Flushes of memtables.", |family| family.flushes.jobs as f64),
    ("spillway_flush_written_bytes", Counter, "Bytes of tables written by flushes.", |family| {
        family.flushes.written_bytes as f64
    }),
    ("spillway_flush_seconds", Counter, "Time of flushes.", |family| family.flushes.micros as f64 / MICROS),
    ("spillway_family_ingested_bytes", Counter, "Bytes of ingested tables that were given a level.", |family| {
        family.ingested_bytes as f64
    }),
    ("spillway_family_queued_tables", Gauge, "Ingested tables without a level.", |family| family.queued_tables as f64),
    (
        "spillway_family_oldest_queued_ingest_seconds",
        Gauge,
        "Time since the oldest ingest without a level arrived; 0 without any.",
        |family| family.oldest_queued_ingest_s as f64,
    ),
];

type OfLevel = (&'static str, Kind, &'static str, fn(&ObservedLevel) -> Option<f64>);

const OF_LEVEL: [OfLevel; 10] = [
    ("spillway_level_tables", Gauge, "Tables of a level.", |level| Some(level.tables as f64)),
    ("spillway_level_bytes", Gauge, "Bytes of a level's tables.", |level| Some(level.bytes as f64)),
    ("spillway_level_target_bytes", Gauge, "Size above which a level is compacted.", |level| {
        level.target_bytes.map(|bytes| bytes as f64)
    }),
    ("spillway_level_score", Gauge, "Compaction score of a level: due from 1 on.", |level| level.score),
    ("spillway_level_busy_bytes", Gauge, "Bytes of a level that compactions read.", |level| {
        Some(level.busy_bytes as f64)
    }),
    ("spillway_compactions", Counter, "Compactions, by level of their output.", |level| {
        Some(level.compactions.jobs as f64)
    }),
    ("spillway_compaction_read_bytes", Counter, "Bytes read by compactions.", |level| {
        Some(level.compactions.read_bytes as f64)
    }),
    ("spillway_compaction_written_bytes", Counter, "Bytes written by compactions.", |level| {
        Some(level.compactions.written_bytes as f64)
    }),
    ("spillway_compaction_seconds", Counter, "Time of compactions.", |level| {
        Some(level.compactions.micros as f64 / MICROS)
    }),
    ("spillway_compaction_dropped_entries", Counter, "Entries that compactions left out.", |level| {
        Some(level.compactions.entries_dropped as f64)
    }),
];

pub(super) fn write(text: &mut Text, families: &[ObservedFamily]) {
    for (name, kind, help, read) in OF_FAMILY {
        text.metric(name, kind, help);
        for family in families {
            text.sample(&[("family", &family.name)], read(family));
        }
    }
    for (name, kind, help, read) in OF_LEVEL {
        text.metric(name, kind, help);
        for family in families {
            for level in &family.levels {
                if let Some(value) = read(level) {
                    text.sample(&[("family", &family.name), ("level", &level.level.to_string())], value);
                }
            }
        }
    }
}
