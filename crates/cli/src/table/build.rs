//! `spillway table build`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use spillway::internal::version::recover::recover;
use spillway::internal::vfs::{RealVfs, Vfs};
use spillway::internal::{DEFAULT_FAMILY, FamilyOptions, WrittenTable};

use crate::bytes::{hex, text};
use crate::database::FamilyArgs;
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::input::{Input, InputArgs};
use crate::interrupt::Interrupt;
use crate::make::{self, Made, MakeArgs};
use crate::settings::{Settings, Unsupported};
use crate::staging::{Staging, clear_abandoned, name_of_tables, record_complete, record_rename, table_name};

/// Makes tables from files of records, for `spillway ingest` or RocksDB's IngestExternalFile.
///
/// Records come in any order; among records of one key the last one counts. `spillway load --help` explains the formats.
/// Tables are sorted, do not overlap, and appear as NAME-000001.sst and so on, when all are complete and durable. A build
/// killed while it names them leaves some behind: `spillway ingest` refuses these, and the next build into the directory
/// removes them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway table build people.csv --format csv --key id --to /tmp/tables --name people
  spillway table build events-*.json.gz --format ndjson --key time,id --to tables --memory 2G
  spillway table build a.kv b.kv --format kv --to tables --options compression=kZSTD
  spillway table build new.csv --format csv --to tables --for /tmp/people")]
pub struct Args {
    /// Files, read one after the other, plain or compressed by gzip or Zstandard; - for standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
    /// Directory for the tables; created if missing.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Beginning of the tables' names. The directory may not have tables of this name.
    #[arg(long, default_value = "table")]
    name: String,
    #[command(flatten)]
    make: MakeArgs,
    /// Options of the tables (order of keys, compression, filter and more): an OPTIONS, .json or .yaml file, or a string such
    /// as "compression=kZSTD". `spillway options` lists all options.
    #[arg(long, value_name = "FILE|STRING")]
    options: Option<String>,
    /// Directory of the database to ingest the tables into later. Its stored options are used, unless overridden by --options. The
    /// database is not opened.
    #[arg(long = "for", value_name = "DIR")]
    database: Option<PathBuf>,
    #[command(flatten)]
    family: FamilyArgs,
    /// Prints a line of JSON for each table, and one with totals.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let vfs = RealVfs::new();
    let family = family_options(args, &vfs)?;
    check_name(&args.name)?;
    let interrupt = Interrupt::default();
    interrupt.listen()?;
    let made =
        Input::open(&args.input, &args.files, &interrupt).and_then(|input| build(args, vfs, family, input, &interrupt));
    let so = "no tables were made";
    let made = interrupt.explain(made, so).map_err(|failure| failure.with(so))?;
    if args.json { show_json(&made, out) } else { show(&made, out) }
}

fn build(
    args: &Args,
    vfs: Arc<dyn Vfs>,
    family: FamilyOptions,
    input: Input<'_>,
    interrupt: &Interrupt,
) -> Outcome<Made> {
    let output = Output::begin(vfs.clone(), &args.to, &args.name)?;
    let staging = Staging::inside(vfs.clone(), &args.to)?;
    let dir = staging.dir().to_owned();
    let place = make::Place { vfs, dir, family: Arc::new(family), interrupt: interrupt.clone() };
    let mut made = make::make(input, &args.make, &place)?;
    interrupt.check()?;
    made.tables = output.publish(made.tables)?;
    Ok(made)
}

fn family_options(args: &Args, vfs: &Arc<dyn Vfs>) -> Outcome<FamilyOptions> {
    let stored = match &args.database {
        Some(dir) if !vfs.exists(&dir.join("CURRENT"))? => {
            return Err(Failure::refused(format!("there is no database in {}", dir.display())));
        }
        Some(dir) => Settings::stored(vfs, dir, Unsupported::Tell)?,
        None => Settings::default(),
    };
    let Settings { families, others, .. } = stored.with(vfs, args.database.as_deref(), args.options.as_deref())?;
    let name = &args.family.family;
    let noted = args.database.as_ref().and_then(|dir| recover(&**vfs, dir).ok());
    let noted = noted.into_iter().flat_map(|found| found.families);
    let is_noted = noted.into_iter().any(|family| family.name == *name && family.value_times);
    let timed = |options: &FamilyOptions| {
        let noted = options.value_times.beside_note(is_noted)?;
        let value_times = (args.family.ttl || *noted || options.value_ttl_s > 0).into();
        Ok(FamilyOptions { value_times, ..options.clone() })
    };
    match families.iter().find(|(known, _)| known == name) {
        Some((_, options)) => timed(options),
        None if name == DEFAULT_FAMILY => timed(&others),
        None => Err(Failure::refused(format!(
            "there are no options of a column family \"{name}\"; name its database by --for, or a file with its options by --options"
        ))),
    }
}

