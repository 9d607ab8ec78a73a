//! Flushes, compactions, files, and options of an open database.

use capi::compact_files::CompactFilesSettings;
use capi::family::FamilyHandle;
use capi::iterator::Iterator;
use capi::job_options::{CompactSettings, FlushSettings};
use capi::read_options::ReadSettings;
use capi::write_options::WriteSettings;
use spillway::internal::Family;
use spillway::internal::indexed::Move;

use super::Db;
use crate::boundary::argument::{Array, Bytes, Handles, Head, OptionalMut};
use crate::boundary::natives;
use crate::fault::Fault;
use crate::files::compaction_info::{JobInfo, JobStats, MANUAL};

impl Db {
    /// Sets options of a family, or of the database.
    fn set(&self, family: Option<&FamilyHandle>, names: &[String], values: &[String]) -> Result<(), Fault> {
        let pairs: Vec<_> = names.iter().map(String::as_str).zip(values.iter().map(String::as_str)).collect();
        Ok(self.set_named(family.map(|family| &*family.0), &pairs)?)
    }

    fn compact_between(
        &self,
        family: Option<&FamilyHandle>,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactSettings,
    ) -> Result<(), Fault> {
        self.tell(&options.kept);
        Ok(self.compact_range(self.family(family), start, end, &options.to_compact())?)
    }
}

impl Db {
    /// Removes the family's keys before `start` and from `end` on.
    fn clip(&self, family: &FamilyHandle, start: &[u8], end: &[u8]) -> Result<(), Fault> {
        let mut all = Iterator::new(self, &family.0, &ReadSettings::default());
        all.go(Move::First);
        if all.valid() && all.key() < start {
            self.delete_range(&family.0, all.key(), start, &WriteSettings::default())?;
        }
        all.go(Move::Last);
        if all.valid() && all.key() >= end {
            let after_last = [all.key(), &[0]].concat();
            self.delete_range(&family.0, end, &after_last, &WriteSettings::default())?;
        }
        Ok(all.status()?)
    }

    /// The largest last key of the family's tables that is before `end`: a range up to it leaves tables with `end` alone.
    fn last_before(&self, family: &Family, end: &[u8]) -> Option<Vec<u8>> {
        let order = family.options().order.clone();
        let of_family = self.db.live_files().into_iter().filter(|file| file.family == family.name());
        let before = of_family.map(|file| file.largest).filter(|last| order.compare(last, end).is_lt());
        before.max_by(|a, b| order.compare(a, b))
    }
}

/// The key of a bound; none if it is empty, as for the stock library.
fn bound(key: &Option<Head>) -> Option<&[u8]> {
    key.as_deref().filter(|key| !key.is_empty())
}

