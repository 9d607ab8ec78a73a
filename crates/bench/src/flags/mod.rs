//! Flags in gflags' forms, so that db_bench's command lines can be given; clap reads them. An unknown flag is an error: no figure is
//! taken under conditions that were asked for and not met.

mod db;

use std::any::TypeId;

use base::Error;
use clap::{Command, Parser};

pub use db::Flags;

/// A struct of flags, one row each: what it does, its name, its type, its default if it has one.
macro_rules! flags {
    (
        $(#[$about_all:meta])+ pub struct $Flags:ident;
        $( $(#[$about:meta])+ $name:ident: $type:ty $(= $default:expr)?; )+
    ) => {
        $(#[$about_all])+
        #[derive(Clone, Debug, clap::Parser)]
        #[command(name = "spillway bench", no_binary_name = true, rename_all = "snake_case", allow_negative_numbers = true, args_override_self = true)]
        pub struct $Flags {
            $(
                $(#[$about])+
                #[arg(long $(, default_value_t = $default, action = clap::ArgAction::Set)?)]
                pub $name: $type,
            )+
        }
    };
}
pub(crate) use flags;

/// Reads flags as gflags does: one dash or two, booleans alone, with a value, or as `--noname`. If there is a flag `option`, a name that
/// is no flag becomes one: `--NAME=VALUE` is `--option=NAME=VALUE`.
///
/// # Errors
/// The flag that is unknown, or whose value does not fit; or the help, if that is asked for.
pub fn parse<F: Parser>(given: &[String]) -> Result<F, clap::Error> {
    let command = F::command();
    F::try_parse_from(given.iter().map(|argument| for_clap(argument, &command)))
}

fn for_clap(argument: &str, command: &Command) -> String {
    let flag = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
    let Some(flag) = flag.filter(|flag| flag.starts_with(|letter: char| letter.is_ascii_alphabetic())) else {
        return argument.to_owned();
    };
    let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
    let find = |name: &str| command.get_arguments().find(|known| known.get_long() == Some(name));
    let is_bool = |name: &str| find(name).is_some_and(|flag| flag.get_value_parser().type_id() == TypeId::of::<bool>());
    match (value, name.strip_prefix("no")) {
        _ if matches!(name, "help" | "h") => "--help".to_owned(),
        (None, Some(positive)) if is_bool(positive) => format!("--{positive}=false"),
        _ if is_bool(name) => format!("--{name}={}", truth(value.unwrap_or("true"))),
        _ if find(name).is_none() && find("option").is_some() => format!("--option={name}={}", value.unwrap_or("true")),
        _ => format!("--{flag}"),
    }
}

/// gflags' words for true and false.
fn truth(value: &str) -> &str {
    match value {
        "1" | "t" | "y" | "yes" => "true",
        "0" | "f" | "n" | "no" => "false",
        other => other,
    }
}

/// The error of flags that cannot be read.
pub fn refusal(error: &clap::Error) -> Error {
    Error::invalid_argument(error.to_string().trim_start_matches("error: ").trim_end())
}

/// The name of a choice; empty for one that cannot be chosen.
pub fn name_of(choice: impl clap::ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
