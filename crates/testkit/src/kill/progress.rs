//! Progress of the killed process: a file of words, written by the process and read by its killer. Written words are in
//! the kernel's memory and survive the process.

use std::path::Path;
use std::sync::Arc;

use base::Result;
use vfs::{IoClass, SharedFile, Vfs};

const WORD_BYTES: usize = 8;

/// Progress of each thread, written by the writing process.
pub struct Progress {
    file: Arc<dyn SharedFile>,
}

impl Progress {
    /// Creates the file; it must not exist.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn create(vfs: &dyn Vfs, path: &Path) -> Result<Progress> {
        Ok(Progress { file: vfs.create_shared(path)? })
    }

    /// Writes the operation counts found in the database at open.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn begin(&self, found: &[u64]) -> Result<()> {
        let words: Vec<u8> = std::iter::once(0).chain(found.iter().copied()).flat_map(told).collect();
        self.file.write_at(0, &words, IoClass::Other)
    }

    /// Records that an operation returned.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn acknowledge(&self, thread: u64, n: u64) -> Result<()> {
        self.write(1 + thread, n)
    }

    /// Records the number of memtables converted to tables.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn record_converted(&self, count: u64) -> Result<()> {
        self.write(0, count)
    }

    fn write(&self, word: u64, number: u64) -> Result<()> {
        self.file.write_at(word * WORD_BYTES as u64, &told(number), IoClass::Other)
    }
}

/// Encodes `number + 1`: zero means not written.
fn told(number: u64) -> [u8; WORD_BYTES] {
    (number + 1).to_le_bytes()
}

/// Progress at the time of the kill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Memtables converted to tables in place.
    pub converted: u64,
    /// Last returned operation of each thread.
    pub acknowledged: Vec<u64>,
}

impl Told {
    /// `None` if the process had not opened the database yet.
    ///
    /// # Errors
    /// Errors of the file system; a missing file is `None`.
    pub fn read(vfs: &dyn Vfs, path: &Path, threads: u64) -> Result<Option<Told>> {
        let mut bytes = vec![0; WORD_BYTES * (1 + threads as usize)];
        match vfs.open(path) {
            Ok(file) => file.read_at(0, &mut bytes, IoClass::Other)?,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let words = bytes.as_chunks::<WORD_BYTES>().0.iter().map(|word| u64::from_le_bytes(*word).checked_sub(1));
        let Some(words) = words.collect::<Option<Vec<u64>>>() else { return Ok(None) };
        Ok(words.split_first().map(|(converted, rest)| Told { converted: *converted, acknowledged: rest.to_vec() }))
    }
}
