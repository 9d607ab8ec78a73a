//! What it takes to load one data set: by puts, by ingesting, and by RocksDB's programs. Each is a process of its own on a
//! new database, timed from its start to its end.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base::{Error, ErrorKind, Result};
use spillway::{Db, OpenOptions, ReadOptions};
use vfs::{AppendFile, IfExists, IoClass, Vfs};

use super::flags::IngestFlags;
use super::record::LoadRecord;
use crate::folder;
use crate::machine::{Setting, processor_time_of};
use crate::work::threads::join;
use crate::workload::{Rng, Values};

/// Hexadecimal digits.
const KEY_BYTES: usize = 16;

/// Bytes of the data set's files that are written at once.
const CHUNK_BYTES: usize = 1 << 20;

/// From one look at a command that runs to the next.
const LOOK: Duration = Duration::from_millis(5);

/// The end of what a command said that failed.
const LAST_WORDS_BYTES: usize = 500;

/// One of the commands.
#[derive(Clone, Debug)]
struct Way {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<OsString>,
    /// The file that it reads as its standard input.
    input: Option<PathBuf>,
    /// Whether the database is one of ours, whose rows can be counted.
    ours: bool,
}

/// A line for each of RocksDB's programs that is not here, and is left out.
pub fn missing(flags: &IngestFlags) -> Vec<String> {
    let programs = [&flags.ldb, &flags.db_bench].into_iter().filter(|program| !is_there(Path::new(program)));
    let line = |program| format!("load     {program} is left out: it cannot be run (Debian has it in rocksdb-tools)");
    programs.map(line).collect()
}

/// Loads the data set by every command that is here, in turns; `told` is called with each result.
///
/// # Errors
/// `Io`: a command failed. `Corruption`: rows are missing.
pub fn run(
    flags: &IngestFlags,
    vfs: &Arc<dyn Vfs>,
    setting: &Setting,
    told: &mut dyn FnMut(LoadRecord) -> Result<()>,
) -> Result<()> {
    let dir = Path::new(&flags.db).join("load");
    vfs.create_dir_all(&dir)?;
    let (ours, theirs) = (dir.join("rows.kv"), dir.join("rows.ldb"));
    write_rows(flags, vfs, &ours, &theirs)?;
    let mut ways = ways(flags, &ours, &theirs)?;
    ways.retain(|way| is_there(&way.program));
    for round in 0..flags.rounds {
        for turn in 0..ways.len() {
            let Some(way) = ways.get((turn + round as usize) % ways.len()) else { continue };
            let (time, cpu) = measure(flags, vfs, way, &dir.join("db"))?;
            let bytes = flags.rows * (KEY_BYTES + flags.value_size) as u64;
            let seconds = time.as_secs_f64();
            told(LoadRecord {
                way: way.name.to_owned(),
                rows: flags.rows,
                bytes,
                seconds,
                rows_per_s: flags.rows as f64 / seconds,
                mb_per_s: bytes as f64 / 1e6 / seconds,
                cpu_s: cpu.as_secs_f64(),
                round,
                setting: setting.clone(),
            })?;
        }
    }
    folder::remove(vfs.as_ref(), &dir)
}

fn ways(flags: &IngestFlags, ours: &Path, theirs: &Path) -> Result<Vec<Way>> {
    let spillway = spillway_program(flags)?;
    let buffer = format!("--write_buffer_size={}", flags.write_buffer_size);
    let load = |name, more: &[&str]| {
        let options = format!("compression=kNoCompression;write_buffer_size={}", flags.write_buffer_size);
        let mut arguments: Vec<OsString> = vec!["load".into(), ours.into()];
        arguments.extend(["--format", "kv", "--raw", "--options", options.as_str()].map(OsString::from));
        arguments.extend(more.iter().map(OsString::from));
        Way { name, program: spillway.clone(), arguments, input: None, ours: true }
    };
    let ldb = |name, more: &[&str]| {
        let mut arguments: Vec<OsString> =
            ["load", "--create_if_missing", "--compression_type=no", buffer.as_str()].map(OsString::from).into();
        arguments.extend(more.iter().map(OsString::from));
        Way { name, program: (&flags.ldb).into(), arguments, input: Some(theirs.to_owned()), ours: false }
    };
    let db_bench = Way {
        name: "db_bench fillrandom",
        program: (&flags.db_bench).into(),
        arguments: [
            "--benchmarks=fillrandom",
            &format!("--num={}", flags.rows),
            &format!("--key_size={KEY_BYTES}"),
            &format!("--value_size={}", flags.value_size),
            "--compression_type=none",
            &buffer,
        ]
        .map(OsString::from)
        .into(),
        input: None,
        ours: false,
    };
    Ok(vec![
        load("load", &[]),
        load("load --via ingest", &["--via", "ingest"]),
        ldb("ldb load", &[]),
        ldb("ldb load --bulk_load", &["--bulk_load"]),
        db_bench,
    ])
}