fn check_name(name: &str) -> Outcome {
    if name.is_empty() || name.contains('/') {
        return Err(Failure::refused("--name is the beginning of files' names, and has no / in it; --to says where"));
    }
    Ok(())
}

/// Directory of the tables.
struct Output<'a> {
    vfs: Arc<dyn Vfs>,
    dir: &'a Path,
    name: &'a str,
    /// Directories created: `dir` and its ancestors, innermost first. Removed on drop if still empty.
    new: Vec<&'a Path>,
}

impl<'a> Output<'a> {
    /// Creates the directory and removes leftovers of killed builds. Refuses if tables of the name exist.
    fn begin(vfs: Arc<dyn Vfs>, dir: &'a Path, name: &'a str) -> Outcome<Output<'a>> {
        let mut output = Output { vfs, dir, name, new: Vec::new() };
        let vfs = &output.vfs;
        for around in dir.ancestors().filter(|around| !around.as_os_str().is_empty()) {
            if vfs.exists(around)? {
                break;
            }
            output.new.push(around);
        }
        vfs.create_dir_all(dir)?;
        clear_abandoned(&**vfs, dir)?;
        if let Some(there) = vfs.read_dir(dir)?.into_iter().find(|file| name_of_tables(file) == Some(name)) {
            let path = dir.join(there);
            let path = path.display();
            return Err(Failure::refused(format!(
                "there are tables of that name already ({path}); remove them, or say another --name or --to"
            )));
        }
        Ok(output)
    }

    /// Gives the tables their names: all of them, durably, or none.
    fn publish(&self, tables: Vec<WrittenTable>) -> Outcome<Vec<WrittenTable>> {
        let mut named = Named { vfs: &*self.vfs, dir: self.dir, tables: Vec::with_capacity(tables.len()) };
        let staging = tables.first().and_then(|table| table.path.parent()).map(Path::to_owned);
        if let Some(staging) = &staging {
            self.sync_before_names(staging)?;
        }
        for mut table in tables {
            let path = self.dir.join(table_name(self.name, named.tables.len() + 1));
            self.name(&table.path, &path)?;
            table.path = path;
            named.tables.push(table);
        }
        self.vfs.sync_dir(self.dir)?;
        staging.iter().for_each(|staging| record_complete(&*self.vfs, staging));
        Ok(std::mem::take(&mut named.tables))
    }

    /// After a power loss with only some tables named, `staging` must still identify the build as incomplete.
    fn sync_before_names(&self, staging: &Path) -> spillway::internal::Result<()> {
        self.vfs.sync_dir(staging)?;
        self.vfs.sync_dir(self.dir)?;
        for around in self.new.iter().filter_map(|dir| dir.parent()) {
            let is_here = around.as_os_str().is_empty();
            self.vfs.sync_dir(if is_here { Path::new(".") } else { around })?;
        }
        Ok(())
    }

    /// Unlike a rename, a link fails if `to` exists by now. Not all file systems have links.
    fn name(&self, from: &Path, to: &Path) -> spillway::internal::Result<()> {
        match self.vfs.hard_link(from, to) {
            Err(_) if !self.vfs.exists(to)? => {
                record_rename(&*self.vfs, from, to)?;
                self.vfs.rename(from, to)
            }
            linked => linked,
        }
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        for dir in &self.new {
            let _ = self.vfs.remove_dir(dir); // expected to fail if not empty
        }
    }
}

/// Named tables. Their names are removed on drop unless the tables are taken out.
struct Named<'a> {
    vfs: &'a dyn Vfs,
    dir: &'a Path,
    tables: Vec<WrittenTable>,
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        // Errors are ignored: an earlier error is reported.
        for table in &self.tables {
            let _ = self.vfs.remove_file(&table.path);
        }
        if !self.tables.is_empty() {
            let _ = self.vfs.sync_dir(self.dir); // before the evidence of an incomplete build goes
        }
    }
}

