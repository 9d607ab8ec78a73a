//! The task of a child process, and the start of the process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base::{Error, ErrorKind, Result};
use bench::beside::Plan;
use bench::child;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The task of a child.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub enum Role {
    /// Opens an empty database and prints the library's name and version.
    Probe,
    /// Fills a database for other runs.
    Fill,
    /// Runs a workload and prints its record.
    Measure,
    /// Fills a database, without a flush, prints the number of entries, and waits to be killed.
    FillLog,
}

/// The input of a child.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Spec {
    pub role: Role,
    pub library: PathBuf,
    /// The database's folder.
    pub db: PathBuf,
    /// Option strings; later ones override earlier ones.
    pub options: Vec<String>,
    /// Empty unless the role is `Measure`.
    pub workload: String,
    pub mode: String,
    /// db_bench's.
    pub flags: Vec<String>,
    /// Of a memtable.
    pub write_buffer_bytes: u64,
    /// Of `Fill`: ends with a full compaction.
    pub compacted: bool,
    /// Of `ingest`, with as many writers as the workload has threads.
    pub plan: Plan,
}

impl Spec {
    /// The command to run this in a process of its own.
    ///
    /// # Errors
    /// `Io`: the path of this program is unknown.
    pub fn command(&self) -> Result<Command> {
        child::command(self)
    }

    /// Runs this in a process of its own, and parses the last line of its output.
    ///
    /// # Errors
    /// `Io`: the process failed, with its standard error, or printed no answer.
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
