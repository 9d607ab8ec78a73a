//! Runs: sorted records on disk.
//!
//! Many runs share a file, each in its own range, so their number is not bounded by open files. A run is a sequence of
//! blocks: length of the records (4 bytes, little-endian), their crc32c (4), the records. A record: key length
//! (varint), value length (varint), key, value. A block holds at least one record and ends with the record filling it.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::checksum::crc32c;
use base::coding::{decode_varint32, put_varint32};
use base::{Error, Result};
use vfs::{IoClass, SharedFile, Vfs};

use super::RecordOrder;

const HEADER_BYTES: usize = 8;

/// Maximum encoded size of a record's two lengths, in bytes.
const LENGTHS_BYTES_MAX: u64 = 10;

/// Samples of a run. At this number every other one is dropped, and the sampling distance doubles.
const SAMPLES_MAX: usize = 512;

/// The longest key kept as a sample, in bytes.
const SAMPLE_KEY_BYTES_MAX: usize = 4 << 10;

/// How runs are laid out.
#[derive(Clone, Copy, Debug)]
pub struct RunShape {
    /// Bytes of records at which a block ends.
    pub block_bytes: usize,
    /// Minimum bytes between two samples.
    pub sample_bytes: u64,
}

/// A file of runs, unlinked at creation: its space is free once unreferenced, even after a crash.
pub struct Spill {
    file: Arc<dyn SharedFile>,
    end: AtomicU64,
}

impl Spill {
    /// # Errors
    /// Errors of creating the file in `dir`.
    pub fn create(vfs: &dyn Vfs, dir: &Path) -> Result<Arc<Spill>> {
        Ok(Arc::new(Spill { file: unnamed_file(vfs, dir)?, end: AtomicU64::new(0) }))
    }
}

/// Creates a file in `dir` and unlinks it.
///
/// # Errors
/// Errors of creating or unlinking it.
pub(crate) fn unnamed_file(vfs: &dyn Vfs, dir: &Path) -> Result<Arc<dyn SharedFile>> {
    let path = dir.join(format!(".spillway-sort-{:016x}", vfs.random_u64()));
    let file = vfs.create_shared(&path)?;
    vfs.remove_file(&path)?;
    Ok(file)
}

/// A sorted run.
pub struct Run {
    spill: Arc<Spill>,
    range: Range<u64>,
    records: u64,
    payload_bytes: u64,
    /// Size of the largest block, header included.
    block_bytes_max: usize,
    samples: Vec<Sample>,
}

/// A key and the offset of its block.
pub struct Sample {
    /// A key.
    pub key: Vec<u8>,
    offset: u64,
}

impl Run {
    /// Number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes of keys and values.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Size of the largest block, header included: the memory to read the run.
    pub fn block_bytes_max(&self) -> usize {
        self.block_bytes_max
    }

    /// Some keys, ascending, with similar amounts of records between them.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }
}

/// Writes a run.
pub struct RunWriter {
    run: Run,
    shape: RunShape,
    /// End of the range allocated for the run.
    limit: u64,
    /// Header and records of the block being filled.
    block: Vec<u8>,
    last_sample: Option<u64>,
}

impl RunWriter {
    /// Begins a run of at most `records` records and `payload_bytes` bytes of keys and values.
    pub fn begin(spill: &Arc<Spill>, shape: RunShape, payload_bytes: u64, records: u64) -> RunWriter {
        let record_bytes = payload_bytes + records * LENGTHS_BYTES_MAX;
        let blocks = record_bytes / shape.block_bytes as u64 + 1;
        let bytes = record_bytes + blocks * HEADER_BYTES as u64;
        let start = spill.end.fetch_add(bytes, Ordering::Relaxed);
        let run = Run {
            spill: spill.clone(),
            range: start..start,
            records: 0,
            payload_bytes: 0,
            block_bytes_max: 0,
            samples: Vec::new(),
        };
        RunWriter { run, shape, limit: start + bytes, block: vec![0; HEADER_BYTES], last_sample: None }
    }

    /// Adds a record. It must sort after the last one.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    ///
    /// # Panics
    /// A key or a value of 4 GiB or more.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.block.len() == HEADER_BYTES {
            self.sample(key);
        }
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).expect("who sorts bounds records");
        put_varint32(&mut self.block, len(key));
        put_varint32(&mut self.block, len(value));
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(value);
        self.run.records += 1;
        self.run.payload_bytes += (key.len() + value.len()) as u64;
        if self.block.len() >= HEADER_BYTES + self.shape.block_bytes {
            self.end_block()?;
        }
        Ok(())
    }

    fn sample(&mut self, key: &[u8]) {
        let offset = self.run.range.end;
        let due = self.last_sample.is_none_or(|last| offset - last >= self.shape.sample_bytes);
        if !due || key.len() > SAMPLE_KEY_BYTES_MAX {
            return;
        }
        self.last_sample = Some(offset);
        self.run.samples.push(Sample { key: key.to_vec(), offset });
        if self.run.samples.len() == SAMPLES_MAX {
            let mut keep = false;
            self.run.samples.retain(|_| {
                keep = !keep;
                keep
            });
            self.shape.sample_bytes *= 2;
        }
    }

    fn end_block(&mut self) -> Result<()> {
        let Some((header, records)) = self.block.split_first_chunk_mut::<HEADER_BYTES>() else { return Ok(()) };
        if records.is_empty() {
            return Ok(());
        }
        let len = u32::try_from(records.len()).expect("who sorts bounds records");
        *header = (u64::from(len) | u64::from(crc32c(records)) << 32).to_le_bytes();
        let end = self.run.range.end + self.block.len() as u64;
        assert!(end <= self.limit, "a run is no larger than what was taken for it");
        self.run.spill.file.write_at(self.run.range.end, &self.block, IoClass::Ingest)?;
        self.run.range.end = end;
        self.run.block_bytes_max = self.run.block_bytes_max.max(self.block.len());
        self.block.truncate(HEADER_BYTES);
        self.block.shrink_to(2 * self.shape.block_bytes); // frees the excess of an oversized record
        Ok(())
    }

    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn finish(mut self) -> Result<Run> {
        self.end_block()?;
        Ok(self.run)
    }
}

