//! Options of an open: the given ones over the stored ones.

use base::name;
use std::collections::HashMap;
use std::path::Path;

use base::options::{DbOptions, FamilyOptions as EngineFamilyOptions, OptionsFile, whole};
use base::{Error, ErrorKind, FileNumber, Result};

use crate::api::options::{FamilyOptions, Options};
use crate::batch::options::WriteOptions as EngineWriteOptions;
use crate::core::open_options::{DEFAULT_FAMILY, OpenOptions, OtherFamilies};
use crate::open::options_file;

impl Options {
    /// The engine's options to open the database in `dir`, and the write options of its handles.
    ///
    /// # Errors
    /// `InvalidArgument`, `Unsupported`: an option given as text, or the stored options cannot be read.
    pub(crate) fn resolve(&self, dir: &Path) -> Result<(OpenOptions, EngineWriteOptions)> {
        let mut remarks = Vec::new();
        let (OptionsFile { mut db, families: stored }, newest) = self.stored(dir)?;
        for_this_open(&mut db);
        self.database.apply(&mut db, &mut remarks)?;
        let known: HashMap<_, _> = stored.iter().map(|(name, options)| (name.as_str(), options)).collect();
        let mut over = |name: &str, given: &FamilyOptions| {
            let mut options = known.get(name).copied().cloned().unwrap_or_default();
            let applied = given.apply(&mut options, &mut remarks);
            applied.map_err(|error| error.context(format!("column family \"{name}\"")))?;
            Ok((name.to_owned(), options))
        };
        let default = [over(DEFAULT_FAMILY, &self.default_family)];
        let given = self.families.iter().map(|(name, options)| over(name, options));
        let families = default.into_iter().chain(given).collect::<Result<Vec<_>>>()?;
        let options = OpenOptions {
            stored_in: Some(newest).filter(|_| !self.ignores_stored),
            db,
            families,
            other_families: OtherFamilies::OpenBy { named: stored, rest: Box::default() },
            read_only: self.read_only,
            secondary: None,
            bear_damage: self.tolerates_damage,
            adopt_rocksdb: !self.refuses_rocksdb,
            raw_values: false,
            vfs: self.vfs.clone(),
            env: self.env.clone(),
            rate_limiter: self.rate_limiter.clone(),
            write_buffer_manager: self.write_buffer_manager.as_ref().map(|manager| manager.0.clone()),
            block_cache: self.block_cache.as_ref().map(|cache| cache.0.clone()),
            row_cache: self.row_cache.as_ref().map(|cache| cache.0.clone()),
            statistics: None,
            remarks,
        };
        Ok((options, self.write))
    }

    /// As [`resolve`](Self::resolve). Stored options that cannot be read are passed over.
    pub(crate) fn resolve_or_given(&self, dir: &Path) -> Result<OpenOptions> {
        self.resolve(dir).map(|(open, _)| open).or_else(|_| self.resolve_given())
    }

    /// As [`resolve`](Self::resolve), without the stored options.
    pub(crate) fn resolve_given(&self) -> Result<OpenOptions> {
        self.resolve(Path::new("")).map(|(options, _)| options) // where nothing is stored
    }

    /// The newest stored options, over the objects given: the file only names them. Also returns the file's number. The defaults
    /// and 0 if none are stored.
    fn stored(&self, dir: &Path) -> Result<(OptionsFile, FileNumber)> {
        let vfs = &*self.vfs;
        let none = (OptionsFile::default(), FileNumber(0));
        if !vfs.exists(dir)? {
            return Ok(none);
        }
        let Some((name, text)) = options_file::newest(vfs, dir)? else { return Ok(none) };
        let number = options_file::number_of(&name);
        // The file holds only names of objects: the given ones stand in. All given options are applied after the read.
        let of_names: HashMap<_, _> = self.families.iter().map(|(name, options)| (name.as_str(), options)).collect();
        let objects = |name: &str| {
            let given = if name == DEFAULT_FAMILY { Some(&self.default_family) } else { of_names.get(name).copied() };
            let mut options = EngineFamilyOptions::default();
            // An error is one of the open too, and is returned there.
            let _ = given.map(|given| given.apply(&mut options, &mut Vec::new()));
            EngineFamilyOptions {
                order: options.order,
                merge_operator: options.merge_operator,
                prefix_extractor: options.prefix_extractor,
                ..EngineFamilyOptions::default()
            }
        };
        let text = name::text(&text);
        let read = whole::check_whole(&text)
            .and_then(|()| OptionsFile::read_keeping(&text, DbOptions::default(), &objects, true));
        match read {
            Ok((file, _)) if self.ignores_stored => Ok((of_values(file), number)),
            Ok((file, _)) => Ok((file, number)),
            Err(error) if self.ignores_stored && error.kind() != ErrorKind::Unsupported => Ok(none),
            Err(error) => Err(told(error, &text).at_path(dir.join(name))),
        }
    }
}

/// The stored options that describe the form of values. They count even with `ignore_stored_options`.
fn of_values(file: OptionsFile) -> OptionsFile {
    let kept = |options: EngineFamilyOptions| EngineFamilyOptions {
        order: options.order,
        merge_operator: options.merge_operator,
        value_ttl_s: options.value_ttl_s,
        value_times: options.value_times,
        ..EngineFamilyOptions::default()
    };
    let families = file.families.into_iter().map(|(name, options)| (name, kept(options))).collect();
    OptionsFile { db: DbOptions::default(), families }
}

/// Adds the family and the remedy to an error of the stored options.
fn told(error: Error, text: &str) -> Error {
    let line = error.message().strip_prefix("line ").and_then(|rest| rest.split(':').next()?.parse().ok());
    let sections = text.lines().take(line.unwrap_or(0)).filter(|line| line.starts_with("[CFOptions"));
    let family = sections.last().and_then(|section| section.split('"').nth(1)).unwrap_or(DEFAULT_FAMILY);
    if error.kind() == ErrorKind::Unsupported {
        let what =
            format!("the stored options of column family \"{family}\" name what the program has to give at each open");
        return error.context(what).advise(format!("give it by Options::family(\"{family}\", ...)"));
    }
    error
        .context("the stored options cannot be read")
        .advise("Options::ignore_stored_options opens with the defaults, and with what else is given")
}

/// Resets stored options of a single open. A missing database is created, and so are missing named families.
fn for_this_open(db: &mut DbOptions) {
    let default = DbOptions::default();
    db.create_if_missing = true;
    db.create_missing_column_families = true;
    db.error_if_exists = default.error_if_exists;
    db.wal_recovery_mode = default.wal_recovery_mode;
    db.best_efforts_recovery = default.best_efforts_recovery;
}
