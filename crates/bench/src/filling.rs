//! Databases that are filled and not flushed: what measured flushes and restarts begin with. All are filled with the same
//! entries, so that the ways can be set beside each other.

use std::path::Path;
use std::sync::Arc;

use base::metrics::Ticker;
use base::options::CompressionKind;
use base::{Error, Result};
use spillway::{DEFAULT_FAMILY, Db, FamilyOptions, OpenOptions, WriteBatch, WriteOptions};
use vfs::Vfs;

use crate::flags::choices::Named;
use crate::workload::{Rng, Values};

/// Bytes of a key, all random.
pub const KEY_BYTES: usize = 16;

/// Entries that are written together: filling is not what is measured.
pub const BATCH_ENTRIES: u64 = 100;

/// What a memtable has for its memory, as a property of the database.
const MEMORY: &str = "rocksdb.cur-size-active-mem-table";

/// The memtables whose memory can become a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memtable {
    Trie,
    SkipList,
}

impl Named for Memtable {
    const ALL: &'static [(&'static str, Memtable)] = &[("trie", Memtable::Trie), ("skip_list", Memtable::SkipList)];
}

/// Where values are from put to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValuesIn {
    /// Copies of what the log has.
    Memtable,
    /// In the log alone (`memtable_as_log_index`).
    Log,
}

impl Named for ValuesIn {
    const ALL: &'static [(&'static str, ValuesIn)] = &[("memtable", ValuesIn::Memtable), ("log", ValuesIn::Log)];
}

/// How a database is opened that is filled.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub memtable: Memtable,
    pub values: ValuesIn,
    /// As the memtable's parameter of that name.
    pub convert_to_sst: &'static str,
    pub sync_sst_file: bool,
    /// What the memtable can hold. Twice what it is to hold or more, where no spare one is to be made present beside it.
    pub capacity_bytes: usize,
}

impl Kind {
    /// Nothing is compressed or compacted, and no memtable is flushed unasked.
    pub fn open_options(&self, vfs: &Arc<dyn Vfs>) -> OpenOptions {
        let family = FamilyOptions {
            memtable_factory: self.memtable_option().into(),
            write_buffer_size: self.capacity_bytes,
            compression: CompressionKind::None,
            disable_auto_compactions: true,
            ..FamilyOptions::default()
        };
        let mut options = OpenOptions::create_if_missing().family(DEFAULT_FAMILY, family);
        options.db.memtable_as_log_index = self.values == ValuesIn::Log;
        options.db.max_total_wal_size = u64::MAX;
        options.db.statistics = true;
        options.vfs = vfs.clone();
        options
    }

    fn memtable_option(&self) -> String {
        let capacity = match self.memtable {
            Memtable::Trie => format!(r#""mem_cap":"{}","#, self.capacity_bytes),
            Memtable::SkipList => String::new(),
        };
        format!(
            r#"{}:{{{capacity}"convert_to_sst":"{}","sync_sst_file":{}}}"#,
            self.memtable.name(),
            self.convert_to_sst,
            self.sync_sst_file
        )
    }
}

/// Entries in no order, always the same ones for a seed.
pub struct Entries {
    rng: Rng,
    values: Values,
    key: [u8; KEY_BYTES],
}

impl Entries {
    pub fn new(seed: u64, value_size: usize) -> Self {
        let mut rng = Rng::new(seed);
        let values = Values::new(&mut rng, value_size, 0.5);
        Entries { rng, values, key: [0; KEY_BYTES] }
    }

    /// Writes so many into the database.
    ///
    /// # Errors
    /// Those of the writes.
    pub fn write(&mut self, db: &Db, count: u64) -> Result<Written> {
        let family = db.default_family().id();
        let mut batch = WriteBatch::new();
        let mut written = Written::default();
        while written.entries < count {
            batch.clear();
            for _ in 0..BATCH_ENTRIES.min(count - written.entries) {
                let (key, value) = self.next();
                batch.put(family, key, value);
                written.add(key, value);
            }
            db.write(&batch, &WriteOptions::default())?;
        }
        Ok(written)
    }

    fn next(&mut self) -> (&[u8], &[u8]) {
        for part in self.key.chunks_mut(8) {
            part.copy_from_slice(self.rng.next().to_le_bytes().split_at(part.len()).0);
        }
        (&self.key, self.values.next())
    }
}

/// What was written, or found again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub entries: u64,
    /// A sum over all entries, in whatever order: equal where every key and value is.
    pub digest: u64,
}

impl Written {
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.entries += 1;
        let crc = base::checksum::crc32c_append(base::checksum::crc32c(key), value);
        self.digest = self.digest.wrapping_add(crc.into());
    }

    pub fn join(self, other: Written) -> Written {
        Written { entries: self.entries + other.entries, digest: self.digest.wrapping_add(other.digest) }
    }
}

/// Memory of the memtable that is written to.
///
/// # Errors
/// `InvalidArgument`: the database has no such property.
pub fn memtable_bytes(db: &Db) -> Result<u64> {
    property(db, MEMORY)
}

/// Bytes of the batches in the log since the database was opened: of the log, all but some bytes for each batch, and without
/// what is only allocated.
pub fn log_bytes(db: &Db) -> u64 {
    db.statistics().map_or(0, |statistics| statistics.count(Ticker::WalFileBytes))
}

/// # Errors
/// `InvalidArgument`: the database has no such property.
pub fn property(db: &Db, name: &str) -> Result<u64> {
    db.int_property(&db.default_family(), name)
        .ok_or_else(|| Error::invalid_argument(format!("the database has no property {name}")))
}

/// # Errors
/// `InvalidArgument`: there is something already.
pub fn refuse_existing(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    match vfs.exists(path)? {
        true => Err(Error::invalid_argument("there is a database already").at_path(path)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_the_same_again_in_batches_of_any_size() -> Result<()> {
        let dir = tempfile::tempdir().unwrap();
        let vfs: Arc<dyn Vfs> = vfs::RealVfs::new();
        let mut all = Vec::new();
        for (at, parts) in [[250, 0], [30, 220]].into_iter().enumerate() {
            let kind = Kind {
                memtable: Memtable::ALL[at].1,
                values: ValuesIn::ALL[at].1,
                convert_to_sst: "kFileMmap",
                sync_sst_file: false,
                capacity_bytes: 1 << 20,
            };
            let path = dir.path().join(at.to_string());
            refuse_existing(vfs.as_ref(), &path)?;
            let db = Db::open(&path, &kind.open_options(&vfs))?;
            assert!(refuse_existing(vfs.as_ref(), &path).is_err());
            let mut entries = Entries::new(7, 50);
            let [first, second] = [entries.write(&db, parts[0])?, entries.write(&db, parts[1])?];
            assert_eq!(property(&db, "rocksdb.num-entries-active-mem-table")?, 250);
            assert!(memtable_bytes(&db)? > 0 && (250 * 66..250 * 80).contains(&log_bytes(&db)));
            all.push(first.join(second));
        }
        assert_eq!(all[0], all[1]);
        assert_eq!(all[0].entries, 250);
        Ok(())
    }
}
