//! Crash simulation: the file system as found after a crash.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::content::{ChangeKind, Content, FileNode, overlay};
use super::random::Random;
use super::tree::{Directories, DirectoryId, Entry, ROOT, Transaction, Tree, apply, files_of};

/// The fate of unsynced changes in a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CrashPolicy {
    /// Power loss: only synced names and contents survive.
    NothingUnsyncedKept,
    /// Power loss just after a complete writeback.
    AllKept,
    /// Power loss in the middle of writeback. Each 4 KiB block of a file has some number of its unsynced writes, from
    /// none to all, independently of other blocks. The file's length is one of its lengths since the last sync. Each
    /// directory keeps its first few unsynced changes.
    RandomBlocksKept,
    /// Power loss: contents survive, but names only if their directory was synced.
    DirectoryEntriesLost,
    /// Power loss in the middle of the last write: only its first few 512-byte sectors are written. Everything else
    /// survives.
    TornAt512,
    /// Process kill, without a reboot: everything survives, including stores to mappings. A later power loss can still
    /// lose unsynced changes. The only policy to keep the boot.
    ProcessKilled,
}

impl CrashPolicy {
    /// All policies.
    pub const ALL: [CrashPolicy; 6] = [
        CrashPolicy::NothingUnsyncedKept,
        CrashPolicy::AllKept,
        CrashPolicy::RandomBlocksKept,
        CrashPolicy::DirectoryEntriesLost,
        CrashPolicy::TornAt512,
        CrashPolicy::ProcessKilled,
    ];
}

const BLOCK_BYTES: usize = 4096;
const SECTOR_BYTES: usize = 512;

/// A write in progress during the crash.
pub(super) struct WriteUnderWay<'a> {
    pub(super) node: &'a Arc<FileNode>,
    pub(super) offset: usize,
    pub(super) bytes: &'a [u8],
}

/// One crash of one tree.
pub(super) struct Crash<'a> {
    policy: CrashPolicy,
    random: Random,
    under_way: Option<WriteUnderWay<'a>>,
    /// The newest unsynced write of all files, if no write is in progress.
    last_write: Option<u64>,
    /// Each file after the crash, by its number, so links to one file still share it.
    survivors: BTreeMap<u64, Arc<FileNode>>,
}

impl<'a> Crash<'a> {
    pub(super) fn new(seed: u64, policy: CrashPolicy, under_way: Option<WriteUnderWay<'a>>) -> Self {
        Crash { policy, random: Random::new(seed), under_way, last_write: None, survivors: BTreeMap::new() }
    }

    pub(super) fn tree_after(mut self, tree: &Tree) -> Tree {
        if self.under_way.is_none() {
            self.last_write = files_of(&tree.current).iter().filter_map(|(_, node)| last_write(node)).max();
        }
        if self.policy == CrashPolicy::ProcessKilled {
            return Tree {
                current: self.directories_after(&tree.current),
                durable: self.directories_after(&tree.durable),
                unsynced: tree.unsynced.iter().map(|transaction| self.transaction_after(transaction)).collect(),
                next_directory: tree.next_directory,
            };
        }
        let names = match self.policy {
            CrashPolicy::NothingUnsyncedKept | CrashPolicy::DirectoryEntriesLost => tree.durable.clone(),
            CrashPolicy::RandomBlocksKept => self.some_names_of(tree),
            _ => tree.current.clone(),
        };
        Tree::of(self.directories_after(&names), tree.next_directory)
    }

    /// Durable names, plus the first few unsynced transactions of each directory.
    fn some_names_of(&mut self, tree: &Tree) -> Directories {
        let mut left: BTreeMap<DirectoryId, usize> = BTreeMap::new();
        for change in tree.unsynced.iter().flatten() {
            *left.entry(change.directory).or_default() += 1;
        }
        for count in left.values_mut() {
            *count = self.random.up_to(*count);
        }
        let mut names = tree.durable.clone();
        for transaction in &tree.unsynced {
            let kept = transaction.iter().all(|change| left.get(&change.directory).is_some_and(|&count| count > 0));
            for change in transaction {
                let count = left.entry(change.directory).or_default();
                // A lost transaction also loses all later transactions in its directories.
                *count = if kept { count.saturating_sub(1) } else { 0 };
            }
            if kept {
                apply(transaction, &mut names);
            }
        }
        names
    }

    /// The reachable part of `directories`, with its files as after the crash.
    fn directories_after(&mut self, directories: &Directories) -> Directories {
        let mut after = Directories::new();
        let mut pending = vec![ROOT];
        while let Some(id) = pending.pop() {
            let mut names = BTreeMap::new();
            for (name, entry) in directories.get(&id).into_iter().flatten() {
                names.insert(name.clone(), self.entry_after(entry));
                if let Entry::Directory(id) = entry {
                    pending.push(*id);
                }
            }
            after.insert(id, names);
        }
        after
    }

    fn transaction_after(&mut self, transaction: &Transaction) -> Transaction {
        let mut after = transaction.clone();
        for change in &mut after {
            change.entry = change.entry.as_ref().map(|entry| self.entry_after(entry));
        }
        after
    }

    fn entry_after(&mut self, entry: &Entry) -> Entry {
        match entry {
            Entry::Directory(id) => Entry::Directory(*id),
            Entry::File(node) => Entry::File(self.file_after(node)),
        }
    }

