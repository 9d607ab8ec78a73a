//! Values handed out without a copy: a range of bytes, and whatever keeps them alive.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Something that owns bytes: a block in the cache, say.
pub type BytesOwner = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Bytes that stay valid as long as this lives, whatever happens to the database meanwhile.
#[derive(Clone)]
pub struct Pinned(Repr);

#[derive(Clone)]
enum Repr {
    Owned(Vec<u8>),
    Shared(BytesOwner, Range<usize>),
}

impl Pinned {
    /// The bytes `range` of `owner`; empty where the owner has no such range.
    pub fn shared(owner: BytesOwner, range: Range<usize>) -> Self {
        Pinned(Repr::Shared(owner, range))
    }

    /// The owner of the bytes, and where they begin in it; `None` where nobody else can hold them.
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
