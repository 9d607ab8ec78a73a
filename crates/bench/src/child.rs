//! Child processes of a comparison. Each run has a process of its own: it begins with an empty heap, loads one library only, and
//! the kernel's counts belong to the run.

use std::path::Path;
use std::process::{Command, Stdio};

use base::{Error, Result};
use serde::Serialize;

/// The first argument of a child; its task, in JSON, is the second.
pub const CHILD: &str = "child";

/// The command to run this program as a child with a task. Its standard output is a pipe.
///
/// # Errors
/// `Io`: the path of this program is unknown.
pub fn command(task: &impl Serialize) -> Result<Command> {
    let program = std::env::current_exe().map_err(|e| Error::io("find", Path::new("/proc/self/exe"), e))?;
    let task = serde_json::to_string(task).map_err(|e| Error::invalid_argument(e.to_string()))?;
    let mut command = Command::new(program);
    command.arg(CHILD).arg(task).stdout(Stdio::piped());
    Ok(command)
}
