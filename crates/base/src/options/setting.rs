//! Plain types of rows, and extension points chosen by name.

use std::sync::Arc;

use serde_json::Value;

use crate::comparator::UserOrder;
use crate::error::{Error, Result};
use crate::extend::{BuiltinPrefix, MergeOperator, PrefixExtractor};
use crate::merge;
use crate::options::row::{Load, Setting};
use crate::options::string;

impl Setting for bool {
    fn kind(&self) -> String {
        "bool".to_string()
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn set(&mut self, text: &str, _load: &mut Load) -> Result<()> {
        *self = match text {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return Err(Error::invalid_argument(format!("`{text}` is neither true nor false"))),
        };
        Ok(())
    }

    fn value(&self) -> Value {
        Value::Bool(*self)
    }

    fn number(&self) -> Option<f64> {
        Some(f64::from(u8::from(*self)))
    }
}

/// Splits off a size suffix: `64M` is 64 and 2^20. `K`, `M`, `G` and `T`, in either case.
fn split_suffix(text: &str) -> (&str, i128) {
    let shift = match text.bytes().last().map(|byte| byte.to_ascii_uppercase()) {
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        Some(b'T') => 40,
        _ => return (text, 1),
    };
    (text.get(..text.len() - 1).unwrap_or(text), 1 << shift)
}

fn parse_integer(text: &str, load: &mut Load) -> Result<i128> {
    let (digits, factor) = split_suffix(text.trim());
    let number = digits.trim_end().parse::<i128>().ok().and_then(|number| number.checked_mul(factor));
    let number = number.or_else(|| leading_integer(text, load));
    number.ok_or_else(|| Error::invalid_argument(format!("`{text}` is no integer (K, M, G and T may follow it)")))
}

/// As RocksDB reads `1e6` and `1.5`: it ignores what follows the digits.
fn leading_integer(text: &str, load: &mut Load) -> Option<i128> {
    if !load.adopting {
        return None;
    }
    let (sign, digits) = text.trim_start().split_at(usize::from(text.trim_start().starts_with('-')));
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number = format!("{sign}{}", digits.get(..end)?).parse().ok()?;
    load.warnings.push(format!("`{text}` is read as {number}: RocksDB ignores what follows"));
    Some(number)
}

macro_rules! integer_setting {
    ($($int:ty),+) => {$(
        impl Setting for $int {
            fn kind(&self) -> String {
                "integer".to_string()
            }

            fn text(&self) -> String {
                self.to_string()
            }

            fn set(&mut self, text: &str, load: &mut Load) -> Result<()> {
                let mut number = parse_integer(text, load)?;
                if load.adopting && number < 0 && <$int>::MIN == 0 {
                    number = <$int>::MAX as i128;
                    load.warnings.push(format!("`{text}` is read as {number}"));
                }
                *self = <$int>::try_from(number).map_err(|_| {
                    Error::invalid_argument(format!("`{text}` is outside {} to {}", <$int>::MIN, <$int>::MAX))
                })?;
                Ok(())
            }

            fn value(&self) -> Value {
                Value::from(*self)
            }

            fn number(&self) -> Option<f64> {
                Some(*self as f64)
            }
        }
    )+};
}

integer_setting!(u32, u64, usize, i32);

impl Setting for f64 {
    fn kind(&self) -> String {
        "number".to_string()
    }

    /// Six decimals, like RocksDB, or more if needed to round-trip.
    fn text(&self) -> String {
        let six = format!("{self:.6}");
        if six.parse() == Ok(*self) { six } else { self.to_string() }
    }

    fn set(&mut self, text: &str, _load: &mut Load) -> Result<()> {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        *self = number.ok_or_else(|| Error::invalid_argument(format!("`{text}` is no number")))?;
        Ok(())
    }

    fn value(&self) -> Value {
        Value::from(*self)
    }

    fn number(&self) -> Option<f64> {
        Some(*self)
    }
}

impl Setting for String {
    fn kind(&self) -> String {
        "string".to_string()
    }

    fn text(&self) -> String {
        string::escape(self)
    }

    fn set(&mut self, text: &str, _load: &mut Load) -> Result<()> {
        *self = string::unescape(text);
        Ok(())
    }

    fn value(&self) -> Value {
        Value::String(self.clone())
    }

    fn is_free_text(&self) -> bool {
        true
    }
}

/// Accepts the built-in orders' names and the name of the order already set. A caller supplies its own comparator
/// before reading options with its name.
impl Setting for UserOrder {
    fn kind(&self) -> String {
        "comparator".to_string()
    }

    fn text(&self) -> String {
        string::escape(self.name())
    }

    fn set(&mut self, text: &str, _load: &mut Load) -> Result<()> {
        let name = string::unescape(string::object_id(text)?.0);
        if name == self.name() {
            return Ok(());
        }
        *self = UserOrder::by_name(&name).ok_or_else(|| {
            Error::invalid_argument(format!(
                "comparator `{name}` is unknown; supply it in FamilyOptions before loading"
            ))
        })?;
        Ok(())
    }
}

/// As [`UserOrder`]: built-in operators by name, or the one already supplied.
impl Setting for Option<Arc<dyn MergeOperator>> {
    fn kind(&self) -> String {
        "merge operator".to_string()
    }

    fn text(&self) -> String {
        self.as_ref().map_or_else(|| "nullptr".to_string(), |operator| operator.option_string())
    }

    fn set(&mut self, text: &str, _load: &mut Load) -> Result<()> {
        let (id, members) = string::object_id(text)?;
        let id = string::unescape(id);
        if id.is_empty() || id == "nullptr" {
            *self = None;
            return Ok(());
        }
        if let Some(operator) = merge::by_name_with(&id, &members)? {
            *self = Some(operator);
            return Ok(());
        }
        match self {
            Some(supplied) if supplied.name() == id => Ok(()),
            _ => Err(Error::unsupported(format!(
                "merge operator `{id}` is unknown; supply it in FamilyOptions before loading"
            ))),
        }
    }
}

/// As [`UserOrder`]: `fixed:N`, `capped:N` and RocksDB's names for them, or the one already supplied.
impl Setting for Option<Arc<dyn PrefixExtractor>> {
    fn kind(&self) -> String {
        "prefix extractor".to_string()
    }

    fn text(&self) -> String {
        self.as_ref().map_or_else(|| "nullptr".to_string(), |extractor| string::escape(&extractor.name()))
    }

    fn set(&mut self, text: &str, _load: &mut Load) -> Result<()> {
        let (id, members) = string::object_id(text)?;
        let mut name = string::unescape(id);
        if let Some((_, length)) = members.iter().find(|(member, _)| *member == "length") {
            name = format!("{name}.{length}");
        }
        if name.is_empty() || name == "nullptr" {
            *self = None;
            return Ok(());
        }
        if let Some(builtin) = BuiltinPrefix::parse(&name) {
            *self = Some(Arc::new(builtin));
            return Ok(());
        }
        match self {
            Some(supplied) if supplied.name() == name => Ok(()),
            _ => Err(Error::unsupported(format!(
                "prefix extractor `{name}` is unknown; write fixed:N or capped:N, or supply it in FamilyOptions before loading"
            ))),
        }
    }
}