/// Characters of a key shown.
const KEY_CHARACTERS_MAX: usize = 40;

fn key(bytes: &[u8]) -> String {
    let shown = bytes.get(..KEY_CHARACTERS_MAX).unwrap_or(bytes);
    if shown.len() < bytes.len() { text(shown) + "..." } else { text(shown) }
}

fn show(made: &Made, out: &mut dyn Write) -> Outcome {
    let count = |number: u64, one, many| human::counted(number, one, many);
    writeln!(
        out,
        "made {} ({}) of {} ({}) in {}: {} records/s, {}/s",
        count(made.tables.len() as u64, "table", "tables"),
        human::bytes(made.file_bytes()),
        count(made.records, "record", "records"),
        human::bytes(made.payload_bytes),
        human::seconds(made.time),
        human::count(human::per_second(made.records, made.time)),
        human::bytes(human::per_second(made.payload_bytes, made.time)),
    )?;
    for table in &made.tables {
        let (path, entries) = (table.path.display(), count(table.entries, "record", "records"));
        let (first, last) = (key(&table.smallest), key(&table.largest));
        writeln!(out, "  {path}  {}  {entries}, {first} to {last}", human::bytes(table.file_bytes))?;
    }
    let replaced = made.records - made.entries();
    if replaced > 0 {
        writeln!(out, "{} replaced by later ones of the same key", count(replaced, "record was", "records were"))?;
    }
    made.skipped.show(out)?;
    if made.runs > 0 {
        let (runs, passes) = (count(made.runs as u64, "run", "runs"), count(made.passes as u64 + 1, "pass", "passes"));
        writeln!(out, "sorted in {runs} on disk, merged in {passes}; more --memory makes fewer")?;
    }
    Ok(())
}

