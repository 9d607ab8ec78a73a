//! Values returned without a copy: a byte range and its owner.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// An owner of bytes, such as a cached block.
pub type BytesOwner = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Bytes valid for the life of this object, regardless of the database's state.
#[derive(Clone)]
pub struct Pinned(Repr);

#[derive(Clone)]
enum Repr {
    Owned(Vec<u8>),
    Shared(BytesOwner, Range<usize>),
}

impl Pinned {
    /// The bytes `range` of `owner`; empty if the owner has no such range.
    pub fn shared(owner: BytesOwner, range: Range<usize>) -> Self {
        Pinned(Repr::Shared(owner, range))
    }

    /// The owner of the bytes and their offset in it; `None` if the bytes are not shared.
    pub fn as_shared(&self) -> Option<(&BytesOwner, usize)> {
        match &self.0 {
            Repr::Owned(_) => None,
            Repr::Shared(owner, range) => Some((owner, range.start)),
        }
    }

    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Repr::Owned(bytes) => bytes,
            Repr::Shared(..) => self.to_vec(),
        }
    }
}

impl From<Vec<u8>> for Pinned {
    fn from(bytes: Vec<u8>) -> Self {
        Pinned(Repr::Owned(bytes))
    }
}

impl Deref for Pinned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Owned(bytes) => bytes,
            Repr::Shared(owner, range) => (**owner).as_ref().get(range.clone()).unwrap_or_default(),
        }
    }
}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq<[u8]> for Pinned {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