    fn file_after(&mut self, node: &Arc<FileNode>) -> Arc<FileNode> {
        if let Some(survivor) = self.survivors.get(&node.id) {
            return Arc::clone(survivor);
        }
        let content = self.content_after(node);
        let survivor = Arc::new(FileNode { id: node.id, content: Mutex::new(content) });
        self.survivors.insert(node.id, Arc::clone(&survivor));
        survivor
    }

    fn content_after(&mut self, node: &Arc<FileNode>) -> Content {
        let content = node.current();
        let bytes = match self.policy {
            CrashPolicy::ProcessKilled => return content.without_window(),
            CrashPolicy::NothingUnsyncedKept => content.durable().to_vec(),
            CrashPolicy::AllKept | CrashPolicy::DirectoryEntriesLost => content.bytes().to_vec(),
            CrashPolicy::RandomBlocksKept => some_blocks_of(&content, &mut self.random),
            CrashPolicy::TornAt512 => self.torn(node, &content),
        };
        Content::synced(bytes, content.modified_us)
    }

    fn torn(&mut self, node: &Arc<FileNode>, content: &Content) -> Vec<u8> {
        if let Some(write) = &self.under_way
            && Arc::ptr_eq(write.node, node)
        {
            let mut bytes = content.bytes().to_vec();
            overlay(&mut bytes, write.offset, some_sectors(write.offset, write.bytes, &mut self.random));
            return bytes;
        }
        let mut bytes = content.durable().to_vec();
        for change in content.changes() {
            match change.kind {
                ChangeKind::SetLen(len) => bytes.resize(len, 0),
                ChangeKind::Write { offset, start, len } => {
                    let written = content.written(start, len);
                    let last = change.operation.is_some() && change.operation == self.last_write;
                    let torn = self.under_way.is_none() && last;
                    let kept = if torn { some_sectors(offset, written, &mut self.random) } else { written };
                    overlay(&mut bytes, offset, kept);
                }
            }
        }
        bytes
    }
}

fn last_write(node: &Arc<FileNode>) -> Option<u64> {
    let content = node.content.lock();
    let writes = content.changes().iter().filter(|change| matches!(change.kind, ChangeKind::Write { .. }));
    writes.filter_map(|change| change.operation).max()
}

/// The part of a write before a random sector boundary inside it; possibly nothing, never all.
fn some_sectors<'b>(offset: usize, bytes: &'b [u8], random: &mut Random) -> &'b [u8] {
    let to_first_boundary = SECTOR_BYTES - offset % SECTOR_BYTES;
    let boundaries = match bytes.len() {
        len if len <= to_first_boundary => 0,
        len => (len - to_first_boundary).div_ceil(SECTOR_BYTES),
    };
    match random.up_to(boundaries) {
        0 => &[],
        sectors => bytes.get(..to_first_boundary + (sectors - 1) * SECTOR_BYTES).unwrap_or(bytes),
    }
}

/// Each block after some number of its changes.
fn some_blocks_of(content: &Content, random: &mut Random) -> Vec<u8> {
    let mut lengths = vec![content.durable().len()];
    let mut length = content.durable().len();
    for change in content.changes() {
        length = match change.kind {
            ChangeKind::Write { offset, len, .. } => length.max(offset + len),
            ChangeKind::SetLen(len) => len,
        };
        if lengths.last() != Some(&length) {
            lengths.push(length);
        }
    }
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut bytes = content.durable().to_vec();
    bytes.resize(longest, 0);

    let mut left = vec![0_usize; longest.div_ceil(BLOCK_BYTES)];
    for change in content.changes() {
        for count in blocks_touched(&mut left, &change.kind) {
            *count += 1;
        }
    }
    for count in &mut left {
        *count = match random.up_to(2) {
            0 => 0,
            1 => *count,
            _ => random.up_to(*count),
        };
    }
    for change in content.changes() {
        keep_where_left(change, content, &mut left, &mut bytes);
    }
    bytes.truncate(lengths.get(random.up_to(lengths.len() - 1)).copied().unwrap_or(longest));
    bytes
}

/// The counters of the blocks touched by a change. A truncation clears everything beyond it.
fn blocks_touched<'b>(blocks: &'b mut [usize], kind: &ChangeKind) -> &'b mut [usize] {
    let (from, to) = match *kind {
        ChangeKind::Write { offset, len, .. } => (offset, offset + len),
        ChangeKind::SetLen(len) => (len, blocks.len() * BLOCK_BYTES),
    };
    let first = (from / BLOCK_BYTES).min(blocks.len());
    let last = to.div_ceil(BLOCK_BYTES).clamp(first, blocks.len());
    blocks.get_mut(first..last).unwrap_or_default()
}

/// Applies one change to the blocks with changes left, and decrements their counters.
fn keep_where_left(change: &super::content::Change, content: &Content, left: &mut [usize], bytes: &mut Vec<u8>) {
    let (from, written) = match change.kind {
        ChangeKind::Write { offset, start, len } => (offset, Some(content.written(start, len))),
        ChangeKind::SetLen(len) => (len, None),
    };
    let mut block_start = from - from % BLOCK_BYTES;
    for count in blocks_touched(left, &change.kind) {
        let end = (block_start + BLOCK_BYTES).min(bytes.len());
        let start = from.max(block_start).min(end);
        block_start += BLOCK_BYTES;
        if *count == 0 {
            continue;
        }
        *count -= 1;
        match written {
            None => bytes.get_mut(start..end).unwrap_or_default().fill(0),
            Some(written) => {
                let until = (from + written.len()).min(end);
                overlay(bytes, start, written.get(start - from..until - from).unwrap_or_default());
            }
        }
    }
}
