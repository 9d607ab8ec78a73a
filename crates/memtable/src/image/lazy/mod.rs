//! Reading an image without a check of the whole: opening costs only the header and the range deletions, and every
//! reference is checked when followed (B1). So a killed process's memtable, even with inserts under way, serves reads
//! at once.
//!
//! Reads are *cut*: entries with numbers above the cut, possibly incomplete, are invisible.
//!
//! Whatever the bytes are, each call ends, without a panic, in time and memory bounded by the image's size. Depths grow
//! along a path through a trie, keys ascend along a walk, versions and range deletions are charged to a [`Budget`], and
//! a search in a list has a step limit. Contradictions are `Corruption` with the offset.
//! This promises less than [`check`](super::check). Without a checksum, a changed byte of a value or key is not
//! detected. Without a full scan, a reference past some entries, or past a whole subtree, is not detected: those
//! entries seem absent. Callers must trust the source of the bytes: a process over the same page cache, by the header's
//! identity, and memory without bit errors.

mod budget;
mod cursor;
mod list;
mod list_cursor;
mod trie;
mod trie_cursor;
mod versions;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::tombstone::{FragmentedTombstones, RangeTombstone};
use base::{Cursor, Error, LookupKey, Result, SeqNo, UserOrder};
use vfs::ReadMapping;

use self::budget::Budget;
use self::cursor::LazyCursor;
use self::list::Ordered;
use self::list_cursor::ListPositions;
use self::trie_cursor::TriePositions;
use self::versions::Versions;
use super::header::Header;
use super::parts::{Body, Parts};
use super::skiplist::ListView;
use super::trie::TrieView;
use super::view::View;
use super::{Representation, tombstones};
use crate::{Visit, VisitMany};

/// An image read without a check of the whole. See the module.
pub struct LazyImage {
    mapping: Arc<dyn ReadMapping>,
    /// The file's path, for errors.
    path: PathBuf,
    order: UserOrder,
    shape: Shape,
    /// Bytes of the mapping in use: the allocated part if the image is sealed, else all.
    image_bytes: usize,
    cut: SeqNo,
    tombstones: Option<Arc<FragmentedTombstones>>,
}

/// The representation, and the offset of its head.
#[derive(Clone, Copy)]
enum Shape {
    Trie { shift: u32, head: u64, upwards: bool },
    SkipList { head: u64 },
}

