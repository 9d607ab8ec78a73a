//! Writes records in RocksDB's framing, with the legacy types, readable by every version.

use base::checksum::{crc32c_append, mask};
use base::coding::{put_u16, put_u32};
use base::{Error, Result};
use vfs::{AppendFile, IoClass};

use super::{BLOCK_BYTES, HEADER_BYTES, Part};

/// Bytes buffered before an append to the file. An ordinary record is one append, and a huge record is not copied
/// whole.
const GATHER_BYTES_MAX: usize = 256 << 10;

/// Appends records to one file. One owner; nothing is durable before [`sync`](FramedWriter::sync).
///
/// The first failure is repeated by every later call: the file's end is then unknown (D4).
pub struct FramedWriter {
    file: Box<dyn AppendFile>,
    class: IoClass,
    gathered: Vec<u8>,
    failed: Option<Error>,
}

impl FramedWriter {
    /// Continues at the end of `file`, either empty or ending with a whole record.
    pub fn new(file: Box<dyn AppendFile>, class: IoClass) -> Self {
        FramedWriter { file, class, gathered: Vec::new(), failed: None }
    }

    /// Appends one record; an empty one is allowed.
    ///
    /// # Errors
    /// The file's error. The writer is unusable after it.
    pub fn append(&mut self, record: &[u8]) -> Result<()> {
        self.guard(|writer| writer.append_fragments(record))
    }

    /// Makes everything appended so far survive a power loss.
    pub fn sync(&mut self) -> Result<()> {
        self.guard(|writer| writer.file.sync(writer.class))
    }

    /// Bytes in the file.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// True before the first record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn guard(&mut self, action: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        action(self).inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn append_fragments(&mut self, record: &[u8]) -> Result<()> {
        self.gathered.clear();
        let mut in_block = (self.file.len() % BLOCK_BYTES as u64) as usize;
        let mut rest = record;
        let mut is_first = true;
        loop {
            let mut room = BLOCK_BYTES - in_block;
            if room < HEADER_BYTES {
                self.gathered.resize(self.gathered.len() + room, 0);
                in_block = 0;
                room = BLOCK_BYTES;
            }
            let taken = rest.len().min(room - HEADER_BYTES);
            let (fragment, after) = rest.split_at(taken);
            self.gather(Part::new(is_first, after.is_empty()), fragment);
            in_block = (in_block + HEADER_BYTES + taken) % BLOCK_BYTES;
            if self.gathered.len() >= GATHER_BYTES_MAX || after.is_empty() {
                self.file.append(&self.gathered, self.class)?;
                self.gathered.clear();
            }
            if after.is_empty() {
                return Ok(());
            }
            rest = after;
            is_first = false;
        }
    }

    fn gather(&mut self, part: Part, fragment: &[u8]) {
        let kind = part as u8;
        let crc = crc32c_append(base::checksum::crc32c(&[kind]), fragment);
        put_u32(&mut self.gathered, mask(crc));
        put_u16(&mut self.gathered, fragment.len() as u16); // Below BLOCK_BYTES, so it fits.
        self.gathered.push(kind);
        self.gathered.extend_from_slice(fragment);
    }
}
