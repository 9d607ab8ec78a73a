//! Values returned without a copy: a byte range and its owner.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// An owner of bytes, such as a cached block.
pub type BytesOwner = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A key or a value: bytes that stay valid for the life of this object, whatever becomes of the database.
///
/// It derefs to `[u8]`. A value of a table is not copied: the object holds the block that it lies in, some KiB, so do not
/// keep many for long; [`into_vec`](Self::into_vec) makes a copy to keep. A clone copies bytes that are not shared.
#[derive(Clone)]
pub struct Pinned(Repr);

#[derive(Clone)]
enum Repr {
    Owned(Vec<u8>),
    Shared(BytesOwner, Range<usize>),
}

impl Pinned {
    /// The bytes `range` of `owner`; empty if the owner has no such range.
    #[doc(hidden)]
    pub fn shared(owner: BytesOwner, range: Range<usize>) -> Self {
        Pinned(Repr::Shared(owner, range))
    }

    /// The owner of the bytes and their offset in it; `None` if the bytes are not shared.
    #[doc(hidden)]
    pub fn as_shared(&self) -> Option<(&BytesOwner, usize)> {
        match &self.0 {
            Repr::Owned(_) => None,
            Repr::Shared(owner, range) => Some((owner, range.start)),
        }
    }

    /// A copy of the bytes, or the bytes themselves if nothing else holds them.
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

impl From<Pinned> for Vec<u8> {
    fn from(pinned: Pinned) -> Self {
        pinned.into_vec()
    }
}

/// Equal, ordered and hashed as the bytes.
impl PartialEq for Pinned {
    fn eq(&self, other: &Pinned) -> bool {
        **self == **other
    }
}

impl Eq for Pinned {}

impl PartialOrd for Pinned {
    fn partial_cmp(&self, other: &Pinned) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pinned {
    fn cmp(&self, other: &Pinned) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Pinned {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl Borrow<[u8]> for Pinned {
    fn borrow(&self) -> &[u8] {
        self
    }
}

macro_rules! equal_to_bytes {
    ($( [$($generics:tt)*] $Bytes:ty; )+) => { $(
        impl<$($generics)*> PartialEq<$Bytes> for Pinned {
            fn eq(&self, other: &$Bytes) -> bool {
                let bytes: &[u8] = other.as_ref();
                **self == *bytes
            }
        }
    )+ };
}

equal_to_bytes! {
    [] [u8];
    [] &[u8];
    [] Vec<u8>;
    [const N: usize] [u8; N];
    [const N: usize] &[u8; N];
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