/// A reader of the shape over the image's bytes.
enum Reader<'a> {
    Trie(TrieView<'a>),
    SkipList(ListView<'a>),
}

impl LazyImage {
    /// Reads the header and the range deletions of the image in a mapping, sealed or not. More bytes may follow the
    /// allocated part. The file at `path` must be the caller's alone: no process may write to it while it is mapped.
    ///
    /// Entries above `cut` are invisible. The caller decides from the [`Header`] whether this is the expected image,
    /// complete up to the cut.
    ///
    /// # Errors
    /// As [`check`](super::check), for the parts read.
    pub fn open(mapping: Arc<dyn ReadMapping>, path: &Path, order: &UserOrder, cut: SeqNo) -> Result<LazyImage> {
        Self::open_unnamed(mapping, path, order, cut).map_err(|error| error.at_path(path))
    }

    fn open_unnamed(mapping: Arc<dyn ReadMapping>, path: &Path, order: &UserOrder, cut: SeqNo) -> Result<LazyImage> {
        let bytes = (*mapping).as_ref();
        let header = Header::read(bytes)?;
        let parts = Parts::new(bytes, &header, order)?;
        let shape = match (header.representation, parts.body) {
            (Representation::Trie { shift }, Body::Trie { upwards, .. }) => {
                Shape::Trie { shift, head: header.head, upwards }
            }
            _ => Shape::SkipList { head: header.head },
        };
        let image_bytes = parts.view.len() as usize;
        let tombstones = read_tombstones(&parts, order, cut)?;
        let (path, order) = (path.to_owned(), order.clone());
        Ok(LazyImage { path, order, shape, image_bytes, cut, tombstones, mapping })
    }

    /// Shows `visit` the point entries of the lookup's user key at or below its number and the cut, newest first, until
    /// it returns false. The value is valid only during the call.
    ///
    /// # Errors
    /// `Corruption`; some entries may have been shown before.
    pub fn get(&self, key: &LookupKey, visit: &mut Visit<'_>) -> Result<()> {
        let visible = key.seq().min(self.cut);
        let found = match self.reader() {
            Reader::Trie(trie) => self.get_in_trie(trie, key.user_key(), visible, visit),
            Reader::SkipList(list) => list::get(self.ordered(list), key.user_key(), visible, self.budget(), visit),
        };
        found.map_err(|error| self.named(error))
    }

    fn get_in_trie(&self, trie: TrieView<'_>, key: &[u8], visible: SeqNo, visit: &mut Visit<'_>) -> Result<()> {
        let Some(newest) = trie.find(key)? else { return Ok(()) };
        let mut versions = Versions::new(trie, self.budget());
        let mut version = versions.first_visible(newest, visible)?;
        while let Some(leaf) = version {
            let kind = leaf.entry.point_kind(leaf.at)?;
            if !visit(leaf.entry.seq(), kind, leaf.entry.value) {
                break;
            }
            version = versions.older(&leaf)?;
        }
        Ok(())
    }

    /// Many lookups; `visit` receives the index of the key.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get(&self, keys: &[&LookupKey], visit: &mut VisitMany<'_>) -> Result<()> {
        for (i, key) in keys.iter().enumerate() {
            self.get(key, &mut |seq, kind, value| visit(i, seq, kind, value))?;
        }
        Ok(())
    }

    /// A cursor over point entries at or below the cut. Damage ends a walk with an error in its status.
    pub fn cursor(self: Arc<Self>) -> Box<dyn Cursor> {
        match self.shape {
            Shape::Trie { upwards, .. } => {
                let positions = TriePositions::new(self.budget(), upwards);
                Box::new(LazyCursor::new(self, positions))
            }
            Shape::SkipList { .. } => {
                let positions = ListPositions::new(self.budget());
                Box::new(LazyCursor::new(self, positions))
            }
        }
    }

    /// The range tombstones at or below the cut, fragmented; `None` if there are none.
    pub fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.clone()
    }

    /// The number through which entries count.
    pub fn cut(&self) -> SeqNo {
        self.cut
    }

    /// The image's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn view(&self) -> View<'_> {
        View::new((*self.mapping).as_ref().get(..self.image_bytes).unwrap_or_default())
    }

    fn reader(&self) -> Reader<'_> {
        match self.shape {
            Shape::Trie { shift, head, .. } => Reader::Trie(TrieView::known(self.view(), shift, head)),
            Shape::SkipList { head } => Reader::SkipList(ListView::known(self.view(), head)),
        }
    }

    fn ordered<'a>(&'a self, list: ListView<'a>) -> Ordered<'a, 'a> {
        Ordered { list, order: &self.order }
    }

    fn budget(&self) -> Budget {
        Budget::of(self.image_bytes as u64)
    }

    fn named(&self, error: Error) -> Error {
        error.at_path(&self.path)
    }
}

/// Copies of the range deletions at or below `cut`, with at most the image's bytes in total.
fn read_tombstones(parts: &Parts<'_>, order: &UserOrder, cut: SeqNo) -> Result<Option<Arc<FragmentedTombstones>>> {
    let mut budget = Budget::of(parts.view.len());
    let mut found = Vec::new();
    let mut link_at = parts.tombstones_head;
    while let Some((at, entry)) = tombstones::next(&parts.view, link_at)? {
        tombstones::check_one(at, &entry, order)?;
        budget.spend(at, entry.end - at)?;
        if entry.seq() <= cut {
            let (start, end) = (entry.user_key().to_vec(), entry.value.to_vec());
            found.push(RangeTombstone { start, end, seq: entry.seq() });
        }
        link_at = at;
    }
    let fragments = (!found.is_empty()).then(|| FragmentedTombstones::build(order.clone(), found));
    Ok(fragments.map(Arc::new))
}
