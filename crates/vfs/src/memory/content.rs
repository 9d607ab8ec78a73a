//! One file's bytes: current, durable (as of the last sync), and the changes in between.

use std::sync::Arc;

use base::Result;
use parking_lot::{Mutex, MutexGuard};

use super::window::Window;
use crate::page::PAGE_BYTES;

/// A file, independent of its names. Lock order: the file system's state first, then the content.
pub(super) struct FileNode {
    pub(super) id: u64,
    pub(super) content: Mutex<Content>,
}

impl FileNode {
    /// Locks the content, after absorbing stores by address.
    pub(super) fn current(&self) -> MutexGuard<'_, Content> {
        let mut content = self.content.lock();
        content.absorb();
        content
    }
}

/// An unsynced change.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The operation's number, unique in the file system; `None` for stores by address.
    pub(super) operation: Option<u64>,
    pub(super) kind: ChangeKind,
}

#[derive(Clone, Debug)]
pub(super) enum ChangeKind {
    /// `data[start .. start + len]` of the content was written at `offset`.
    Write { offset: usize, start: usize, len: usize },
    /// The file was truncated, or extended by zeros.
    SetLen(usize),
}

/// Invariant: `durable` with `changes` applied in order is `bytes`.
#[derive(Clone, Default)]
pub(super) struct Content {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    changes: Vec<Change>,
    /// The bytes of all changes, concatenated.
    data: Vec<u8>,
    /// Memory for access by address. Its stores belong to the file.
    window: Option<Arc<Window>>,
    pub(super) modified_us: u64,
}

impl Content {
    /// Everything already durable.
    pub(super) fn synced(bytes: Vec<u8>, modified_us: u64) -> Self {
        Content { durable: bytes.clone(), bytes, modified_us, ..Content::default() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn durable(&self) -> &[u8] {
        &self.durable
    }

    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Copies bytes at `offset` to `buf`. Returns the count.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        let found = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..)).unwrap_or_default();
        let count = found.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..count), found.get(..count)) {
            to.copy_from_slice(from);
        }
        count
    }

    pub(super) fn write(&mut self, operation: Option<u64>, offset: usize, bytes: &[u8]) {
        if let Some(window) = &self.window {
            window.write(offset, bytes);
        }
        self.record_write(operation, offset, bytes);
    }

    fn record_write(&mut self, operation: Option<u64>, offset: usize, bytes: &[u8]) {
        let start = self.data.len();
        self.data.extend_from_slice(bytes);
        let kind = ChangeKind::Write { offset, start, len: bytes.len() };
        apply(&kind, &self.data, &mut self.bytes);
        self.changes.push(Change { operation, kind });
    }

    pub(super) fn set_len(&mut self, operation: Option<u64>, len: usize) {
        if len != self.bytes.len() {
            if let Some(window) = &self.window {
                window.write(len, &vec![0; self.bytes.len().saturating_sub(len)]);
            }
            self.bytes.resize(len, 0);
            self.changes.push(Change { operation, kind: ChangeKind::SetLen(len) });
        }
    }

    /// Costs time by the bytes written since the last sync, not by the file's size.
    pub(super) fn sync(&mut self) {
        for change in &self.changes {
            apply(&change.kind, &self.data, &mut self.durable);
        }
        self.changes.clear();
        self.data.clear();
    }

    /// The file's window; created and filled if absent.
    pub(super) fn open_window(&mut self, make: impl FnOnce() -> Result<Window>) -> Result<Arc<Window>> {
        if let Some(window) = &self.window {
            return Ok(Arc::clone(window));
        }
        let window = Arc::new(make()?);
        window.write(0, &self.bytes);
        self.window = Some(Arc::clone(&window));
        Ok(window)
    }

    pub(super) fn close_window(&mut self) {
        self.window = None;
    }

    /// A copy as another process would have it.
    pub(super) fn without_window(&self) -> Content {
        Content { window: None, ..self.clone() }
    }

    /// Turns stores by address since the last call into changes, one for each block.
    fn absorb(&mut self) {
        let Some(window) = self.window.clone() else { return };
        let mut block = [0; PAGE_BYTES];
        let end = self.bytes.len().min(window.len());
        for start in (0..end).step_by(PAGE_BYTES) {
            let len = (end - start).min(PAGE_BYTES);
            let now = block.get_mut(..len).unwrap_or_default();
            window.read(start, now);
            if self.bytes.get(start..start + len) != Some(&*now) {
                self.record_write(None, start, now);
            }
        }
    }

    pub(super) fn written(&self, start: usize, len: usize) -> &[u8] {
        self.data.get(start..start + len).expect("a change refers to data of its own content")
    }
}

fn apply(kind: &ChangeKind, data: &[u8], to: &mut Vec<u8>) {
    match *kind {
        ChangeKind::Write { offset, start, len } => {
            let bytes = data.get(start..start + len).expect("a change refers to data of its own content");
            overlay(to, offset, bytes);
        }
        ChangeKind::SetLen(len) => to.resize(len, 0),
    }
}

/// Writes `bytes` at `offset`. Zeros fill a gap before it.
pub(super) fn overlay(to: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if to.len() < end && !bytes.is_empty() {
        to.resize(end, 0);
    }
    if let Some(target) = to.get_mut(offset..end) {
        target.copy_from_slice(bytes);
    }
}
