//! Compares whole databases with the model: the database under test, its checkpoints, and read-only opens of its
//! directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::engine::export::ExportOptions;
use crate::engine::{DEFAULT_FAMILY, Db, OpenOptions, WriteOptions};
use base::ErrorKind;

use super::{Failure, Runner, differ, open_with};
use crate::iterate::Expected;
use crate::model::Incarnation;

/// Directory of a script's checkpoint or export while it is compared.
const COPY_DIR: &str = "/checkpoint";

impl Runner {
    /// Compares the whole database with the model.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self) -> Result<(), Failure> {
        let names: Vec<_> = self.db().families().iter().map(|family| family.name().to_owned()).collect();
        let expected: Vec<_> = self.model.names().iter().map(|(name, id)| (id, name.clone())).collect();
        let mut expected_names: Vec<_> = expected.iter().map(|(_, name)| name.clone()).collect();
        let mut found_names = names;
        expected_names.sort();
        found_names.sort();
        if found_names != expected_names {
            return differ(format!("the families are {found_names:?}, and should be {expected_names:?}"));
        }
        for (&incarnation, name) in expected {
            let family = self.family(&name)?.map(|(family, _)| family).expect("the model has it");
            let contents = self.model.state().contents(incarnation);
            self.expected(&family, &contents).compare_all(None).map_err(|e| e.context(&name))?;
            for (snapshot, held) in &self.snapshots {
                let (contents, snapshot_now) = (held.state.contents(incarnation), Some(&held.snapshot));
                self.expected(&family, &contents)
                    .compare_all(snapshot_now)
                    .map_err(|e| e.context(&format!("{name} @{snapshot}")))?;
            }
        }
        Ok(())
    }

    /// Checks that the directory has exactly the tables the database knows. Snapshots and iterators are dropped first,
    /// as they keep tables alive.
    ///
    /// # Errors
    /// Surplus or missing tables.
    pub fn check_files(&mut self) -> Result<(), Failure> {
        self.snapshots.clear();
        self.iterators.clear();
        self.prepared.clear();
        // The flush deletes unreferenced tables.
        self.db().flush(&self.db().families().iter().collect::<Vec<_>>())?;
        self.compare_files()
    }

    /// As [`check_files`](Self::check_files), if no snapshot or iterator is held.
    pub(crate) fn compare_files(&self) -> Result<(), Failure> {
        let live: BTreeSet<PathBuf> = self.db().live_files().into_iter().map(|file| file.path).collect();
        let names = self.vfs.read_dir(&self.dir)?;
        let tables = names.iter().filter(|name| name.ends_with(".sst"));
        let found: BTreeSet<PathBuf> = tables.map(|name| self.dir.join(name)).collect();
        if found == live {
            return Ok(());
        }
        let gone: Vec<_> = live.difference(&found).collect();
        let extra: Vec<_> = found.difference(&live).collect();
        differ(format!("tables that are gone: {gone:?}; that nobody knows: {extra:?}"))
    }

    /// Makes a checkpoint, compares it, and deletes it; then one of the form that RocksDB opens, unless that would take
    /// tables out of the queue: later steps are about them.
    pub(super) fn checkpoint(&mut self) -> Result<(), Failure> {
        self.db().checkpoint(COPY_DIR)?;
        self.compare_copy().map_err(|e| e.context("checkpoint"))?;
        if self.db().live_files().iter().any(|file| file.is_queued) {
            return Ok(());
        }
        // After a flush, or with a log.
        let is_flushed = self.db().latest_sequence_number().0.is_multiple_of(2);
        let flush_from_log_bytes = if is_flushed { 0 } else { u64::MAX };
        let options = ExportOptions { skip_verification: true, flush_from_log_bytes, ..ExportOptions::default() };
        self.db().export(COPY_DIR, &options)?;
        self.compare_copy().map_err(|e| e.context(&format!("export with {flush_from_log_bytes}")))
    }

    fn compare_copy(&self) -> Result<(), Failure> {
        let dir = Path::new(COPY_DIR);
        let db = open_with(&self.vfs, dir, self.profile, self.model.names())?;
        self.compare_other(&db, |_| true)?;
        db.close()?;
        Ok(Db::destroy(dir, None, &self.vfs)?)
    }

    /// Opens the directory read-only, even if it is open already, and compares the reader's contents. Families with
    /// unlogged writes are not compared.
    pub(super) fn look_read_only(&self) -> Result<(), Failure> {
        let options = self.profile.open_options(self.vfs.clone(), self.model.names().keys());
        let files = self.vfs.read_dir(&self.dir)?;
        let db = Db::open(&self.dir, &OpenOptions { read_only: true, ..options })?;
        self.compare_other(&db, |family| !self.unlogged.contains(&family)).map_err(|e| e.context("read-only"))?;
        let Some(family) = db.family(DEFAULT_FAMILY) else { return differ("read-only: no default family") };
        match db.put(&family, b"k", b"v", &WriteOptions::default()) {
            Err(error) if error.kind() == ErrorKind::ReadOnly => {}
            Err(error) => return Err(error.into()),
            Ok(()) => return differ("a database that is open for reading only took a write"),
        }
        db.close()?;
        if self.vfs.read_dir(&self.dir)? != files {
            return differ("a reader changed the directory");
        }
        Ok(())
    }

    /// Compares the `known` families of a database that should hold the same.
    fn compare_other(&self, db: &Db, known: impl Fn(Incarnation) -> bool) -> Result<(), Failure> {
        for (name, &incarnation) in self.model.names() {
            let Some(family) = db.family(name) else { return differ(format!("there is no family {name}")) };
            if known(incarnation) {
                let contents = self.model.state().contents(incarnation);
                let expected = Expected { db, family: &family, order: self.model.order(), contents: &contents };
                expected.compare_all(None).map_err(|e| e.context(name))?;
            }
        }
        Ok(())
    }
}
