//! Flags in gflags' forms, read by clap: command lines of db_bench work here. An unknown flag is an error, so that no figure is
//! taken under conditions other than the ones asked for.

mod db;

use std::any::TypeId;

use base::Error;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};

pub use db::Flags;

/// A struct of flags, one row each: help text, name, type, default if any.
macro_rules! flags {
    (
        $(#[$about_all:meta])+ pub struct $Flags:ident;
        $( $(#[$about:meta])+ $name:ident: $type:ty $(= $default:expr)?; )+
    ) => {
        #[derive(Clone, Debug, clap::Parser)]
        $(#[$about_all])+
        #[command(no_binary_name = true, rename_all = "snake_case", allow_negative_numbers = true, args_override_self = true)]
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

/// Reads flags as gflags does: one dash or two, booleans alone, with a value, or as `--noname`. A boolean's value may be the next
/// word too. If there is a flag `option`, an unknown `--NAME=VALUE` is read as `--option=NAME=VALUE`.
///
/// # Errors
/// A flag is unknown or its value not allowed; or the help, if asked for.
pub fn parse<F: Parser>(given: &[String]) -> Result<F, clap::Error> {
    let command = F::command();
    let mut words: Vec<String> = Vec::with_capacity(given.len());
    for word in given {
        let flag = words.last_mut().filter(|last| last.starts_with('-') && !last.contains('='));
        match flag {
            Some(flag) if matches!(word.as_str(), "true" | "false") => *flag = format!("{flag}={word}"),
            _ => words.push(word.clone()),
        }
    }
    F::try_parse_from(words.iter().map(|word| for_clap(word, &command)))
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

/// clap's error as ours. The error of an unknown flag lists the known ones.
pub fn refusal<F: CommandFactory>(error: &clap::Error) -> Error {
    let mut message = error.to_string().trim_start_matches("error: ").trim_end().to_owned();
    if error.kind() == ErrorKind::UnknownArgument {
        let command = F::command();
        let known: Vec<String> =
            command.get_arguments().filter_map(|flag| Some(format!("--{}", flag.get_long()?))).collect();
        message.push_str(&format!("\nKnown are {}", known.join(", ")));
    }
    Error::invalid_argument(message)
}

/// The name of a choice; empty if users cannot choose it.
pub fn name_of(choice: impl clap::ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
