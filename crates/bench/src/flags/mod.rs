//! Flags as gflags reads them, in tables of one row each. A flag that is in no table is an error, so that no figure is
//! taken under conditions that were asked for and not met.

pub mod choices;
mod db;

use base::{Error, Result};

pub use db::Flags;

/// A flag's type: how it is read, and what it is called in the help.
pub trait FlagValue: Sized {
    /// The value of `--flag` with nothing behind it, where that is allowed.
    const ALONE: Option<&'static str> = None;

    fn read(text: &str) -> Option<Self>;

    fn show(&self) -> String;
}

macro_rules! flag_values {
    ($($type:ty),+) => {
        $(impl FlagValue for $type {
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn show(&self) -> String {
                self.to_string()
            }
        })+
    };
}

flag_values!(String, u8, i32, i64, u32, u64, usize, f64);

impl FlagValue for bool {
    const ALONE: Option<&'static str> = Some("true");

    fn read(text: &str) -> Option<Self> {
        match text {
            "true" | "1" | "t" | "yes" => Some(true),
            "false" | "0" | "f" | "no" => Some(false),
            _ => None,
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Where JSON lines go: nowhere, to a file, or with `-` to standard output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonTarget(pub String);

impl FlagValue for JsonTarget {
    const ALONE: Option<&'static str> = Some("-");

    fn read(text: &str) -> Option<Self> {
        Some(JsonTarget(text.to_owned()))
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

/// Memtables' option strings, in the order given.
#[derive(Clone, Debug, PartialEq)]
pub struct MemtableList(Vec<String>);

impl MemtableList {
    pub fn one(option: &str) -> Self {
        MemtableList(vec![option.to_owned()])
    }

    pub fn options(&self) -> &[String] {
        &self.0
    }
}

impl FlagValue for MemtableList {
    fn read(text: &str) -> Option<Self> {
        split_list(text).map(MemtableList)
    }

    fn show(&self) -> String {
        self.0.join(",")
    }
}

/// The items of a list. A comma between braces or quotes belongs to an item's arguments. `None` for an empty item, or where
/// braces or quotes do not close.
pub fn split_list(text: &str) -> Option<Vec<String>> {
    let mut items = vec![String::new()];
    let mut depth = 0usize;
    let mut quoted = false;
    let mut escaped = false;
    for letter in text.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth = depth.checked_sub(1)?,
            ',' if !quoted && depth == 0 => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        items.last_mut()?.push(letter);
    }
    let items: Vec<String> = items.iter().map(|item| item.trim().to_owned()).collect();
    (depth == 0 && !quoted && items.iter().all(|item| !item.is_empty())).then_some(items)
}

/// A table of flags.
pub trait FlagSet: Default {
    /// Sets one flag. `None` for no flag of that name, `Some(false)` for a value that does not fit.
    fn set(&mut self, name: &str, value: &str) -> Option<bool>;

    /// The value that a flag takes when it stands alone; `None` for an unknown flag.
    fn alone(name: &str) -> Option<Option<&'static str>>;

    /// A line for each flag, with its default.
    fn help() -> String;
}

macro_rules! flags {
    (
        $(#[doc = $about_all:literal])+ pub struct $Flags:ident;
        $( $(#[doc = $about:literal])+ $name:ident: $type:ty = $default:expr; )+
    ) => {
        $(#[doc = $about_all])+
        #[derive(Clone, Debug)]
        pub struct $Flags {
            $( $(#[doc = $about])+ pub $name: $type, )+
        }

        impl Default for $Flags {
            fn default() -> Self {
                $Flags { $( $name: $default, )+ }
            }
        }

        impl $crate::flags::FlagSet for $Flags {
            fn set(&mut self, name: &str, value: &str) -> Option<bool> {
                use $crate::flags::FlagValue;
                match name {
                    $( stringify!($name) => Some(<$type as FlagValue>::read(value).map(|v| self.$name = v).is_some()), )+
                    _ => None,
                }
            }

            fn alone(name: &str) -> Option<Option<&'static str>> {
                use $crate::flags::FlagValue;
                match name {
                    $( stringify!($name) => Some(<$type as FlagValue>::ALONE), )+
                    _ => None,
                }
            }

            fn help() -> String {
                use $crate::flags::FlagValue;
                let flags = $Flags::default();
                let mut text = String::from("Flags, as --flag=value or -flag=value:\n");
                $(
                    let about = concat!($($about),+).trim();
                    text.push_str(&format!("  --{}={}\n     {about}\n", stringify!($name), flags.$name.show()));
                )+
                text
            }
        }
    };
}
pub(crate) use flags;

/// Reads flags as gflags does: `--name=value`, `--name value`, `--name` and `--noname` for booleans, one dash or two.
///
/// # Errors
/// `InvalidArgument`: the flag that is unknown, or whose value does not fit.
pub fn parse<F: FlagSet>(given: &[String]) -> Result<F> {
    let mut flags = F::default();
    let mut rest = given.iter();
    while let Some(argument) = rest.next() {
        let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
            return Err(Error::invalid_argument(format!("{argument:?} is no flag; flags are --name=value")));
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, value),
            None => match (F::alone(flag), flag.strip_prefix("no")) {
                (Some(Some(alone)), _) => (flag, alone),
                (Some(None), _) => (flag, rest.next().map_or("", String::as_str)),
                (None, Some(positive)) if F::alone(positive).flatten() == Some("true") => (positive, "false"),
                (None, _) => (flag, ""),
            },
        };
        match flags.set(name, value) {
            Some(true) => {}
            Some(false) => return Err(Error::invalid_argument(format!("--{name} cannot be {value:?}"))),
            None => return Err(Error::invalid_argument(format!("unknown flag --{name}; --help lists them"))),
        }
    }
    Ok(flags)
}

/// Whether a command line asks for help.
pub fn asks_for_help(given: &[String]) -> bool {
    given.iter().any(|flag| matches!(flag.as_str(), "--help" | "-help" | "-h" | "help"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_outside_of_arguments() {
        let items = |text: &str| split_list(text).unwrap();
        assert_eq!(items("skip_list, vector:7"), ["skip_list", "vector:7"]);
        let with_arguments = r#"cspp:{"mem_cap":"16G","chunk":[1,2]},{id=vector;count=7},hash_spdb:1000"#;
        assert_eq!(
            items(with_arguments),
            [r#"cspp:{"mem_cap":"16G","chunk":[1,2]}"#, "{id=vector;count=7}", "hash_spdb:1000"]
        );
        assert_eq!(items(r#"a:{"k":"},\"{"},b"#), [r#"a:{"k":"},\"{"}"#, "b"]);
        for wrong in ["", "a,,b", "a,", "a:{", "a:}", r#"a:{"x}"#] {
            assert_eq!(split_list(wrong), None, "{wrong}");
        }
    }
}
