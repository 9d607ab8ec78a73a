//! LMDB, through heed. The only file here with `unsafe`: heed leaves it to the caller that nothing else changes the files under its
//! mapping, and that flags change in one thread. Premises: the folder belongs to this process alone, and flags change under
//! `&mut self`.
//!
//! A commit that is not durable is `MDB_NOSYNC`: changed pages are written to the file, without a sync. It survives the end of the
//! process; a loss of power may damage the database.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, ErrorKind, Result};
use heed::types::Bytes;
use heed::{
    CommitOrAbort, CompactionOption, Database, Env, EnvFlags, EnvOpenOptions, FlagSetMode, PutFlags, RoTxn, WithTls,
};
use vfs::Vfs;

use super::{Change, Changes, Described, LOAD_BYTES, Peer, Reader, See, Setup, failed};

/// Address space for each byte of data: pages of a B-tree are half full at worst, and old ones wait for reuse.
const MAP_TIMES: u64 = 6;

/// Smallest mapping.
const MAP_BYTES_MIN: u64 = 1 << 30;

pub struct Lmdb {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    /// `None` for a moment during a compaction only.
    open: Option<Open>,
    map_bytes: usize,
    reads_ahead: bool,
}

struct Open {
    env: Env,
    entries: Database<'static, Bytes, Bytes>,
}

impl Open {
    fn new(dir: &Path, map_bytes: usize, reads_ahead: bool) -> Result<Open> {
        let mut options = EnvOpenOptions::new();
        options.map_size(map_bytes);
        let flags = if reads_ahead { EnvFlags::empty() } else { EnvFlags::NO_READ_AHEAD };
        // SAFETY: the flag changes how pages are read only; nothing else changes the files (premise of the module).
        let env = unsafe { options.flags(flags).open(dir) }.map_err(failed("open"))?;
        let txn = env.write_txn().map_err(failed("write_txn"))?;
        let opened = env.create_databases_and_commit(txn, |opener, txn| {
            opener.create_database::<Bytes, Bytes>(txn, None).map(CommitOrAbort::<_, ()>::Commit)
        });
        let opened: std::result::Result<_, heed::Error> = opened;
        let opened = opened.map_err(failed("create_database"))?;
        let entries = opened.commit().ok_or_else(|| Error::new(ErrorKind::Io, "the database was not made"))?;
        Ok(Open { env, entries })
    }
}

impl Lmdb {
    fn opened(&self) -> Result<&Open> {
        self.open.as_ref().ok_or_else(|| Error::new(ErrorKind::Closed, "closed after a failed compaction"))
    }

    fn write(&self, changes: &mut dyn Changes, flags: PutFlags, bytes_max: usize) -> Result<bool> {
        let open = self.opened()?;
        let mut txn = open.env.write_txn().map_err(failed("write_txn"))?;
        let mut bytes = 0;
        while bytes < bytes_max {
            match changes.next() {
                Some(Change::Put { key, value }) => {
                    bytes += key.len() + value.len();
                    open.entries.put_with_flags(&mut txn, flags, key, value).map_err(failed("put"))?;
                }
                Some(Change::Remove { key }) => {
                    open.entries.delete(&mut txn, key).map_err(failed("delete"))?;
                }
                None => break,
            }
        }
        txn.commit().map_err(failed("commit"))?;
        Ok(bytes >= bytes_max)
    }
}

impl Peer for Lmdb {
    type Reader<'a> = LmdbReader<'a>;

    /// One transaction, as redb's benchmark does.
    const BULK_MAX: u64 = u64::MAX;

    fn open(setup: &Setup<'_>) -> Result<Lmdb> {
        setup.vfs.create_dir_all(setup.dir)?;
        let map_bytes = (setup.data_bytes * MAP_TIMES).max(MAP_BYTES_MIN).next_multiple_of(1 << 20) as usize;
        let open = Open::new(setup.dir, map_bytes, setup.fits())?;
        let (vfs, dir) = (setup.vfs.clone(), setup.dir.to_owned());
        Ok(Lmdb { vfs, dir, open: Some(open), map_bytes, reads_ahead: setup.fits() })
    }

    fn describe(setup: &Setup<'_>) -> Result<Described> {
        let (major, minor, patch) = {
            let version = heed::lmdb_version();
            (version.major, version.minor, version.patch)
        };
        let reads_ahead = if setup.fits() { "" } else { " MDB_NORDAHEAD," };
        Ok(Described {
            version: format!("LMDB {major}.{minor}.{patch} (heed {})", super::super::versions::HEED),
            options: format!(
                "no cache of its own,{reads_ahead} MDB_NOSYNC where not durable; loaded with MDB_APPEND in transactions of {} MiB",
                LOAD_BYTES >> 20
            ),
        })
    }

    fn set_durable(&mut self, durable: bool) -> Result<()> {
        let mode = if durable { FlagSetMode::Disable } else { FlagSetMode::Enable };
        let open = self.opened()?;
        // SAFETY: no other thread sets flags (`&mut self`). Without syncs a loss of power may damage a database of a benchmark.
        unsafe { open.env.set_flags(EnvFlags::NO_SYNC, mode) }.map_err(failed("set_flags"))
    }

    fn commit(&self, changes: &mut dyn Changes) -> Result<()> {
        self.write(changes, PutFlags::empty(), usize::MAX).map(drop)
    }

    fn load(&mut self, changes: &mut dyn Changes) -> Result<()> {
        while self.write(changes, PutFlags::APPEND, LOAD_BYTES)? {}
        Ok(())
    }

    fn reader(&self) -> Result<LmdbReader<'_>> {
        let open = self.opened()?;
        let txn = open.env.read_txn().map_err(failed("read_txn"))?;
        Ok(LmdbReader { txn, entries: open.entries })
    }

    fn count(&self) -> Result<u64> {
        let reader = self.reader()?;
        reader.entries.len(&reader.txn).map_err(failed("len"))
    }

    fn settle(&mut self) -> Result<()> {
        self.opened()?.env.force_sync().map_err(failed("force_sync"))
    }

    /// By a compacted copy in place of the file, as redb's benchmark does.
    fn compact(&mut self) -> Result<()> {
        let (old, new) = (self.dir.join("data.mdb"), self.dir.join("compacted.mdb"));
        let Some(Open { env, .. }) = self.open.take() else { return Ok(()) };
        env.copy_to_path(&new, CompactionOption::Enabled).map_err(failed("copy_to_path"))?;
        env.prepare_for_closing().wait();
        self.vfs.rename(&new, &old)?;
        self.open = Some(Open::new(&self.dir, self.map_bytes, self.reads_ahead)?);
        Ok(())
    }
}

pub struct LmdbReader<'a> {
    txn: RoTxn<'a, WithTls>,
    entries: Database<'static, Bytes, Bytes>,
}

impl Reader for LmdbReader<'_> {
    fn get(&mut self, key: &[u8], see: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        match self.entries.get(&self.txn, key).map_err(failed("get"))? {
            Some(value) => see(value).map(|()| true),
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], count: u64, see: &mut See<'_>) -> Result<u64> {
        let range = (Bound::Included(from), Bound::Unbounded);
        let mut entries = self.entries.range(&self.txn, &range).map_err(failed("range"))?;
        for seen in 0..count {
            let Some(entry) = entries.next() else { return Ok(seen) };
            let (key, value) = entry.map_err(failed("range"))?;
            see(key, value)?;
        }
        Ok(count)
    }
}
