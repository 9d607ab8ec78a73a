//! fjall. Its batches are written to the journal: handed to the system (`PersistMode::Buffer`), or synced (`SyncData`).

use std::sync::Arc;

use base::Result;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use vfs::Vfs;

use super::{Change, Changes, Described, Peer, Reader, See, Setup, failed, wait_until_idle};

/// By fjall's documentation: 20 to 25 % of the memory, more if the data fit.
fn cache_bytes(setup: &Setup<'_>) -> u64 {
    if setup.fits() { setup.memory_bytes / 2 } else { setup.memory_bytes / 4 }
}

fn memtable_bytes(setup: &Setup<'_>) -> u64 {
    setup.memory_bytes / 16
}

pub struct Fjall {
    vfs: Arc<dyn Vfs>,
    db: Database,
    entries: Keyspace,
    persist: PersistMode,
}

impl Fjall {
    /// Ends flushes and compactions.
    fn wait(&self) {
        wait_until_idle(self.vfs.as_ref(), || self.db.outstanding_flushes() == 0 && self.db.active_compactions() == 0);
    }
}

impl Peer for Fjall {
    type Reader<'a> = FjallReader<'a>;

    /// A batch is held in memory.
    const BULK_MAX: u64 = 100_000;

    fn open(setup: &Setup<'_>) -> Result<Fjall> {
        let db = Database::builder(setup.dir).cache_size(cache_bytes(setup)).open().map_err(failed("open"))?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(memtable_bytes(setup));
        let entries = db.keyspace("entries", options).map_err(failed("keyspace"))?;
        Ok(Fjall { vfs: setup.vfs.clone(), db, entries, persist: PersistMode::SyncData })
    }

    fn describe(setup: &Setup<'_>) -> Result<Described> {
        Ok(Described {
            version: format!("fjall {}", super::super::versions::FJALL),
            options: format!(
                "cache_size={}, max_memtable_size={}, without compression; PersistMode::Buffer where not durable; loaded by start_ingestion",
                cache_bytes(setup),
                memtable_bytes(setup)
            ),
        })
    }

    fn set_durable(&mut self, durable: bool) -> Result<()> {
        self.persist = if durable { PersistMode::SyncData } else { PersistMode::Buffer };
        Ok(())
    }

    fn commit(&self, changes: &mut dyn Changes) -> Result<()> {
        let mut batch = self.db.batch().durability(Some(self.persist));
        while let Some(change) = changes.next() {
            match change {
                Change::Put { key, value } => batch.insert(&self.entries, key, value),
                Change::Remove { key } => batch.remove(&self.entries, key),
            }
        }
        batch.commit().map_err(failed("commit"))
    }

    fn load(&mut self, changes: &mut dyn Changes) -> Result<()> {
        let mut ingestion = self.entries.start_ingestion().map_err(failed("start_ingestion"))?;
        while let Some(Change::Put { key, value }) = changes.next() {
            ingestion.write(key, value).map_err(failed("write"))?;
        }
        ingestion.finish().map_err(failed("finish"))
    }

    fn reader(&self) -> Result<FjallReader<'_>> {
        Ok(FjallReader(&self.entries))
    }

    /// By a walk: it keeps no exact count.
    fn count(&self) -> Result<u64> {
        self.entries.len().map(|count| count as u64).map_err(failed("len"))
    }

    fn settle(&mut self) -> Result<()> {
        self.db.persist(PersistMode::SyncAll).map_err(failed("persist"))?;
        self.entries.rotate_memtable_and_wait().map_err(failed("rotate_memtable"))?;
        self.wait();
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        self.entries.major_compact().map_err(failed("major_compact"))?;
        self.wait();
        Ok(())
    }
}

pub struct FjallReader<'a>(&'a Keyspace);

impl Reader for FjallReader<'_> {
    fn get(&mut self, key: &[u8], see: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        match self.0.get(key).map_err(failed("get"))? {
            Some(value) => see(&value).map(|()| true),
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], count: u64, see: &mut See<'_>) -> Result<u64> {
        let mut entries = self.0.range(from..);
        for seen in 0..count {
            let Some(entry) = entries.next() else { return Ok(seen) };
            let (key, value) = entry.into_inner().map_err(failed("range"))?;
            see(&key, &value)?;
        }
        Ok(count)
    }
}
