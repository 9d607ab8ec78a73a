//! Reads ahead of a cursor, forward and back. The window doubles while the walk stays sequential.

use std::ops::Range;

use base::Result;
use vfs::IoClass;

use super::file::TableFile;
use crate::handle::BlockHandle;

/// Sequential reads before readahead begins.
const SEQUENTIAL_READS_MIN: u32 = 2;
const WINDOW_BYTES_MIN: u64 = 16 << 10;
const WINDOW_BYTES_MAX: u64 = 256 << 10;
/// Upper bound of the caller's readahead.
const ASKED_BYTES_MAX: u64 = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Forward,
    Back,
}

/// One cursor's window into the file.
#[derive(Debug)]
pub struct Readahead {
    /// Bytes requested by the caller; 0 for automatic readahead.
    asked_bytes: u64,
    /// Bytes of the next window.
    window_bytes: u64,
    last: Option<BlockHandle>,
    way: Way,
    /// Blocks in a row that lay next to the one before, on the same side.
    sequential: u32,
    /// The stretch of the file read or hinted last.
    window: Range<u64>,
    /// The window's bytes, in whole or from its start on. Empty if it was only hinted.
    buffer: Vec<u8>,
}

impl Readahead {
    pub fn new(asked_bytes: usize) -> Self {
        Readahead {
            asked_bytes: (asked_bytes as u64).min(ASKED_BYTES_MAX),
            window_bytes: WINDOW_BYTES_MIN,
            last: None,
            way: Way::Forward,
            sequential: 0,
            window: 0..0,
            buffer: Vec::new(),
        }
    }

    /// The stored bytes of a block with their trailer; `None` if the block is better read alone.
    pub fn block(&mut self, file: &TableFile, handle: BlockHandle, class: IoClass) -> Result<Option<&[u8]>> {
        handle.check_within(file.blocks_end())?;
        self.note(handle);
        if self.range(handle).is_none() {
            if !self.reads_ahead() || handle.end() - handle.offset > ASKED_BYTES_MAX {
                return Ok(None);
            }
            self.fill(file, handle, class)?;
        }
        Ok(self.range(handle).and_then(|range| self.buffer.get(range)))
    }

    /// For a mapped file, before a block is touched: asks the system for the window that begins with the block.
    pub fn hint(&mut self, file: &TableFile, handle: BlockHandle) {
        self.note(handle);
        if self.reads_ahead() && !self.covers(handle) {
            self.window = self.next_window(file, handle);
            self.buffer.clear(); // of another window
            prefetch(file, &self.window);
            if self.is_long() {
                // The next hint comes early enough for the walk not to catch up.
                let half = (self.window.end - self.window.start) / 2;
                match self.way {
                    Way::Forward => self.window.end -= half,
                    Way::Back => self.window.start += half,
                }
            }
        }
    }

    fn note(&mut self, handle: BlockHandle) {
        let way = match self.last.replace(handle) {
            Some(last) if last == handle => return, // a compressed block of a mapped file: hinted, then read
            Some(last) if last.end() == handle.offset => Some(Way::Forward),
            Some(last) if handle.end() == last.offset => Some(Way::Back),
            _ => None,
        };
        if way == Some(self.way) {
            self.sequential = self.sequential.saturating_add(1);
        } else {
            self.sequential = u32::from(way.is_some());
            self.way = way.unwrap_or(Way::Forward);
            self.window_bytes = WINDOW_BYTES_MIN;
        }
    }

    fn reads_ahead(&self) -> bool {
        self.asked_bytes > 0 || self.sequential >= SEQUENTIAL_READS_MIN
    }

    /// The walk is expected to go past its window. Most walks end in a window that still grows.
    fn is_long(&self) -> bool {
        self.asked_bytes > 0 || self.window.end - self.window.start >= WINDOW_BYTES_MAX
    }

    fn covers(&self, handle: BlockHandle) -> bool {
        self.window.start <= handle.offset && handle.end() <= self.window.end
    }

    /// Range of the block in the buffer.
    fn range(&self, handle: BlockHandle) -> Option<Range<usize>> {
        let start = usize::try_from(handle.offset.checked_sub(self.window.start)?).ok()?;
        let end = usize::try_from(handle.end().checked_sub(self.window.start)?).ok()?;
        (end <= self.buffer.len()).then_some(start..end)
    }

    /// The block, and what follows on its way.
    fn next_window(&mut self, file: &TableFile, handle: BlockHandle) -> Range<u64> {
        let mut bytes = self.asked_bytes;
        if bytes == 0 {
            bytes = self.window_bytes;
            self.window_bytes = (bytes * 2).min(WINDOW_BYTES_MAX);
        }
        let bytes = bytes.max(handle.end() - handle.offset);
        match self.way {
            Way::Forward => {
                let end = handle.offset.saturating_add(bytes).min(file.blocks_end());
                handle.offset..end.max(handle.end())
            }
            Way::Back => handle.end().saturating_sub(bytes)..handle.end(),
        }
    }

    fn fill(&mut self, file: &TableFile, handle: BlockHandle, class: IoClass) -> Result<()> {
        if !self.covers(handle) {
            self.window = self.next_window(file, handle);
        }
        self.buffer.resize((self.window.end - self.window.start) as usize, 0);
        let read = file.random_file().read_at(self.window.start, &mut self.buffer, class);
        // After a failed read the buffer holds bytes of another offset with valid checksums.
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        read?;
        if self.is_long() {
            // The system may fetch the next window meanwhile.
            let Range { start, end } = self.window;
            let bytes = end - start;
            let next = match self.way {
                Way::Forward => end..end.saturating_add(bytes).min(file.blocks_end()),
                Way::Back => start.saturating_sub(bytes)..start,
            };
            prefetch(file, &next);
        }
        Ok(())
    }
}

fn prefetch(file: &TableFile, stretch: &Range<u64>) {
    file.random_file().prefetch(stretch.start, stretch.end.saturating_sub(stretch.start));
}
