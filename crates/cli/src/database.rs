//! Finds and opens the database.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::name;
use clap::builder::{OsStringValueParser, TypedValueParser};

use spillway::internal::config::{Config, ConfiguredDb, Start};
use spillway::internal::extend::NoLog;
use spillway::internal::options::WalRecoveryMode;
use spillway::internal::version::file_name::{self, FileType};
use spillway::internal::version::{backup_dirs, incomplete, recover};
use spillway::internal::vfs::{RealVfs, Vfs};
use spillway::internal::{
    DEFAULT_FAMILY, Database, DbOptions, Error, ErrorKind, Family, FamilyOptions, OpenOptions, OtherFamilies, SeqNo,
    shell,
};

use crate::failure::{Failure, Outcome, note, warn, warn_of_doubts};
use crate::settings::{Settings, Unsupported, is_file_name};

/// Environment variable with the database's directory, if the command line gives none.
const DIR_VARIABLE: &str = "SPILLWAY_DB";

/// The database to work on.
#[derive(clap::Args, Clone, Debug)]
pub struct DatabaseArgs {
    /// Directory of the database. Default, if --config is not given either: the environment variable SPILLWAY_DB.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    db: Option<PathBuf>,
    /// Configuration file in JSON or YAML with the directory and options of databases; #NAME chooses a database.
    /// `spillway options check` explains a configuration.
    #[arg(long, value_name = "FILE[#NAME]", value_parser = name_parser())]
    config: Option<String>,
    /// Database of the configuration, if not its default one.
    #[arg(long, value_name = "NAME", requires = "config")]
    database: Option<String>,
    /// Options to override the ones stored with the database: an OPTIONS, .json or .yaml file, or a string such as
    /// "write_buffer_size=64M;compression=kZSTD"; or the word "defaults", in place of the stored ones. `spillway options`
    /// lists all options.
    #[arg(long, value_name = "FILE|STRING", conflicts_with = "config", value_parser = name_parser())]
    pub options: Option<String>,
    /// Warns about unsupported options with an effect on the data, instead of refusing them.
    #[arg(long)]
    ignore_unsupported_options: bool,
}

/// The database to work on, of a command that takes no other words: its directory may stand alone.
#[derive(clap::Args, Debug)]
pub struct PlaceArgs {
    /// Directory of the database; in place of --db.
    #[arg(value_name = "DIR", conflicts_with_all = ["db", "config"])]
    dir: Option<PathBuf>,
    #[command(flatten)]
    named: DatabaseArgs,
}

impl PlaceArgs {
    pub fn database(&self) -> DatabaseArgs {
        let mut database = self.named.clone();
        database.db = self.dir.clone().or(database.db);
        database
    }
}

/// Names of families, and paths in options, are bytes.
pub fn name_parser() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|name| name::text(name.as_bytes()).into_owned())
}

/// The column family to work on.
#[derive(clap::Args, Debug)]
pub struct FamilyArgs {
    /// Column family.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_FAMILY, value_parser = name_parser())]
    pub family: String,
    /// Values of the family end with the times of their writes, as RocksDB's DBWithTTL writes them, though the database does not say
    /// so. A command that writes notes it in the database, for good.
    #[arg(long)]
    pub ttl: bool,
}

/// For commands that write.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct AdoptArgs {
    /// Takes over a directory written by RocksDB. RocksDB can no longer open it; `spillway export` makes a copy for RocksDB.
    #[arg(long)]
    pub adopt: bool,
}

/// Purpose of opening the database.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Writes nothing and takes no lock: a different process may have the database open.
    Read,
    Write {
        adopt: bool,
        create: bool,
    },
}

/// Directory of the database, and its part of a configuration.
pub struct Located {
    pub dir: PathBuf,
    configured: Option<ConfiguredDb>,
}

/// A database to be copied.
pub struct ToCopy {
    pub db: Database,
    /// The report of an earlier repair, which the copy does not have.
    pub report: Option<PathBuf>,
    /// Directory of a temporary checkpoint, if `db` is one; destroyed on drop.
    beside: Option<PathBuf>,
}

impl Drop for ToCopy {
    fn drop(&mut self) {
        let closed = self.db.close();
        let removed = match &self.beside {
            Some(dir) => closed.and_then(|()| Database::destroy(dir, None, &(RealVfs::new() as Arc<dyn Vfs>))),
            None => closed,
        };
        if let Err(error) = removed {
            warn(&error.to_string());
        }
    }
}

