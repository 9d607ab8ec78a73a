//! Output of `--json`: one shape per command, on one line. Keys are stable; new ones may come. Described in
//! docs/cli.md.
//!
//! Sizes are in bytes, times in seconds. Keys of a database are text if they are UTF-8.

use std::io::Write;
use std::path::Path;

use base::name;
use serde_json::{Map, Value, json};
use spillway::internal::backup::{BackupInfo, DamagedBackup};
use spillway::internal::check::{CheckReport, Problem};
use spillway::internal::config::{Config, ConfiguredDb};
use spillway::internal::options::{Documented, row::Home, row::OptionGroup};
use spillway::internal::report::LevelReport;
use spillway::internal::{Database, DbOptions, Doubt, Family, FamilyOptions, LostTable, RepairReport, RepairedFamily};

use crate::bytes::hex;
use crate::failure::Outcome;
use crate::human;
use crate::stats::Queued;

/// Prints a value on its own line.
pub fn print(value: &Value, out: &mut dyn Write) -> Outcome {
    Ok(writeln!(out, "{}", line(value))?)
}

/// A value on a line. Bytes of names that are not UTF-8 are shown as `\xNN`.
pub fn line(value: &Value) -> String {
    name::with_bytes_shown(&value.to_string(), "\\\\x").into_owned()
}

/// Engine that owns a directory.
fn owner(is_rocksdbs: bool) -> &'static str {
    if is_rocksdbs { "rocksdb" } else { "spillway" }
}

/// A family in `stats`.
pub fn family(db: &Database, family: &Family) -> Value {
    let options = family.options();
    let levels = db.levels(family);
    let number = |name: &str| db.int_property(family, name).unwrap_or_default();
    let queued = Queued::of(db, family);
    json!({
        "name": family.name(),
        "id": family.id().0,
        "order": options.order.name(),
        "merge_operator": options.merge_operator.as_ref().map(|operator| operator.name().to_owned()),
        "levels": levels.iter().map(level).collect::<Vec<_>>(),
        "tables": levels.iter().map(|level| level.files as u64).sum::<u64>() + queued.tables,
        "table_bytes": levels.iter().map(|level| level.bytes).sum::<u64>() + queued.bytes,
        "queued_tables": queued.tables,
        "queued_table_bytes": queued.bytes,
        "keys_estimate": number("rocksdb.estimate-num-keys"),
        "entries_in_memory":
            number("rocksdb.num-entries-active-mem-table") + number("rocksdb.num-entries-imm-mem-tables"),
        "memtable_bytes": number("rocksdb.cur-size-all-mem-tables"),
        "open_tables_bytes": number("rocksdb.estimate-table-readers-mem"),
        "pending_compaction_bytes": number("rocksdb.estimate-pending-compaction-bytes"),
    })
}

fn level(level: &LevelReport) -> Value {
    json!({
        "level": level.level,
        "tables": level.files,
        "bytes": level.bytes,
        "target_bytes": level.target_bytes,
        "score": level.score,
    })
}

/// `stats`, of some families.
pub fn stats(db: &Database, families: &[Value], is_rocksdbs: bool, manifest: u64) -> Value {
    json!({
        "database": db.path().to_string_lossy(),
        "format": owner(is_rocksdbs),
        "manifest": manifest,
        "last_number": db.latest_sequence_number().0,
        "families": families,
    })
}

/// A property of a family: a number, or a text of lines.
pub fn property(family: &Family, value: &str) -> Value {
    let value = value.trim_end();
    let value = value.parse::<u64>().map_or_else(|_| Value::from(value), Value::from);
    json!({ "name": family.name(), "value": value })
}

pub fn check(report: &CheckReport) -> Value {
    json!({
        "format": owner(report.is_rocksdbs),
        "manifest": report.manifest.0,
        "families": report.families,
        "last_number": report.last_seq.0,
        "tables": report.tables,
        "table_bytes": report.table_bytes,
        "table_entries": report.table_entries,
        "logs": report.logs,
        "log_bytes": report.log_bytes,
        "log_batches": report.log_batches,
        "log_changes": report.log_changes,
        "notes": report.notes,
        "unused_files": report.superfluous.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
        "problems_found": report.problems.len() as u64 + report.problems_left_out,
        "changed_meanwhile": report.changed_meanwhile,
        "repair_has_not_ended": report.repair_has_not_ended,
        "may_lack_an_end": report.may_lack_an_end(),
        "whole": report.is_whole(),
    })
}

fn problem(problem: &Problem) -> Value {
    let error = &problem.0;
    json!({
        "file": error.path().map(|path| path.to_string_lossy()),
        "offset": error.offset(),
        "message": error.message(),
    })
}

