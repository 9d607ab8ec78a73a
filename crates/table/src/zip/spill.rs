//! Buffers a table's entries until all are known: compressed fast, in memory up to a limit, then in an unnamed file.
//! The file's space is freed on drop, and after a crash.

use std::sync::Arc;

use base::coding::{Reader, put_prefixed};
use base::options::{CompressionKind, CompressionOptions};
use base::{Error, Result};
use vfs::{IoClass, SharedFile};

use super::builder::ZipSettings;
use crate::compress::Compressor;
use crate::decompress::decompress;
use crate::sort::unnamed_file;

/// A chunk is compressed once it has this many bytes; the last entry may exceed them.
const CHUNK_BYTES: usize = 1 << 20;

/// The fastest level to halve the entries of most tables.
const ZSTD_LEVEL: i32 = 1;

enum Chunk {
    Memory { bytes: Vec<u8>, compression: u8 },
    File { at: u64, len: usize, compression: u8 },
}

pub(super) struct Spill {
    /// The open chunk: key and value of each entry, length-prefixed.
    open: Vec<u8>,
    chunks: Vec<Chunk>,
    compressor: Compressor,
    memory_bytes: usize,
    settings: ZipSettings,
    /// Of all chunks.
    stored_bytes: u64,
    raw_bytes: u64,
    file: Option<Arc<dyn SharedFile>>,
    file_bytes: u64,
    class: IoClass,
}

impl Spill {
    /// # Errors
    /// Errors of ZSTD.
    pub(super) fn new(settings: ZipSettings, class: IoClass) -> Result<Spill> {
        let options = CompressionOptions { level: ZSTD_LEVEL, ..CompressionOptions::default() };
        Ok(Spill {
            open: Vec::new(),
            chunks: Vec::new(),
            compressor: Compressor::new(CompressionKind::Zstd, &options)?,
            memory_bytes: 0,
            settings,
            stored_bytes: 0,
            raw_bytes: 0,
            file: None,
            file_bytes: 0,
            class,
        })
    }

    /// # Errors
    /// Errors of the file system and of compression.
    pub(super) fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        put_prefixed(&mut self.open, internal_key);
        put_prefixed(&mut self.open, value);
        if self.open.len() >= CHUNK_BYTES { self.end_chunk() } else { Ok(()) }
    }

    /// Estimated compressed bytes of all entries. The open chunk counts by the ratio so far, or half without one.
    pub(super) fn estimated_bytes(&self) -> u64 {
        let open = self.open.len() as u64;
        match self.raw_bytes {
            0 => open / 2,
            raw => self.stored_bytes + (u128::from(open) * u128::from(self.stored_bytes) / u128::from(raw)) as u64,
        }
    }

    fn end_chunk(&mut self) -> Result<()> {
        let (stored, kind) = self.compressor.compress(&self.open)?;
        let compression = kind.number();
        self.stored_bytes += stored.len() as u64;
        self.raw_bytes += self.open.len() as u64;
        let chunk = if self.memory_bytes + stored.len() > self.settings.memory_bytes {
            let file = match &self.file {
                Some(file) => file,
                None => self.file.insert(unnamed_file(&*self.settings.vfs, &self.settings.spill_dir)?),
            };
            let at = self.file_bytes;
            file.write_at(at, stored, self.class)?;
            self.file_bytes += stored.len() as u64;
            Chunk::File { at, len: stored.len(), compression }
        } else {
            self.memory_bytes += stored.len();
            Chunk::Memory { bytes: stored.to_vec(), compression }
        };
        self.chunks.push(chunk);
        // Release the memory of a chunk with a huge entry.
        self.open.clear();
        self.open.shrink_to(2 * CHUNK_BYTES);
        Ok(())
    }

    /// Passes every entry to `visit`, in insertion order. May be called repeatedly.
    ///
    /// # Errors
    /// Errors of the file system, of compression and of `visit`. `Corruption`: the spilled bytes are damaged.
    pub(super) fn for_each(&mut self, mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        if !self.open.is_empty() {
            self.end_chunk()?;
        }
        let mut read = Vec::new();
        for chunk in &self.chunks {
            let (stored, compression) = match (chunk, &self.file) {
                (Chunk::Memory { bytes, compression }, _) => (bytes, *compression),
                (Chunk::File { at, len, compression }, Some(file)) => {
                    read.resize(*len, 0);
                    if file.read_at(*at, &mut read, self.class)? < *len {
                        return Err(Error::corruption("the file of entries ends early").at_offset(*at));
                    }
                    (&read, *compression)
                }
                (Chunk::File { .. }, None) => return Err(Error::corruption("the file of entries is gone")),
            };
            let raw = decompress(compression, stored, None)?;
            let mut reader = Reader::new(raw.as_ref().unwrap_or(stored));
            while !reader.is_empty() {
                let key = reader.prefixed("key")?;
                visit(key, reader.prefixed("value")?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use vfs::{MemoryVfs, Vfs};

    use super::*;

    #[test]
    fn entries_come_back_from_memory_and_from_a_file_without_a_name() {
        let vfs = MemoryVfs::new(1);
        let settings = ZipSettings { vfs: vfs.clone(), spill_dir: "/".into(), memory_bytes: 300_000 };
        let mut spill = Spill::new(settings, IoClass::Other).expect("made");
        let entry = |i: u32| {
            let noise: Vec<u8> = (0..40).map(|j| (i.wrapping_mul(2_654_435_761) >> (j % 24)) as u8 ^ j).collect();
            (i.to_be_bytes(), noise)
        };
        for i in 0..100_000u32 {
            let (key, value) = entry(i);
            spill.add(&key, &value).expect("kept");
        }
        assert!(spill.memory_bytes + spill.open.len() <= 300_000 + CHUNK_BYTES && spill.estimated_bytes() > 500_000);
        assert!(spill.file_bytes > 1 << 20);
        for _ in 0..2 {
            let mut seen = 0;
            spill
                .for_each(|key, value| {
                    assert_eq!((key, value), (&entry(seen).0[..], &entry(seen).1[..]));
                    seen += 1;
                    Ok(())
                })
                .expect("read");
            assert_eq!(seen, 100_000);
        }
        assert_eq!(vfs.read_dir(Path::new("/")).expect("listed"), Vec::<String>::new());
    }
}