/// Reads a run front to back.
pub struct RunReader {
    run: Arc<Run>,
    /// Offset of the next block.
    next: u64,
    /// Records of the current block.
    block: Vec<u8>,
    /// Offset of the next record in `block`.
    next_record: usize,
    key: Range<usize>,
    value: Range<usize>,
}

impl RunReader {
    /// Starts at the beginning or, given `from`, at the last sampled block with a first key before `from`.
    pub fn new(run: Arc<Run>, order: &impl RecordOrder, from: Option<&[u8]>) -> RunReader {
        let before = from.map_or(0, |from| run.samples.partition_point(|s| order.compare(&s.key, from).is_lt()));
        let sample = before.checked_sub(1).and_then(|at| run.samples.get(at));
        let next = sample.map_or(run.range.start, |sample| sample.offset);
        RunReader { run, next, block: Vec::new(), next_record: 0, key: 0..0, value: 0..0 }
    }

    /// Goes to the next record; false at the end.
    ///
    /// # Errors
    /// `Corruption`: the bytes read are not the bytes written. `Io`.
    pub fn advance(&mut self) -> Result<bool> {
        if self.next_record == self.block.len() && !self.read_block()? {
            return Ok(false);
        }
        self.take_record().ok_or_else(|| self.damaged())?;
        Ok(true)
    }

    fn take_record(&mut self) -> Option<()> {
        let rest = self.block.get(self.next_record..)?;
        let (key_len, key_at) = decode_varint32(rest)?;
        let (value_len, value_at) = decode_varint32(rest.get(key_at..)?)?;
        let key = self.next_record + key_at + value_at;
        let value = key + key_len as usize;
        let end = value + value_len as usize;
        if end > self.block.len() {
            return None;
        }
        (self.key, self.value, self.next_record) = (key..value, value..end, end);
        Some(())
    }

    fn read_block(&mut self) -> Result<bool> {
        if self.next >= self.run.range.end {
            return Ok(false);
        }
        let file = &self.run.spill.file;
        let mut header = [0; HEADER_BYTES];
        if file.read_at(self.next, &mut header, IoClass::Ingest)? != header.len() {
            return Err(self.damaged());
        }
        let header = u64::from_le_bytes(header);
        let (len, crc) = (header as u32 as usize, (header >> 32) as u32);
        let end = self.next + (HEADER_BYTES + len) as u64;
        if len == 0 || HEADER_BYTES + len > self.run.block_bytes_max || end > self.run.range.end {
            return Err(self.damaged());
        }
        self.block.clear();
        self.block.reserve_exact(len);
        self.block.resize(len, 0);
        let read = file.read_at(self.next + HEADER_BYTES as u64, &mut self.block, IoClass::Ingest)?;
        if read != len || crc32c(&self.block) != crc {
            return Err(self.damaged());
        }
        (self.next, self.next_record) = (end, 0);
        Ok(true)
    }

    fn damaged(&self) -> Error {
        Error::corruption("what was written for sorting is read back as something else: the disk or the memory fails")
            .at_offset(self.next)
    }

    /// The key under the cursor.
    pub fn key(&self) -> &[u8] {
        self.block.get(self.key.clone()).unwrap_or_default()
    }

    /// The value under the cursor.
    pub fn value(&self) -> &[u8] {
        self.block.get(self.value.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use base::{ErrorKind, UserOrder};
    use vfs::MemoryVfs;

    use super::*;

    #[test]
    fn what_is_read_back_is_checked() {
        let shape = RunShape { block_bytes: 100, sample_bytes: 100 };
        for damaged in 0..250 {
            let vfs = MemoryVfs::new(1);
            let spill = Spill::create(&*vfs, Path::new("/")).unwrap();
            let mut writer = RunWriter::begin(&spill, shape, 20 * 12, 20);
            for i in 0..20 {
                writer.add(format!("{i:06}").as_bytes(), b"value.").unwrap();
            }
            let run = Arc::new(writer.finish().unwrap());
            let mut byte = [0];
            spill.file.read_at(damaged, &mut byte, IoClass::Other).unwrap();
            spill.file.write_at(damaged, &[byte[0] ^ 0x10], IoClass::Other).unwrap();
            let mut reader = RunReader::new(run, &UserOrder::Bytewise, None);
            let error = loop {
                match reader.advance() {
                    Ok(true) => {}
                    Ok(false) => panic!("byte {damaged} is not checked"),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert_eq!(vfs.read_dir(Path::new("/")).unwrap(), Vec::<String>::new(), "the file has no name");
        }
    }
}
