//! Options in JSON and YAML: RocksDB's names as keys, an object for a nested group.
//!
//! The rows drive the parser ([`DeserializeSeed`]), so an error stands at the line of the key it is about.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::options::ini::{NewFamily, OptionsFile};
use crate::options::row::{Load, OptionGroup};
use crate::options::string;
use crate::options::suggest::nearest;

/// Which syntax a document is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    Json,
    Yaml,
}

/// Sets what an object names in `group`.
pub(super) fn apply(group: &mut dyn OptionGroup, text: &str, syntax: Syntax, load: &mut Load) -> Result<()> {
    parse(GroupSeed { group, load }, text, syntax)
}

/// The same for JSON that was parsed already.
pub(super) fn apply_value(group: &mut dyn OptionGroup, value: &Value, load: &mut Load) -> Result<()> {
    GroupSeed { group, load }.deserialize(value).map_err(invalid)
}

/// Fills `file` from a document with `DBOptions` and, by family name, `CFOptions`. A family not yet in the file starts as
/// `new_family` makes it.
pub(super) fn apply_file(
    file: &mut OptionsFile,
    text: &str,
    syntax: Syntax,
    load: &mut Load,
    new_family: NewFamily<'_>,
) -> Result<()> {
    parse(FileSeed { file, load, new_family }, text, syntax)
}

fn parse<S>(seed: S, text: &str, syntax: Syntax) -> Result<()>
where
    S: for<'de> DeserializeSeed<'de, Value = ()>,
{
    match syntax {
        Syntax::Json => {
            let mut parser = serde_json::Deserializer::from_str(text);
            seed.deserialize(&mut parser).and_then(|()| parser.end()).map_err(invalid)
        }
        Syntax::Yaml => {
            // Without the excerpt of the document, which takes several lines.
            let options = serde_saphyr::options! { with_snippet: false };
            serde_saphyr::with_deserializer_from_str_with_options(text, options, |parser| seed.deserialize(parser))
                .map_err(invalid)
        }
    }
}

fn invalid(error: impl fmt::Display) -> Error {
    Error::invalid_argument(error.to_string())
}

/// Every option of a group, nested groups as objects.
pub fn to_value(group: &dyn OptionGroup) -> Value {
    let rows = group.settings().into_iter();
    Value::Object(rows.map(|(row, setting)| (row.name.to_string(), setting.value())).collect::<Map<_, _>>())
}

/// Fills a group from a map.
struct GroupSeed<'a> {
    group: &'a mut dyn OptionGroup,
    load: &'a mut Load,
}

impl<'de> DeserializeSeed<'de> for GroupSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for GroupSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with options of {}", self.group.title())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if seen.contains(&name) {
                return Err(A::Error::custom(format!("option `{name}` is given twice")));
            }
            let seed = SettingSeed { group: &mut *self.group, name: &name, load: &mut *self.load };
            map.next_value_seed(seed)?;
            seen.insert(name);
        }
        Ok(())
    }
}

/// Sets one option, whatever shape its value has.
struct SettingSeed<'a> {
    group: &'a mut dyn OptionGroup,
    name: &'a str,
    load: &'a mut Load,
}

impl SettingSeed<'_> {
    fn set<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        let is_free_text = self.group.find_mut(self.name).is_some_and(|(_, setting)| setting.is_free_text());
        let escaped = is_free_text.then(|| string::escape(text));
        let text = escaped.as_deref().unwrap_or(text);
        string::set(self.group, self.name, text, self.load).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for SettingSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SettingSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value for option `{}`", self.name)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.set(if value { "true" } else { "false" })
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.set(&value.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.set(&value.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.set(&value.to_string())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.set(value)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.set("nullptr")
    }

    /// A list of names, as `compression_per_level` is.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut names = Vec::new();
        while let Some(name) = seq.next_element::<String>()? {
            names.push(name);
        }
        self.set(&names.join(":"))
    }

    /// A nested group; or, for an option that is text, `{name: parameters}` for `name:{json of the parameters}`.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if let Some((_, setting)) = self.group.find_mut(self.name) {
            let is_free_text = setting.is_free_text();
            if let Some(group) = setting.group_mut() {
                return GroupSeed { group, load: self.load }.visit_map(map);
            }
            if !is_free_text {
                return Err(A::Error::custom(format!("option `{}` takes no object", self.name)));
            }
        }
        let mut members = Map::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            members.insert(name, value);
        }
        let text = match members.iter().next() {
            Some((name, parameters)) if members.len() == 1 => format!("{name}:{parameters}"),
            _ => Value::Object(members).to_string(),
        };
        self.set(&text)
    }
}

/// Fills a whole file's options.
struct FileSeed<'a> {
    file: &'a mut OptionsFile,
    load: &'a mut Load,
    new_family: NewFamily<'a>,
}

impl<'de> DeserializeSeed<'de> for FileSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FileSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with DBOptions and CFOptions")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(section) = map.next_key::<String>()? {
            match section.as_str() {
                "DBOptions" => map.next_value_seed(GroupSeed { group: &mut self.file.db, load: self.load })?,
                "CFOptions" => map.next_value_seed(FamiliesSeed(&mut self))?,
                _ => {
                    let hint = nearest(&section, ["DBOptions", "CFOptions"].into_iter());
                    let hint = hint.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                    return Err(A::Error::custom(format!("unknown section `{section}`{hint}")));
                }
            }
        }
        Ok(())
    }
}

/// Fills the families, by name.
struct FamiliesSeed<'a, 'b>(&'a mut FileSeed<'b>);

impl<'de> DeserializeSeed<'de> for FamiliesSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FamiliesSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one object per column family")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let group = self.0.file.family_or(&name, self.0.new_family);
            map.next_value_seed(GroupSeed { group, load: self.0.load })?;
        }
        Ok(())
    }
}
