//! Rows of an options table, and the macro to turn rows into a struct.
//!
//! A row names a field, its type, default, bounds, home and mutability at run time. It yields the struct's field,
//! `Default`, validation, every syntax ([`string`](super::string), [`ini`](super::ini), [`document`](super::document))
//! and the documentation. The syntaxes see a struct only as an [`OptionGroup`].

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::options::kept::Kept;
use crate::options::known::Unhonoured;
use crate::options::tree::Node;

/// Location of a row in an OPTIONS file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Under RocksDB's name, known since RocksDB 7.8 at the latest.
    RocksDb,
    /// In a section for Spillway only; left out of exports. Read in any section.
    Spillway,
    /// A group with a section of its own.
    Section,
    /// Never written: applies to a single open.
    Unwritten,
}

/// Whether a row can change while the database is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only at an open.
    Fixed,
    /// At any time.
    Mutable,
}

/// The range of accepted numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// No bounds beyond those of the type.
pub(super) const ANY: Bounds = Bounds { min: f64::NEG_INFINITY, max: f64::INFINITY };

pub(super) const fn within(min: f64, max: f64) -> Bounds {
    Bounds { min, max }
}

pub(super) const fn at_least(min: f64) -> Bounds {
    Bounds { min, max: f64::INFINITY }
}

impl Bounds {
    /// False for NaN too.
    pub fn contains(&self, number: f64) -> bool {
        (self.min..=self.max).contains(&number)
    }

    /// "1 to 64", "at least 1", or "" if unbounded.
    pub fn describe(&self) -> String {
        match (self.min.is_finite(), self.max.is_finite()) {
            (true, true) => format!("{} to {}", self.min, self.max),
            (true, false) => format!("at least {}", self.min),
            (false, true) => format!("at most {}", self.max),
            (false, false) => String::new(),
        }
    }
}

/// The constant part of a row. Its value is a [`Setting`].
#[derive(Debug)]
pub struct Row {
    /// RocksDB's name, or ours if RocksDB has no such option.
    pub name: &'static str,
    /// RocksDB's other name, read and not written; none or one.
    pub also: &'static [&'static str],
    /// What it does.
    pub doc: &'static str,
    /// The accepted numbers.
    pub bounds: Bounds,
    /// Where it is stored.
    pub home: Home,
    /// When it can change.
    pub change: Change,
}

/// Modes for reading option text, and collected warnings.
#[derive(Debug, Default)]
pub struct Load {
    /// Unknown names become warnings instead of errors.
    pub ignore_unknown_options: bool,
    /// The text is for RocksDB: out-of-bounds numbers are clamped, text behind an integer is ignored, and a negative number of
    /// a type without sign is the largest one, each with a warning.
    pub adopting: bool,
    /// Unsupported options become warnings instead of errors, and have no effect.
    pub ignore_unsupported: bool,
    /// Unsupported options are kept. The caller refuses them later by [`review`](super::kept::review).
    pub defers_refusal: bool,
    /// The database is open: [`Change::Fixed`] rows are refused.
    pub running: bool,
    /// The families of an OPTIONS file so far.
    pub named: BTreeSet<String>,
    /// Options without effect or with another meaning, and skipped unknown names.
    pub warnings: Vec<String>,
    /// What was given so far for options that have two names.
    pub given: Given,
}

