//! `spillway stats`.

use std::io::Write;
use std::sync::Arc;

use serde_json::json;
use spillway::internal::report::{LevelReport, property_names};
use spillway::internal::version::recover;
use spillway::internal::vfs::RealVfs;
use spillway::internal::{Database, Family};

use crate::database::{Access, PlaceArgs, name_parser};
use crate::failure::{Failure, Outcome};
use crate::{human, json};

/// Shows the state of the database: column families, levels, tables, memory.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway stats --db /tmp/people
  spillway stats --db /tmp/people --property rocksdb.sstables")]
pub struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    /// Shows only this column family.
    #[arg(long, value_name = "NAME", value_parser = name_parser())]
    family: Option<String>,
    /// Prints one property, by RocksDB's name, such as rocksdb.stats.
    #[arg(long, value_name = "NAME")]
    property: Option<String>,
    /// Prints JSON: one line, described in docs/cli.md.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let db = args.place.database().open(Access::Read)?;
    let wanted = |family: &Family| args.family.as_ref().is_none_or(|name| name == family.name());
    let families: Vec<_> = db.families().into_iter().filter(|family| wanted(family)).collect();
    if let (true, Some(name)) = (families.is_empty(), &args.family) {
        return Err(Failure::refused(format!("there is no column family \"{name}\"")));
    }
    if let Some(property) = &args.property {
        return show_property(&db, &families, property, args.json, out);
    }
    if args.json {
        let recovered = recover::recover(&*RealVfs::new(), db.path())?;
        let shown: Vec<_> = families.iter().map(|family| json::family(&db, family)).collect();
        return json::print(&json::stats(&db, &shown, !recovered.fenced, recovered.manifest.0), out);
    }
    show_database(&db, out)?;
    for family in &families {
        show_family(&db, family, out)?;
    }
    Ok(())
}

fn show_property(db: &Database, families: &[Arc<Family>], name: &str, as_json: bool, out: &mut dyn Write) -> Outcome {
    let mut shown = Vec::new();
    for family in families {
        let value = db.property(family, name).ok_or_else(|| unknown(name))?;
        match as_json {
            true => shown.push(json::property(family, &value)),
            false => writeln!(out, "{}", value.trim_end())?,
        }
    }
    if !as_json {
        return Ok(());
    }
    json::print(&json!({ "property": name, "families": shown }), out)
}

fn unknown(property: &str) -> Failure {
    let names: Vec<_> = property_names().collect();
    Failure::refused(format!("there is no property {property}; there are:\n  {}", names.join("\n  ")))
}

fn show_database(db: &Database, out: &mut dyn Write) -> Outcome {
    let recovered = recover::recover(&*RealVfs::new(), db.path())?;
    let owner = if recovered.fenced { "Spillway's" } else { "RocksDB's (read here; writing needs --adopt)" };
    writeln!(out, "database      {}", db.path().display())?;
    writeln!(out, "format        {owner}, MANIFEST-{}", recovered.manifest)?;
    writeln!(out, "last write    number {}", human::count(db.latest_sequence_number().0))?;
    Ok(writeln!(out, "families      {}", db.families().len())?)
}

fn show_family(db: &Database, family: &Family, out: &mut dyn Write) -> Outcome {
    let options = family.options();
    let merge = options.merge_operator.as_ref().map_or("none", |operator| operator.name());
    writeln!(out, "\ncolumn family \"{}\" (id {})", family.name(), family.id().0)?;
    writeln!(out, "  order {}, merge operator {merge}", options.order.name())?;
    writeln!(out, "  {:>5} {:>7} {:>12} {:>12} {:>7}", "level", "tables", "size", "target", "score")?;
    let levels = db.levels(family);
    for level in &levels {
        if level.files > 0 || level.level == 0 {
            show_level(level, out)?;
        }
    }
    let queued = Queued::of(db, family);
    if queued.tables > 0 {
        let size = human::bytes(queued.bytes);
        writeln!(out, "  {:>5} {:>7} {size:>12} (ingested, without a level until a flush)", "queue", queued.tables)?;
    }
    let (files, bytes) = levels
        .iter()
        .fold((queued.tables, queued.bytes), |(files, bytes), level| (files + level.files as u64, bytes + level.bytes));
    writeln!(out, "  {:>5} {files:>7} {:>12}", "all", human::bytes(bytes))?;
    let number = |name: &str| db.int_property(family, name).unwrap_or_default();
    let (active, sealed) =
        (number("rocksdb.num-entries-active-mem-table"), number("rocksdb.num-entries-imm-mem-tables"));
    writeln!(out, "  keys, about              {}", human::count(number("rocksdb.estimate-num-keys")))?;
    writeln!(out, "  entries in memory        {} (in the logs, not in tables yet)", human::count(active + sealed))?;
    writeln!(out, "  memory of memtables      {}", human::bytes(number("rocksdb.cur-size-all-mem-tables")))?;
    writeln!(out, "  memory of open tables    {}", human::bytes(number("rocksdb.estimate-table-readers-mem")))?;
    let pending = number("rocksdb.estimate-pending-compaction-bytes");
    Ok(writeln!(out, "  compactions are behind   {}", human::bytes(pending))?)
}

/// Ingested tables of a family without a level.
#[derive(Default)]
pub struct Queued {
    pub tables: u64,
    pub bytes: u64,
}

impl Queued {
    pub fn of(db: &Database, family: &Family) -> Queued {
        let files = db.live_files().into_iter().filter(|file| file.is_queued && file.family == family.name());
        files.fold(Queued::default(), |sum, file| Queued { tables: sum.tables + 1, bytes: sum.bytes + file.bytes })
    }
}

fn show_level(level: &LevelReport, out: &mut dyn Write) -> Outcome {
    let target = level.target_bytes.map_or_else(|| "-".to_owned(), human::bytes);
    let score = level.score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"));
    let (number, files, size) = (level.level, level.files, human::bytes(level.bytes));
    Ok(writeln!(out, "  {number:>5} {files:>7} {size:>12} {target:>12} {score:>7}")?)
}
