//! Reads ahead of a forward cursor. The window doubles while the walk stays sequential.

use base::Result;
use vfs::IoClass;

use super::file::TableFile;
use crate::handle::BlockHandle;

/// Sequential reads before readahead begins.
const SEQUENTIAL_READS_MIN: u32 = 2;
const WINDOW_BYTES_MIN: usize = 16 << 10;
const WINDOW_BYTES_MAX: usize = 256 << 10;
/// Upper bound of the caller's readahead.
const ASKED_BYTES_MAX: usize = 16 << 20;

/// One cursor's window into the file.
#[derive(Debug)]
pub struct Readahead {
    /// Bytes requested by the caller; 0 for automatic readahead.
    asked_bytes: usize,
    /// Bytes of the next window.
    window_bytes: usize,
    /// Offset of the next block in a sequential walk.
    expected: u64,
    sequential: u32,
    /// End of the stretch that the last hint covers well.
    hinted_to: u64,
    buffer: Vec<u8>,
    /// File offset of the buffer.
    start: u64,
}

impl Readahead {
    pub fn new(asked_bytes: usize) -> Self {
        Readahead {
            asked_bytes: asked_bytes.min(ASKED_BYTES_MAX),
            window_bytes: WINDOW_BYTES_MIN,
            expected: u64::MAX,
            sequential: 0,
            hinted_to: 0,
            buffer: Vec::new(),
            start: 0,
        }
    }

    /// The stored bytes of a block with their trailer; `None` if the block is better read alone.
    pub fn block(&mut self, file: &TableFile, handle: BlockHandle, class: IoClass) -> Result<Option<&[u8]>> {
        handle.check_within(file.blocks_end())?;
        self.note(handle);
        if self.range(handle).is_none() {
            let reads_ahead = self.asked_bytes > 0 || self.sequential >= SEQUENTIAL_READS_MIN;
            let len = handle.end() - handle.offset;
            if !reads_ahead || len > ASKED_BYTES_MAX as u64 {
                return Ok(None);
            }
            self.fill(file, handle, class)?;
        }
        Ok(self.range(handle).and_then(|range| self.buffer.get(range)))
    }

    /// For a file read otherwise: asks the operating system for the next window of a sequential walk.
    pub fn hint(&mut self, file: &TableFile, handle: BlockHandle) {
        self.note(handle);
        let reads_ahead = self.asked_bytes > 0 || self.sequential >= SEQUENTIAL_READS_MIN;
        if reads_ahead && (handle.end() >= self.hinted_to || self.sequential == 0) {
            let window = self.next_window() as u64;
            file.random_file().prefetch(handle.end(), window);
            self.hinted_to = handle.end() + window / 2; // so that the walk does not catch up
        }
    }

    fn note(&mut self, handle: BlockHandle) {
        if handle.offset == self.expected {
            self.sequential = self.sequential.saturating_add(1);
        } else {
            self.sequential = 0;
            self.window_bytes = WINDOW_BYTES_MIN;
        }
        self.expected = handle.end();
    }

    /// Range of the block in the buffer.
    fn range(&self, handle: BlockHandle) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(handle.offset.checked_sub(self.start)?).ok()?;
        let end = usize::try_from(handle.end().checked_sub(self.start)?).ok()?;
        (end <= self.buffer.len()).then_some(start..end)
    }

    fn next_window(&mut self) -> usize {
        if self.asked_bytes > 0 {
            return self.asked_bytes;
        }
        let window = self.window_bytes;
        self.window_bytes = (window * 2).min(WINDOW_BYTES_MAX);
        window
    }

    fn fill(&mut self, file: &TableFile, handle: BlockHandle, class: IoClass) -> Result<()> {
        let window = self.next_window();
        let wanted = ((handle.end() - handle.offset) as usize).max(window) as u64;
        let len = wanted.min(file.blocks_end() - handle.offset) as usize;
        self.start = handle.offset;
        self.buffer.resize(len, 0);
        let read = file.random_file().read_at(handle.offset, &mut self.buffer, class);
        // After a failed read the buffer holds bytes of another offset with valid checksums.
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        let read = read?;
        // The operating system may fetch the next window meanwhile.
        file.random_file().prefetch(self.start + read as u64, window as u64);
        Ok(())
    }
}
