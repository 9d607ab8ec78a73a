//! Reading an image that nobody checked as a whole: opening costs what the header and the range deletions cost, and
//! every reference is checked when it is followed (B1). So a memtable that a killed process left, inserts under way and
//! all, serves reads at once.
//!
//! What is read is *cut*: entries with numbers above the cut, which writers had not finished with, are not there.
//!
//! Whatever the bytes are, each call ends, without a panic, in time and memory bounded by the image's size: depths grow
//! along a way through a trie, keys ascend along a walk, versions and range deletions are spent from a [`Budget`], and a
//! search in a list takes no more steps than one ever should. What contradicts itself is `Corruption` and names the offset.
//! That is less than [`check`](super::check) promises: without a checksum nobody can tell that a byte of a value or key
//! changed, and without looking at everything nobody can tell that a reference leads past entries, so that some of them,
//! or all of a subtree, seem not to be there. Whoever relies on what is read relies on where the bytes come from: a
//! process over the same page cache, by the header's identity, and memory that keeps what was stored in it.

mod budget;
mod cursor;
mod estimate;
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
use super::header::{Header, Seal};
use super::read::{Body, Parts};
use super::skiplist::ListView;
use super::trie::TrieView;
use super::view::View;
use super::{Expected, Report, Representation, tombstones};
use crate::{Visit, VisitMany};

/// An image that is read without having been checked as a whole. See the module.
pub struct LazyImage {
    mapping: Arc<dyn ReadMapping>,
    /// Names the file in errors.
    path: PathBuf,
    header: Header,
    expected: Expected,
    shape: Shape,
    /// Of the mapping's bytes: those handed out where the image is sealed, else all.
    image_bytes: usize,
    cut: SeqNo,
    tombstones: Option<Arc<FragmentedTombstones>>,
}

/// How entries are arranged, and where the arrangement begins.
#[derive(Clone, Copy)]
enum Shape {
    Trie { shift: u32, head: u64, upwards: bool },
    SkipList { head: u64 },
}

/// The same, to be read.
enum Reader<'a> {
    Trie(TrieView<'a>),
    SkipList(ListView<'a>),
}

impl LazyImage {
    /// Reads the header and the range deletions of the image that a mapping is, sealed or not; behind what was handed out
    /// there may be more. The file at `path` must be the caller's alone: nobody may write to it while it is mapped.
    ///
    /// Entries above `cut` are not there. Whether the image is the one looked for, and complete up to the cut, is the
    /// caller's to tell from its [`Header`].
    ///
    /// # Errors
    /// As [`check`](super::check), as far as was read.
    pub fn open(mapping: Arc<dyn ReadMapping>, path: &Path, expected: &Expected, cut: SeqNo) -> Result<LazyImage> {
        Self::open_unnamed(mapping, path, expected, cut).map_err(|error| error.at_path(path))
    }

    fn open_unnamed(mapping: Arc<dyn ReadMapping>, path: &Path, expected: &Expected, cut: SeqNo) -> Result<LazyImage> {
        let bytes = (*mapping).as_ref();
        let header = Header::read(bytes)?;
        let parts = Parts::new(bytes, &header, expected)?;
        let shape = match (header.representation, parts.body) {
            (Representation::Trie { shift }, Body::Trie { upwards, .. }) => {
                Shape::Trie { shift, head: header.head, upwards }
            }
            _ => Shape::SkipList { head: header.head },
        };
        let image_bytes = parts.view.len() as usize;
        let tombstones = read_tombstones(&parts, &expected.order, cut)?;
        let (path, expected) = (path.to_owned(), expected.clone());
        Ok(LazyImage { path, header, expected, shape, image_bytes, cut, tombstones, mapping })
    }

    /// Shows `visit` the point entries of the lookup's user key at or below its number and the cut, newest first, until it
    /// returns false. The value is valid only during the call.
    ///
    /// # Errors
    /// `Corruption`; some entries may have been shown before.
    pub fn get(&self, key: &LookupKey, visit: &mut Visit<'_>) -> Result<()> {
        let visible = key.seq().min(self.cut);
        let found = match self.reader() {
            Reader::Trie(trie) => self.get_in_trie(trie, key.user_key(), visible, visit),
            Reader::SkipList(list) => list::get(self.ordered(list), (key.user_key(), visible), self.budget(), visit),
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

    /// Many lookups; `visit` is told which.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get(&self, keys: &[&LookupKey], visit: &mut VisitMany<'_>) -> Result<()> {
        for (i, key) in keys.iter().enumerate() {
            self.get(key, &mut |seq, kind, value| visit(i, seq, kind, value))?;
        }
        Ok(())
    }

    /// A cursor over point entries at or below the cut. Damage ends a walk; its status tells.
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

    /// The range tombstones at or below the cut, fragmented; `None` where there are none.
    pub fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.clone()
    }

    /// Checks the whole image, as [`check`](super::check) does, in time proportional to it. What is above the cut is
    /// checked, and counted, too.
    ///
    /// # Errors
    /// As [`check`](super::check).
    pub fn check(&self) -> Result<Report> {
        super::check((*self.mapping).as_ref(), &self.expected).map_err(|error| self.named(error))
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn cut(&self) -> SeqNo {
        self.cut
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was counted when the memtable was sealed, what is above the cut included; `None` where it was not.
    pub fn totals(&self) -> Option<Seal> {
        self.header.sealed
    }

    /// Bytes of the file that are used, as far as is known: of an image that was neither sealed nor marked, all. They are
    /// pages of the file, which the kernel takes when it needs them.
    pub fn bytes(&self) -> u64 {
        let handed_out = match self.header.sealed {
            Some(seal) => seal.allocated_bytes,
            None => self.header.watermark.handed_out_bytes,
        };
        let all = self.image_bytes as u64;
        if handed_out == 0 { all } else { handed_out.min(all) }
    }

    /// Estimated entries with user keys in `[start, end)`: a count where they are few. Damage counts as no entries.
    pub fn approximate_entries(&self, start: &[u8], end: &[u8]) -> u64 {
        self.estimate(start, end).unwrap_or(0)
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
        Ordered { list, order: &self.expected.order }
    }

    fn budget(&self) -> Budget {
        Budget::of(self.image_bytes as u64)
    }

    fn named(&self, error: Error) -> Error {
        error.at_path(&self.path)
    }
}

/// The range deletions at or below `cut`: copies, of no more bytes than the image has.
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
