//! What it costs to open a database whose process was killed: by the memtables that it left in files, or by replaying its
//! log. Both must find every entry.

mod flags;
mod killed;
mod record;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use base::{Error, ErrorKind, Result};
use spillway::{Db, ReadOptions};
use vfs::Vfs;

pub use flags::RestartFlags;
pub use killed::{FILL, fill_and_wait};
pub use record::{KIND, RestartRecord};

use self::killed::{Left, fill_and_kill};
use crate::filling::{Kind, Memtable, ValuesIn, Written, property, refuse_existing};
use crate::flags::choices::Named;
use crate::harness::processor_time;
use crate::machine::{Occasion, Setting};
use crate::report::restarts;
use crate::sinks::{JsonLine, json_of, with_sinks, write_text};

/// How it is called, for the help.
pub const EXAMPLES: &str = "\
Examples:
  bench restart --db=/tmp/restart                                  memtables of 64 MiB, by image and by replay
  bench restart --db=/tmp/restart --memtables=trie --bytes=1610612736
  bench restart --db=/tmp/restart --ways=image --rounds=1 --json=lines.jsonl";

/// What a memtable can hold beyond what it is filled with: some give out their memory in steps.
const CAPACITY_BEYOND_BYTES: usize = 16 << 20;

/// One in so many entries is looked up as well as met by a cursor.
const LOOKED_UP_EACH: u64 = 1000;

/// How a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Image,
    Replay,
}

/// One of the restarts that are measured by turns.
#[derive(Clone, Copy, Debug)]
struct Case {
    memtable: Memtable,
    values: ValuesIn,
    bytes: usize,
    way: Way,
}

/// Runs what the flags ask for; text goes to standard output, or to standard error where JSON goes there.
///
/// # Errors
/// As [`run_cases`].
pub fn run(flags: &RestartFlags, vfs: &Arc<dyn Vfs>) -> Result<()> {
    with_sinks(vfs, &flags.json, |text, json| run_cases(flags, vfs, text, json))
}

/// Kills and opens by turns: a line of text and one of JSON for each restart, a table of medians at the end.
///
/// # Errors
/// `InvalidArgument`: there is a database already. `Unsupported`: a database was not opened in the way that was asked for.
/// `Corruption`: what was opened is not what was written. Otherwise the first failure of an operation.
pub fn run_cases(
    flags: &RestartFlags,
    vfs: &Arc<dyn Vfs>,
    text: &mut dyn Write,
    json: &mut JsonLine<'_>,
) -> Result<()> {
    vfs.create_dir_all(Path::new(&flags.db))?;
    let occasion = Occasion::now(vfs.as_ref(), Path::new(&flags.db));
    let setting = Setting::new(KIND, &occasion, flags.conditions());
    let cases = Case::all(flags);
    let mut records = Vec::new();
    for round in 0..flags.rounds {
        for turn in 0..cases.len() {
            let Some(case) = cases.get((turn + round as usize) % cases.len()) else { continue };
            let mut record = case.measure(flags, vfs)?;
            (record.round, record.setting) = (round, setting.clone());
            write_text(text, &record.text())?;
            json(&json_of(&record)?)?;
            records.push(record);
        }
    }
    write_text(text, &restarts::tables(&records))
}

impl Case {
    /// What the flags ask for, the ways next to each other.
    fn all(flags: &RestartFlags) -> Vec<Case> {
        let mut cases = Vec::new();
        for &bytes in &flags.bytes.0 {
            for &memtable in &flags.memtables.0 {
                for &values in &flags.values.0 {
                    cases.extend(flags.ways.0.iter().map(|&way| Case { memtable, values, bytes, way }));
                }
            }
        }
        cases
    }

    fn kind(&self) -> Kind {
        Kind {
            memtable: self.memtable,
            values: self.values,
            convert_to_sst: "kFileMmap",
            sync_sst_file: true,
            capacity_bytes: self.bytes + self.bytes / 8 + CAPACITY_BEYOND_BYTES,
        }
    }