fn show_json(made: &Made, out: &mut dyn Write) -> Outcome {
    for table in &made.tables {
        let line = json!({
            "table": table.path.to_string_lossy(),
            "bytes": table.file_bytes,
            "records": table.entries,
            "smallest_hex": hex(&table.smallest),
            "largest_hex": hex(&table.largest),
        });
        writeln!(out, "{line}")?;
    }
    let line = json!({
        "tables": made.tables.len(),
        "bytes": made.file_bytes(),
        "records_read": made.records,
        "records": made.entries(),
        "payload_bytes": made.payload_bytes,
        "malformed": made.skipped.records(),
        "runs": made.runs,
        "passes": made.passes,
        "seconds": made.time.as_secs_f64(),
        "records_per_s": human::per_second(made.records, made.time),
        "payload_bytes_per_s": human::per_second(made.payload_bytes, made.time),
    });
    Ok(writeln!(out, "{line}")?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use spillway::internal::vfs::{
        CrashPolicy, Fault, FaultCode, FaultVfs, IfExists, IoClass, MemoryVfs, Operation, Rule,
    };

    use super::*;

    fn written(path: PathBuf) -> WrittenTable {
        let mut table = WrittenTable::default();
        table.path = path;
        table
    }

    /// What is there of three tables that are given their names under these faults.
    fn published(faults: &[Rule]) -> (bool, Vec<String>) {
        let vfs = FaultVfs::new(MemoryVfs::new(1));
        let out = Path::new("/new/out");
        let output = Output::begin(vfs.clone(), out, "t").ok().unwrap();
        let made = ["/a", "/b", "/c"].map(|path| {
            vfs.create(Path::new(path), IfExists::Fail).unwrap();
            written(PathBuf::from(path))
        });
        for rule in faults {
            vfs.inject(rule.clone());
        }
        let is_published = output.publish(made.into()).is_ok();
        (is_published, vfs.read_dir(out).unwrap())
    }

    #[test]
    fn all_tables_have_their_names_in_the_end_or_none() {
        let fault = |operation, path| Rule::new(Fault::Error(FaultCode::Io)).on(operation).path(path);
        let (is_published, names) = published(&[]);
        assert!(is_published && names.len() == 3, "{names:?}");
        let last = [fault(Operation::Link, "000003"), fault(Operation::Rename, "000003")];
        assert_eq!(published(&last), (false, Vec::new()));
        for nth in 1..=5 {
            assert_eq!(published(&[fault(Operation::SyncDir, "").nth(nth)]), (false, Vec::new()), "{nth}");
        }
        let stuck = [fault(Operation::SyncDir, "out").nth(2), fault(Operation::RemoveFile, "000001")];
        assert_eq!(published(&stuck), (false, vec!["t-000001.sst".to_owned()]), "the others go");
    }

    const OUT: &str = "/new/out";

    /// Three tables, made and given their names.
    fn build_three(vfs: Arc<dyn Vfs>, name: &str) -> Outcome {
        let output = Output::begin(vfs.clone(), Path::new(OUT), name)?;
        let staging = Staging::inside(vfs.clone(), Path::new(OUT))?;
        let made = [1, 2, 3].map(|nth| {
            let path = staging.dir().join(table_name("000", nth));
            let mut file = vfs.create(&path, IfExists::Fail).unwrap();
            file.append(b"whole", IoClass::Other).unwrap();
            file.sync(IoClass::Other).unwrap();
            written(path)
        });
        output.publish(made.into()).map(drop)
    }

    /// Whatever operation a kill or a power loss comes before, with links and without.
    #[test]
    fn the_next_build_finds_all_tables_of_one_that_crashed_or_none() {
        let no_links = [Rule::new(Fault::Error(FaultCode::OtherDevice)).on(Operation::Link).sticky()];
        for faults in [&[][..], &no_links] {
            let mut found = [0, 0];
            let cases = CrashPolicy::ALL.into_iter().flat_map(|policy| (1..=4).map(move |seed| (policy, seed)));
            for (policy, seed) in cases {
                for operation in 0.. {
                    let vfs = MemoryVfs::new(seed);
                    vfs.crash_at(operation, seed + 100, policy);
                    let faulty = FaultVfs::new(vfs.clone());
                    for rule in faults {
                        faulty.inject(rule.clone());
                    }
                    build_three(faulty, "t").ok().unwrap();
                    let Some(after) = vfs.take_crash_image() else { break };
                    let crash = format!("{policy:?}, seed {seed}, before {operation}, {} faults", faults.len());
                    found[usize::from(check_after(after, &crash))] += 1;
                }
            }
            assert!(found.iter().all(|cases| *cases > 0), "{found:?}");
        }
    }

    /// A kill, and a crash of the build that clears away after it.
    #[test]
    fn clearing_away_can_be_cut_off_too() {
        for (policy, seed) in CrashPolicy::ALL.into_iter().flat_map(|policy| (1..=4).map(move |seed| (policy, seed))) {
            for operation in 0.. {
                let vfs = MemoryVfs::new(seed);
                vfs.crash_at(operation, seed + 100, CrashPolicy::ProcessKilled);
                build_three(vfs.clone(), "t").ok().unwrap();
                let Some(killed) = vfs.take_crash_image() else { break };
                for second in killed.operations().. {
                    let next = killed.crash_clone(seed + 200, CrashPolicy::ProcessKilled);
                    next.crash_at(second, seed + 300, policy);
                    drop(Output::begin(next.clone(), Path::new(OUT), "t"));
                    let Some(after) = next.take_crash_image() else { break };
                    check_after(
                        after,
                        &format!("killed before {operation}, then {policy:?}, seed {seed}, before {second}"),
                    );
                }
            }
        }
    }

    /// Whether all tables are there.
    fn check_after(after: Arc<MemoryVfs>, crash: &str) -> bool {
        let next = Output::begin(after.clone(), Path::new(OUT), "t");
        let names = after.read_dir(Path::new(OUT)).unwrap();
        let (tables, others): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.ends_with(".sst"));
        assert!([0, 3].contains(&tables.len()), "{crash}: {tables:?}");
        assert_eq!(next.is_err(), tables.len() == 3, "{crash}");
        for table in &tables {
            assert_eq!(after.read_file(&Path::new(OUT).join(table)).unwrap(), b"whole", "{crash}");
        }
        // What was not locked yet could be of a build that goes on.
        assert!(others.iter().all(|dir| after.read_dir(&Path::new(OUT).join(dir)).unwrap().is_empty()), "{crash}");
        assert!(build_three(after.clone(), "u").is_ok(), "{crash}");
        !tables.is_empty()
    }
}
