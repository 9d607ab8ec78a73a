//! The built-in merge operators, under RocksDB's names.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::extend::MergeOperator;
use crate::options::string::{escape, unescape};

/// The built-in operator by long ("UInt64AddOperator") or short name ("uint64add").
pub fn by_name(name: &str) -> Option<Arc<dyn MergeOperator>> {
    by_name_with(name, &[]).ok().flatten()
}

/// As [`by_name`], with parameters from an option string (`delimiter` of StringAppendOperator).
///
/// # Errors
/// `InvalidArgument`: the operator has no such parameter.
pub(crate) fn by_name_with(name: &str, parameters: &[(&str, &str)]) -> Result<Option<Arc<dyn MergeOperator>>> {
    let mut delimiter = String::from(StringAppendOperator::DELIMITER_DEFAULT);
    let operator: Arc<dyn MergeOperator> = match name {
        UInt64AddOperator::NAME | "uint64add" => Arc::new(UInt64AddOperator),
        PutOperator::NAME | "put" | "put_v1" => Arc::new(PutOperator),
        MaxOperator::NAME | "max" => Arc::new(MaxOperator),
        StringAppendOperator::NAME | "stringappend" | "StringAppendTESTOperator" | "stringappendtest" => {
            if let Some((_, text)) = parameters.iter().find(|(parameter, _)| is_delimiter(parameter)) {
                delimiter = unescape(text);
            }
            Arc::new(StringAppendOperator::new(delimiter))
        }
        _ => return Ok(None),
    };
    let takes_delimiter = operator.name() == StringAppendOperator::NAME;
    let known = |parameter: &str| parameter == "id" || (takes_delimiter && is_delimiter(parameter));
    match parameters.iter().find(|(parameter, _)| !known(parameter)) {
        Some((parameter, _)) => Err(Error::invalid_argument(format!("merge operator {name} has no `{parameter}`"))),
        None => Ok(Some(operator)),
    }
}

fn is_delimiter(parameter: &str) -> bool {
    matches!(parameter, "delimiter" | "delim")
}

/// Adds 8-byte little-endian integers, wrapping around. A value or operand of another length counts as 0, as in RocksDB.
#[derive(Clone, Copy, Debug, Default)]
pub struct UInt64AddOperator;

impl UInt64AddOperator {
    /// The stored name.
    pub const NAME: &'static str = "UInt64AddOperator";
}

fn as_u64(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

impl MergeOperator for UInt64AddOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let start = existing.map_or(0, as_u64);
        let sum = operands.iter().fold(start, |sum, operand| sum.wrapping_add(as_u64(operand)));
        Some(sum.to_le_bytes().to_vec())
    }

    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(as_u64(older).wrapping_add(as_u64(newer)).to_le_bytes().to_vec())
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// Joins values with a delimiter between them.
#[derive(Clone, Debug)]
pub struct StringAppendOperator {
    delimiter: String,
}

impl StringAppendOperator {
    /// The stored name.
    pub const NAME: &'static str = "StringAppendOperator";
    /// The delimiter of [`StringAppendOperator::default`].
    pub const DELIMITER_DEFAULT: &'static str = ",";

    /// An operator with this text between values.
    pub fn new(delimiter: impl Into<String>) -> Self {
        StringAppendOperator { delimiter: delimiter.into() }
    }
}

impl Default for StringAppendOperator {
    fn default() -> Self {
        Self::new(Self::DELIMITER_DEFAULT)
    }
}

impl MergeOperator for StringAppendOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn option_string(&self) -> String {
        format!("{{id={};delimiter={};}}", Self::NAME, escape(&self.delimiter))
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let parts: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
        Some(parts.join(self.delimiter.as_bytes()))
    }

    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some([older, newer].join(self.delimiter.as_bytes()))
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// The newest operand wins.
#[derive(Clone, Copy, Debug, Default)]
pub struct PutOperator;

impl PutOperator {
    /// The stored name.
    pub const NAME: &'static str = "PutOperator";
}

impl MergeOperator for PutOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn full_merge(&self, _key: &[u8], _existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        operands.last().map(|newest| newest.to_vec())
    }

    fn partial_merge(&self, _key: &[u8], _older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(newer.to_vec())
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// The largest, byte by byte, wins.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxOperator;

impl MaxOperator {
    /// The stored name.
    pub const NAME: &'static str = "MaxOperator";
}

impl MergeOperator for MaxOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        existing.into_iter().chain(operands.iter().copied()).max().map(<[u8]>::to_vec)
    }

    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(older.max(newer).to_vec())
    }

    fn is_pure(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(name: &str, existing: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        by_name(name).expect("built in").full_merge(b"key", existing, operands).expect("merges")
    }

    #[test]
    fn every_operator_answers_to_its_short_and_long_name() {
        for (short, long) in [
            ("uint64add", "UInt64AddOperator"),
            ("stringappend", "StringAppendOperator"),
            ("put", "PutOperator"),
            ("max", "MaxOperator"),
        ] {
            assert_eq!(by_name(short).expect(short).name(), long);
            assert_eq!(by_name(long).expect(long).name(), long);
        }
        assert!(by_name("sortlist").is_none());
    }

    #[test]
    fn adds_and_wraps() {
        let one = 1u64.to_le_bytes();
        let most = u64::MAX.to_le_bytes();
        assert_eq!(merged("uint64add", None, &[&one, &one]), 2u64.to_le_bytes());
        assert_eq!(merged("uint64add", Some(&most), &[&one]), 0u64.to_le_bytes());
        assert_eq!(merged("uint64add", Some(b"short"), &[&one]), one);
    }

    #[test]
    fn appends_with_the_delimiter_between_values_only() {
        assert_eq!(merged("stringappend", None, &[b"a"]), b"a");
        assert_eq!(merged("stringappend", Some(b"a"), &[b"b", b"c"]), b"a,b,c");
        let operator = by_name_with("stringappend", &[("delimiter", "\\:")]).expect("valid").expect("built in");
        assert_eq!(operator.full_merge(b"", Some(b"a"), &[b"b"]).expect("merges"), b"a:b");
        assert_eq!(operator.option_string(), "{id=StringAppendOperator;delimiter=\\:;}");
        assert!(by_name_with("uint64add", &[("delimiter", ",")]).is_err());
    }

    #[test]
    fn partial_merges_agree_with_full_ones() {
        let (a, b) = (7u64.to_le_bytes(), 300u64.to_le_bytes());
        for name in ["uint64add", "stringappend", "put", "max"] {
            let operator = by_name(name).expect("built in");
            let folded = operator.partial_merge(b"k", &a, &b).expect("folds");
            let at_once = operator.full_merge(b"k", Some(b"existing"), &[&a, &b]);
            assert_eq!(operator.full_merge(b"k", Some(b"existing"), &[&folded]), at_once, "{name}");
        }
    }
}
