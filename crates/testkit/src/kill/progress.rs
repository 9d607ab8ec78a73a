//! What the killed process acknowledged: a file of words that it writes and whoever killed it reads. What was written is
//! in the kernel's memory and survives the process.

use std::path::Path;
use std::sync::Arc;

use base::Result;
use vfs::{IoClass, SharedFile, Vfs};

const WORD_BYTES: usize = 8;

/// How far each thread is, as told by the process that writes.
pub struct Progress {
    file: Arc<dyn SharedFile>,
}

impl Progress {
    /// Makes the file; there is none yet.
    ///
    /// # Errors
    /// The file system's.
    pub fn create(vfs: &dyn Vfs, path: &Path) -> Result<Progress> {
        Ok(Progress { file: vfs.create_shared(path)? })
    }

    /// Says what was found in the database: that is history from now on.
    ///
    /// # Errors
    /// The file system's.
    pub fn begin(&self, found: &[u64]) -> Result<()> {
        let words: Vec<u8> = std::iter::once(0).chain(found.iter().copied()).flat_map(told).collect();
        self.file.write_at(0, &words, IoClass::Other)
    }

    /// Says that an operation returned.
    ///
    /// # Errors
    /// The file system's.
    pub fn acknowledge(&self, thread: u64, n: u64) -> Result<()> {
        self.write(1 + thread, n)
    }

    /// Says how many memtables became tables as they were.
    ///
    /// # Errors
    /// The file system's.
    pub fn note_converted(&self, count: u64) -> Result<()> {
        self.write(0, count)
    }

    fn write(&self, word: u64, number: u64) -> Result<()> {
        self.file.write_at(word * WORD_BYTES as u64, &told(number), IoClass::Other)
    }
}

/// One more, as nothing but zeros means that nothing was said.
fn told(number: u64) -> [u8; WORD_BYTES] {
    (number + 1).to_le_bytes()
}

/// What a process had said when it was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Memtables that became tables as they were.
    pub converted: u64,
    /// The last operation of each thread that returned.
    pub acknowledged: Vec<u64>,
}

impl Told {
    /// `None`: it had not opened the database yet.
    ///
    /// # Errors
    /// The file system's, but where there is no file.
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
