//! What a child process is told to do, as its one argument, and how it is started. Each run has a process of its own, so that it
//! begins with an empty heap, loads one library only, and what the kernel counts is that run's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base::{Error, ErrorKind, Result};
use bench::beside::Plan;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The argument before a [`Spec`], which makes this program a child.
pub const CHILD: &str = "child";

/// What a child does.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub enum Role {
    /// Opens an empty database and says what library it is.
    Probe,
    /// Fills a database for other runs.
    Fill,
    /// Runs a workload and prints its record.
    Measure,
    /// Fills a database into its log, says how many entries that were, and waits to be killed.
    FillLog,
}

/// What a child needs to know.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Spec {
    pub role: Role,
    pub library: PathBuf,
    /// The database's folder.
    pub db: PathBuf,
    /// Option strings, each over those before.
    pub options: Vec<String>,
    /// Empty where the role is not to measure.
    pub workload: String,
    pub mode: String,
    /// db_bench's.
    pub flags: Vec<String>,
    /// Of a memtable.
    pub write_buffer_bytes: u64,
    /// Of `ingest`; the writers are as many as the workload has threads.
    pub plan: Plan,
}

impl Spec {
    /// The command that runs this in a process of its own.
    ///
    /// # Errors
    /// `Io`: the system does not tell where this program lies.
    pub fn command(&self) -> Result<Command> {
        let program = std::env::current_exe().map_err(|e| Error::io("find", Path::new("/proc/self/exe"), e))?;
        let mut command = Command::new(program);
        let spec = serde_json::to_string(self).map_err(|e| Error::invalid_argument(e.to_string()))?;
        command.arg(CHILD).arg(spec).stdout(Stdio::piped());
        Ok(command)
    }

    /// Runs this in a process of its own; what that prints is the answer. Its errors go where this process's go.
    ///
    /// # Errors
    /// `Io`: the process failed, or printed something else.
    pub fn run<A: DeserializeOwned>(&self) -> Result<A> {
        let mut command = self.command()?;
        command.stderr(Stdio::piped());
        let output = command.output().map_err(|e| Error::io("start", Path::new("/proc/self/exe"), e))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let answer = said.lines().last().and_then(|line| serde_json::from_str(line).ok());
        match answer {
            Some(answer) if output.status.success() => Ok(answer),
            _ => {
                let complaint = String::from_utf8_lossy(&output.stderr);
                let message = format!("ended with {}: {}", output.status, complaint.trim());
                Err(Error::new(ErrorKind::Io, message))
            }
        }
    }
}
