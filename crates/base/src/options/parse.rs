//! Reading JSON and YAML with positions. Keeps B2: size, depth, texts, values and repetitions are bounded.
//!
//! YAML values carry their positions ([`Spanned`]). A JSON value is first taken as a slice of the text ([`RawValue`])
//! for its position, and then parsed.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_saphyr::Spanned;
use serde_saphyr::options::AliasLimits;

use crate::error::{Error, Result};
use crate::options::members::Members;
use crate::options::tree::Place;

/// The longest accepted document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 4 << 20;

/// The deepest nesting of lists and objects: options need seven.
const DEPTH_MAX: usize = 32;

/// Keys, values and brackets of a YAML document.
const YAML_EVENTS_MAX: usize = 500_000;

/// Most keys, values and brackets repeated by YAML aliases. Times [`TEXT_BYTES_MAX`] it is 64 MiB.
const YAML_REPEATED_MAX: usize = 4096;

/// The longest key or value in bytes: paths have at most 4096.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// The syntax of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    Json,
    Yaml,
}

impl Syntax {
    /// By file extension: `.json`, `.yaml`, `.yml`, in any case.
    pub fn of_file(path: &std::path::Path) -> Option<Syntax> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Some(Syntax::Json),
            "yaml" | "yml" => Some(Syntax::Yaml),
            _ => None,
        }
    }
}

/// A value with its place.
pub(super) struct Raw {
    pub at: Place,
    pub content: RawContent,
}

pub(super) enum RawContent {
    Scalar(Value),
    List(Vec<Raw>),
    Map(Vec<(Key, Raw)>),
}

pub(super) struct Key {
    pub name: String,
    pub at: Place,
}

pub(super) fn read(text: &str, syntax: Syntax) -> Result<Raw> {
    if text.len() > DOCUMENT_BYTES_MAX {
        let bytes = text.len();
        return Err(Error::invalid_argument(format!("a document of {bytes} bytes; {DOCUMENT_BYTES_MAX} at most")));
    }
    match syntax {
        Syntax::Json => JsonReader { text, offset: 0, at: Place { line: 1, column: 1 } }.read(),
        Syntax::Yaml => read_yaml(text),
    }
}

/// Removes the position at the end of a parser's message and prefixes `place` instead.
fn at_place(place: Option<Place>, message: &str) -> Error {
    let message = message.rsplit_once(" at line ").map_or(message, |(before, _)| before);
    place.unwrap_or_default().locate(Error::invalid_argument(message))
}

fn too_deep() -> String {
    format!("lists and objects are nested more than {DEPTH_MAX} deep")
}

fn check_length<E: serde::de::Error>(text: &str) -> Result<(), E> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(E::custom(format!("a key or value is longer than {TEXT_BYTES_MAX} bytes")));
    }
    Ok(())
}

fn read_yaml(text: &str) -> Result<Raw> {
    let options = serde_saphyr::options! {
        strict_booleans: true, // `y` and `on` are names
        with_snippet: false, // an excerpt of the document would take several lines
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_events: YAML_EVENTS_MAX,
            max_nodes: YAML_EVENTS_MAX,
            max_total_scalar_bytes: DOCUMENT_BYTES_MAX,
        },
        alias_limits: AliasLimits {
            max_total_replayed_events: YAML_REPEATED_MAX,
            ..AliasLimits::default()
        },
    };
    let parsed = serde_saphyr::from_multiple_with_options::<Raw>(text, options);
    let mut documents = parsed.map_err(|error| at_place(error.location().map(place_of), &error.to_string()))?;
    if documents.len() > 1 {
        let count = documents.len();
        return Err(Error::invalid_argument(format!("the text holds {count} documents; one is expected")));
    }
    Ok(documents.pop().unwrap_or(Raw { at: Place::default(), content: RawContent::Scalar(Value::Null) }))
}

fn place_of(location: serde_saphyr::Location) -> Place {
    Place { line: location.line(), column: location.column() }
}

/// From YAML: JSON's parser gives no positions this way.
impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<RawContent>::deserialize(deserializer)?;
        Ok(Raw { at: place_of(spanned.referenced), content: spanned.value })
    }
}

