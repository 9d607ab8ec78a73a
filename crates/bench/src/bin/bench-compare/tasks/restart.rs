//! The cost of a full memtable: its flush, or an open after a kill, with all entries in the memtable and the log only.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use base::{Error, ErrorKind, Result};
use bench::folder;
use bench::meter::Meter;
use bench::sides::SideRecord;
use bench::store::Store;
use bench::workload::{EntryBuffer, Rng};

use crate::child::Run;
use crate::library::{Database, wait_until_idle};
use crate::spec::{Role, Spec};

/// Upper bound of an entry's room in a memtable of any kind, apart from key and value.
const ENTRY_OVERHEAD_BYTES: u64 = 120;

/// One entry in so many is looked up after the restart.
const CHECKED_ONE_IN: u64 = 64;

/// The number of a key: products with an odd constant are distinct and scattered.
fn scattered(nth: u64) -> u64 {
    nth.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Writes as many entries as fit into one memtable. Returns their number.
fn fill(run: &Run<'_>, database: &Database) -> Result<u64> {
    let fit = run.spec.write_buffer_bytes / (run.entry_bytes() + ENTRY_OVERHEAD_BYTES);
    let count = run.flags.num.min(fit.max(1));
    let mut entries = EntryBuffer::new(&run.flags, &mut Rng::new(run.flags.seed));
    let mut batch = database.new_batch()?;
    for nth in 0..count {
        let (key, value) = entries.next(scattered(nth));
        database.put(&mut batch, key, value)?;
    }
    Ok(count)
}

/// Fills the database and leaves it open. Returns the number of entries.
pub fn fill_log(run: &Run<'_>) -> Result<u64> {
    let options = run.options()?;
    let database = run.open(&options, &run.flags)?;
    let entries = fill(run, &database)?;
    std::mem::forget(database);
    std::mem::forget(options);
    Ok(entries)
}

/// Times the flush of a full memtable in an otherwise idle database.
pub fn flush(run: &Run<'_>) -> Result<SideRecord> {
    let options = run.options()?;
    let database = run.open(&options, &run.flags)?;
    let ops = fill(run, &database)?;
    wait_until_idle(run.vfs.as_ref(), &database)?;
    let meter = Meter::start(run.vfs.as_ref());
    database.flush()?;
    let used = meter.read();
    let user_bytes = ops * run.entry_bytes();
    let figure = used.wall.as_secs_f64() * 1e3;
    let record =
        SideRecord { figure, unit: "ms to flush".to_owned(), threads: 1, ops, user_bytes, ..SideRecord::default() };
    Ok(meter.finish(record, used, None))
}

/// Fills a database in a child process, kills it, times the open, and looks up a sample of the entries.
pub fn run(run: &Run<'_>) -> Result<SideRecord> {
    let written = fill_and_kill(run)?;
    let log_bytes = folder::bytes(run.vfs.as_ref(), &run.spec.db)?;
    let options = run.options()?;
    let meter = Meter::start(run.vfs.as_ref());
    let database = run.open(&options, &run.flags)?;
    let used = meter.read();
    let record = SideRecord {
        figure: used.wall.as_secs_f64() * 1e3,
        unit: "ms to open".to_owned(),
        threads: 1,
        ops: written,
        disk_bytes: Some(log_bytes),
        ..SideRecord::default()
    };
    let waited = wait_until_idle(run.vfs.as_ref(), &database)?;
    let record = meter.finish(record, used, Some(waited));
    let mut entries = EntryBuffer::new(&run.flags, &mut Rng::new(run.flags.seed));
    for nth in 0..written {
        let (key, value) = entries.next(scattered(nth));
        if nth.is_multiple_of(CHECKED_ONE_IN) {
            let mut same = false;
            let found = database.get(key, |found| same = found == value)?;
            if !found || !same {
                return Err(Error::corruption(format!("entry {nth} was acknowledged, and is missing after the kill")));
            }
        }
    }
    Ok(record)
}

/// Fills the database in a child process and kills it. Returns the number of entries.
fn fill_and_kill(run: &Run<'_>) -> Result<u64> {
    let mut command = Spec { role: Role::FillLog, ..run.spec.clone() }.command()?;
    command.stdin(Stdio::piped());
    let program = Path::new("/proc/self/exe");
    let mut child = command.spawn().map_err(|e| Error::io("start", program, e))?;
    let mut said = String::new();
    let read = match child.stdout.take() {
        Some(stdout) => BufReader::new(stdout).read_line(&mut said).map(drop),
        None => Ok(()),
    };
    // By SIGKILL: nothing is closed.
    child.kill().and_then(|()| child.wait()).map_err(|e| Error::io("kill", program, e))?;
    read.map_err(|e| Error::io("read the output of", program, e))?;
    serde_json::from_str(&said)
        .map_err(|_| Error::new(ErrorKind::Io, "the filling process ended before the database was full"))
}