impl Located {
    /// The stored options under those of the configuration.
    pub fn configure(&self, mut stored: Settings) -> Settings {
        if let Some(configured) = &self.configured {
            stored.db = configured.db.clone();
            stored.families.retain(|(name, _)| configured.families.iter().all(|(named, _)| named != name));
            stored.families.extend(configured.families.iter().cloned());
            stored.others = configured.other_families.clone().unwrap_or(stored.others);
        }
        stored
    }
}

impl DatabaseArgs {
    /// # Errors
    /// No directory is named, or the configuration is invalid.
    pub fn locate(&self) -> Outcome<Located> {
        if let Some(config) = &self.config {
            let (path, name) = split_config(config);
            let path = &path;
            let configured = read_config(path, self.ignore_unsupported_options)?
                .database(self.database.as_deref().or(name))
                .cloned();
            let configured = configured.map_err(|error| error.at_path(path))?;
            return Ok(Located { dir: configured.path.clone(), configured: Some(configured) });
        }
        let dir = self.db.clone().or_else(|| std::env::var_os(DIR_VARIABLE).map(PathBuf::from));
        let dir = dir.filter(|dir| !dir.as_os_str().is_empty()).ok_or_else(|| {
            Failure::refused(format!("which database? Say --db DIR or --config FILE, or set {DIR_VARIABLE}"))
        })?;
        Ok(Located { dir, configured: None })
    }

    pub fn open(&self, access: Access) -> Outcome<Database> {
        let (dir, options) = self.options_for(access)?;
        Ok(self.opened(Database::open(&dir, &options)?, &options))
    }

    /// As [`open`](Self::open), and finds the family.
    pub fn open_family(&self, access: Access, family: &FamilyArgs) -> Outcome<(Database, Arc<Family>)> {
        let (dir, mut options) = self.options_for(access)?;
        family.record_times(&mut options);
        let db = self.opened(Database::open(&dir, &options)?, &options);
        let family = family.of(&db)?;
        Ok((db, family))
    }

