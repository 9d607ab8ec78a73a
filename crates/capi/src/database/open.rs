//! Opening and closing; operations on closed databases: destroy, repair, list families.

use spillway::internal::name;
use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use spillway::internal::config::Environment;
use spillway::internal::options::row::OptionGroup;
use spillway::internal::options::{CpuPriority, ValueTimes, apply_string};
use spillway::internal::{
    DEFAULT_FAMILY, Database as Db, Error, ErrorKind, FamilyOptions, OpenOptions, OtherFamilies, RepairReport,
};

use super::Database;
use super::families::{check_stamped, check_unstamped};
use crate::boundary::argument::Out;
use crate::boundary::array::{Array, IntCount, OutArray};
use crate::boundary::reply::{FreedArray, Given, free_texts};
use crate::boundary::{export, fallible};
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::options::Options;
use crate::text::{path, text};
use spillway::internal::ttl::{MergeName, Stamps};

fn repair(options: &Options, name: &CStr) -> Result<RepairReport, Failure> {
    let mut open = options.to_open_alone(path(name))?;
    open.other_families = OtherFamilies::OpenWith(Box::new(within_bounds(&options.family)));
    open.raw_values = false; // operators are the program's, which know no times
    let report = spillway::internal::repair(path(name), &open).map_err(locked_out)?;
    if !report.lost_nothing() {
        tracing::warn!(%report, "a repair found losses");
    }
    Ok(report)
}

/// Clamps numbers out of bounds: C's setters cannot refuse any, and RocksDB clamps too, but for those that are checked
/// before. The requested values are kept: the open notes them.
fn clamp(group: &mut (impl OptionGroup + Clone)) {
    let mut changes = Vec::new();
    for (row, setting) in group.settings() {
        if let Some(number) = setting.number().filter(|number| !row.bounds.contains(*number)) {
            let nearest = number.clamp(row.bounds.min, row.bounds.max);
            changes.push((row.name, setting.text(), format!("{}={nearest}", row.name)));
        }
    }
    for (name, asked, change) in changes {
        match apply_string(group, &change) {
            Ok(_) => group.kept_mut().set(name, &asked),
            Err(error) => tracing::warn!(change, %error, "an option is out of bounds"),
        }
    }
}

/// For the engine. That values have times is for an open with a time to live to say, not for options that were loaded.
fn within_bounds(options: &FamilyOptions) -> FamilyOptions {
    let mut options = options.clone();
    if *options.value_times {
        options.value_times = ValueTimes::AUTO;
    }
    clamp(&mut options);
    clamp(&mut options.table);
    options
}

impl Options {
    /// The engine's options to open the database in `path` for writing with these families, under those of the process's
    /// environment.
    ///
    /// # Errors
    /// A mistake in the environment.
    fn to_open<'a>(
        &self,
        path: &Path,
        families: impl Iterator<Item = (String, &'a Options)>,
    ) -> Result<OpenOptions, Failure> {
        let mut open = OpenOptions { db: self.db.clone(), ..OpenOptions::default() };
        (open.block_cache, open.row_cache) = (self.block_cache.clone(), self.row_cache.clone());
        open.statistics = self.shared_statistics.as_ref().map(|shared| shared.statistics.clone());
        open.rate_limiter = self.rate_limiter.clone();
        open.write_buffer_manager = self.write_buffer_manager.as_ref().map(|manager| manager.shared());
        if let Some(env) = &self.env {
            (open.vfs, open.env) = (env.vfs(), env.pools());
            if env.compaction_cpu_priority() == CpuPriority::Low {
                open.db.compaction_cpu_priority = CpuPriority::Low;
            }
        }
        clamp(&mut open.db);
        open.raw_values = true; // the handles hide times, of opens with a time to live alone
        for (name, options) in families {
            open.block_cache = open.block_cache.or_else(|| options.block_cache.clone());
            open.families.push((name, within_bounds(&options.family)));
        }
        Environment::of_process().apply(path, &mut open)?;
        Ok(open)
    }