    /// Opens what a killed process left. The call alone is timed; what it opened is compared afterwards.
    fn measure(&self, flags: &RestartFlags, vfs: &Arc<dyn Vfs>) -> Result<RestartRecord> {
        let path = Path::new(&flags.db).join("killed");
        refuse_existing(vfs.as_ref(), &path)?;
        let left = fill_and_kill(flags, self, &path)?;
        let mut options = self.kind().open_options(vfs);
        options.db.memtable_crash_safe_recover = self.way == Way::Image;
        let (start, cpu) = (vfs.now(), processor_time());
        let db = Db::open(&path, &options)?;
        let (ended, cpu_ended) = (vfs.now(), processor_time());
        let restored = property(&db, "spillway.memtables-restored")?;
        if (restored > 0) != (self.way == Way::Image) {
            let message = format!("{restored} memtables were restored, which is not by {}", self.way.name());
            return Err(Error::new(ErrorKind::Unsupported, message).at_path(&path));
        }
        compare(&db, &left).map_err(|e| e.at_path(&path))?;
        db.close()?;
        drop(db);
        Db::destroy(&path, None, vfs)?;
        Ok(RestartRecord {
            way: self.way.name().to_owned(),
            memtable_bytes: left.memtable_bytes,
            open_ms: ended.saturating_sub(start).as_secs_f64() * 1e3,
            cpu_ms: cpu_ended.saturating_sub(cpu).as_secs_f64() * 1e3,
            memtable: self.memtable.name().to_owned(),
            values: self.values.name().to_owned(),
            entries: left.written.entries,
            log_bytes: left.log_bytes,
            restored,
            ..RestartRecord::default()
        })
    }
}

/// Goes through all entries, and looks some of them up.
fn compare(db: &Db, left: &Left) -> Result<()> {
    let (family, options) = (db.default_family(), ReadOptions::default());
    let mut cursor = db.iter(&family, &options)?;
    let mut found = Written::default();
    cursor.seek_to_first();
    while cursor.valid() {
        if found.entries % LOOKED_UP_EACH == 0 {
            let value = db.get(&family, cursor.key(), &options)?;
            if value.as_deref() != Some(cursor.value()) {
                return Err(Error::corruption("a lookup and a cursor differ in a value"));
            }
        }
        found.add(cursor.key(), cursor.value());
        cursor.next();
    }
    cursor.status()?;
    if found != left.written {
        let (there, written) = (found.entries, left.written.entries);
        return Err(Error::corruption(format!("{there} entries are there of {written}, or their content differs")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use spillway::{OpenOptions, WriteOptions};

    use super::*;
    use crate::filling::Entries;

    fn parse(line: &str) -> Result<RestartFlags> {
        RestartFlags::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_database_that_lacks_something_is_noticed() -> Result<()> {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path().join("db"), &OpenOptions::create_if_missing())?;
        let left = Left { written: Entries::new(1, 20).write(&db, 2500)?, ..Left::default() };
        compare(&db, &left)?;
        db.put(&db.default_family(), b"one more", b"", &WriteOptions::default())?;
        let error = compare(&db, &left).unwrap_err().to_string();
        assert!(error.contains("2501 entries are there of 2500"), "{error}");
        Ok(())
    }

    #[test]
    fn ways_take_turns() -> Result<()> {
        let cases = Case::all(&parse("--db=/x --bytes=1,2 --values=log --memtables=all")?);
        let ways: Vec<Way> = cases.iter().map(|case| case.way).collect();
        assert_eq!(ways, [Way::Image, Way::Replay].repeat(4));
        Ok(())
    }

    #[test]
    fn what_cannot_be_honoured_is_an_error_that_names_it() {
        for (line, named) in [
            ("--bytes=1", "--db"),
            ("--db=/x --bytes=0", "--bytes"),
            ("--db=/x --rounds=0", "--rounds"),
            ("--db=/x --ways=prayer", "--ways"),
            ("--db=/x --memtables=vector", "--memtables"),
        ] {
            let message = parse(line).unwrap_err().to_string();
            assert!(message.contains(named), "{line}: {message}");
        }
    }
}
