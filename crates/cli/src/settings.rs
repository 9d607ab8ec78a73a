//! Options for opening a database: the stored ones, overridden by those of the command line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::name;
use spillway::internal::options::known::IGNORE_UNSUPPORTED;
use spillway::internal::options::row::OptionGroup;
use spillway::internal::options::{OptionsFile, Syntax, apply_string, string, whole};
use spillway::internal::version::edit::LOG_DIR_OF_COPY;
use spillway::internal::version::file_name::{self, FileType};
use spillway::internal::version::recover::{Recovered, recover};
use spillway::internal::vfs::{FileKind, IoClass, Vfs};
use spillway::internal::{DbOptions, Error, ErrorKind, FamilyOptions, FileNumber, Result};

use crate::failure::warn;

/// `--options` with this word takes the defaults in place of the stored options.
pub const DEFAULTS: &str = "defaults";

/// Options of a database, of its families by name, and of families without their own.
#[derive(Clone, Default)]
pub struct Settings {
    pub db: DbOptions,
    pub families: Vec<(String, FamilyOptions)>,
    pub others: FamilyOptions,
    /// Options of the given text without effect.
    pub warnings: Vec<String>,
}

/// Handling of stored options the engine cannot honour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// Return the error.
    Refuse,
    /// Warn. For read-only commands: they store and keep nothing.
    Tell,
    /// Opening the database warns or returns the error.
    Leave,
}

impl Settings {
    /// Loads the options stored in `dir`, as far as they can be read and honoured, and applies `given` over them: a file
    /// name (an OPTIONS file, `.json`, `.yaml`), or an option string. For commands that store no options.
    pub fn load(vfs: &Arc<dyn Vfs>, dir: &Path, given: Option<&str>) -> Result<Settings> {
        Self::stored_or_default(vfs, dir, Unsupported::Tell)?.with(vfs, Some(dir), given)
    }

    /// As [`stored`](Self::stored). Warns of a damaged file and goes on with the defaults.
    pub fn stored_or_default(vfs: &Arc<dyn Vfs>, dir: &Path, unsupported: Unsupported) -> Result<Settings> {
        let Some(path) = options_files(&**vfs, dir)?.into_iter().next() else { return Ok(Settings::default()) };
        Self::stored_in(vfs, &path, unsupported).or_else(|error| {
            if !is_damage(&error) {
                return Err(error);
            }
            warn(&format!("the stored options cannot be read, and are not used: {error}"));
            Ok(Settings::default())
        })
    }

    /// Loads the options stored in the directory. The defaults if there is no OPTIONS file.
    ///
    /// # Errors
    /// [`is_damage`]: the newest file is damaged. `Unsupported`: refused. The file system's.
    pub fn stored(vfs: &Arc<dyn Vfs>, dir: &Path, unsupported: Unsupported) -> Result<Settings> {
        let paths = options_files(&**vfs, dir)?;
        let Some(path) = paths.first() else { return Ok(Settings::default()) };
        Self::stored_in(vfs, path, unsupported).map_err(|error| match is_damage(&error) {
            true => name_remedy(error, paths.get(1)),
            false => error,
        })
    }

    fn stored_in(vfs: &Arc<dyn Vfs>, path: &Path, unsupported: Unsupported) -> Result<Settings> {
        let none = Settings::default();
        // Warnings are dropped: they were shown when the options were given.
        let read = read_text(&**vfs, path).and_then(|text| {
            let whole = whole::check_whole(&text).map_err(|error| error.at_path(path));
            whole.and_then(|()| read_options(&text, path, &none)).map(|(settings, _)| settings)
        });
        let error = match read {
            Ok(settings) => return Ok(settings.without_way_of_open()),
            Err(error) => error,
        };
        match (error.kind(), unsupported) {
            (ErrorKind::Unsupported, Unsupported::Refuse) => Err(error),
            (ErrorKind::Unsupported, _) => {
                if unsupported == Unsupported::Tell {
                    warn(&error.to_string());
                }
                let (mut settings, _) = read_file(&**vfs, path, &none.ignoring_unsupported(true))?;
                settings.db.ignore_unsupported_options = false;
                Ok(settings.without_way_of_open())
            }
            _ => Err(error),
        }
    }

