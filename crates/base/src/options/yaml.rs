//! Reading YAML. Keeps B2: values and repetitions are bounded too. Values carry their positions ([`Spanned`]).

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;
use serde_saphyr::options::AliasLimits;

use crate::error::{Error, Result};
use crate::options::parse::{DEPTH_MAX, DOCUMENT_BYTES_MAX, Key, Raw, RawContent, at_place, check_length};
use crate::options::tree::Place;

/// Keys, values and brackets of a YAML document.
const YAML_EVENTS_MAX: usize = 500_000;

/// Most keys, values and brackets repeated by YAML aliases. Times the longest text it is 64 MiB.
const YAML_REPEATED_MAX: usize = 4096;

/// Reads one document; an empty text is `null`.
pub(super) fn read(text: &str) -> Result<Raw> {
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
