//! Properties of several lines of text.

use std::fmt::Write;

use super::properties::Reported;
use crate::version::file_name::{self, FileType};

const MIB: f64 = (1 << 20) as f64;

/// RocksDB's layout: level, files, mebibytes.
pub(super) fn level_stats(source: &Reported<'_>) -> String {
    let version = &source.view.version;
    let mut text = String::from("Level Files Size(MB)\n--------------------\n");
    for level in 0..version.num_levels() {
        let megabytes = version.level_bytes(level) as f64 / MIB;
        let _ = writeln!(text, "{level:3} {:8} {megabytes:8.0}", version.level(level).len());
    }
    text
}

/// Family figures missing from RocksDB's.
pub(super) fn memtables(source: &Reported<'_>) -> String {
    let memtable = source.view.mutable.memtable();
    let (name, megabytes) = (memtable.name(), source.family.memtable_bytes() as f64 / MIB);
    let mut text = format!("Memtable: {name}, {} entries; all memtables: {megabytes:.2} MB\n", memtable.entries());
    text.push_str("Waits of writers (all families):\n");
    text + &stalls(source) + &pins(source)
}

/// Database figures missing from RocksDB's.
pub(super) fn database(source: &Reported<'_>) -> String {
    let core = source.core;
    let (log_bytes, _) = core.logs.total();
    let mut text = format!("Last visible number: {}\n", core.pipeline.visible());
    let _ = writeln!(text, "WalFiles: {:.2} MB", log_bytes as f64 / MIB);
    let cache = core.block_cache.stats();
    let (usage, capacity) = (core.block_cache.usage() as f64 / MIB, core.block_cache.capacity() as f64 / MIB);
    let _ = writeln!(text, "Block cache: {usage:.2} of {capacity:.2} MB, {} hits, {} misses", cache.hits, cache.misses);
    text
}

/// A line for each cause: waits and microseconds.
pub(super) fn stalls(source: &Reported<'_>) -> String {
    let mut text = String::new();
    for (cause, waits, micros) in source.core.stall.counts() {
        let _ = writeln!(text, "{}: {waits} waits, {micros} us", cause.name());
    }
    text
}

/// A line for each doubt of the recovery that opened the database.
pub(super) fn recovery_doubts(source: &Reported<'_>) -> String {
    source.core.context.recovery_doubts.all().iter().map(|doubt| format!("{doubt}\n")).collect()
}

/// A line for each state of the family that iterators keep, and for each snapshot of the database.
pub(super) fn pins(source: &Reported<'_>) -> String {
    let vfs = &source.core.context.vfs;
    let mut text = String::new();
    for pinned in source.family.kept_views().pinned(&source.view, vfs.now()) {
        let _ = writeln!(text, "iterators: {pinned}");
    }
    let now_s = vfs.unix_time_us() / 1_000_000;
    for (seq, taken_s) in source.core.snapshots.all() {
        let _ = writeln!(text, "snapshot of {seq}: {} s old", now_s.saturating_sub(taken_s));
    }
    text
}

pub(super) fn tables(source: &Reported<'_>) -> String {
    let version = &source.view.version;
    let mut text = String::new();
    for level in 0..version.num_levels() {
        let _ = writeln!(text, "--- level {level} ---");
        for file in version.level(level) {
            let name = file_name::format(FileType::Table, file.number());
            let (first, last) = (file.smallest_user_key().escape_ascii(), file.largest_user_key().escape_ascii());
            let (bytes, from, to) = (file.meta.file_bytes, file.meta.smallest_seq, file.meta.largest_seq);
            let _ = write!(text, "{name}: {bytes} bytes, '{first}' .. '{last}', numbers {from} .. {to}");
            let backing = file.meta.backing.map(|backing| file_name::format(FileType::Table, backing.number));
            let _ = writeln!(text, "{}", backing.map_or(String::new(), |file| format!(", a part of {file}")));
        }
    }
    text
}

pub(super) fn statistics(source: &Reported<'_>) -> String {
    source.core.context.statistics.as_ref().map(|statistics| statistics.to_string()).unwrap_or_default()
}