    /// What is to be said of an opened database: its doubts, and whether it keeps the options given.
    fn opened(&self, db: Database, options: &OpenOptions) -> Database {
        if self.options.is_some() && !options.read_only {
            let db = &options.db;
            let recovers = db.best_efforts_recovery || db.wal_recovery_mode != DbOptions::default().wal_recovery_mode;
            let but = [(recovers, "the way of recovery"), (db.error_if_exists, "error_if_exists")];
            let but: Vec<_> = but.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name).collect();
            let but = if but.is_empty() { String::new() } else { format!(", except for {}", but.join(" and ")) };
            note(&format!("the database keeps these options: commands after this one use them too{but}"));
        }
        warn_of_doubts(db)
    }

    /// Opens the database to be copied to `target`. If it is another user's, cannot be written to, or a different process has
    /// it open, opens a temporary checkpoint, with shared tables: beside it or, where nothing can be made there, beside the
    /// target.
    pub fn open_to_copy(&self, adopt: bool, target: &Path) -> Outcome<ToCopy> {
        let (dir, mut options) = self.options_for(Access::Write { adopt, create: false })?;
        let report = print_report(&*options.vfs, &dir)?;
        if let Some(db) = self.open_own(&dir, &options)? {
            return Ok(ToCopy { db, report, beside: None });
        }
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let place = if can_be_written(parent) { &dir } else { target };
        let mut name = place.file_name().unwrap_or_default().to_owned();
        name.push(".copying");
        let beside = place.with_file_name(name);
        if options.vfs.exists(&beside)? {
            Database::destroy(&beside, None, &options.vfs)?; // left by a killed command
        }
        Database::checkpoint_beside(&dir, &options, &beside)?;
        (options.db.wal_dir, options.stored_in) = (String::new(), None); // of the original
        options.db.info_log = Some(Arc::new(NoLog)); // not worth a log: it is temporary
        let opened = Database::open(&beside, &options);
        if opened.is_err() {
            Database::destroy(&beside, None, &options.vfs)?;
        }
        Ok(ToCopy { db: warn_of_doubts(opened?), report, beside: Some(beside) })
    }

    /// Makes a checkpoint, even if a different process has the database open. Whether an earlier repair lost or doubted
    /// something comes with the last number.
    pub fn checkpoint(&self, adopt: bool, to: &Path) -> Outcome<(SeqNo, bool)> {
        let (dir, options) = self.options_for(Access::Write { adopt, create: false })?;
        let is_reported = print_report(&*options.vfs, &dir)?.is_some();
        let last = match self.open_own(&dir, &options)? {
            None => Database::checkpoint_beside(&dir, &options, to)?,
            Some(db) => {
                let last = db.checkpoint(to)?;
                db.close()?;
                last
            }
        };
        Ok((last, is_reported))
    }

    /// Opens the database for writing, so that all of it can be flushed. `None` where it is only to be read: a different process
    /// has it open, or files of this process would lock its user out. A takeover is wanted all the same.
    fn open_own(&self, dir: &Path, options: &OpenOptions) -> Outcome<Option<Database>> {
        let is_own = rustix::fs::stat(dir).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
        if !(is_own && can_be_written(dir) || options.adopt_rocksdb || options.db.best_efforts_recovery) {
            return Ok(None);
        }
        match Database::open(dir, options) {
            Err(error) if error.kind() == ErrorKind::Busy => Ok(None),
            opened => Ok(Some(self.opened(opened?, options))),
        }
    }

    /// Opens the database for a reader that follows it. `own` is made, and stays empty.
    pub fn open_to_follow(&self, own: &Path) -> Outcome<Database> {
        let (dir, mut options) = self.options_for(Access::Read)?;
        options.db.info_log = Some(Arc::new(NoLog));
        Ok(warn_of_doubts(Database::open_as_secondary(dir, own, &options)?))
    }

    /// Opens a damaged database for reading. Missing tables fail only reads in their range; damaged WALs are salvaged.
    /// If WALs were salvaged, also returns the error of the ordinary open.
    pub fn open_damaged(&self, family: &FamilyArgs) -> Outcome<(Database, Option<Error>)> {
        let (dir, mut options) = self.options_for(Access::Read)?;
        family.record_times(&mut options);
        let error = match Database::open(&dir, &options) {
            Ok(db) => return Ok((warn_of_doubts(db), None)),
            Err(error) if error.kind() == ErrorKind::Corruption || error.is_not_found() => error,
            Err(error) => return Err(error.into()),
        };
        options.bear_damage = true;
        if let Ok(db) = Database::open(&dir, &options) {
            return Ok((warn_of_doubts(db), None)); // reads will report the damage
        }
        options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
        Ok((warn_of_doubts(Database::open(&dir, &options)?), Some(error)))
    }

    /// The directory, and what to open it with.
    pub fn options_for(&self, access: Access) -> Outcome<(PathBuf, OpenOptions)> {
        let Located { dir, configured } = self.locate()?;
        let vfs: Arc<dyn Vfs> = RealVfs::new();
        incomplete::check(&*vfs, &dir)?;
        let exists = vfs.exists(&dir.join("CURRENT"))?;
        let writes = matches!(access, Access::Write { .. });
        if writes || !exists {
            backup_dirs::check_is_outside(&*vfs, &dir)?; // before any advice to repair
        }
        let by_document = writes && configured.as_ref().is_some_and(|configured| configured.db.create_if_missing);
        let create = by_document || matches!(access, Access::Write { create: true, .. });
        let refuse_missing = || {
            let (name, was_one) = (dir.display(), holds_tables(&*vfs, &dir)?);
            let what = match was_one {
                true => format!(
                    "CURRENT is missing from {name}, which has tables; `spillway repair {}` makes a new one",
                    shell::word(&dir)
                ),
                false => format!(
                    "there is no database in {name}; `load` makes one, and so do `put` and `ingest` with --create{}",
                    unfinished_beside(&*vfs, &dir)
                ),
            };
            Err(Failure::refused(what))
        };
        let unsupported = match exists && is_rocksdbs(&*vfs, &dir, access)? {
            _ if !writes => Unsupported::Tell,
            true => Unsupported::Leave,
            false if self.ignore_unsupported_options => Unsupported::Tell,
            false => Unsupported::Refuse,
        };
        if unsupported == Unsupported::Leave && self.options.is_none() {
            Settings::warn_if_none(&vfs, &dir)?;
        }
        let mut stored_in = None;
        // An options file on the command line takes the place of a damaged one, and so does a document for every family.
        let is_whole = |configured: &ConfiguredDb| configured.other_families.is_some();
        let is_given = self.options.as_deref().is_some_and(is_file_name) || configured.as_ref().is_some_and(is_whole);
        let stored = match !writes || is_given {
            true => Settings::stored_or_default(&vfs, &dir, unsupported)?,
            // What the open judges for itself: a line of RocksDB's that cannot be read.
            false if unsupported == Unsupported::Leave => {
                Settings::stored(&vfs, &dir, unsupported).or_else(|error| match error.kind() {
                    ErrorKind::InvalidArgument => Settings::stored_or_default(&vfs, &dir, unsupported),
                    _ => Err(error),
                })?
            }
            false => {
                let stored = Settings::stored(&vfs, &dir, unsupported)?;
                stored.warn_if_lacking(&vfs, &dir)?;
                stored_in = Some(Settings::newest(&vfs, &dir)?);
                stored
            }
        };
        let stored = stored.ignoring_unsupported(self.ignore_unsupported_options);
        let stored = stored.with(&vfs, Some(&dir), self.options.as_deref())?;
        let goes_back = writes && stored.db.best_efforts_recovery;
        if !exists && !create && !goes_back {
            return refuse_missing();
        }
        let only_default = || vec![DEFAULT_FAMILY.to_owned()];
        let there = match exists.then(|| Database::list_families(&dir, &vfs)) {
            None => only_default(),
            Some(Err(error)) if goes_back && error.kind() == ErrorKind::Corruption => only_default(), // the open finds them
            Some(found) => found?,
        };
        let mut options = match configured {
            Some(configured) => configured_options(&configured, stored, &there, access, vfs)?,
            None => stored_options(stored, &there, vfs),
        };
        options.db.create_if_missing = create;
        (options.read_only, options.stored_in) = (!writes, stored_in);
        options.db.ignore_unsupported_options |= self.ignore_unsupported_options || !writes;
        options.adopt_rocksdb = matches!(access, Access::Write { adopt: true, .. });
        Ok((dir, options))
    }
}

