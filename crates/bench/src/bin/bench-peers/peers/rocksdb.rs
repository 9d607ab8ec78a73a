//! RocksDB's release library through its C API. A write that is not durable is in the log and not synced.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, Result};
use bench::folder;
use bench::store::{Cursor, Store};
use vfs::Vfs;

use super::{Change, Changes, Described, LOAD_BYTES, Peer, Reader, See, Setup, lsm_options, table_path};
use crate::library::{Database, Functions, Habits, Options, TableFile, version, wait_until_idle};

pub struct Rocks {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    // The database before its options: it is closed first.
    db: Database,
    options: Options,
}

/// The options, of a library that stays loaded.
fn options(setup: &Setup<'_>) -> Result<Options> {
    let library = setup.library.ok_or_else(|| {
        Error::invalid_argument("RocksDB needs its library: --rocksdb PATH, or leave rocksdb out of --peers")
    })?;
    Options::from_texts(Functions::load(library)?, &[lsm_options(setup)])
}

fn open(setup: &Setup<'_>, dir: &Path) -> Result<(Options, Database)> {
    let options = options(setup)?;
    let db = Database::open(&options, dir, Habits { sync: true, verify_checksums: true })?;
    Ok((options, db))
}

impl Peer for Rocks {
    type Reader<'a> = RocksReader<'a>;

    /// As in redb's benchmark: a batch is held in memory.
    const BULK_MAX: u64 = 100_000;

    fn open(setup: &Setup<'_>) -> Result<Rocks> {
        let (options, db) = open(setup, setup.dir)?;
        Ok(Rocks { vfs: setup.vfs.clone(), dir: setup.dir.to_owned(), db, options })
    }

    /// The version is in a file of a database.
    fn describe(setup: &Setup<'_>) -> Result<Described> {
        let (vfs, dir) = (setup.vfs.as_ref(), setup.dir.with_extension("probe"));
        let version = open(setup, &dir).and_then(|(options, db)| {
            let version = version(vfs, &db, &dir);
            drop(db);
            drop(options);
            version
        });
        folder::remove(vfs, &dir)?;
        Ok(Described { version: version?, options: format!("{}; loaded by ingested tables", lsm_options(setup)) })
    }

    fn set_durable(&mut self, durable: bool) -> Result<()> {
        self.db.set_sync(durable);
        Ok(())
    }

    fn commit(&self, changes: &mut dyn Changes) -> Result<()> {
        let mut batch = self.db.new_batch()?;
        while let Some(change) = changes.next() {
            match change {
                Change::Put { key, value } => self.db.add_put(&mut batch, key, value),
                Change::Remove { key } => self.db.add_delete(&mut batch, key),
            }
        }
        self.db.write(&mut batch)
    }

    fn load(&mut self, changes: &mut dyn Changes) -> Result<()> {
        let (mut files, mut more) = (Vec::new(), true);
        while more {
            let path = table_path(&self.dir, files.len());
            let mut table = TableFile::create(&self.options, &path)?;
            more = false;
            let mut bytes = 0;
            while let Some(Change::Put { key, value }) = changes.next() {
                table.put(key, value)?;
                bytes += key.len() + value.len();
                if bytes >= LOAD_BYTES {
                    more = true;
                    break;
                }
            }
            if bytes > 0 {
                table.finish()?;
                files.push(path);
            } else {
                drop(table);
                self.vfs.remove_file(&path)?;
            }
        }
        self.db.ingest_moved(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>())
    }

    fn reader(&self) -> Result<RocksReader<'_>> {
        Ok(RocksReader { db: &self.db, cursor: None })
    }

    /// By a walk: it keeps no exact count.
    fn count(&self) -> Result<u64> {
        let mut cursor = self.db.cursor()?;
        let (mut valid, mut count) = (cursor.seek_to_first(), 0);
        while valid {
            count += 1;
            valid = cursor.next();
        }
        cursor.status().map(|()| count)
    }

    fn settle(&mut self) -> Result<()> {
        self.db.flush()?;
        wait_until_idle(self.vfs.as_ref(), &self.db).map(drop)
    }

    fn compact(&mut self) -> Result<()> {
        self.db.compact();
        wait_until_idle(self.vfs.as_ref(), &self.db).map(drop)
    }
}

pub struct RocksReader<'a> {
    db: &'a Database,
    /// Kept from the first scan on.
    cursor: Option<<Database as Store>::Cursor<'a>>,
}

impl Reader for RocksReader<'_> {
    fn get(&mut self, key: &[u8], see: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        let mut seen = Ok(());
        let found = self.db.get(key, |value| seen = see(value))?;
        seen.map(|()| found)
    }

    fn scan(&mut self, from: &[u8], count: u64, see: &mut See<'_>) -> Result<u64> {
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            none => none.insert(self.db.cursor()?),
        };
        let (mut valid, mut seen) = (cursor.seek(from), 0);
        while valid {
            see(cursor.key(), cursor.value())?;
            seen += 1;
            if seen == count {
                return Ok(seen);
            }
            valid = cursor.next();
        }
        cursor.status().map(|()| seen)
    }
}
