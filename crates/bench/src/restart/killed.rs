//! The process that fills a database and is killed: this program again, which says what it has written and then waits.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use base::{Error, ErrorKind, Result};
use spillway::Db;
use vfs::Vfs;

use super::{Case, RestartFlags};
use crate::filling::{BATCH_ENTRIES, Entries, Written, log_bytes, memtable_bytes, property, refuse_existing};
use crate::flags::choices::Named;
use crate::machine::this_program;

/// The subcommand that kills.
const RESTART: &str = "restart";

/// The subcommand that is [`fill_and_wait`].
pub const FILL: &str = "restart-fill";

/// What a database held when its process was killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    pub written: Written,
    pub memtable_bytes: u64,
    pub log_bytes: u64,
}

impl Left {
    fn line(&self) -> String {
        let Left { written, memtable_bytes, log_bytes } = self;
        format!("filled {} {} {memtable_bytes} {log_bytes}", written.entries, written.digest)
    }

    fn parse(line: &str) -> Option<Left> {
        let mut numbers = line.trim().strip_prefix("filled ")?.split(' ').map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        let written = Written { entries: next()?, digest: next()? };
        Some(Left { written, memtable_bytes: next()?, log_bytes: next()? })
    }
}

/// Fills a database at `path` in a process of its own, and kills that.
///
/// # Errors
/// `Io`: the process could not be started, or ended before it had filled the database.
pub fn fill_and_kill(flags: &RestartFlags, case: &Case, path: &Path) -> Result<Left> {
    let (program, arguments) = this_program(RESTART, FILL)?;
    let mut command = Command::new(&program);
    command.args(arguments).arg(format!("--db={}", path.display()));
    command.args([
        format!("--memtables={}", case.memtable.name()),
        format!("--values={}", case.values.name()),
        format!("--bytes={}", case.bytes),
        format!("--value_size={}", flags.value_size),
        format!("--seed={}", flags.seed),
    ]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|e| Error::io("start", &program, e))?;
    let said = first_line(&mut child);
    // By SIGKILL: nothing is closed.
    let killed = child.kill().and_then(|()| child.wait());
    let status = killed.map_err(|e| Error::io("kill", &program, e))?;
    let left = said.map_err(|e| Error::io("read the output of", &program, e))?;
    Left::parse(&left).ok_or_else(|| {
        Error::new(
            ErrorKind::Io,
            format!("{command:?} ended with {status} before it had filled the database: {left:?}"),
        )
    })
}

fn first_line(child: &mut Child) -> std::io::Result<String> {
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    Ok(line)
}

/// Fills the database that the flags name, says so, and waits to be killed; or for the end of its input, which comes when
/// whoever started it is gone.
///
/// # Errors
/// `InvalidArgument`: there is a database already. Otherwise the first failure of a write.
pub fn fill_and_wait(flags: &RestartFlags, vfs: &Arc<dyn Vfs>) -> Result<()> {
    let path = Path::new(&flags.db);
    refuse_existing(vfs.as_ref(), path)?;
    let case = Case::all(flags).into_iter().next();
    let case = case.ok_or_else(|| Error::invalid_argument("no memtable is named"))?;
    let db = Db::open(path, &case.kind().open_options(vfs))?;
    let left = fill(&db, flags, case.bytes)?;
    let words = |e| Error::io("write", Path::new("standard output"), e);
    let mut out = std::io::stdout();
    writeln!(out, "{}", left.line()).and_then(|()| out.flush()).map_err(words)?;
    let waited = std::io::stdin().read_to_end(&mut Vec::new());
    waited.map(drop).map_err(|e| Error::io("read", Path::new("standard input"), e))
}

/// Writes until the memtable has so many bytes.
fn fill(db: &Db, flags: &RestartFlags, bytes: usize) -> Result<Left> {
    let mut entries = Entries::new(flags.seed, flags.value_size);
    let mut left = Left::default();
    while left.memtable_bytes < bytes as u64 {
        left.written = left.written.join(entries.write(db, BATCH_ENTRIES)?);
        left.memtable_bytes = memtable_bytes(db)?;
    }
    left.log_bytes = log_bytes(db);
    let held = property(db, "rocksdb.num-entries-active-mem-table")?;
    if held != left.written.entries {
        let message = format!("a memtable was to hold all {} entries and holds {held}", left.written.entries);
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood_and_last_words_are_not() {
        let left = Left { written: Written { entries: 1, digest: 2 }, memtable_bytes: 3, log_bytes: 4 };
        assert_eq!(Left::parse(&format!("{}\n", left.line())), Some(left));
        for words in ["", "filled 1 2 3", "filled 1 2 3 x", "1 2 3 4"] {
            assert_eq!(Left::parse(words), None, "{words}");
        }
    }
}