/// Values of options that have two names, by the name given.
#[derive(Debug, Default)]
pub struct Given(Vec<(&'static str, String, String)>);

impl Given {
    /// Notes a value of the option called `row`, given by `name`.
    ///
    /// # Errors
    /// `InvalidArgument`: its other name was given with another value.
    pub(super) fn note(&mut self, row: &Row, name: &str, text: &str) -> Result<()> {
        if row.also.is_empty() {
            return Ok(());
        }
        let other = self.0.iter().find(|(of, other, value)| *of == row.name && other != name && value != text);
        if let Some((_, other, value)) = other {
            return Err(Error::invalid_argument(format!(
                "`{other}={value}` and `{name}={text}` set one option by its two names; leave one of them out"
            )));
        }
        self.0.push((row.name, name.to_owned(), text.to_owned()));
        Ok(())
    }

    /// Begins another group: what was given for the one before says nothing of it.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The value of a row.
pub trait Setting {
    /// The type, for documentation ("bool", "size", or the names of an enum).
    fn kind(&self) -> String;

    /// The option string form: escaped, nested groups in braces.
    fn text(&self) -> String;

    /// The form in the event log.
    fn logged(&self) -> String {
        self.text()
    }

    /// # Errors
    /// `InvalidArgument`: bad text; the caller adds the option's name. A group's earlier members stay changed; set a
    /// copy for all or nothing.
    fn set(&mut self, text: &str, load: &mut Load) -> Result<()>;

    /// The JSON form.
    fn value(&self) -> Value {
        Value::String(self.text())
    }

    /// The number to compare with the bounds.
    fn number(&self) -> Option<f64> {
        None
    }

    /// True for free text: escaped in option strings but not in JSON.
    fn is_free_text(&self) -> bool {
        false
    }

    /// Sets the value from an object of a document; `None` if the option has no object form.
    fn set_object(&mut self, _node: &Node, _load: &mut Load) -> Option<Result<()>> {
        None
    }

    /// The group that this value is, if it is one.
    fn group(&self) -> Option<&dyn OptionGroup> {
        None
    }

    /// As [`group`](Self::group), to change it.
    fn group_mut(&mut self) -> Option<&mut dyn OptionGroup> {
        None
    }
}

/// A struct made of rows.
pub trait OptionGroup {
    /// RocksDB's name for the struct, for messages.
    fn title(&self) -> &'static str;

    /// Every row with its value, in table order.
    fn settings(&self) -> Vec<(&'static Row, &dyn Setting)>;

    /// The row called `name`, with its value.
    fn find_mut(&mut self, name: &str) -> Option<(&'static Row, &mut dyn Setting)>;

    /// RocksDB's names without effect in Spillway.
    fn unhonoured(&self) -> &'static [Unhonoured];

    /// Options set without effect, or with another meaning.
    fn kept(&self) -> &Kept;

    /// As [`kept`](Self::kept), to change them.
    fn kept_mut(&mut self) -> &mut Kept;

    /// True if the caller supplied the object named by an unhonoured option.
    fn has_supplied(&self, _name: &str, _text: &str) -> bool {
        false
    }
}

/// A row for documentation.
#[derive(Clone, Debug)]
pub struct Documented {
    /// The option's name.
    pub name: &'static str,
    /// Its type.
    pub kind: String,
    /// Its default, as text.
    pub default: String,
    /// Its bounds, as text; empty for none.
    pub bounds: String,
    /// Where it is stored.
    pub home: Home,
    /// True if it can change at run time.
    pub mutable: bool,
    /// What it does.
    pub doc: &'static str,
}

/// The rows of a group for documentation and command-line help, in table order.
pub fn rows<G: OptionGroup + Default>() -> Vec<Documented> {
    let defaults = G::default();
    let describe = |(row, setting): (&'static Row, &dyn Setting)| Documented {
        name: row.name,
        kind: setting.kind(),
        default: setting.text(),
        bounds: row.bounds.describe(),
        home: row.home,
        mutable: row.change == Change::Mutable,
        doc: row.doc.trim(),
    };
    defaults.settings().into_iter().map(describe).collect()
}

/// A row's name: the field's, unless overridden by `as "name"`.
macro_rules! row_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident, $name:literal) => {
        $name
    };
}

/// Defines a struct from rows:
///
/// ```text
/// /// Doc text.
/// field as "name" or "other name": Type = default, bounds, Home, Change;
/// ```
///
/// `as "name"` is only needed if the option's name is not the field's; `or` adds a name that is read and not written. Fields after `beside` are not options.
///
/// `for_each: ($) name` also exports the macro `name!(callback, tokens)`, which calls `callback!` with the tokens and
/// every row's documentation, mutability, default, field and type: builders are made from the same table.
macro_rules! option_table {
    (
        for_each: ($dollar:tt) $for_each:ident;
        $(#[doc = $about:literal])+
        struct $Group:ident = $title:literal, unhonoured: $unhonoured:expr $(, supplied: $supplied:expr)?;
        $(
            $(#[doc = $doc:literal])+
            $field:ident $(as $name:literal)? $(or $also:literal)? : $type:ty = $default:expr, $bounds:expr, $home:ident, $change:ident;
        )+
        $(beside $($beside:tt)+)?
    ) => {
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $for_each {
            ($dollar callback:ident, $dollar($dollar given:tt)*) => {
                $dollar callback! { { $dollar($dollar given)* } $( { [$($doc)+] [$change $default] $field $type } )+ }
            };
        }

        $crate::options::row::option_table! {
            $(#[doc = $about])+
            struct $Group = $title, unhonoured: $unhonoured $(, supplied: $supplied)?;
            $( $(#[doc = $doc])+ $field $(as $name)? $(or $also)? : $type = $default, $bounds, $home, $change; )+
            $(beside $($beside)+)?
        }
    };
    (
        $(#[doc = $about:literal])+
        struct $Group:ident = $title:literal, unhonoured: $unhonoured:expr $(, supplied: $supplied:expr)?;
        $(
            $(#[doc = $doc:literal])+
            $field:ident $(as $name:literal)? $(or $also:literal)? : $type:ty = $default:expr, $bounds:expr, $home:ident, $change:ident;
        )+
        $(beside $( $(#[doc = $side_doc:literal])+ $side:ident : $side_type:ty = $side_default:expr; )+)?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone)]
        pub struct $Group {
            $( $(#[doc = $doc])+ pub $field: $type, )+
            $($( $(#[doc = $side_doc])+ pub $side: $side_type, )+)?
            /// Options set without effect or with another meaning, for getters and the event log.
            pub kept: $crate::options::kept::Kept,
        }

        impl Default for $Group {
            fn default() -> Self {
                $Group { $( $field: $default, )+ $($( $side: $side_default, )+)? kept: Default::default() }
            }
        }

        impl $crate::options::row::OptionGroup for $Group {
            fn title(&self) -> &'static str {
                $title
            }

            fn settings(&self) -> Vec<(&'static $crate::options::row::Row, &dyn $crate::options::row::Setting)> {
                vec![$( ($crate::options::row::row!($field $(as $name)? $(or $also)?, [$($doc)+], $bounds, $home, $change), &self.$field) ),+]
            }

            fn find_mut(
                &mut self,
                name: &str,
            ) -> Option<(&'static $crate::options::row::Row, &mut dyn $crate::options::row::Setting)> {
                match name {
                    $( $crate::options::row::row_name!($field $(, $name)?) $(| $also)? => Some((
                        $crate::options::row::row!($field $(as $name)? $(or $also)?, [$($doc)+], $bounds, $home, $change),
                        &mut self.$field,
                    )), )+
                    _ => None,
                }
            }

            fn unhonoured(&self) -> &'static [$crate::options::known::Unhonoured] {
                $unhonoured
            }

            fn kept(&self) -> &$crate::options::kept::Kept {
                &self.kept
            }

            fn kept_mut(&mut self) -> &mut $crate::options::kept::Kept {
                &mut self.kept
            }

            $(fn has_supplied(&self, name: &str, text: &str) -> bool {
                let supplied: fn(&$Group, &str, &str) -> bool = $supplied;
                supplied(self, name, text)
            })?
        }

        impl std::fmt::Debug for $Group {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}{{{}}}", $title, $crate::options::string::print(self))
            }
        }
    };
}

/// One row's constant part, as a `&'static Row`.
macro_rules! row {
    ($field:ident $(as $name:literal)? $(or $also:literal)?, [$($doc:literal)+], $bounds:expr, $home:ident, $change:ident) => {{
        static ROW: $crate::options::row::Row = $crate::options::row::Row {
            name: $crate::options::row::row_name!($field $(, $name)?),
            also: [$($also)?].as_slice(),
            doc: concat!($($doc),+),
            bounds: $bounds,
            home: $crate::options::row::Home::$home,
            change: $crate::options::row::Change::$change,
        };
        &ROW
    }};
}

/// Makes a group usable as a row of another: `{a=1;b=2}` in strings, an object in JSON.
macro_rules! nested_group {
    ($Group:ident) => {
        $crate::options::row::nested_group!($Group, $crate::options::string::print);
    };
    ($Group:ident, $print:expr) => {
        impl $crate::options::row::Setting for $Group {
            fn kind(&self) -> String {
                $crate::options::row::OptionGroup::title(self).to_string()
            }

            fn text(&self) -> String {
                format!("{{{}}}", $print(self))
            }

            fn set(&mut self, text: &str, load: &mut $crate::options::row::Load) -> $crate::error::Result<()> {
                self.set_nested(text, load)
            }

            fn value(&self) -> serde_json::Value {
                $crate::options::document::to_value(self)
            }

            fn group(&self) -> Option<&dyn $crate::options::row::OptionGroup> {
                Some(self)
            }

            fn group_mut(&mut self) -> Option<&mut dyn $crate::options::row::OptionGroup> {
                Some(self)
            }
        }
    };
}

pub(super) use {nested_group, option_table, row, row_name};