    /// Drops what is of one open: a salvage that was asked for once is not repeated unasked, nor is a database refused that
    /// was to be new then.
    fn without_way_of_open(mut self) -> Settings {
        let default = DbOptions::default();
        self.db.error_if_exists = default.error_if_exists;
        self.db.wal_recovery_mode = default.wal_recovery_mode;
        self.db.best_efforts_recovery = default.best_efforts_recovery;
        self
    }

    /// Number of the newest OPTIONS file; 0 if there is none.
    pub fn newest(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<FileNumber> {
        Ok(numbers_in(&**vfs, dir, FileType::Options)?.pop().unwrap_or_default())
    }

    /// Warns if the newest OPTIONS file, which these options are of, lacks families: a kill came before it was written, or it lost
    /// its end.
    pub fn warn_if_lacking(&self, vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<()> {
        let newest = Self::newest(vfs, dir)?;
        if let Some(families) =
            recover(&**vfs, dir).ok().and_then(|found| self.lacking(&found)).filter(|_| newest.0 > 0)
        {
            let name = file_name::format(FileType::Options, newest);
            warn(&format!(
                "{name} lacks {families}, or lost its end: default options are used; give others by --options"
            ));
        }
        Ok(())
    }

    /// The families that have no options here.
    fn lacking(&self, found: &Recovered) -> Option<String> {
        let has = |name: &str| self.families.iter().any(|(known, _)| known == name);
        let mut lacking = found.families.iter().filter(|family| !has(&family.name));
        let (family, more) = (&lacking.next()?.name, lacking.count());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!("column family {family:?}{more}"))
    }

    /// Warns if a database of RocksDB's, which is taken over, has no OPTIONS file.
    pub fn warn_if_none(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<()> {
        let is_rocksdbs = || recover(&**vfs, dir).is_ok_and(|found| !found.fenced);
        if options_files(&**vfs, dir)?.is_empty() && is_rocksdbs() {
            warn("there is no OPTIONS file: the default options are used, and stored; give others by --options");
        }
        Ok(())
    }

    /// For a repair: the options of the newest whole OPTIONS file, and its path. The defaults if there is none. Last, what is wrong with
    /// the newer ones.
    pub fn salvaged(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<(Settings, Option<PathBuf>, Vec<String>)> {
        let mut skipped = Vec::new();
        for path in options_files(&**vfs, dir)? {
            match Self::stored_in(vfs, &path, Unsupported::Tell) {
                Ok(settings) => return Ok((settings, Some(path), skipped)),
                Err(error) if is_damage(&error) => skipped.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok((Settings::default(), None, skipped))
    }

    /// For [`DEFAULTS`] in place of lost options: the logs are where the MANIFEST says, if that is a directory.
    fn find_logs(&mut self, vfs: &Arc<dyn Vfs>, dir: &Path) {
        let noted = recover(&**vfs, dir).ok().and_then(|found| found.log_dir).filter(|logs| *logs != LOG_DIR_OF_COPY);
        if let Some(logs) = noted.filter(|logs| vfs.exists(&name::path(logs)).unwrap_or(false)) {
            self.db.wal_dir = logs;
        }
    }

    /// With `ignore`, options that cannot be honoured cause warnings, not errors.
    #[must_use]
    pub fn ignoring_unsupported(mut self, ignore: bool) -> Settings {
        self.db.ignore_unsupported_options |= ignore;
        self
    }

    /// Applies `given` over these options, of the database in `dir` if there is one: see [`load`](Self::load). [`DEFAULTS`] takes
    /// their place, but for the directory of the logs. Warns about options without effect.
    pub fn with(self, vfs: &Arc<dyn Vfs>, dir: Option<&Path>, given: Option<&str>) -> Result<Settings> {
        let (mut settings, warnings) = match given {
            None => return Ok(self),
            Some(DEFAULTS) => {
                let mut defaults = Settings::default().ignoring_unsupported(self.db.ignore_unsupported_options);
                let timed = self.families.into_iter().filter(|(_, options)| *options.value_times);
                let only_times = |name| (name, FamilyOptions { value_times: true.into(), ..FamilyOptions::default() });
                defaults.families = timed.map(|(name, _)| only_times(name)).collect();
                defaults.db.wal_dir = self.db.wal_dir; // where the logs are
                if let Some(dir) = dir.filter(|_| defaults.db.wal_dir.is_empty()) {
                    defaults.find_logs(vfs, dir);
                }
                return Ok(defaults);
            }
            Some(text) if is_file_name(text) => {
                let mut read = read_file(&**vfs, &name::path(text), &self)?;
                // A file of another database does not tell how these values are stored. The MANIFEST does, and --ttl.
                let current = |dir: &Path| dir.join(file_name::format(FileType::Current, FileNumber(0)));
                let is_there = dir.map_or(Ok(false), |dir| vfs.exists(&current(dir)))?;
                let unsaid = |(_, options): &&mut (String, FamilyOptions)| !options.value_times.is_denied();
                for (name, options) in read.0.families.iter_mut().filter(unsaid) {
                    let known = self.families.iter().find(|(known, _)| known == name);
                    let or = (*options.value_times && !is_there).into();
                    options.value_times = known.map_or(or, |(_, stored)| stored.value_times);
                }
                read
            }
            Some(text) => self.with_string(text)?,
        };
        warnings.iter().for_each(|warning| warn(warning));
        settings.warnings = warnings;
        Ok(settings)
    }

    /// Applies database options to the database, all remaining ones to every family.
    fn with_string(mut self, text: &str) -> Result<(Settings, Vec<String>)> {
        let pairs = string::pairs(text)?;
        string::check_names(&mut self.others, &pairs)?;
        let mut warnings = Vec::new();
        for (_, value) in pairs.iter().filter(|(name, _)| *name == IGNORE_UNSUPPORTED) {
            apply_string(&mut self.db, &format!("{IGNORE_UNSUPPORTED}={value}"))?;
        }
        let ignore = self.db.ignore_unsupported_options;
        for (name, value) in pairs {
            let pair = format!("{IGNORE_UNSUPPORTED}={ignore};{name}={{{value}}}");
            let is_of_db = self.db.find_mut(name).is_some() || self.db.unhonoured().iter().any(|row| row.name == name);
            if is_of_db {
                warnings.extend(apply_string(&mut self.db, &pair)?);
                continue;
            }
            let families = self.families.iter_mut().map(|(_, family)| family);
            for family in families.chain([&mut self.others]) {
                warnings.extend(apply_string(family, &pair)?);
            }
        }
        Ok((self, warnings))
    }
}

/// Whether `--options` names a file.
pub fn is_file_name(text: &str) -> bool {
    let path = name::path(text);
    let is_named_so = |suffix: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(suffix));
    !text.contains('=') || path.is_file() || ["json", "yaml", "yml", "ini"].into_iter().any(is_named_so)
}

/// Whether the error is of an options file's content.
fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corruption | ErrorKind::InvalidArgument)
}

/// Adds what to do about a damaged options file of a database to be written.
fn name_remedy(error: Error, older: Option<&PathBuf>) -> Error {
    let before = older.map(|older| format!(" (the one before is {})", older.display())).unwrap_or_default();
    error
        .context("the stored options cannot be read, and are not replaced unasked")
        .advise(format!(
            "give all options by --options FILE{before}, or take the defaults by --options {DEFAULTS}; with --config, `spillway \
             repair` with that --config stores the document's"
        ))
}

/// Paths of the options files in a database directory, newest first.
fn options_files(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<PathBuf>> {
    let numbers = numbers_in(vfs, dir, FileType::Options)?.into_iter().rev();
    Ok(numbers.map(|number| dir.join(file_name::format(FileType::Options, number))).collect())
}

/// Numbers of the files of a kind, ascending. None if there is no directory.
fn numbers_in(vfs: &dyn Vfs, dir: &Path, wanted: FileType) -> Result<Vec<FileNumber>> {
    if !vfs.exists(dir)? {
        return Ok(Vec::new());
    }
    let names = vfs.read_dir(dir)?;
    let parsed = names.iter().filter_map(|name| file_name::parse(name));
    let mut found: Vec<_> = parsed.filter(|(kind, _)| *kind == wanted).map(|(_, number)| number).collect();
    found.sort_unstable();
    Ok(found)
}

fn read_text(vfs: &dyn Vfs, path: &Path) -> Result<String> {
    let read = spillway::internal::vfs::read_all(vfs, path, whole::BYTES_MAX, IoClass::Other);
    let bytes = read.map_err(|error| match error.is_read_failure() {
        true => Error::corruption(error.to_string()).at_path(path), // the device lost it: as good as damaged
        false if vfs.metadata(path).is_ok_and(|found| found.kind == FileKind::Directory) => {
            Error::corruption("it is a directory, and no file").at_path(path)
        }
        false => error,
    })?;
    Ok(name::text(&bytes).into_owned())
}

/// Reads a file's options over `over`. Also returns warnings about options without effect.
fn read_file(vfs: &dyn Vfs, path: &Path, over: &Settings) -> Result<(Settings, Vec<String>)> {
    read_options(&read_text(vfs, path)?, path, over)
}

/// As [`read_file`], of a file's text.
fn read_options(text: &str, path: &Path, over: &Settings) -> Result<(Settings, Vec<String>)> {
    let start = |name: &str| {
        let known = over.families.iter().find(|(known, _)| known == name);
        known.map_or_else(|| over.others.clone(), |(_, options)| options.clone())
    };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_lowercase();
    let read = match extension.as_str() {
        "json" => OptionsFile::read_document(text, Syntax::Json, over.db.clone(), &start),
        "yaml" | "yml" => OptionsFile::read_document(text, Syntax::Yaml, over.db.clone(), &start),
        // Options known only to newer versions of RocksDB are skipped.
        _ => whole::check_sum(text).and_then(|()| OptionsFile::read(text, over.db.clone(), &start, true)),
    };
    let (file, warnings) = read.map_err(|error| error.at_path(path))?;
    let mut families = file.families;
    let kept = over.families.iter().filter(|(name, _)| !families.iter().any(|(known, _)| known == name));
    let kept: Vec<_> = kept.cloned().collect();
    families.extend(kept);
    Ok((Settings { db: file.db, families, others: over.others.clone(), warnings: Vec::new() }, warnings))
}

#[cfg(test)]
mod tests {
    use spillway::internal::vfs::MemoryVfs;

    use super::*;

    const WHOLE: &[u8] =
        b"[Version]\n  rocksdb_version=11.8.1\n  options_file_version=1.1\n[DBOptions]\n[CFOptions \"default\"]\n\
                           [TableOptions/BlockBasedTable \"default\"]\n";

    /// The device may read it the next time, and then the repair itself sees no damage.
    #[test]
    fn repair_is_told_of_a_file_that_is_passed_over() {
        let memory = MemoryVfs::new(1);
        let dir = Path::new("/db");
        memory.create_dir_all(dir).unwrap();
        memory.write_file(&dir.join("OPTIONS-000007"), WHOLE).unwrap();
        memory.write_file(&dir.join("OPTIONS-000009"), b"").unwrap();
        let vfs: Arc<dyn Vfs> = memory;
        let (_, used, skipped) = Settings::salvaged(&vfs, dir).unwrap();
        assert_eq!(used, Some(dir.join("OPTIONS-000007")));
        assert!(skipped.len() == 1 && skipped[0].contains("OPTIONS-000009"), "{skipped:?}");
    }
}