/// `repair`, of the database in `dir`. `options`: which were stored in place of lost ones.
pub fn repair(dir: &Path, report: &RepairReport, options: Option<&str>) -> Value {
    json!({
        "database": dir.to_string_lossy(),
        "manifest": report.manifest,
        "families": report.families.iter().map(repaired).collect::<Vec<_>>(),
        "lost": report.lost.iter().map(lost).collect::<Vec<_>>(),
        "logs": report.logs,
        "unreadable": report.unreadable,
        "earlier_report": report.earlier.as_ref().map(|path| path.to_string_lossy()),
        "lost_options": report.lost_options,
        "earlier_report_of_options": report.earlier_options.as_ref().map(|path| path.to_string_lossy()),
        "notes": report.notes,
        "unused_files": report.superfluous.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "doubts": report.doubts.iter().map(doubt).collect::<Vec<_>>(),
        "options": options,
        "last_number": report.last_seq.0,
        "last_number_unseen": report.is_last_seq_unseen,
        "may_lack_an_end": report.may_lack_an_end,
        "lost_nothing": report.lost_nothing(),
    })
}

fn repaired(family: &RepairedFamily) -> Value {
    let (smallest, largest) = family.keys.as_ref().map(|(from, to)| (hex(from), hex(to))).unzip();
    json!({
        "name": family.name,
        "id": family.id.0,
        "tables": family.tables,
        "bytes": family.bytes,
        "smallest_hex": smallest,
        "largest_hex": largest,
    })
}

fn doubt(doubt: &Doubt) -> Value {
    let (smallest, largest) = doubt.keys.as_ref().map(|(from, to)| (hex(from), hex(to))).unzip();
    json!({
        "family": doubt.family,
        "smallest_hex": smallest,
        "largest_hex": largest,
        "prepared_transactions": doubt.of_prepared,
        "why": doubt.why,
    })
}

fn lost(table: &LostTable) -> Value {
    let (smallest, largest) = table.keys.as_ref().map(|(from, to)| (hex(from), hex(to))).unzip();
    json!({
        "table": table.name,
        "file": table.path.as_ref().map(|path| path.to_string_lossy()),
        "family": table.family,
        "smallest_hex": smallest,
        "largest_hex": largest,
        "why": table.why,
    })
}

pub fn backup(backup: &BackupInfo) -> Value {
    json!({
        "id": backup.id,
        "time": human::utc(backup.timestamp_s),
        "unix_time_s": backup.timestamp_s,
        "files": backup.files,
        "bytes": backup.bytes,
        "last_number": backup.last_seq.0,
    })
}

pub fn damaged_backup(backup: &DamagedBackup) -> Value {
    json!({ "id": backup.id, "error": backup.error.to_string() })
}

/// An option as `options` lists it.
pub fn option(group: &str, row: &Documented) -> Value {
    json!({
        "name": row.name,
        "group": group,
        "type": row.kind,
        "default": (row.home != Home::Section).then_some(&row.default),
        "bounds": row.bounds,
        "can_change_while_open": row.mutable,
        "is_rocksdbs": row.home != Home::Spillway,
        "meaning": row.doc,
    })
}

/// `options check`: some databases of a configuration.
pub fn configuration(config: &Config, databases: &[&ConfiguredDb], all: bool) -> Value {
    json!({
        "warnings": config.warnings().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "databases": databases.iter().map(|database| configured(database, all)).collect::<Vec<_>>(),
        "opened_by_default": config.database(None).ok().map(|database| &database.name),
    })
}

fn configured(database: &ConfiguredDb, all: bool) -> Value {
    let family = |options: &FamilyOptions| settings(options, &FamilyOptions::default(), all);
    let families = database.families.iter().map(|(name, options)| json!({ "name": name, "options": family(options) }));
    json!({
        "name": database.name,
        "path": database.path.to_string_lossy(),
        "read_only": database.read_only,
        "options": settings(&database.db, &DbOptions::default(), all),
        "families": families.collect::<Vec<_>>(),
        "other_families": database.other_families.as_ref().map(family),
    })
}

/// Options as in option strings: those that differ from the defaults, or all.
fn settings(group: &dyn OptionGroup, defaults: &dyn OptionGroup, all: bool) -> Value {
    let both = group.settings().into_iter().zip(defaults.settings());
    let texts = both.map(|((row, setting), (_, default))| (row.name, setting.text(), default.text()));
    let shown = texts.filter(|(_, text, default)| all || text != default);
    Value::Object(shown.map(|(name, text, _)| (name.to_owned(), Value::from(text))).collect::<Map<_, _>>())
}
