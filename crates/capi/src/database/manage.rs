//! Flushes, compactions, files, and options of an open database.

use std::borrow::Cow;
use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use spillway::internal::options::keep_both;
use spillway::internal::options::row::OptionGroup;
use spillway::internal::options::string;
use spillway::internal::{CompactRangeOptions, DbOptions, Family, FamilyOptions};

use super::Database;
use crate::boundary::array::{Array, Count, IntCount};
use crate::boundary::{export, fallible};
use crate::compact_files;
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::job_options::{CompactSettings, FlushSettings, WaitSettings};
use crate::text::text;
use crate::updates::FlushLogSettings;

/// The values, with numbers as RocksDB takes them, those of groups' members too: without what stands around them, and within our
/// bounds.
fn as_rocksdb_takes<'a>(group: &impl OptionGroup, pairs: &[(&'a str, &'a str)]) -> Vec<(&'a str, Cow<'a, str>)> {
    let pair = |&(name, text): &(&'a str, &'a str)| match group.settings().iter().find(|(row, _)| row.name == name) {
        Some((_, setting)) if setting.number().is_some() => {
            (name, number_taken(&format!("{name}={text}"), &[name]).map_or(Cow::Borrowed(text.trim()), Cow::Owned))
        }
        Some((_, setting)) if setting.group().is_some() && text.contains('=') => (name, members_taken(name, text)),
        _ => (name, Cow::Borrowed(text)),
    };
    pairs.iter().map(pair).collect()
}

fn members_taken<'a>(group: &str, text: &'a str) -> Cow<'a, str> {
    let Ok(members) = string::pairs(text) else { return Cow::Borrowed(text) }; // the engine says why
    let member = |(name, text): (&str, &str)| {
        let taken = number_taken(&format!("{group}={{{name}={{{text}}}}}"), &[group, name]);
        format!("{name}={{{}}};", taken.as_deref().unwrap_or(text))
    };
    let taken: String = members.into_iter().map(member).collect();
    Cow::Owned(format!("{{{taken}}}"))
}

/// The number that RocksDB takes for the option at `path`, if it is another than the text says.
fn number_taken(option: &str, path: &[&str]) -> Option<String> {
    let (mut db, mut family) = (DbOptions::default(), FamilyOptions::default());
    let told = keep_both(&mut db, &mut family, option).ok()?;
    let (outer, inner) = path.split_first()?;
    let (_, setting) = db.find_mut(outer).or_else(|| family.find_mut(outer))?;
    let text = match inner {
        [] => setting.number().map(|_| setting.text()),
        [name, ..] => {
            let members = setting.group()?.settings();
            let (_, member) = members.into_iter().find(|(row, _)| row.name == *name)?;
            member.number().map(|_| member.text())
        }
    };
    text.filter(|_| !told.is_empty())
}

impl Database {
    pub fn flush(&self, families: &[&Arc<Family>], options: &FlushSettings) -> Result<(), Failure> {
        self.tell(&options.kept);
        let flushed = if options.wait { self.db.flush(families) } else { self.db.begin_flush(families) };
        flushed.map_err(|error| self.refused(error))
    }

    /// A write reaches the file before it returns: only the sync is left to do.
    pub fn flush_log(&self, options: &FlushLogSettings) -> Result<(), Failure> {
        self.tell(&options.kept);
        if options.sync { self.db.sync_log().map_err(|error| self.refused(error)) } else { Ok(()) }
    }

    /// RocksDB's function for C reports no error either.
    fn compact(&self, family: &Arc<Family>, start: Option<&[u8]>, end: Option<&[u8]>, options: &CompactRangeOptions) {
        if let Err(failure) = self.compact_range(family, start, end, options) {
            tracing::warn!(%failure, "a manual compaction failed");
        }
    }

