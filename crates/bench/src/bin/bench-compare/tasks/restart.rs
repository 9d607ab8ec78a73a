//! What a full memtable costs: its flush, or opening a database whose process was killed with all that it held in it and the log.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use base::{Error, ErrorKind, Result};
use bench::folder;
use bench::sides::SideRecord;
use bench::store::Store;
use bench::workload::{KeyBuffer, Rng, Values};
use serde::{Deserialize, Serialize};

use crate::child::Run;
use crate::library::Database;
use crate::measure::{Meter, wait_until_idle};
use crate::spec::{Role, Spec};

/// Room that an entry takes in a memtable beside its key and value, at most, in all kinds of memtable.
const ENTRY_OVERHEAD_BYTES: u64 = 120;

/// One entry in so many is looked for after the restart.
const CHECKED_ONE_IN: u64 = 64;

/// What was in the database when its process was killed.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Left {
    pub entries: u64,
}

/// Entries that fit into one memtable, in whose order they are written: scattered over the keys, none twice.
struct Scattered {
    entries: u64,
    key: KeyBuffer,
    values: Values,
}

impl Scattered {
    fn of(run: &Run<'_>) -> Scattered {
        let flags = &run.flags;
        let entry = (flags.key_size + flags.value_size) as u64 + ENTRY_OVERHEAD_BYTES;
        let fit = (run.spec.write_buffer_bytes / entry).max(1);
        let values = Values::new(&mut Rng::new(flags.seed), flags.value_size, flags.compression_ratio);
        Scattered { entries: flags.num.min(fit), key: KeyBuffer::new(flags.key_size), values }
    }

    /// The keys are the numbers' products with an odd constant, all different.
    fn entry(&mut self, nth: u64) -> (&[u8], &[u8]) {
        (self.key.set(nth.wrapping_mul(0x9E37_79B9_7F4A_7C15)), self.values.next())
    }
}

/// Fills one memtable. Answers the number of entries.
fn fill(run: &Run<'_>, database: &Database) -> Result<u64> {
    let mut entries = Scattered::of(run);
    let mut batch = database.new_batch()?;
    for nth in 0..entries.entries {
        let (key, value) = entries.entry(nth);
        database.put(&mut batch, key, value)?;
    }
    Ok(entries.entries)
}

/// Fills the database and leaves it open.
pub fn fill_log(run: &Run<'_>) -> Result<Left> {
    let options = run.options()?;
    let database = run.open(&options, &run.flags)?;
    let entries = fill(run, &database)?;
    std::mem::forget(database);
    std::mem::forget(options);
    Ok(Left { entries })
}

/// Times the flush of a full memtable, once nothing is done in the background.
pub fn flush(run: &Run<'_>) -> Result<SideRecord> {
    let options = run.options()?;
    let database = run.open(&options, &run.flags)?;
    let ops = fill(run, &database)?;
    wait_until_idle(run.vfs.as_ref(), &database)?;
    let meter = Meter::start(run.vfs.as_ref());
    database.flush()?;
    let used = meter.read();
    let user_bytes = ops * (run.flags.key_size + run.flags.value_size) as u64;
    let figure = used.0.as_secs_f64() * 1e3;
    let record =
        SideRecord { figure, unit: "ms to flush".to_owned(), threads: 1, ops, user_bytes, ..SideRecord::default() };
    meter.finish(record, used, None)
}

/// Fills a database in another process, kills that, opens the database, and looks for what was written.
pub fn run(run: &Run<'_>) -> Result<SideRecord> {
    let left = fill_and_kill(run)?;
    let log_bytes = folder::bytes(run.vfs.as_ref(), &run.spec.db)?;
    let options = run.options()?;
    let meter = Meter::start(run.vfs.as_ref());
    let database = run.open(&options, &run.flags)?;
    let used = meter.read();
    let record = SideRecord {
        figure: used.0.as_secs_f64() * 1e3,
        unit: "ms to open".to_owned(),
        threads: 1,
        ops: left.entries,
        disk_bytes: Some(log_bytes),
        ..SideRecord::default()
    };
    let record = meter.finish(record, used, Some(&database))?;
    let mut entries = Scattered::of(run);
    for nth in 0..left.entries {
        let (key, value) = entries.entry(nth);
        if nth.is_multiple_of(CHECKED_ONE_IN) {
            let mut same = false;
            let found = database.get(key, |found| same = found == value)?;
            if !found || !same {
                return Err(Error::corruption(format!("entry {nth} was acknowledged and is not there after the kill")));
            }
        }
    }
    Ok(record)
}

fn fill_and_kill(run: &Run<'_>) -> Result<Left> {
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
        .map_err(|_| Error::new(ErrorKind::Io, "the process that fills ended before it had filled the database"))
}
