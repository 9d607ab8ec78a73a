//! Reading documents with positions. Keeps B2: size, depth and texts are bounded.
//!
//! A JSON value is first taken as a slice of the text ([`RawValue`]) for its position, and then parsed.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
#[cfg(not(feature = "config"))]
use crate::features;
use crate::options::members::Members;
use crate::options::tree::Place;
#[cfg(feature = "config")]
use crate::options::yaml;

/// The longest accepted document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 4 << 20;

/// The deepest nesting of lists and objects: options need seven.
pub(super) const DEPTH_MAX: usize = 32;

/// The longest key or value in bytes: paths have at most 4096.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// The syntax of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// JSON.
    Json,
    /// YAML.
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
        #[cfg(feature = "config")]
        Syntax::Yaml => yaml::read(text),
        #[cfg(not(feature = "config"))]
        Syntax::Yaml => Err(features::missing("YAML", features::CONFIG)),
    }
}

/// Removes the position at the end of a parser's message and prefixes `place` instead.
pub(super) fn at_place(place: Option<Place>, message: &str) -> Error {
    let message = message.rsplit_once(" at line ").map_or(message, |(before, _)| before);
    place.unwrap_or_default().locate(Error::invalid_argument(message))
}

fn too_deep() -> String {
    format!("lists and objects are nested more than {DEPTH_MAX} deep")
}

pub(super) fn check_length<E: serde::de::Error>(text: &str) -> Result<(), E> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(E::custom(format!("a key or value is longer than {TEXT_BYTES_MAX} bytes")));
    }
    Ok(())
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