impl<'de> Deserialize<'de> for RawContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = RawContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawContent, E> {
        Ok(RawContent::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawContent, E> {
        Ok(RawContent::Scalar(Value::from(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<RawContent, E> {
        Ok(RawContent::Scalar(Value::from(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawContent, E> {
        Ok(RawContent::Scalar(Value::from(value)))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<RawContent, E> {
        check_length(value)?;
        Ok(RawContent::Scalar(Value::from(value)))
    }

    fn visit_unit<E>(self) -> Result<RawContent, E> {
        Ok(RawContent::Scalar(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawContent, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(RawContent::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawContent, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<Spanned<Name>, Raw>()? {
            members.push((Key { name: name.value.0, at: place_of(name.referenced) }, value));
        }
        Ok(RawContent::Map(members))
    }
}

/// A key, bounded before it is copied.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl Visitor<'_> for NameVisitor {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Name, E> {
                check_length(value)?;
                Ok(Name(value.to_owned()))
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}

/// Reads JSON from the front to the back, counting lines on the way.
struct JsonReader<'a> {
    text: &'a str,
    /// Bytes counted into lines and columns so far.
    offset: usize,
    at: Place,
}

impl<'a> JsonReader<'a> {
    fn read(mut self) -> Result<Raw> {
        let whole = serde_json::from_str::<&RawValue>(self.text).map_err(|error| {
            let place = Place { line: error.line() as u64, column: error.column() as u64 };
            at_place(Some(place), &error.to_string())
        })?;
        self.value(whole, 0)
    }

    /// The place of a slice of the text. Call in text order only.
    fn place(&mut self, slice: &RawValue) -> Place {
        let offset = slice.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        for c in self.text.get(self.offset..offset).unwrap_or_default().chars() {
            match c {
                '\n' => self.at = Place { line: self.at.line + 1, column: 1 },
                _ => self.at.column += 1,
            }
        }
        self.offset = offset.max(self.offset);
        self.at
    }

    fn value(&mut self, slice: &'a RawValue, depth: usize) -> Result<Raw> {
        let at = self.place(slice);
        let located = |error: serde_json::Error| at_place(Some(at), &error.to_string());
        let text = slice.get();
        let content = match text.bytes().next() {
            Some(b'{' | b'[') if depth >= DEPTH_MAX => return Err(at_place(Some(at), &too_deep())),
            Some(b'{') => {
                let Members(members) = serde_json::from_str::<Members<&RawValue, &RawValue>>(text).map_err(located)?;
                let read = members.into_iter().map(|(key, value)| Ok((self.key(key)?, self.value(value, depth + 1)?)));
                RawContent::Map(read.collect::<Result<_>>()?)
            }
            Some(b'[') => {
                let items = serde_json::from_str::<Vec<&RawValue>>(text).map_err(located)?;
                RawContent::List(items.into_iter().map(|item| self.value(item, depth + 1)).collect::<Result<_>>()?)
            }
            _ => {
                check_length(text).map_err(located)?;
                RawContent::Scalar(serde_json::from_str(text).map_err(located)?)
            }
        };
        Ok(Raw { at, content })
    }

    fn key(&mut self, slice: &RawValue) -> Result<Key> {
        let at = self.place(slice);
        let located = |error: serde_json::Error| at_place(Some(at), &error.to_string());
        check_length(slice.get()).map_err(located)?;
        Ok(Key { name: serde_json::from_str(slice.get()).map_err(located)?, at })
    }
}

impl Raw {
    /// Wraps a parsed value, without places.
    pub(super) fn from_value(value: &Value, depth: usize) -> Result<Raw> {
        let nowhere = Place::default();
        let content = match value {
            Value::Array(_) | Value::Object(_) if depth >= DEPTH_MAX => {
                return Err(Error::invalid_argument(too_deep()));
            }
            Value::Array(items) => {
                RawContent::List(items.iter().map(|item| Raw::from_value(item, depth + 1)).collect::<Result<_>>()?)
            }
            Value::Object(members) => {
                let read = members.iter().map(|(name, value)| {
                    Ok((Key { name: name.clone(), at: nowhere }, Raw::from_value(value, depth + 1)?))
                });
                RawContent::Map(read.collect::<Result<_>>()?)
            }
            scalar => RawContent::Scalar(scalar.clone()),
        };
        Ok(Raw { at: nowhere, content })
    }
}