natives! { "RocksDB";
    "flush" => fn(_env, database: &Db, options: &FlushSettings, families: Option<Handles>) -> () {
        database.check_uncanceled()?;
        let families = families.as_ref().map_or(Ok(Vec::new()), Handles::get::<FamilyHandle>)?;
        let families: Vec<_> = families.iter().map(|family| &family.0).collect();
        let families = if families.is_empty() { vec![database.default_family()] } else { families };
        Ok(database.flush(&families, options)?)
    }

    "flushWal" => fn(_env, database: &Db, sync: bool) -> () {
        if sync {
            database.db.sync_log().map_err(|error| database.refused(error))?;
        }
        Ok(())
    }

    "syncWal" => fn(_env, database: &Db) -> () {
        Ok(database.db.sync_log().map_err(|error| database.refused(error))?)
    }

    "compactRange" => fn(
        _env,
        database: &Db,
        start[start_len]: Option<Head>,
        end[end_len]: Option<Head>,
        options: Option<&CompactSettings>,
        family: Option<&FamilyHandle>,
    ) -> () {
        match options {
            Some(options) => database.compact_between(family, bound(&start), bound(&end), options),
            None => database.compact_between(family, bound(&start), bound(&end), &CompactSettings::default()),
        }
    }

    "compactFiles" => fn(
        _env,
        database: &Db,
        options: &CompactFilesSettings,
        family: Option<&FamilyHandle>,
        names: Vec<String>,
        level: i32,
        path_id: i32,
        info: OptionalMut<'_, JobInfo>,
    ) -> Vec<String> {
        let family = database.family(family);
        let made = database.compact_files(family, options, &names, level, path_id)?;
        if let Some(info) = info.0 {
            let (input_files, output_files) = (names.len() as i64, made.len() as i64);
            *info = JobInfo {
                family: family.name().to_owned(),
                inputs: names,
                outputs: made.clone(),
                output_level: level,
                reason: MANUAL,
                stats: JobStats { input_files, output_files, is_manual: true, ..JobStats::default() },
                ..JobInfo::default()
            };
        }
        Ok(made)
    }

    "cancelAllBackgroundWork" => fn(_env, database: &Db, wait: bool) -> () {
        database.cancel(wait);
        Ok(())
    }

    "pauseBackgroundWork" | "abortAllCompactions" => fn(_env, database: &Db) -> () {
        Ok(database.pause_compactions()?)
    }

    "continueBackgroundWork" | "resumeAllCompactions" => fn(_env, database: &Db) -> () {
        database.continue_compactions();
        Ok(())
    }

    /// A failure is noted alone, as in RocksDB.
    "promoteL0" => fn(_env, database: &Db, family: Option<&FamilyHandle>, level: i32) -> () {
        let level = usize::try_from(level).unwrap_or(0);
        if let Err(error) = database.db.promote_level0(database.family(family), level) {
            tracing::warn!(%error, "promoteL0");
        }
        Ok(())
    }

    /// A failure is noted alone, as in RocksDB.
    "deleteFile" | "deprecated_1deleteFile" => fn(_env, database: &Db, name: String) -> () {
        if let Err(error) = database.delete_file(&name) {
            tracing::warn!(%error, "deleteFile");
        }
        Ok(())
    }

    "enableAutoCompaction" => fn(_env, database: &Db, families: Handles) -> () {
        for family in families.get::<FamilyHandle>()? {
            database.set_named(Some(&family.0), &[("disable_auto_compactions", "false")])?;
        }
        Ok(())
    }

    "setOptions" => fn(
        _env,
        database: &Db,
        family: Option<&FamilyHandle>,
        names: Vec<String>,
        values: Vec<String>,
    ) -> () {
        match family {
            Some(family) => database.set(Some(family), &names, &values),
            None => {
                let family = FamilyHandle(database.default_family().clone());
                database.set(Some(&family), &names, &values)
            }
        }
    }

    "setDBOptions" => fn(_env, database: &Db, names: Vec<String>, values: Vec<String>) -> () {
        database.set(None, &names, &values)
    }

    "disableFileDeletions" => fn(_env, database: &Db) -> () {
        database.db.disable_file_deletions();
        Ok(())
    }

    "enableFileDeletions__J" => fn(_env, database: &Db) -> () {
        database.db.enable_file_deletions();
        Ok(())
    }

    "enableFileDeletions__JZ" => fn(_env, database: &Db, _force: bool) -> () {
        database.db.enable_file_deletions();
        Ok(())
    }

    /// Ranges as pairs of keys; a null key is the end of the key space.
    "deleteFilesInRanges" => fn(
        env,
        database: &Db,
        family: Option<&FamilyHandle>,
        ranges: Array<'_>,
        include_end: bool,
    ) -> () {
        let family = database.family(family);
        let mut keys: Vec<Option<Vec<u8>>> = Vec::new();
        env.each_element(ranges.0, |key| {
            keys.push(key.map(|key| env.bytes(key)).transpose()?);
            Ok(())
        })?;
        for range in keys.chunks_exact(2) {
            let [start, end] = range else { continue };
            match end {
                Some(end) if !include_end => {
                    if let Some(last) = database.last_before(family, end) {
                        database.delete_files(family, start.as_deref(), Some(&last))?;
                    }
                }
                end => database.delete_files(family, start.as_deref(), end.as_deref())?,
            }
        }
        Ok(())
    }

    "clipColumnFamily" => fn(
        _env,
        database: &Db,
        family: &FamilyHandle,
        start[offset, len]: Bytes,
        end[at, size]: Bytes,
    ) -> () {
        database.clip(family, &start, &end)
    }

    "tryCatchUpWithPrimary" => fn(_env, database: &Db) -> () {
        Ok(database.db.try_catch_up_with_primary()?)
    }

    "verifyChecksum" => fn(_env, database: &Db) -> () {
        Ok(database.db.verify_tables()?)
    }
}