    /// # Errors
    /// Manual compactions are disabled, or were while this one ran: `Incomplete`. The engine's.
    pub fn compact_range(
        &self,
        family: &Arc<Family>,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<(), Failure> {
        self.db.check_open()?;
        let times_disabled = self.times_disabled.read();
        if *times_disabled > 0 {
            return Err(Failure::incomplete("Manual compaction paused: manual compactions are disabled"));
        }
        let canceled = options.canceled.clone().or_else(|| Some(self.canceled.clone()));
        let options = CompactRangeOptions { canceled, ..options.clone() };
        self.db.compact_range(family, start, end, &options).map_err(|error| self.refused(error))
    }

    /// Manual compactions give up, and none begins, until as many calls enable them.
    pub fn disable_manual_compaction(&self) {
        if self.db.check_open().is_err() {
            return; // in a forked child the lock may be held for good
        }
        self.canceled.store(true, Ordering::Release);
        let mut times_disabled = self.times_disabled.write();
        *times_disabled += 1;
        self.canceled.store(*times_disabled > 0, Ordering::Release);
    }

    pub fn enable_manual_compaction(&self) {
        if self.db.check_open().is_err() {
            return;
        }
        let mut times_disabled = self.times_disabled.write();
        *times_disabled -= 1;
        self.canceled.store(*times_disabled > 0, Ordering::Release);
    }

    /// No compaction starts until [`continue_compactions`](Self::continue_compactions) was called as often. Manual ones give up; the call waits for the
    /// others. Flushes go on.
    ///
    /// # Errors
    /// The engine's: a compaction failed.
    pub fn pause_compactions(&self) -> Result<(), Failure> {
        self.disable_manual_compaction();
        self.db.pause_compactions().map_err(|error| self.refused(error))
    }

    pub fn continue_compactions(&self) {
        if self.db.check_open().is_err() {
            return;
        }
        self.enable_manual_compaction();
        self.db.continue_compactions();
    }

    /// Drops a table by its name, if nothing older is below it.
    ///
    /// # Errors
    /// As of the engine's `drop_table`; `InvalidArgument`: no table has the name.
    pub fn delete_file(&self, name: &str) -> Result<(), Failure> {
        let number = compact_files::number_of(name)?;
        let of = self.db.live_files().into_iter().find(|file| file.number == number);
        let family = of.and_then(|file| self.db.family(&file.family));
        let family = family.ok_or_else(|| Failure::invalid_argument(format!("File {name} not found")))?;
        self.db.drop_table(&family, number).map_err(|error| self.refused(error))
    }

    pub fn stop_compactions(&self, wait: bool) {
        let disable = [("disable_auto_compactions", "true")];
        for family in self.db.families() {
            if let Err(error) = self.db.set_options(&family, &disable) {
                tracing::warn!(%error, family = family.name(), "automatic compactions were not stopped");
            }
        }
        if wait && let Err(error) = self.db.wait_for_compaction() {
            tracing::warn!(%error, "waiting for compactions failed");
        }
    }

    /// Sets options of a family; of the database for `None`.
    fn set_options(
        &self,
        family: Option<&Family>,
        count: Count,
        names: Array<*const c_char>,
        values: Array<*const c_char>,
    ) -> Result<(), Failure> {
        if count.get() == 0 {
            return Err(Failure::invalid_argument("empty input: no option is named"));
        }
        let mut pairs = Vec::with_capacity(count.get());
        for (name, value) in names.texts(count).zip(values.texts(count)) {
            pairs.push((text(name), text(value)));
        }
        let pairs: Vec<_> = pairs.iter().map(|(name, value): &(_, _)| (&**name, &**value)).collect();
        self.set_named(family, &pairs)
    }

    /// Sets options of a family by name and text; of the database for `None`.
    pub fn set_named(&self, family: Option<&Family>, pairs: &[(&str, &str)]) -> Result<(), Failure> {
        let within = match family {
            Some(_) => as_rocksdb_takes(&FamilyOptions::default(), pairs),
            None => as_rocksdb_takes(&DbOptions::default(), pairs),
        };
        let plain = |text: &str| text.replace(['{', '}', ';', ' '], "");
        let clamped = pairs.iter().zip(&within).filter(|((_, asked), (_, taken))| plain(asked) != plain(taken));
        clamped.for_each(|((name, asked), (_, taken))| self.db.log_clamped(name, asked, taken));
        let pairs: Vec<(&str, &str)> = within.iter().map(|(name, text)| (*name, text.as_ref())).collect();
        let set = match family {
            Some(family) => self.db.set_options(family, &pairs),
            None => self.db.set_db_options(&pairs),
        };
        set.map_err(|error| self.refused(error))
    }

    /// A hint: the range's tables are compacted in the background, soon.
    pub fn suggest(&self, family: &Arc<Family>, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<(), Failure> {
        self.db.suggest_compact_range(family, start, end).map_err(|error| self.refused(error))
    }

    /// As RocksDB: whole files below level 0, the end of the range included.
    pub fn delete_files(&self, family: &Arc<Family>, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<(), Failure> {
        self.db.drop_tables_in_range(family, start, end).map(drop).map_err(|error| self.refused(error))
    }
}

fallible! {
    fn rocksdb_flush(database: &Database, options: &FlushSettings) {
        database.flush(&[database.default_family()], options)
    }

    fn rocksdb_flush_cf(database: &Database, options: &FlushSettings, family: &FamilyHandle) {
        database.flush(&[&family.0], options)
    }

    fn rocksdb_flush_cfs(
        database: &Database,
        options: &FlushSettings,
        families: Array<*const FamilyHandle>,
        count: IntCount,
    ) {
        let families: Vec<&Arc<Family>> = families.handles(count).map(|family| &family.0).collect();
        database.flush(&families, options)
    }

    /// A write reaches the file before it returns: only the sync is left to do.
    fn rocksdb_flush_wal(database: &Database, sync: bool) {
        if sync { database.db.sync_log().map_err(|error| database.refused(error)) } else { Ok(()) }
    }

    fn rocksdb_flush_wal_with_options(database: &Database, options: &FlushLogSettings) {
        database.flush_log(options)
    }

    fn rocksdb_wait_for_compact(database: &Database, options: &WaitSettings) {
        database.tell(&options.kept);
        if options.flush {
            let families = database.db.families();
            database.db.flush(&families.iter().collect::<Vec<_>>()).map_err(|error| database.refused(error))?;
        }
        database.db.wait_for_compaction().map_err(|error| database.refused(error))?;
        if options.close_db {
            database.db.close()?;
        }
        Ok(())
    }

    /// Spillway's own: C++'s `DB::Resume`.
    fn spillway_resume(database: &Database) {
        database.db.resume().map_err(|error| database.refused(error))
    }

    fn rocksdb_set_options(
        database: &Database,
        count: IntCount,
        names: Array<*const c_char>,
        values: Array<*const c_char>,
    ) {
        database.set_options(Some(database.default_family()), count.into(), names, values)
    }

    fn rocksdb_set_options_cf(
        database: &Database,
        family: &FamilyHandle,
        count: IntCount,
        names: Array<*const c_char>,
        values: Array<*const c_char>,
    ) {
        database.set_options(Some(&family.0), count.into(), names, values)
    }

    fn rocksdb_set_db_options(
        database: &Database,
        count: IntCount,
        names: Array<*const c_char>,
        values: Array<*const c_char>,
    ) {
        database.set_options(None, count.into(), names, values)
    }

    /// As in RocksDB 11, each call is undone by one of `rocksdb_enable_file_deletions`.
    fn rocksdb_disable_file_deletions(database: &Database) {
        database.db.check_open()?;
        database.db.disable_file_deletions();
        Ok(())
    }

    fn rocksdb_enable_file_deletions(database: &Database) {
        database.db.check_open()?;
        database.db.enable_file_deletions();
        Ok(())
    }

    fn rocksdb_delete_file_in_range(
        database: &Database,
        start[start_len]: Option<&[u8]>,
        limit[limit_len]: Option<&[u8]>,
    ) {
        database.delete_files(database.default_family(), start, limit)
    }

    fn rocksdb_delete_file_in_range_cf(
        database: &Database,
        family: &FamilyHandle,
        start[start_len]: Option<&[u8]>,
        limit[limit_len]: Option<&[u8]>,
    ) {
        database.delete_files(&family.0, start, limit)
    }
}

fallible! {
    /// Has the range's tables compacted one level down in the background, unless automatic compactions are off.
    fn rocksdb_suggest_compact_range(
        database: &Database,
        start[start_len]: Option<&[u8]>,
        limit[limit_len]: Option<&[u8]>,
    ) {
        database.suggest(database.default_family(), start, limit)
    }

    fn rocksdb_suggest_compact_range_cf(
        database: &Database,
        family: &FamilyHandle,
        start[start_len]: Option<&[u8]>,
        limit[limit_len]: Option<&[u8]>,
    ) {
        database.suggest(&family.0, start, limit)
    }
}

export! {
    /// Each call is undone by one of `rocksdb_enable_manual_compaction`, before or after it. Running manual compactions
    /// give up; the call returns when none is running.
    fn rocksdb_disable_manual_compaction(database: &Database) {
        database.disable_manual_compaction();
    }

    fn rocksdb_enable_manual_compaction(database: &Database) {
        database.enable_manual_compaction();
    }

    /// No compaction starts any more; memtables are still flushed, so writes go on. `wait` for the running ones.
    fn rocksdb_cancel_all_background_work(database: &Database, wait: bool) {
        database.stop_compactions(wait);
    }

    /// NULL is the end of the key space.
    fn rocksdb_compact_range(
        database: &Database,
        start[start_len]: Option<&[u8]>,
        limit[limit_len]: Option<&[u8]>,
    ) {
        database.compact(database.default_family(), start, limit, &CompactRangeOptions::default());
    }

    fn rocksdb_compact_range_cf(
        database: &Database,
        family: &FamilyHandle,
        start[start_len]: Option<&[u8]>,
        limit[limit_len]: Option<&[u8]>,
    ) {
        database.compact(&family.0, start, limit, &CompactRangeOptions::default());
    }

    fn rocksdb_compact_range_opt(
        database: &Database,
        options: &CompactSettings,
        start[start_len]: Option<&[u8]>,
        limit[limit_len]: Option<&[u8]>,
    ) {
        database.tell(&options.kept);
        database.compact(database.default_family(), start, limit, &options.to_compact());
    }

    fn rocksdb_compact_range_cf_opt(
        database: &Database,
        family: &FamilyHandle,
        options: &CompactSettings,
        start[start_len]: Option<&[u8]>,
        limit[limit_len]: Option<&[u8]>,
    ) {
        database.tell(&options.kept);
        database.compact(&family.0, start, limit, &options.to_compact());
    }
}
