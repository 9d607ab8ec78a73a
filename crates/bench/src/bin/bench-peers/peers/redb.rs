//! redb. A commit that is not durable is `Durability::None`: it stays in the process's memory, and is lost with the process. redb has
//! nothing between that and a sync.

use base::Result;
use redb::{Builder, Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTableMetadata, TableDefinition};

use super::{Change, Changes, Described, LOAD_BYTES, Peer, Reader, See, Setup, failed};

const ENTRIES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("entries");

const FILE: &str = "entries.redb";

/// Half of the memory: the rest is for the heap around the cache and for the system's cache of the file.
fn cache_bytes(setup: &Setup<'_>) -> usize {
    (setup.memory_bytes / 2) as usize
}

pub struct Redb {
    db: Database,
    durability: Durability,
}

impl Redb {
    /// Returns whether changes may be left.
    fn write(&self, durability: Durability, changes: &mut dyn Changes, bytes_max: usize) -> Result<bool> {
        let mut txn = self.db.begin_write().map_err(failed("begin_write"))?;
        txn.set_durability(durability).map_err(failed("set_durability"))?;
        let mut bytes = 0;
        {
            let mut entries = txn.open_table(ENTRIES).map_err(failed("open_table"))?;
            while bytes < bytes_max {
                match changes.next() {
                    Some(Change::Put { key, value }) => {
                        bytes += key.len() + value.len();
                        entries.insert(key, value).map_err(failed("insert"))?;
                    }
                    Some(Change::Remove { key }) => {
                        entries.remove(key).map_err(failed("remove"))?;
                    }
                    None => break,
                }
            }
        }
        txn.commit().map_err(failed("commit"))?;
        Ok(bytes >= bytes_max)
    }
}

/// No changes.
struct Nothing;

impl Changes for Nothing {
    fn next(&mut self) -> Option<Change<'_>> {
        None
    }
}

impl Peer for Redb {
    type Reader<'a> = RedbReader;

    /// One transaction, as redb's benchmark does.
    const BULK_MAX: u64 = u64::MAX;

    fn open(setup: &Setup<'_>) -> Result<Redb> {
        setup.vfs.create_dir_all(setup.dir)?;
        let mut builder = Builder::new();
        builder.set_cache_size(cache_bytes(setup));
        let db = builder.create(setup.dir.join(FILE)).map_err(failed("create"))?;
        let redb = Redb { db, durability: Durability::Immediate };
        redb.write(Durability::Immediate, &mut Nothing, usize::MAX)?;
        Ok(redb)
    }

    fn describe(setup: &Setup<'_>) -> Result<Described> {
        Ok(Described {
            version: format!("redb {}", super::super::versions::REDB),
            options: format!(
                "cache_size={}, MALLOC_ARENA_MAX=1; Durability::None where not durable; loaded in order in durable transactions of {} MiB",
                cache_bytes(setup),
                LOAD_BYTES >> 20
            ),
        })
    }

    fn set_durable(&mut self, durable: bool) -> Result<()> {
        self.durability = if durable { Durability::Immediate } else { Durability::None };
        Ok(())
    }

    fn commit(&self, changes: &mut dyn Changes) -> Result<()> {
        self.write(self.durability, changes, usize::MAX).map(drop)
    }

    fn load(&mut self, changes: &mut dyn Changes) -> Result<()> {
        while self.write(Durability::Immediate, changes, LOAD_BYTES)? {}
        Ok(())
    }

    fn reader(&self) -> Result<RedbReader> {
        let txn = self.db.begin_read().map_err(failed("begin_read"))?;
        Ok(RedbReader(txn.open_table(ENTRIES).map_err(failed("open_table"))?))
    }

    fn count(&self) -> Result<u64> {
        self.reader()?.0.len().map_err(failed("len"))
    }

    /// A durable commit makes all before it durable.
    fn settle(&mut self) -> Result<()> {
        self.write(Durability::Immediate, &mut Nothing, usize::MAX).map(drop)
    }

    fn compact(&mut self) -> Result<()> {
        self.db.compact().map(drop).map_err(failed("compact"))
    }
}

pub struct RedbReader(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl Reader for RedbReader {
    fn get(&mut self, key: &[u8], see: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        match self.0.get(key).map_err(failed("get"))? {
            Some(value) => see(value.value()).map(|()| true),
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], count: u64, see: &mut See<'_>) -> Result<u64> {
        let mut entries = self.0.range(from..).map_err(failed("range"))?;
        for seen in 0..count {
            let Some(entry) = entries.next() else { return Ok(seen) };
            let (key, value) = entry.map_err(failed("range"))?;
            see(key.value(), value.value())?;
        }
        Ok(count)
    }
}
