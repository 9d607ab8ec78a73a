//! Where results go: text for people, lines of JSON for programs.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use serde::Serialize;
use vfs::{AppendFile, IfExists, IoClass, Vfs};

use crate::flags::JsonTarget;

/// Takes lines of JSON.
pub type JsonLine<'a> = dyn FnMut(&str) -> Result<()> + 'a;

/// Calls `run` with the sinks for text and for JSON: text goes to standard output, or to standard error where JSON goes
/// there.
///
/// # Errors
/// `Io`: the JSON file cannot be made. Otherwise those of `run`.
pub fn with_sinks(
    vfs: &Arc<dyn Vfs>,
    target: &JsonTarget,
    run: impl FnOnce(&mut dyn Write, &mut JsonLine<'_>) -> Result<()>,
) -> Result<()> {
    if target.0 == "-" {
        return run(&mut std::io::stderr(), &mut |line| {
            println!("{line}");
            Ok(())
        });
    }
    let mut file: Option<Box<dyn AppendFile>> = match target.0.as_str() {
        "" => None,
        path => Some(vfs.create(Path::new(path), IfExists::Truncate)?),
    };
    run(&mut std::io::stdout(), &mut |line| match &mut file {
        Some(file) => file.append(format!("{line}\n").as_bytes(), IoClass::Other),
        None => Ok(()),
    })
}

/// # Errors
/// `Io`: the text's reader is gone.
pub fn write_text(text: &mut dyn Write, line: &str) -> Result<()> {
    writeln!(text, "{line}").map_err(|e| Error::io("write", Path::new("standard output"), e))
}

/// A result as tables take it.
pub fn value_of(result: &impl Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(result).map_err(|e| Error::invalid_argument(e.to_string()))
}

/// A line of JSON.
pub fn json_of(result: &impl Serialize) -> Result<String> {
    serde_json::to_string(result).map_err(|e| Error::invalid_argument(e.to_string()))
}
