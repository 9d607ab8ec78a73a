//! Obsolete files on their way to deletion.
//!
//! A file is deleted only after the edit making it obsolete is durable (V3) and its last pin is gone (Q3). Pins share a
//! [`FileLife`]. If the file is marked, the drop of its life hands the name to the [`PurgeQueue`]. One background job
//! deletes from the queue.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use base::FileNumber;
use parking_lot::Mutex;
use vfs::Origin;

use super::file_name::FileType;

/// A file to delete. All three fields determine the path: two files with one number can lie in two paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObsoleteFile {
    pub file_type: FileType,
    /// Index of the family's directory; 0 for files other than tables.
    pub path_id: u32,
    pub number: FileNumber,
}

/// Called after a file was queued; must not block.
pub type PurgeListener = Box<dyn Fn() + Send + Sync>;

/// Files after the drop of their last handle. Any thread queues, one job takes.
#[derive(Default)]
pub struct PurgeQueue {
    origin: Origin,
    files: Mutex<Vec<ObsoleteFile>>,
    /// Active holds. No file leaves the queue while there are any.
    holds: AtomicUsize,
    listener: OnceLock<PurgeListener>,
}

impl PurgeQueue {
    pub fn new() -> Arc<Self> {
        Arc::new(PurgeQueue::default())
    }

    /// Registers `listener` for every file queued from now on; the first listener stays.
    pub fn listen(&self, listener: PurgeListener) {
        let _ = self.listener.set(listener);
    }

    /// No effect in a forked child: the files are the parent's.
    pub fn push(&self, file: ObsoleteFile) {
        if !self.origin.is_here() {
            return;
        }
        self.files.lock().push(file);
        if let Some(listener) = self.listener.get() {
            listener();
        }
    }

    /// Takes all queued files, oldest first. Empty while the queue is held.
    pub fn take(&self) -> Vec<ObsoleteFile> {
        let mut files = self.files.lock();
        if self.holds.load(Ordering::Relaxed) > 0 {
            return Vec::new();
        }
        std::mem::take(&mut files)
    }

    /// Keeps files in the queue until a matching [`release`](Self::release). Files already taken are still deleted.
    pub fn hold(&self) {
        let _files = self.files.lock();
        self.holds.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends one hold, if there is any.
    pub fn release(&self) {
        let _files = self.files.lock();
        self.holds.store(self.holds.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
    }

    pub fn is_held(&self) -> bool {
        self.holds.load(Ordering::Relaxed) > 0
    }

    /// The queued tables, by path and number.
    pub fn tables(&self) -> Vec<(u32, FileNumber)> {
        let files = self.files.lock();
        let tables = files.iter().filter(|file| file.file_type == FileType::Table);
        tables.map(|file| (file.path_id, file.number)).collect()
    }

    pub fn len(&self) -> usize {
        self.files.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Lifetime of a file, shared by all its users.
pub struct FileLife {
    file: ObsoleteFile,
    obsolete: AtomicBool,
    queue: Arc<PurgeQueue>,
}

impl FileLife {
    pub fn new(file: ObsoleteFile, queue: Arc<PurgeQueue>) -> Arc<Self> {
        Arc::new(FileLife { file, obsolete: AtomicBool::new(false), queue })
    }

    pub fn file(&self) -> ObsoleteFile {
        self.file
    }

    /// Marks the file obsolete. Called once the responsible edit is durable (V3).
    pub fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    pub fn is_obsolete(&self) -> bool {
        self.obsolete.load(Ordering::Acquire)
    }
}

impl Drop for FileLife {
    fn drop(&mut self) {
        if *self.obsolete.get_mut() {
            self.queue.push(self.file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_held_queue_gives_nothing_away() {
        let queue = PurgeQueue::new();
        let table = ObsoleteFile { file_type: FileType::Table, path_id: 0, number: FileNumber(3) };
        queue.hold();
        queue.hold();
        queue.push(table);
        queue.release();
        assert_eq!(queue.take(), [], "one hold is left");
        queue.release();
        queue.release();
        assert_eq!(queue.take(), [table]);
    }

    #[test]
    fn a_file_is_queued_when_it_is_obsolete_and_its_last_pin_goes() {
        let queue = PurgeQueue::new();
        let told = Arc::new(AtomicUsize::new(0));
        let counter = told.clone();
        queue.listen(Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        let log = ObsoleteFile { file_type: FileType::Log, path_id: 0, number: FileNumber(7) };
        let life = FileLife::new(log, queue.clone());
        let pin = life.clone();
        life.mark_obsolete();
        drop(life);
        assert!(queue.is_empty(), "a pin is left");
        drop(pin);
        assert_eq!(queue.take(), [log]);
        assert_eq!(told.load(Ordering::Relaxed), 1);

        drop(FileLife::new(log, queue.clone()));
        assert!(queue.is_empty(), "a live file is not queued");
    }
}
