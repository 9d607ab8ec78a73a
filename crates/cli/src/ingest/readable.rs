//! `--skip-damaged`: the readable part of damaged tables.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use spillway::internal::version::file_name::LOAD_DIR;
use spillway::internal::vfs::{RealVfs, Vfs};
use spillway::internal::{Database, Family, SalvagedTable, salvage_table};

use crate::bytes::hex;
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::interrupt::Interrupt;
use crate::progress::Step;
use crate::staging::Staging;

/// The files to ingest.
#[derive(Default)]
pub struct Readable {
    /// Whole files, and copies of what can be read of damaged ones.
    pub files: Vec<PathBuf>,
    pub damaged: Vec<DamagedFile>,
    /// The directory of the copies.
    staging: Option<Staging>,
}

/// A damaged file, and what could be read of it.
pub struct DamagedFile {
    path: PathBuf,
    salvaged: SalvagedTable,
}

impl Readable {
    /// All files as they are.
    pub fn all(files: Vec<PathBuf>) -> Readable {
        Readable { files, ..Readable::default() }
    }

    /// Reads every block of the files, and copies the readable part of damaged ones into the database's directory.
    ///
    /// # Errors
    /// Nothing can be read of any file; Ctrl-C; as [`salvage_table`].
    pub fn find(files: &[PathBuf], db: &Database, family: &Arc<Family>, interrupt: &Interrupt) -> Outcome<Readable> {
        let vfs: Arc<dyn Vfs> = RealVfs::new();
        // Tables can be linked from this directory. Only the process with the database open for writing uses it.
        let staging = Staging::owned(vfs.clone(), db.path().join(LOAD_DIR))?;
        let step = Step::begin("reading the tables", None);
        let mut found = Readable::default();
        for (nth, path) in files.iter().enumerate() {
            interrupt.check()?;
            step.reach(nth as u64, None, format!("reading table {} of {}", nth + 1, files.len()));
            let copy = staging.dir().join(format!("{nth:06}.sst"));
            match salvage_table(&vfs, path, &copy, &family.options())? {
                None => found.files.push(path.clone()),
                Some(salvaged) => {
                    found.files.extend((salvaged.entries > 0).then_some(copy));
                    found.damaged.push(DamagedFile { path: path.clone(), salvaged });
                }
            }
        }
        step.end();
        if let (true, Some(first)) = (found.files.is_empty(), found.damaged.first()) {
            return Err(first.unreadable(files.len()));
        }
        found.staging = Some(staging);
        Ok(found)
    }

    /// Removes the copies. Called before the database is closed: then another process may use their directory.
    pub fn remove_copies(&mut self) {
        drop(self.staging.take());
    }
}

impl DamagedFile {
    /// Prints what was left out, with the keys around it.
    pub fn show(&self, out: &mut dyn Write) -> Outcome {
        writeln!(out, "damaged: {}: {}", self.path.display(), self.what())?;
        for part in &self.salvaged.left_out {
            let keys = match (&part.from, &part.through) {
                (None, None) => String::new(),
                (from, through) => {
                    let shown = |key: &Option<Vec<u8>>, open: &str| {
                        key.as_ref().map_or_else(|| open.to_owned(), |key| format!("'{}'", key.escape_ascii()))
                    };
                    format!(", keys from {} to {}", shown(from, "the first"), shown(through, "the last"))
                }
            };
            writeln!(out, "left out: {}{keys}", part.error)?;
        }
        Ok(())
    }

    /// Whether entries are missing from what was read, or may be.
    pub fn lacks_entries(&self) -> bool {
        self.salvaged.entries_before != Some(self.salvaged.entries)
    }

    /// The failure if nothing can be read of any of `count` tables, of which this is the first.
    fn unreadable(&self, count: usize) -> Failure {
        let others = if count > 1 { ", nor of the other tables" } else { "" };
        let why = self.salvaged.left_out.first().map(|part| format!(": {}", part.error)).unwrap_or_default();
        let file = self.path.display();
        Failure::refused(format!(
            "nothing can be read of {file}{others}{why}; copy the file from where it came from, or build it again"
        ))
    }

    fn what(&self) -> String {
        let entries = human::counted(self.salvaged.entries, "entry", "entries");
        match self.salvaged.entries_before {
            Some(before) => format!("{entries} of {} could be read", human::count(before)),
            None => "nothing could be read of it".to_owned(),
        }
    }

    pub fn json(&self) -> Value {
        let part = |part: &spillway::internal::PassedOver| {
            json!({
                "message": part.error.message(),
                "offset": part.error.offset(),
                "smallest_hex": part.from.as_ref().map(|key| hex(key)),
                "largest_hex": part.through.as_ref().map(|key| hex(key)),
            })
        };
        json!({
            "file": self.path.to_string_lossy(),
            "entries": self.salvaged.entries,
            "entries_before": self.salvaged.entries_before,
            "left_out": self.salvaged.left_out.iter().map(part).collect::<Vec<_>>(),
        })
    }
}
