//! Where an image's parts lie.

use base::{Error, Result, UserOrder};

use super::header::{Header, Representation};
use super::skiplist::{HEAD_TAIL_BYTES, ListView};
use super::trie::TrieView;
use super::view::{View, wrong};
use crate::arena::GRANULE_BYTES;
use crate::trie::layout::{HEAD_BYTES, TOMBSTONES_AT};

#[derive(Clone, Copy)]
pub(super) enum Body<'a> {
    Trie { trie: TrieView<'a>, upwards: bool },
    SkipList(ListView<'a>),
}

/// Offsets of an image's parts. Only the head is known to lie in the image.
pub(super) struct Parts<'a> {
    pub(super) view: View<'a>,
    pub(super) body: Body<'a>,
    pub(super) head_end: u64,
    pub(super) tombstones_head: u64,
}

impl<'a> Parts<'a> {
    /// # Errors
    /// As [`check`](super::check).
    pub(super) fn new(bytes: &'a [u8], header: &Header, order: &UserOrder) -> Result<Self> {
        if header.order != order.name() {
            return Err(Error::invalid_argument(format!(
                "the image's keys are in the order {:?}, not {:?}",
                header.order,
                order.name()
            )));
        }
        let view = allocated_part(bytes, header)?;
        let (body, head_bytes, tombstones_at) = match header.representation {
            Representation::Trie { shift } => {
                let upwards = match order {
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

/// The allocated bytes if the image is sealed, else all.
fn allocated_part<'a>(bytes: &'a [u8], header: &Header) -> Result<View<'a>> {
    let Some(seal) = header.sealed else { return Ok(View::new(bytes)) };
    let part = usize::try_from(seal.allocated_bytes).ok().and_then(|end| bytes.get(..end));
    part.map(View::new).ok_or_else(|| {
        Error::corruption(format!("an image of {} bytes was cut to {}", seal.allocated_bytes, bytes.len()))
    })
}