/// The one that was named, this program itself, or the one next to it.
fn spillway_program(flags: &IngestFlags) -> Result<PathBuf> {
    if !flags.spillway.is_empty() {
        return Ok((&flags.spillway).into());
    }
    let this = std::env::current_exe().map_err(|e| Error::io("find", Path::new("/proc/self/exe"), e))?;
    let program = this.with_file_name("spillway");
    if is_there(&program) {
        return Ok(program);
    }
    let message = format!("{} cannot be run; build it, or name another by --spillway", program.display());
    Err(Error::unsupported(message))
}

fn is_there(program: &Path) -> bool {
    let quiet = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok()
}

/// Writes the rows twice, as `spillway load` and as `ldb load` read them: random keys, in no order.
fn write_rows(flags: &IngestFlags, vfs: &Arc<dyn Vfs>, ours: &Path, theirs: &Path) -> Result<()> {
    let mut rng = Rng::new(flags.seed);
    let mut values = Values::new(&mut rng, flags.value_size, 0.5);
    let mut files = [ours, theirs].map(|path| (path, Vec::with_capacity(2 * CHUNK_BYTES)));
    let mut open: Vec<Box<dyn AppendFile>> = Vec::new();
    for (path, _) in &files {
        open.push(vfs.create(path, IfExists::Truncate)?);
    }
    for row in 0..flags.rows {
        let (key, value) = (format!("{:016x}", rng.next()), values.next());
        for (((_, bytes), file), between) in files.iter_mut().zip(&mut open).zip(["\t", " ==> "]) {
            for part in [key.as_bytes(), between.as_bytes(), value, b"\n"] {
                bytes.extend_from_slice(part);
            }
            if bytes.len() >= CHUNK_BYTES || row + 1 == flags.rows {
                file.append(bytes, IoClass::Other)?;
                bytes.clear();
            }
        }
    }
    Ok(())
}

/// Runs a command on a new database. Returns how long it took, and its processor time.
fn measure(flags: &IngestFlags, vfs: &Arc<dyn Vfs>, way: &Way, db: &Path) -> Result<(Duration, Duration)> {
    vfs.create_dir_all(db)?;
    let mut database = OsString::from("--db=");
    database.push(db);
    let mut command = match &way.input {
        None => Command::new(&way.program),
        Some(input) => {
            // The shell opens the input, and becomes the command.
            let mut shell = Command::new("sh");
            shell.args(["-c", r#"exec "$0" "$@" <"$INPUT""#]).env("INPUT", input).arg(&way.program);
            shell
        }
    };
    command.args(&way.arguments).arg(database).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = vfs.now();
    let mut child = command.spawn().map_err(|e| Error::io("start", &way.program, e))?;
    let (succeeded, cpu, words) = follow(vfs.as_ref(), &mut child)?;
    let time = vfs.now().saturating_sub(start);
    if !succeeded {
        let said = String::from_utf8_lossy(&words);
        let from = said.char_indices().rev().nth(LAST_WORDS_BYTES).map_or(0, |(at, _)| at);
        let message = format!("{command:?} failed: {}", said.get(from..).unwrap_or_default());
        return Err(Error::new(ErrorKind::Io, message));
    }
    if way.ours {
        check_rows(flags, vfs, way, db)?;
    }
    folder::remove(vfs.as_ref(), db)?;
    Ok((time, cpu))
}

/// Waits for a command's end. Returns whether it succeeded, its processor time, and what it said of errors.
fn follow(vfs: &dyn Vfs, child: &mut Child) -> Result<(bool, Duration, Vec<u8>)> {
    let waiting = |e| Error::io("wait for", Path::new("the command"), e);
    let stderr = child.stderr.take();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut words = Vec::new();
            match stderr {
                Some(mut stderr) => stderr.read_to_end(&mut words).map(|_| words),
                None => Ok(words),
            }
        });
        let mut cpu = Duration::ZERO;
        let status = loop {
            cpu = processor_time_of(vfs, child.id()).unwrap_or_default().max(cpu);
            if let Some(status) = child.try_wait().map_err(waiting)? {
                break status;
            }
            vfs.sleep(LOOK);
        };
        Ok((status.success(), cpu, join(reader).map_err(waiting)?))
    })
}

fn check_rows(flags: &IngestFlags, vfs: &Arc<dyn Vfs>, way: &Way, path: &Path) -> Result<()> {
    let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::default() };
    let db = Db::open(path, &options)?;
    let mut cursor = db.iter(&db.default_family(), &ReadOptions::default())?;
    let mut rows = 0;
    cursor.seek_to_first();
    while cursor.valid() {
        rows += 1;
        cursor.next();
    }
    cursor.status()?;
    drop(cursor);
    db.close()?;
    if rows != flags.rows {
        return Err(Error::corruption(format!("{}: {rows} rows of {} are in the database", way.name, flags.rows)));
    }
    Ok(())
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
