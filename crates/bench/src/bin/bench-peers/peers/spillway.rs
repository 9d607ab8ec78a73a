//! Spillway through its Rust API. A write that is not durable is in the log and not synced.

use std::path::PathBuf;
use std::sync::Arc;

use ::spillway::{Cursor, Db, IngestOptions, Options, WriteOptions};
use base::Result;
use vfs::Vfs;

use super::{Change, Changes, Described, LOAD_BYTES, Peer, Reader, See, Setup, lsm_options, table_path};

pub struct Spillway {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    db: Db,
    writes: WriteOptions,
}

impl Peer for Spillway {
    type Reader<'a> = SpillwayReader<'a>;

    /// As RocksDB.
    const BULK_MAX: u64 = 100_000;

    fn open(setup: &Setup<'_>) -> Result<Spillway> {
        let db = Db::open_with(setup.dir, &Options::new().text(lsm_options(setup)))?;
        let writes = WriteOptions::new().sync(true);
        Ok(Spillway { vfs: setup.vfs.clone(), dir: setup.dir.to_owned(), db, writes })
    }

    fn describe(setup: &Setup<'_>) -> Result<Described> {
        Ok(Described {
            version: format!("Spillway {}", env!("CARGO_PKG_VERSION")),
            options: format!("{}; loaded by ingested tables", lsm_options(setup)),
        })
    }

    fn set_durable(&mut self, durable: bool) -> Result<()> {
        self.writes = WriteOptions::new().sync(durable);
        Ok(())
    }

    fn commit(&self, changes: &mut dyn Changes) -> Result<()> {
        let family = self.db.default_family();
        let mut batch = self.db.batch();
        while let Some(change) = changes.next() {
            match change {
                Change::Put { key, value } => batch.put(family, key, value),
                Change::Remove { key } => batch.delete(family, key),
            };
        }
        batch.commit_with(&self.writes)
    }

    fn load(&mut self, changes: &mut dyn Changes) -> Result<()> {
        let family = self.db.default_family();
        let (mut files, mut more) = (Vec::new(), true);
        while more {
            let path = table_path(&self.dir, files.len());
            let mut table = family.table_writer(&path)?;
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
                // Removes its file.
                drop(table);
            }
        }
        family.ingest_with(&files, &IngestOptions::new().move_files(true)).map(drop)?;
        files.iter().try_for_each(|path| if self.vfs.exists(path)? { self.vfs.remove_file(path) } else { Ok(()) })
    }

    fn reader(&self) -> Result<SpillwayReader<'_>> {
        Ok(SpillwayReader { db: &self.db, cursor: None })
    }

    /// By a walk: it keeps no exact count.
    fn count(&self) -> Result<u64> {
        let mut cursor = self.db.cursor(..)?;
        let (mut valid, mut count) = (cursor.first()?, 0);
        while valid {
            count += 1;
            valid = cursor.next()?;
        }
        Ok(count)
    }

    fn settle(&mut self) -> Result<()> {
        self.db.flush()?;
        self.db.wait_for_compaction()
    }

    fn compact(&mut self) -> Result<()> {
        self.db.compact(..)?;
        self.db.wait_for_compaction()
    }
}

pub struct SpillwayReader<'a> {
    db: &'a Db,
    /// Kept from the first scan on.
    cursor: Option<Cursor>,
}

impl Reader for SpillwayReader<'_> {
    fn get(&mut self, key: &[u8], see: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        match self.db.get(key)? {
            Some(value) => see(&value).map(|()| true),
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], count: u64, see: &mut See<'_>) -> Result<u64> {
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            none => none.insert(self.db.cursor(..)?),
        };
        let (mut valid, mut seen) = (cursor.seek(from)?, 0);
        while valid {
            see(cursor.key(), cursor.value())?;
            seen += 1;
            if seen == count {
                return Ok(seen);
            }
            valid = cursor.next()?;
        }
        Ok(seen)
    }
}
