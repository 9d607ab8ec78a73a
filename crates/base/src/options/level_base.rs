//! The value of `max_bytes_for_level_base`: the caller's, or one that the open derives.

use std::ops::Deref;

use serde_json::Value;

use crate::error::Result;
use crate::options::row::{Load, Setting};

/// Bytes of level 1. A value that the caller set stays; any other is a default, and an open may replace it by
/// [`or_derived`](LevelBase::or_derived).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelBase {
    bytes: u64,
    is_set: bool,
}

impl LevelBase {
    /// RocksDB's default, in bytes.
    pub const DEFAULT_BYTES: u64 = 256 << 20;

    /// Not set by the caller.
    pub const DEFAULT: LevelBase = LevelBase { bytes: LevelBase::DEFAULT_BYTES, is_set: false };

    /// True if the caller set the value, to the default or to another.
    pub fn is_set(self) -> bool {
        self.is_set
    }

    /// The caller's value; without one, `bytes`.
    #[must_use]
    pub fn or_derived(self, bytes: u64) -> LevelBase {
        if self.is_set { self } else { LevelBase { bytes, is_set: false } }
    }
}

impl From<u64> for LevelBase {
    fn from(bytes: u64) -> Self {
        LevelBase { bytes, is_set: true }
    }
}

impl Deref for LevelBase {
    type Target = u64;

    fn deref(&self) -> &u64 {
        &self.bytes
    }
}

impl Setting for LevelBase {
    fn kind(&self) -> String {
        self.bytes.kind()
    }

    fn text(&self) -> String {
        self.bytes.text()
    }

    fn set(&mut self, text: &str, load: &mut Load) -> Result<()> {
        let mut bytes = self.bytes;
        bytes.set(text, load)?;
        *self = bytes.into();
        Ok(())
    }

    fn value(&self) -> Value {
        self.bytes.value()
    }

    fn number(&self) -> Option<f64> {
        self.bytes.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Audience, DbOptions, FamilyOptions, OptionsFile, Syntax, apply_document, apply_string, ini};

    #[test]
    fn default_shows_and_is_not_set() {
        let base = FamilyOptions::default().max_bytes_for_level_base;
        assert_eq!((*base, base.is_set(), base.text().as_str()), (268_435_456, false, "268435456"));
        assert_eq!(*base.or_derived(7), 7);
    }

    #[test]
    fn value_equal_to_the_default_is_set_through_every_syntax() {
        let mut family = FamilyOptions::default();
        apply_string(&mut family, "max_bytes_for_level_base=256M").expect("valid");
        assert!(family.max_bytes_for_level_base.is_set());
        assert_eq!(*family.max_bytes_for_level_base.or_derived(7), 268_435_456);
        for (syntax, text) in [
            (Syntax::Json, "{\"max_bytes_for_level_base\": 268435456}"),
            (Syntax::Yaml, "max_bytes_for_level_base: 256M"),
        ] {
            let mut family = FamilyOptions::default();
            apply_document(&mut family, text, syntax).expect(text);
            assert!(family.max_bytes_for_level_base.is_set(), "{text}");
        }
        let file = ini::write(&DbOptions::default(), &[("default", &FamilyOptions::default())], Audience::RocksDb);
        let start = &|_: &str| FamilyOptions::default();
        let (file, _) = OptionsFile::read(&file, DbOptions::default(), start, false).expect("valid");
        assert!(file.family("default").expect("there").max_bytes_for_level_base.is_set());
    }
}
