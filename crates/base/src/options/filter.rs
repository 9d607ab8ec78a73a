//! The filter policy option.

use crate::error::{Error, Result};
use crate::options::row::{Load, Setting};
use crate::options::string;

/// Bits per key for a policy without a number.
const BITS_PER_KEY_DEFAULT: f64 = 10.0;

/// More bits do not lower the false positive rate: the format has 30 probes at most.
const BITS_PER_KEY_MAX: f64 = 100.0;

/// Filter of tables: none, or a bloom filter with a number of bits per key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FilterPolicy {
    /// Bits per key of a bloom filter; `None` for no filter.
    pub bits_per_key: Option<f64>,
}

impl FilterPolicy {
    /// No filter.
    pub const NONE: FilterPolicy = FilterPolicy { bits_per_key: None };

    /// A bloom filter.
    pub const fn bloom(bits_per_key: f64) -> FilterPolicy {
        FilterPolicy { bits_per_key: Some(bits_per_key) }
    }

    /// Reads RocksDB's spellings. A ribbon filter becomes a bloom filter with as many bits: ribbon filters are read and
    /// not written. Spellings: `nullptr`, `bloomfilter:10:false`, `rocksdb.BuiltinBloomFilter`, also in `{id=...}`.
    ///
    /// # Errors
    /// `InvalidArgument`: unknown.
    pub fn parse(text: &str) -> Result<FilterPolicy> {
        let (id, members) = string::object_id(text)?;
        let (family, mut numbers) = match id.split_once(':') {
            Some((family, rest)) => (family, rest.split(':')),
            None => (id, "".split(':')),
        };
        match family {
            "" | "nullptr" => return Ok(FilterPolicy::NONE),
            "bloomfilter"
            | "rocksdb.BloomFilter"
            | "rocksdb.BuiltinBloomFilter"
            | "rocksdb.internal.FastLocalBloomFilter" => {}
            _ if RIBBON.contains(&family) => {}
            _ => {
                return Err(Error::invalid_argument(format!(
                    "`{text}` is no filter policy; write bloomfilter:10:false"
                )));
            }
        }
        let member = members.iter().find(|(name, _)| *name == "bits_per_key").map(|(_, bits)| *bits);
        let bits = member.or_else(|| numbers.next().filter(|bits| !bits.is_empty()));
        let Some(bits) = bits else {
            return Ok(FilterPolicy::bloom(BITS_PER_KEY_DEFAULT));
        };
        match bits.trim().parse::<f64>() {
            // RocksDB makes no filter below half a bit.
            Ok(bits) if (0.0..0.5).contains(&bits) => Ok(FilterPolicy::NONE),
            Ok(bits) if (0.5..=BITS_PER_KEY_MAX).contains(&bits) => Ok(FilterPolicy::bloom(bits)),
            _ => Err(Error::invalid_argument(format!(
                "`{bits}` is no number of bits per key from 0 to {BITS_PER_KEY_MAX} (less than 0.5: no filter)"
            ))),
        }
    }
}

/// RocksDB's names of ribbon filters.
const RIBBON: [&str; 2] = ["ribbonfilter", "rocksdb.RibbonFilter"];

/// True if `text` asks for a ribbon filter.
fn is_ribbon(text: &str) -> bool {
    string::object_id(text).is_ok_and(|(id, _)| RIBBON.contains(&id.split(':').next().unwrap_or(id)))
}

impl Setting for FilterPolicy {
    fn kind(&self) -> String {
        "filter policy".to_string()
    }

    fn text(&self) -> String {
        match self.bits_per_key {
            None => "nullptr".to_string(),
            Some(bits) => format!("bloomfilter:{bits}:false"),
        }
    }

    fn set(&mut self, text: &str, load: &mut Load) -> Result<()> {
        *self = FilterPolicy::parse(text)?;
        if is_ribbon(text) {
            let written = self.text();
            load.warnings.push(format!("`{text}`: ribbon filters are read and not written; {written} is used"));
        }
        Ok(())
    }
}
