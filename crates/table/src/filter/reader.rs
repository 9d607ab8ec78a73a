//! Probes a filter. Its metadata selects the kind.

use super::METADATA_BYTES;
use super::bloom::{self, Bloom};
use super::legacy::LegacyBloom;
use super::ribbon::{self, Ribbon};
use super::xxph3::xxph3_64;

/// A filter's bytes, owned or borrowed, and how to probe them. Cheap to make: parses only the metadata.
#[derive(Clone, Debug)]
pub struct FilterReader<B> {
    bytes: B,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Bloom(Bloom),
    Ribbon(Ribbon),
    Legacy(LegacyBloom),
    /// Unrecognized, or written by a newer version: every key may match.
    Unknown,
}

impl<B: AsRef<[u8]>> FilterReader<B> {
    /// Never fails: every key passes a malformed filter.
    pub fn new(bytes: B) -> Self {
        let kind = Kind::parse(bytes.as_ref());
        FilterReader { bytes, kind }
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    #[cfg(test)]
    pub fn filter_kind(&self) -> &'static str {
        match self.kind {
            Kind::Bloom(_) => "bloom",
            Kind::Ribbon(_) => "ribbon",
            Kind::Legacy(_) => "legacy bloom",
            Kind::Unknown => "unknown",
        }
    }

    /// False if `key` is certainly not in the filter.
    #[inline]
    pub fn may_match(&self, key: &[u8]) -> bool {
        match self.kind {
            Kind::Legacy(legacy) => legacy.may_match(self.bytes(), key),
            Kind::Unknown => true,
            Kind::Bloom(_) | Kind::Ribbon(_) => self.may_match_hash(xxph3_64(key)),
        }
    }

    /// Asks for the memory that [`may_match`](Self::may_match) reads, if it is one cache line.
    #[inline]
    pub fn foresee(&self, key: &[u8]) {
        if let Kind::Bloom(bloom) = self.kind {
            bloom.foresee(self.bytes(), xxph3_64(key));
        }
    }

    /// The same by the key's hash; true for a legacy filter, which has another hash.
    #[inline]
    pub fn may_match_hash(&self, hash: u64) -> bool {
        match self.kind {
            Kind::Bloom(bloom) => bloom.may_match(self.bytes(), hash),
            Kind::Ribbon(ribbon) => ribbon.may_match(self.bytes(), hash),
            Kind::Legacy(_) | Kind::Unknown => true,
        }
    }
}

impl Kind {
    fn parse(filter: &[u8]) -> Kind {
        let Some((bits, &[marker, a, b, c, d])) = filter.split_last_chunk::<METADATA_BYTES>() else {
            return Kind::Unknown;
        };
        let rest = [a, b, c, d];
        match marker {
            bloom::MARKER => Bloom::parse(rest, bits.len()).map(Kind::Bloom),
            ribbon::MARKER => Ribbon::parse(rest, bits.len()).map(Kind::Ribbon),
            probes => LegacyBloom::parse(probes, rest, bits.len()).map(Kind::Legacy),
        }
        .unwrap_or(Kind::Unknown)
    }
}
