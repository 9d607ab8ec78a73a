//! Shared by the cursors over unchecked images: the current entry, and the error that ended a walk.

use std::ops::Range;
use std::sync::Arc;

use base::{Cursor, Result, SeqNo};

use super::LazyImage;
use crate::image::view::EntryView;

/// Moves among the entries of an image at or below its cut. Each move returns the new current entry.
pub(super) trait Positions: Send {
    fn first<'a>(&mut self, image: &'a LazyImage) -> Result<Option<EntryView<'a>>>;

    fn last<'a>(&mut self, image: &'a LazyImage) -> Result<Option<EntryView<'a>>>;

    /// The first entry at or after an internal key.
    fn at_or_after<'a>(&mut self, image: &'a LazyImage, target: &[u8]) -> Result<Option<EntryView<'a>>>;

    /// The last entry at or before an internal key.
    fn at_or_before<'a>(&mut self, image: &'a LazyImage, target: &[u8]) -> Result<Option<EntryView<'a>>>;

    /// The entry after the current one.
    fn next<'a>(&mut self, image: &'a LazyImage) -> Result<Option<EntryView<'a>>>;

    /// The entry before the current one.
    fn prev<'a>(&mut self, image: &'a LazyImage) -> Result<Option<EntryView<'a>>>;
}

/// Ranges of the current entry's internal key and value in the image.
#[derive(Clone)]
struct Standing {
    key: Range<usize>,
    value: Range<usize>,
}

impl Standing {
    fn at(entry: &EntryView<'_>) -> Standing {
        let end = entry.end as usize;
        let value_at = end - entry.value.len();
        Standing { key: value_at - entry.internal_key.len()..value_at, value: value_at..end }
    }
}

pub(super) struct LazyCursor<P> {
    image: Arc<LazyImage>,
    positions: P,
    standing: Option<Standing>,
    status: Result<()>,
}

impl<P: Positions> LazyCursor<P> {
    pub(super) fn new(image: Arc<LazyImage>, positions: P) -> Self {
        LazyCursor { image, positions, standing: None, status: Ok(()) }
    }

    fn go(&mut self, to: impl for<'a> FnOnce(&mut P, &'a LazyImage) -> Result<Option<EntryView<'a>>>) -> bool {
        let arrived = to(&mut self.positions, &self.image);
        (self.standing, self.status) = match arrived {
            Ok(entry) => (entry.as_ref().map(Standing::at), Ok(())),
            Err(error) => (None, Err(self.image.named(error))),
        };
        self.standing.is_some()
    }

    fn bytes(&self, of: impl FnOnce(&Standing) -> &Range<usize>) -> &[u8] {
        let all = (*self.image.mapping).as_ref();
        self.standing.as_ref().and_then(|standing| all.get(of(standing).clone())).unwrap_or_default()
    }
}

impl<P: Positions> Cursor for LazyCursor<P> {
    fn valid(&self) -> bool {
        self.standing.is_some()
    }

    fn seek_to_first(&mut self) -> bool {
        self.go(|positions, image| positions.first(image))
    }

    fn seek_to_last(&mut self) -> bool {
        self.go(|positions, image| positions.last(image))
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        self.go(|positions, image| positions.at_or_after(image, target))
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        self.go(|positions, image| positions.at_or_before(image, target))
    }

    fn next(&mut self) -> bool {
        assert!(self.valid(), "a step from no entry");
        self.go(|positions, image| positions.next(image))
    }

    fn prev(&mut self) -> bool {
        assert!(self.valid(), "a step from no entry");
        self.go(|positions, image| positions.prev(image))
    }

    fn key(&self) -> &[u8] {
        self.bytes(|standing| &standing.key)
    }

    fn value(&self) -> &[u8] {
        self.bytes(|standing| &standing.value)
    }

    fn status(&self) -> Result<()> {
        self.status.clone()
    }
}

/// The largest trailer of a seek to `seq`: all entries of the number are at or below it.
pub(super) fn newest_trailer(seq: SeqNo) -> u64 {
    base::key::pack_trailer(seq, base::key::SEEK_KIND)
}