    /// As [`to_open`](Self::to_open), with the default family alone.
    fn to_open_alone(&self, path: &Path) -> Result<OpenOptions, Failure> {
        self.to_open(path, std::iter::once((DEFAULT_FAMILY.to_owned(), self)))
    }

    /// Removes the database in `path`, with the directories that its options name.
    pub fn destroy(&self, path: &Path) -> Result<(), Failure> {
        let open = self.to_open_alone(path)?;
        Db::destroy_by(path, &open.db, &self.vfs()).map_err(locked_out)
    }

    /// The family's options for the engine.
    pub fn within_bounds(&self) -> FamilyOptions {
        within_bounds(&self.family)
    }

    pub fn vfs(&self) -> Arc<dyn spillway::internal::vfs::Vfs> {
        self.env.as_ref().map_or_else(|| OpenOptions::default().vfs, |env| env.vfs())
    }
}

impl Database {
    /// # Errors
    /// The engine's. If the database is locked, an IO error, as in RocksDB.
    fn open(path: &Path, options: &Options, open: &OpenOptions) -> Result<Box<Database>, Failure> {
        options.check(path)?;
        let db = match &open.secondary {
            Some(own_dir) => Db::open_as_secondary(path, own_dir, open),
            None => Db::open(path, open),
        };
        let db = Arc::new(db.map_err(locked_out)?);
        if !open.read_only {
            db.make_first_log();
        }
        if let Some(manager) = &options.file_manager {
            manager.watch(&db);
        }
        if db.statistics().is_some() {
            *options.statistics.lock() = db.statistics();
        }
        let default = db.default_family();
        let database = Database {
            db,
            default,
            stamps: None,
            times_disabled: RwLock::default(),
            canceled: Arc::default(),
            ignores_unsupported: options.db.ignore_unsupported_options,
            told: RwLock::default(),
        };
        if let Some(manager) = &options.file_manager {
            database.tell(&manager.without_effect());
        }
        Ok(Box::new(database))
    }

    /// Another handle of the database, with its own count of disable calls.
    pub fn twin(&self) -> Box<Database> {
        Box::new(Database {
            db: self.db.clone(),
            default: self.default.clone(),
            stamps: self.stamps.clone(),
            times_disabled: RwLock::default(),
            canceled: Arc::default(),
            ignores_unsupported: self.ignores_unsupported,
            told: RwLock::default(),
        })
    }

    /// Opens a database with only the default family.
    pub fn open_default(options: &Options, name: &CStr, mode: Mode<'_>) -> Result<Box<Database>, Failure> {
        Database::open_at(options, path(name), mode)
    }

    pub fn open_at(options: &Options, path: &Path, mode: Mode<'_>) -> Result<Box<Database>, Failure> {
        if !mode.only_reads() {
            options.check_format_version()?;
        }
        let mut open = options.to_open_alone(path)?;
        if mode.only_reads() {
            // RocksDB opens the default family alone then.
            open.other_families = OtherFamilies::OpenWith(Box::new(within_bounds(&options.family)));
        }
        mode.open(path, options, open)
    }

    pub fn open_families(
        options: &Options,
        name: &CStr,
        families: Families,
        mode: Mode<'_>,
    ) -> Result<Box<Database>, Failure> {
        let names = families.names.texts(families.count).map(|name| text(name).into_owned());
        let named: Vec<_> = names.zip(families.options.handles(families.count)).collect();
        let (database, handles) = Database::open_named(options, path(name), &named, mode)?;
        for (handle, room) in handles.into_iter().zip(families.handles.room(families.count)) {
            room.write(Box::into_raw(Box::new(handle)));
        }
        Ok(database)
    }

