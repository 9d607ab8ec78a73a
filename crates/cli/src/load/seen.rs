//! Keys that come again in one load.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Most keys that are remembered, by a hash of 8 bytes: about 64 MiB.
const KEYS_MAX: usize = 4 << 20;

/// The keys of a load so far, by hashes of 64 bits.
#[derive(Default)]
pub struct Seen {
    by: BuildHasherDefault<DefaultHasher>,
    hashes: HashSet<u64>,
    repeated: u64,
    /// More keys came than are remembered.
    is_full: bool,
}

impl Seen {
    pub fn note(&mut self, key: &[u8]) {
        let hash = self.by.hash_one(key);
        if self.hashes.len() >= KEYS_MAX {
            self.is_full = true;
            self.repeated += u64::from(self.hashes.contains(&hash));
        } else {
            self.repeated += u64::from(!self.hashes.insert(hash));
        }
    }

    /// Records with the key of an earlier one.
    pub fn repeated(&self) -> Repeated {
        match self.is_full {
            true => Repeated::AtLeast(self.repeated),
            false => Repeated::Exactly(self.repeated),
        }
    }
}

/// A number of records with the key of an earlier one.
#[derive(Clone, Copy)]
pub enum Repeated {
    Exactly(u64),
    AtLeast(u64),
}