/// Whether the system lets this process make files in the directory.
fn can_be_written(dir: &Path) -> bool {
    rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Whether the directory has tables, MANIFESTs or WALs.
pub fn holds_tables(vfs: &dyn Vfs, dir: &Path) -> Outcome<bool> {
    if !vfs.exists(dir)? {
        return Ok(false);
    }
    let is_its = |name: &String| {
        let kind = file_name::parse(name).map(|(kind, _)| kind);
        matches!(kind, Some(FileType::Table | FileType::Manifest | FileType::Log))
    };
    Ok(vfs.read_dir(dir)?.iter().any(is_its))
}

/// What a cut-off checkpoint or export to `dir` left beside it, to be added to the error that there is no database.
pub fn unfinished_beside(vfs: &dyn Vfs, dir: &Path) -> String {
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let beside = dir.with_file_name(name);
    let told = incomplete::what(vfs, &beside).unwrap_or_default(); // that there is no database is told anyhow
    told.map(|what| format!(". {} beside it is {what}", beside.display())).unwrap_or_default()
}

/// Notes that a copy does not carry the report of an earlier repair: what that lost or doubted is so in the copy, too.
/// Returns the report.
fn print_report(vfs: &dyn Vfs, dir: &Path) -> Outcome<Option<PathBuf>> {
    let lost = dir.join("lost");
    let names = if vfs.exists(&lost)? { vfs.read_dir(&lost)? } else { Vec::new() };
    let report = names.iter().find(|name| *name == "REPORT" || name.starts_with("REPORT.")).map(|name| lost.join(name));
    if let Some(report) = &report {
        note(&format!(
            "an earlier repair lost or doubted something, which is so in the copy, too; the copy does not have its report: {}",
            report.display()
        ));
    }
    Ok(report)
}

/// Reads a configuration and prints its warnings.
pub fn read_config(path: &Path, ignore_unsupported_options: bool) -> Outcome<Config> {
    let mut start = Start::default();
    start.db.ignore_unsupported_options = ignore_unsupported_options;
    let config = Config::from_file(&*RealVfs::new(), path, &start)?;
    config.warnings().iter().for_each(|warning| warn(&format!("{}: {warning}", path.display())));
    Ok(config)
}

/// `FILE#NAME`, or `FILE`.
pub fn split_config(text: &str) -> (PathBuf, Option<&str>) {
    match text.rsplit_once('#') {
        Some((path, name)) if !name.is_empty() && !name.contains('/') => (name::path(path), Some(name)),
        _ => (name::path(text), None),
    }
}

fn stored_options(settings: Settings, there: &[String], vfs: Arc<dyn Vfs>) -> OpenOptions {
    let Settings { db, families, others, warnings } = settings;
    let (mut families, named): (Vec<_>, Vec<_>) = families.into_iter().partition(|(name, _)| there.contains(name));
    if !families.iter().any(|(name, _)| name == DEFAULT_FAMILY) {
        families.push((DEFAULT_FAMILY.to_owned(), others.clone()));
    }
    let other_families = OtherFamilies::OpenBy { named, rest: Box::new(others) };
    let mut options = OpenOptions { db, families, other_families, vfs, ..OpenOptions::default() };
    options.remark_on(&warnings);
    options
}

/// Options by the configuration. Families it does not mention keep their stored options.
fn configured_options(
    configured: &ConfiguredDb,
    stored: Settings,
    there: &[String],
    access: Access,
    vfs: Arc<dyn Vfs>,
) -> Outcome<OpenOptions> {
    let writes = matches!(access, Access::Write { .. });
    if writes && configured.read_only {
        let name = &configured.name;
        let what =
            format!("the configuration has {name} opened for reading only (DB::OpenForReadOnly), and this writes");
        return Err(Failure::refused(what));
    }
    let mut options = configured.open_options(vfs.clone());
    if !writes {
        options.families.retain(|(name, _)| there.contains(name));
    }
    if matches!(options.other_families, OtherFamilies::Refuse) {
        let stored = stored_options(stored, there, vfs);
        let unnamed: Vec<_> =
            stored.families.into_iter().filter(|(name, _)| options.families.iter().all(|(n, _)| n != name)).collect();
        options.families.extend(unnamed);
        options.other_families = stored.other_families;
    }
    Ok(options)
}

/// Whether a database to be written is still RocksDB's. Refused unless `--adopt` is given.
fn is_rocksdbs(vfs: &dyn Vfs, dir: &Path, access: Access) -> Outcome<bool> {
    let Access::Write { adopt, .. } = access else { return Ok(false) };
    // One that cannot be read is told of later, or the open goes back to an older state and looks itself.
    if recover::recover(vfs, dir).map_or(true, |found| found.fenced) {
        return Ok(false);
    }
    if adopt {
        return Ok(true);
    }
    Err(Failure::refused(format!(
        "{} is RocksDB's, and writing to it takes it over: RocksDB refuses it from then on (`spillway export` leads \
         back). Say --adopt if that is wanted; get, scan, stats and check work without",
        dir.display()
    )))
}

impl FamilyArgs {
    /// Sets the option that `--ttl` stands for.
    fn record_times(&self, options: &mut OpenOptions) {
        if !self.ttl {
            return;
        }
        let own = FamilyOptions { value_times: true.into(), ..options.family_or_others(&self.family) };
        if let Some((_, named)) = options.families.iter_mut().find(|(name, _)| *name == self.family) {
            *named = own;
            return;
        }
        let (mut named, rest) = match std::mem::take(&mut options.other_families) {
            OtherFamilies::Refuse => (Vec::new(), Box::default()),
            OtherFamilies::OpenWith(rest) => (Vec::new(), rest),
            OtherFamilies::OpenBy { named, rest } => (named, rest),
        };
        named.insert(0, (self.family.clone(), own));
        options.other_families = OtherFamilies::OpenBy { named, rest };
    }

    pub fn of(&self, db: &Database) -> Outcome<Arc<Family>> {
        db.family(&self.family).ok_or_else(|| {
            let families = db.families();
            let names: Vec<_> = families.iter().map(|family| family.name()).collect();
            let (wanted, there) = (&self.family, names.join(", "));
            Failure::refused(format!("there is no column family \"{wanted}\"; there are: {there}"))
        })
    }
}