    /// Opens a database with these families; their handles are in the same order.
    pub fn open_named(
        options: &Options,
        path: &Path,
        families: &[(String, &Options)],
        mode: Mode<'_>,
    ) -> Result<(Box<Database>, Vec<FamilyHandle>), Failure> {
        if !families.iter().any(|(name, _)| name == DEFAULT_FAMILY) {
            return Err(Failure::invalid_argument("Default column family not specified"));
        }
        families.iter().try_for_each(|(_, family)| family.check(path))?;
        if !mode.only_reads() {
            families.iter().try_for_each(|(_, family)| family.check_format_version())?;
        }
        let mut open = options.to_open(path, families.iter().cloned())?;
        if mode.only_reads() {
            open.other_families = OtherFamilies::OpenWith(Box::default());
        }
        let database = mode.open(path, options, open)?;
        let handle = |(name, _): &(String, &Options)| {
            let family = database.db.family(name).map(FamilyHandle);
            family.ok_or_else(|| Failure::invalid_argument(format!("Column family not found: {name}")))
        };
        let handles = families.iter().map(handle).collect::<Result<Vec<_>, Failure>>()?;
        Ok((database, handles))
    }
}

/// A locked directory is an IO error, as in RocksDB.
pub fn locked_out(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::Busy => {
            let file = error.path().unwrap_or(Path::new("LOCK")).display();
            Failure::io(match error.message().split_once("; ") {
                Some((theirs, ours)) => format!("{theirs}: {file}: No locks available; {ours}"),
                None => format!("While lock file: {file}: Resource temporarily unavailable; {}", error.message()),
            })
        }
        _ => error.into(),
    }
}

