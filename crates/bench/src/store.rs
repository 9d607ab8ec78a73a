//! The database as benchmarks see it: a trait with the few calls they make. [`Direct`] is Spillway in this process, through its own
//! API; the comparison has an implementation over RocksDB's C API. Dispatch is static, so the trait costs nothing.

use std::sync::Arc;

use base::Result;
use spillway::internal::{Database, DbIterator, Family, ReadOptions, WriteBatch, WriteOptions};

use crate::flags::Flags;

/// An open database. Calls come from several threads at a time.
pub trait Store: Sync {
    /// Changes to be written together.
    type Batch;
    type Cursor<'a>: Cursor
    where
        Self: 'a;

    fn new_batch(&self) -> Result<Self::Batch>;

    fn clear(&self, batch: &mut Self::Batch);

    fn add_put(&self, batch: &mut Self::Batch, key: &[u8], value: &[u8]);

    fn add_delete(&self, batch: &mut Self::Batch, key: &[u8]);

    fn write(&self, batch: &mut Self::Batch) -> Result<()>;

    /// Writes one value. By default as a batch of one, as db_bench does; `batch` is overwritten.
    fn put(&self, batch: &mut Self::Batch, key: &[u8], value: &[u8]) -> Result<()> {
        self.clear(batch);
        self.add_put(batch, key, value);
        self.write(batch)
    }

    /// Whether the key exists; `see` gets its value.
    fn get(&self, key: &[u8], see: impl FnMut(&[u8])) -> Result<bool>;

    /// Looks up keys together; `see` gets each key found and its value.
    fn multi_get(&self, keys: &[&[u8]], see: impl FnMut(&[u8], &[u8])) -> Result<()>;

    fn cursor(&self) -> Result<Self::Cursor<'_>>;
}

/// Iterates over a database's keys in order. Moves return whether the cursor stands on a key.
pub trait Cursor {
    fn seek_to_first(&mut self) -> bool;

    fn seek_to_last(&mut self) -> bool;

    fn seek(&mut self, key: &[u8]) -> bool;

    fn next(&mut self) -> bool;

    fn prev(&mut self) -> bool;

    /// The key at the cursor.
    fn key(&self) -> &[u8];

    fn value(&self) -> &[u8];

    /// # Errors
    /// The failure that ended the iteration before the last key.
    fn status(&self) -> Result<()>;
}

/// Spillway's default family through its own API.
pub struct Direct<'a> {
    pub db: &'a Database,
    family: Arc<Family>,
    reads: ReadOptions,
    writes: WriteOptions,
}

impl<'a> Direct<'a> {
    pub fn new(db: &'a Database, flags: &Flags) -> Self {
        Direct {
            db,
            family: db.default_family(),
            reads: ReadOptions { verify_checksums: flags.verify_checksum, ..ReadOptions::default() },
            writes: WriteOptions { sync: flags.sync, disable_wal: flags.disable_wal, ..WriteOptions::default() },
        }
    }
}

impl Store for Direct<'_> {
    type Batch = WriteBatch;
    type Cursor<'a>
        = DbIterator
    where
        Self: 'a;

    fn new_batch(&self) -> Result<WriteBatch> {
        Ok(WriteBatch::new())
    }

    #[inline]
    fn clear(&self, batch: &mut WriteBatch) {
        batch.clear();
    }

    #[inline]
    fn add_put(&self, batch: &mut WriteBatch, key: &[u8], value: &[u8]) {
        batch.put(self.family.id(), key, value);
    }

    #[inline]
    fn add_delete(&self, batch: &mut WriteBatch, key: &[u8]) {
        batch.delete(self.family.id(), key);
    }

    #[inline]
    fn write(&self, batch: &mut WriteBatch) -> Result<()> {
        self.db.write(batch, &self.writes).map(drop)
    }

    #[inline]
    fn get(&self, key: &[u8], mut see: impl FnMut(&[u8])) -> Result<bool> {
        let value = self.db.get(&self.family, key, &self.reads)?;
        if let Some(value) = &value {
            see(value);
        }
        Ok(value.is_some())
    }

    fn multi_get(&self, keys: &[&[u8]], mut see: impl FnMut(&[u8], &[u8])) -> Result<()> {
        for (key, value) in keys.iter().zip(self.db.multi_get(&self.family, keys, &self.reads)?) {
            if let Some(value) = value? {
                see(key, &value);
            }
        }
        Ok(())
    }

    fn cursor(&self) -> Result<DbIterator> {
        self.db.iter(&self.family, &self.reads)
    }
}

impl Cursor for DbIterator {
    fn seek_to_first(&mut self) -> bool {
        DbIterator::seek_to_first(self)
    }

    fn seek_to_last(&mut self) -> bool {
        DbIterator::seek_to_last(self)
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) -> bool {
        DbIterator::seek(self, key)
    }

    #[inline]
    fn next(&mut self) -> bool {
        DbIterator::next(self)
    }

    #[inline]
    fn prev(&mut self) -> bool {
        DbIterator::prev(self)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        DbIterator::key(self)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        DbIterator::value(self)
    }

    fn status(&self) -> Result<()> {
        DbIterator::status(self)
    }
}
