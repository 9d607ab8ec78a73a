//! `sst_partitioner_factory`: where tables end besides at their size.

use crate::error::{Error, Result};
use crate::options::row::{Load, Setting};
use crate::options::string;

/// RocksDB's name of the one that cuts by prefix.
const FIXED_PREFIX: &str = "SstPartitionerFixedPrefixFactory";

/// Where compactions end tables besides at their size. A program that deletes or copies ranges of keys, as regions of a
/// store, finds them in tables of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SstPartitioner {
    /// Nowhere.
    #[default]
    None,
    /// Between keys whose first bytes, so many, differ. A shorter key is its own prefix.
    FixedPrefix(usize),
}

impl SstPartitioner {
    /// Whether a table ends between two user keys.
    pub fn cuts_between(self, before: &[u8], after: &[u8]) -> bool {
        match self {
            SstPartitioner::None => false,
            SstPartitioner::FixedPrefix(len) => {
                before.get(..len).unwrap_or(before) != after.get(..len).unwrap_or(after)
            }
        }
    }
}

impl Setting for SstPartitioner {
    fn kind(&self) -> String {
        "table partitioner".to_string()
    }

    fn text(&self) -> String {
        match self {
            SstPartitioner::None => "nullptr".to_string(),
            SstPartitioner::FixedPrefix(len) => format!("{{id={FIXED_PREFIX};length={len};}}"),
        }
    }

    fn set(&mut self, text: &str, _load: &mut Load) -> Result<()> {
        let (id, members) = string::object_id(text)?;
        *self = match id {
            "" | "nullptr" => SstPartitioner::None,
            FIXED_PREFIX => {
                let length = members.iter().find(|(member, _)| *member == "length").map_or("0", |(_, length)| length);
                let length = length
                    .parse()
                    .map_err(|_| Error::invalid_argument(format!("`{length}` is no length of a prefix, in bytes")))?;
                SstPartitioner::FixedPrefix(length)
            }
            other => {
                let what = format!("partitioner `{other}` is unknown; write {{id={FIXED_PREFIX};length=N}}");
                return Err(Error::unsupported(what));
            }
        };
        Ok(())
    }
}
