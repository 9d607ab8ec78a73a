//! A life: one history on both sides, step by step, until they differ.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bench::folder;
use vfs::{IfExists, IoClass, Vfs};

use crate::care::text;
use crate::draw::History;
use crate::library::whole::{Answer, Change, Ingest, Library, write_table};
use crate::step::{Side, Step};
use crate::world::{NOTHING, World, agree, code, told};

/// Limit of a table file copied.
const TABLE_BYTES_MAX: u64 = 1 << 24;

/// Where the two libraries differ.
#[derive(Debug)]
pub struct Difference {
    /// The place of the step among those done; as many as there are steps for the last look.
    pub at: usize,
    pub ours: String,
    pub theirs: String,
}

/// Both libraries and a folder to work in.
pub struct Ground {
    /// How often what came of steps, by the beginning of the answer.
    pub tally: RefCell<BTreeMap<String, u64>>,
    pub vfs: Arc<dyn Vfs>,
    pub ours: Library,
    pub theirs: Library,
    pub dir: PathBuf,
}

struct Life<'a> {
    ground: &'a Ground,
    ours: World,
    theirs: World,
    tables: usize,
}

/// Runs steps of a history, by their numbers, from an empty database on. Tells of the first difference.
///
/// # Errors
/// The folder cannot be used.
pub fn run(ground: &Ground, history: &History, steps: &[usize]) -> Answer<Option<Difference>> {
    let shape = &history.shape;
    text(folder::remove(ground.vfs.as_ref(), &ground.dir))?;
    text(ground.vfs.create_dir_all(&ground.dir))?;
    let side = |library, side, name: &str| World::new(ground.vfs.clone(), library, side, shape, &ground.dir.join(name));
    let ours = side(ground.ours, Side::Ours, "ours");
    let theirs = side(ground.theirs, Side::Theirs, "theirs");
    let (ours, theirs) = match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (ours, theirs) => {
            let opened = |answer: Answer<World>| told(answer.map(drop));
            return Ok(Some(Difference { at: 0, ours: opened(ours), theirs: opened(theirs) }));
        }
    };
    let mut life = Life { ground, ours, theirs, tables: 0 };
    let chosen = steps.iter().filter_map(|&number| history.steps.get(number));
    for (at, step) in chosen.enumerate() {
        let (ours, theirs) = life.step(step);
        ground.count(step, &theirs);
        if !agree(&ours, &theirs) {
            return Ok(Some(Difference { at, ours, theirs }));
        }
    }
    let (ours, theirs) = life.step(&Step::Scan);
    Ok((!agree(&ours, &theirs)).then_some(Difference { at: steps.len(), ours, theirs }))
}

impl Ground {
    /// Counts a step by its kind and what came of it.
    fn count(&self, step: &Step, answer: &str) {
        let shown = format!("{step:?}");
        let kind = shown.split([' ', '(']).next().unwrap_or_default();
        let came = match answer.split_once('\u{1}') {
            Some((error, _)) if error.starts_with("error") => error,
            _ if answer == NOTHING => NOTHING,
            _ => "answered",
        };
        *self.tally.borrow_mut().entry(format!("{kind}: {came}")).or_default() += 1;
    }
}

impl Life<'_> {
    fn step(&mut self, step: &Step) -> (String, String) {
        match step {
            Step::Ingest { family, by, tables, how } => self.ingest(*family, *by, tables, *how),
            Step::Exchange { log_bytes } => match self.exchange(*log_bytes) {
                Ok(told) => told,
                Err(message) => (message, String::new()),
            },
            _ => (self.ours.step(step), self.theirs.step(step)),
        }
    }

    /// Both take the same tables, which one of them has written.
    fn ingest(&mut self, family: usize, by: Side, tables: &[Vec<Change>], how: Ingest) -> (String, String) {
        // RocksDB's validation looks at memtables only, and does not see ingests (docs/compat.md).
        self.ours.end_transactions();
        self.theirs.end_transactions();
        let writer = if by == Side::Ours { &self.ours } else { &self.theirs };
        let Some(handle) = writer.family(family) else {
            return (NOTHING.to_owned(), NOTHING.to_owned());
        };
        let mut files = Vec::new();
        for table in tables {
            self.tables += 1;
            let file = self.ground.dir.join(format!("table{}.sst", self.tables));
            if let Err(message) = write_table(handle.setup(), &file, table) {
                // What one cannot write neither takes.
                return (format!("cannot write: {message}"), String::new());
            }
            files.push(file);
        }
        let done = |world: &World| {
            let copies = files.iter().map(|file| self.copy(file, world.side)).collect::<Answer<Vec<_>>>()?;
            let files: Vec<&Path> = copies.iter().map(PathBuf::as_path).collect();
            let family = world.family(family).ok_or("no family")?;
            world.store()?.ingest(family, &files, how)
        };
        (told(done(&self.ours)), told(done(&self.theirs)))
    }

    fn copy(&self, file: &Path, side: Side) -> Answer<PathBuf> {
        let vfs = self.ground.vfs.as_ref();
        let to = file.with_extension(if side == Side::Ours { "ours.sst" } else { "theirs.sst" });
        let bytes = text(vfs::read_all(vfs, file, TABLE_BYTES_MAX, IoClass::Other))?;
        text(vfs::write_all(vfs, &to, IfExists::Fail, &bytes, IoClass::Other))?;
        Ok(to)
    }

    /// Each goes on with a checkpoint of the other.
    fn exchange(&mut self, log_bytes: u64) -> Answer<(String, String)> {
        let of_ours = self.ours.copy(log_bytes).map_err(|error| format!("our checkpoint: {error}"))?;
        let of_theirs = self.theirs.copy(log_bytes).map_err(|error| format!("their checkpoint: {error}"))?;
        let present = self.ours.close();
        self.theirs.close();
        let vfs = self.ground.vfs.as_ref();
        for (dir, copy) in [(&self.ours.dir, of_theirs), (&self.theirs.dir, of_ours)] {
            text(folder::remove(vfs, dir))?;
            text(vfs.rename(&copy, dir))?;
        }
        let opened = |world: &mut World| {
            let told = world.open(&present).and_then(|()| world.scan());
            told.unwrap_or_else(|message| code(&message))
        };
        Ok((opened(&mut self.ours), opened(&mut self.theirs)))
    }
}