/// Mode of an open.
pub enum Mode<'a> {
    Write,
    ReadOnly,
    /// Follows the database, with the reader's own files in this directory.
    Secondary(&'a Path),
    /// For writing, with each family's time to live in seconds, in the order of the families.
    WriteStamped(&'a [c_int]),
    /// As [`WriteStamped`](Self::WriteStamped), for reading only: nothing expires.
    ReadStamped(&'a [c_int]),
}

impl Mode<'_> {
    fn only_reads(&self) -> bool {
        matches!(self, Mode::ReadOnly | Mode::Secondary(_) | Mode::ReadStamped(_))
    }

    fn open(self, path: &Path, options: &Options, mut open: OpenOptions) -> Result<Box<Database>, Failure> {
        open.read_only = self.only_reads();
        if let Mode::Secondary(own_dir) = self {
            open.secondary = Some(own_dir.to_owned());
        }
        let mut stamps = None;
        if let Mode::WriteStamped(ttls_s) | Mode::ReadStamped(ttls_s) = self {
            let with = Stamps::new(open.vfs.clone());
            for ((name, family), &ttl_s) in open.families.iter_mut().zip(ttls_s) {
                check_stamped(name, family)?;
                with.wrap(family, ttl_s, MergeName::RocksDb);
            }
            stamps = Some(with);
        } else if !open.read_only {
            open.families.iter().try_for_each(|(name, family)| check_unstamped(name, family))?;
        }
        let mut database = Database::open(path, options, &open)?;
        if stamps.is_none() {
            for family in database.db.families().iter().filter(|family| *family.options().value_times) {
                let name = family.name();
                let what = "values end with times, and this open shows and takes them so";
                database.db.log_remark(&format!("column family \"{name}\": {what}"));
            }
        }
        database.stamps = stamps;
        Ok(database)
    }
}

/// The families named by a call, and destinations of their handles.
pub struct Families {
    pub count: IntCount,
    pub names: Array<*const c_char>,
    pub options: Array<*const Options>,
    pub handles: OutArray<*mut FamilyHandle>,
}

export! {
    /// Ends the database's threads and releases its directory. Other handles keep their data readable.
    fn rocksdb_close(database: Option<Box<Database>>) {
        let Some(database) = database else { return };
        if let Err(error) = database.db.close() {
            tracing::error!(%error, path = %database.db.path().display(), "closing the database failed");
        }
    }

    fn rocksdb_list_column_families_destroy(list: FreedArray, len: usize) {
        free_texts(list, len);
    }
}

fallible! {
    fn rocksdb_open(options: &Options, name: &CStr) -> Box<Database> {
        Database::open_default(options, name, Mode::Write)
    }

    /// WALs are read either way, as by RocksDB 11.8: the flag has no effect.
    fn rocksdb_open_for_read_only(options: &Options, name: &CStr, _error_if_wal_file_exists: bool) -> Box<Database> {
        Database::open_default(options, name, Mode::ReadOnly)
    }

    /// Every table stays open, whatever `max_open_files` says; RocksDB asks for -1.
    fn rocksdb_open_as_secondary(options: &Options, name: &CStr, secondary_path: &CStr) -> Box<Database> {
        Database::open_default(options, name, Mode::Secondary(path(secondary_path)))
    }

    fn rocksdb_open_as_secondary_column_families(
        options: &Options,
        name: &CStr,
        secondary_path: &CStr,
        count: IntCount,
        names: Array<*const c_char>,
        family_options: Array<*const Options>,
        handles: OutArray<*mut FamilyHandle>,
    ) -> Box<Database> {
        let families = Families { count, names, options: family_options, handles };
        Database::open_families(options, name, families, Mode::Secondary(path(secondary_path)))
    }

    fn rocksdb_try_catch_up_with_primary(database: &Database) {
        Ok(database.db.try_catch_up_with_primary()?)
    }

    fn rocksdb_open_column_families(
        options: &Options,
        name: &CStr,
        count: IntCount,
        names: Array<*const c_char>,
        family_options: Array<*const Options>,
        handles: OutArray<*mut FamilyHandle>,
    ) -> Box<Database> {
        Database::open_families(options, name, Families { count, names, options: family_options, handles }, Mode::Write)
    }

    fn rocksdb_open_for_read_only_column_families(
        options: &Options,
        name: &CStr,
        count: IntCount,
        names: Array<*const c_char>,
        family_options: Array<*const Options>,
        handles: OutArray<*mut FamilyHandle>,
        _error_if_wal_file_exists: bool,
    ) -> Box<Database> {
        Database::open_families(options, name, Families { count, names, options: family_options, handles }, Mode::ReadOnly)
    }

    /// Values older than `ttl` seconds are dropped by compactions; 0 or less for never.
    fn rocksdb_open_with_ttl(options: &Options, name: &CStr, ttl: c_int) -> Box<Database> {
        Database::open_default(options, name, Mode::WriteStamped(&[ttl]))
    }

    /// As many times to live as families.
    fn rocksdb_open_column_families_with_ttl(
        options: &Options,
        name: &CStr,
        count: IntCount,
        names: Array<*const c_char>,
        family_options: Array<*const Options>,
        handles: OutArray<*mut FamilyHandle>,
        ttls: Array<c_int>,
    ) -> Box<Database> {
        let mode = Mode::WriteStamped(ttls.elements(count));
        Database::open_families(options, name, Families { count, names, options: family_options, handles }, mode)
    }

    fn rocksdb_list_column_families(options: &Options, name: &CStr, len: Out<usize>) -> Given<*mut c_char> {
        let families = Db::list_families(path(name), &options.vfs()).inspect_err(|_| len.set(0))?;
        len.set(families.len());
        let names: Vec<*mut c_char> = families.iter().map(|name| Given::text(name::bytes(name)).into_raw()).collect();
        Ok(Given::pointers(&names))
    }

    fn rocksdb_destroy_db(options: &Options, name: &CStr) {
        options.destroy(path(name))
    }

    /// Losses are listed in the directory's `lost/REPORT`. As in RocksDB they are an error only if no database is left.
    fn rocksdb_repair_db(options: &Options, name: &CStr) {
        repair(options, name).map(drop)
    }

    /// Spillway's own: as `rocksdb_repair_db`. Returns the report; sets `lost_nothing` to 0 if it has a loss or a doubt.
    fn spillway_repair_db(options: &Options, name: &CStr, lost_nothing: Out<u8>) -> Given<c_char> {
        let report = repair(options, name).inspect_err(|_| lost_nothing.set(0))?;
        lost_nothing.set(u8::from(report.lost_nothing()));
        Ok(Given::text(report.to_string()))
    }
}
