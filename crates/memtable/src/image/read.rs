//! Reading a checked image. Errors are impossible after the check; iterators end at one all the same.

use base::{Error, Result, SeqNo, UserOrder};

use super::check::{Tally, check_expected};
use super::header::{Header, Representation};
use super::marks::Marks;
use super::skiplist::{self, HEAD_TAIL_BYTES, ListView};
use super::trie::TrieView;
use super::view::{View, wrong};
use super::walk::Walk;
use super::{Expected, Report, tombstones, trie_check};
use crate::arena::GRANULE_BYTES;
use crate::trie::layout::{HEAD_BYTES, Link, TOMBSTONES_AT};

/// A checked image.
pub struct Image<'a> {
    view: View<'a>,
    body: Body<'a>,
    tombstones_head: u64,
    report: Report,
}

#[derive(Clone, Copy)]
pub(super) enum Body<'a> {
    Trie { trie: TrieView<'a>, upwards: bool },
    SkipList(ListView<'a>),
}

/// Offsets of an image's parts. Only the head is known to lie in the image.
pub(super) struct Parts<'a> {
    pub(super) view: View<'a>,
    pub(super) body: Body<'a>,
    head_end: u64,
    pub(super) tombstones_head: u64,
}

impl<'a> Parts<'a> {
    /// # Errors
    /// As [`check`](super::check).
    pub(super) fn new(bytes: &'a [u8], header: &Header, expected: &Expected) -> Result<Self> {
        check_expected(header, expected)?;
        let view = allocated_part(bytes, header)?;
        let (body, head_bytes, tombstones_at) = match header.representation {
            Representation::Trie { shift } => {
                let upwards = match expected.order {
                    UserOrder::Bytewise => true,
                    UserOrder::ReverseBytewise => false,
                    UserOrder::Custom(_) => return Err(wrong(0, "a trie in an order that is not one of bytes")),
                };
                let trie = TrieView::new(view, shift, header.head)?;
                (Body::Trie { trie, upwards }, HEAD_BYTES as u64, TOMBSTONES_AT)
            }
            Representation::SkipList => {
                (Body::SkipList(ListView::new(view, header.head)?), HEAD_TAIL_BYTES, GRANULE_BYTES as u64)
            }
        };
        Ok(Parts { view, body, head_end: header.head + head_bytes, tombstones_head: header.head + tombstones_at })
    }
}

impl<'a> Image<'a> {
    /// Checks a whole image. It must not change while borrowed.
    ///
    /// # Errors
    /// As [`check`](super::check).
    pub fn open(bytes: &'a [u8], expected: &Expected) -> Result<Image<'a>> {
        let header = Header::read(bytes)?;
        let order = &expected.order;
        let Parts { view, body, head_end, tombstones_head } = Parts::new(bytes, &header, expected)?;
        let mut tally = Tally::new(Marks::new(view.len(), head_end)?);
        match body {
            Body::Trie { trie, .. } => trie_check::check(trie, &mut tally)?,
            Body::SkipList(list) => skiplist::check(list, order, &mut tally)?,
        }
        tombstones::check(&view, tombstones_head, order, &mut tally)?;
        Ok(Image { view, body, tombstones_head, report: tally.into_report(header, view.len())? })
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    /// All point entries in order.
    pub fn entries(&self) -> Entries<'a> {
        let start = match self.body {
            Body::Trie { trie, upwards } => {
                let mut walk = Walk::new();
                walk.start(&trie, upwards).map(|()| At::Trie { trie, walk, version: Link::NULL })
            }
            Body::SkipList(list) => list.first().map(|node| At::SkipList { list, node }),
        };
        Entries(start.ok())
    }

    /// All range deletions, the last added first.
    pub fn range_deletions(&self) -> RangeDeletions<'a> {
        RangeDeletions { view: self.view, link_at: self.tombstones_head }
    }
}

/// The allocated bytes if the image is sealed, else all.
fn allocated_part<'a>(bytes: &'a [u8], header: &Header) -> Result<View<'a>> {
    let Some(seal) = header.sealed else { return Ok(View::new(bytes)) };
    let part = usize::try_from(seal.allocated_bytes).ok().and_then(|end| bytes.get(..end));
    part.map(View::new).ok_or_else(|| {
        Error::corruption(format!("an image of {} bytes was cut to {}", seal.allocated_bytes, bytes.len()))
    })
}

/// Point entries of an image: internal key and value.
pub struct Entries<'a>(Option<At<'a>>);

enum At<'a> {
    Trie { trie: TrieView<'a>, walk: Walk, version: Link },
    SkipList { list: ListView<'a>, node: u64 },
}

impl<'a> At<'a> {
    fn advance(&mut self) -> Result<Option<(&'a [u8], &'a [u8])>> {
        match self {
            At::Trie { trie, walk, version } => {
                if version.is_null() {
                    let Some(newest) = walk.next_key(trie)? else { return Ok(None) };
                    *version = newest;
                }
                let leaf = trie.leaf(*version)?;
                *version = leaf.next;
                Ok(Some((leaf.entry.internal_key, leaf.entry.value)))
            }
            At::SkipList { node: 0, .. } => Ok(None),
            At::SkipList { list, node } => {
                let entry = list.entry(*node)?;
                *node = list.next(*node, 0)?;
                Ok(Some((entry.internal_key, entry.value)))
            }
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.0.as_mut()?.advance();
        debug_assert!(next.is_ok(), "a checked image has errors: {:?}", next.err());
        let entry = next.ok().flatten();
        if entry.is_none() {
            self.0 = None;
        }
        entry
    }
}

/// Range deletions of an image: start, end, number.
pub struct RangeDeletions<'a> {
    view: View<'a>,
    link_at: u64,
}

impl<'a> Iterator for RangeDeletions<'a> {
    type Item = (&'a [u8], &'a [u8], SeqNo);

    fn next(&mut self) -> Option<Self::Item> {
        let (at, entry) = tombstones::next(&self.view, self.link_at).ok().flatten()?;
        self.link_at = at;
        Some((entry.user_key(), entry.value, entry.seq()))
    }
}
