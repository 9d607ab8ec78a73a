//! Prepare, the first half of an ingest: files become tables of the database's directory, checked, under fresh file
//! numbers, synced. No lock is held and nothing is visible. Uncommitted tables are removed again; the caller's files
//! stay unchanged.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::{Error, ErrorKind, FileNumber, Result, SeqNo};
use table::Table;
use vfs::{IoClass, SharedFile};

use super::bring::{self, Bringing};
use super::inspect::{self, Candidate, Found};
use super::layers::layers_of;
use super::options::{FileChecksum, IngestOptions, IngestRequest};
use super::progress::{FileProgress, IngestProgress, Stops};
use super::rewrite;
use super::source::{self, MadeFile, Outside, Source};
use crate::background::{Helpers, run_parts};
use crate::core::Core;
use crate::core::context::Context;
use crate::core::family::Family;
use crate::core::running::{JobBytes, JobPlan};
use crate::ingest::commit::Ingester;
use crate::observe::ObservedJobKind;
use crate::records::ingest_record::{FamilyIngest, IngestShape, IngestTable};
use crate::ttl::Stamps;
use crate::version::file_name;

/// Helper threads at most: a disk gains little from more parallel syncs.
const HELPERS_MAX: usize = 3;

/// Work for each helper thread, in files or bytes: less is done before the helper has started.
const FILES_PER_HELPER: usize = 4;
const BYTES_PER_HELPER: u64 = 4 << 20;

/// Tables ready to be committed. Dropping it removes them; the caller's files stay. A failed removal is logged, and the
/// next open of the database removes the file.
pub struct PreparedIngest {
    context: Arc<Context>,
    /// Set once the database is closing.
    closing: Arc<AtomicBool>,
    shares: Vec<(Arc<Family>, Arc<FamilyIngest>)>,
    files: Vec<ReadyFile>,
    /// Place of the sequence number in each table's file. Empty without `write_global_seqno`.
    numbered: Vec<(FileNumber, NumberPlace)>,
    pub(super) options: IngestOptions,
    progress: IngestProgress,
    /// Duration of the prepare.
    pub(crate) took: Duration,
}

/// A file of the caller and the table made of it; `None` if it holds nothing.
struct ReadyFile {
    source: Source,
    made: Option<MadeFile>,
}

fn job_plan(requests: &[IngestRequest]) -> JobPlan {
    let family = requests.first().map_or("", |request| request.family.name()).to_owned();
    JobPlan { kind: ObservedJobKind::Ingest, family, reason: "prepare", ..JobPlan::default() }
}

fn measure(progress: &IngestProgress) -> impl Fn() -> JobBytes + Send + Sync + 'static {
    let progress = progress.clone();
    move || {
        let (total, done) = progress.bytes();
        JobBytes { done, total }
    }
}

/// Eight bytes of a table's file for its sequence number.
struct NumberPlace {
    file: Arc<dyn SharedFile>,
    offset: u64,
}

impl PreparedIngest {
    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        self.tables().map(|table| table.meta.file_bytes).sum()
    }

    /// Tables; files without entries are not among them.
    pub fn files(&self) -> usize {
        self.tables().count()
    }

    /// The caller's files, with the numbers of their tables.
    pub(super) fn sources(&self) -> impl Iterator<Item = (PathBuf, FileNumber)> {
        self.files.iter().filter_map(|ReadyFile { source, made }| {
            let (_, number) = file_name::parse(made.as_ref()?.path().file_name()?.to_str()?)?;
            Some((source.path.clone(), number))
        })
    }

    fn tables(&self) -> impl Iterator<Item = &IngestTable> {
        self.shares.iter().flat_map(|(_, share)| share.layers.iter().flatten())
    }

    pub(super) fn shares(&self) -> &[(Arc<Family>, Arc<FamilyIngest>)] {
        &self.shares
    }

    /// Checks the ingest is not cancelled and its tables are unchanged since prepare. A linked file can be changed
    /// through its other name: its size and time reveal it, to a microsecond if the file system keeps microseconds.
    ///
    /// # Errors
    /// `Closed`: cancelled. `InvalidArgument`: a table was changed or removed since.
    pub(super) fn check_still_wanted(&self) -> Result<()> {
        self.progress.check()?;
        for ReadyFile { source, made } in &self.files {
            if let Some(made) = made
                && !made.is_unchanged()?
            {
                return Err(source::changed(&source.path));
            }
        }
        Ok(())
    }

    /// # Errors
    /// `InvalidArgument`: it was prepared by another database, or before this one was opened.
    pub(super) fn check_made_for(&self, context: &Arc<Context>) -> Result<()> {
        if Arc::ptr_eq(&self.context, context) {
            return Ok(());
        }
        Err(Error::invalid_argument(
            "the ingest was prepared by another database, or by an earlier opening of this one",
        ))
    }

    /// Writes each table's sequence number into its file, for readers not using the MANIFEST's. No-op without
    /// `write_global_seqno`. `first` is the ingest's first number.
    ///
    /// # Errors
    /// `Io`, `NoSpace`: only some files may have their number.
    pub(super) fn write_numbers(&self, first: SeqNo, shape: IngestShape) -> Result<()> {
        if self.numbered.is_empty() {
            return Ok(());
        }
        let places: BTreeMap<FileNumber, &NumberPlace> =
            self.numbered.iter().map(|(file, place)| (*file, place)).collect();
        for (layer, tables) in self.shares.iter().flat_map(|(_, share)| share.layers.iter().enumerate()) {
            let number = shape.number_of_layer(first, layer);
            for place in tables.iter().filter_map(|table| places.get(&table.meta.number)) {
                place.file.write_at(place.offset, &number.0.to_le_bytes(), IoClass::Ingest)?;
                place.file.sync(IoClass::Ingest)?;
            }
        }
        Ok(())
    }

    /// The tables belong to the database from now on: drop leaves them.
    pub(super) fn keep(&mut self) {
        self.files.iter_mut().filter_map(|file| file.made.as_mut()).for_each(MadeFile::keep);
    }

    /// Removes the caller's files with `move_files`. Called once the ingest is durable.
    pub(super) fn remove_moved(&mut self) {
        if self.options.move_files {
            self.files.iter().for_each(|file| file.source.remove_moved(&*self.context.vfs));
        }
    }
}

impl Drop for PreparedIngest {
    fn drop(&mut self) {
        if !self.context.origin.is_here() {
            return self.keep(); // the parent may still commit it
        }
        // After a close another open may own the directory. It removed uncommitted tables, and may have reused their
        // file numbers and inodes.
        if self.closing.load(Ordering::Acquire) {
            self.files.iter_mut().filter_map(|file| file.made.as_mut()).for_each(MadeFile::keep_if_changed);
        }
    }
}

impl fmt::Debug for PreparedIngest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedIngest").field("files", &self.files()).field("bytes", &self.bytes()).finish()
    }
}

impl Ingester {
    /// Prepares the files of all requests for one ingest.
    ///
    /// # Errors
    /// `InvalidArgument`: a file is no table for its family. `Corruption`: a file is damaged. `Closed`: cancelled, or
    /// the database is closing. `Io`, `NoSpace`. Each names the file; no table is left behind.
    pub(crate) fn prepare_ingest(
        &self,
        requests: &[IngestRequest],
        options: &IngestOptions,
        progress: &IngestProgress,
    ) -> Result<PreparedIngest> {
        self.core.check_writable()?;
        let _running = RunningPrepare::begin(&self.core)?;
        let options = &options.beside(&self.core.context.options);
        options.check(requests)?;
        check_requests(requests)?;
        requests.iter().try_for_each(|request| request.family.check_home(&self.core.context))?;
        progress.check()?;
        if !self.core.stall.is_free() {
            self.core.check_room()?;
        }
        let items = items_of(requests, &self.core.context, options)?;
        let bytes = items.iter().map(|item| item.source.metadata.len).sum();
        progress.expect(items.len() as u64, bytes);
        let _job = self.core.context.running.begin(job_plan(requests), self.core.context.vfs.now(), measure(progress));
        let threads = helpers_for(items.len(), bytes);
        let helpers = self.core.context.tasks.registration().map_or_else(Helpers::none, |env| env.helpers(threads));
        let job = Job {
            context: self.core.context.clone(),
            closing: self.core.closing_flag(),
            options: options.clone(),
            progress: progress.clone(),
        };
        if !options.ingest_behind {
            self.wal.write_back_before_sync(); // the commit syncs the log; the disk works on it meanwhile
        }
        let done = run_parts(helpers, items, &|| false, move |item, gives_up| job.run(item, gives_up)).all()?;
        let prepared = self.assemble(requests, options, progress, done);
        if prepared.files.iter().any(|file| file.made.is_some()) {
            self.core.context.vfs.sync_dir(&self.core.context.dir)?;
        }
        progress.check()?;
        self.core.check_writable()?;
        Ok(prepared)
    }

    fn assemble(
        &self,
        requests: &[IngestRequest],
        options: &IngestOptions,
        progress: &IngestProgress,
        done: Vec<Done>,
    ) -> PreparedIngest {
        let mut tables: Vec<Vec<IngestTable>> = requests.iter().map(|_| Vec::new()).collect();
        let (mut files, mut numbered) = (Vec::with_capacity(done.len()), Vec::new());
        for Done { request, file, ready } in done {
            files.push(file);
            let (Some(ready), Some(tables)) = (ready, tables.get_mut(request)) else { continue };
            numbered.extend(ready.number_place.map(|place| (ready.table.meta.number, place)));
            tables.push(ready.table);
        }
        let share = |(request, tables): (&IngestRequest, Vec<IngestTable>)| {
            let layers = layers_of(&request.family.order().user, tables);
            let share = FamilyIngest { family: request.family.id(), excise: request.excise.clone(), layers };
            (request.family.clone(), Arc::new(share))
        };
        let shares = requests.iter().zip(tables).map(share);
        PreparedIngest {
            context: self.core.context.clone(),
            closing: self.core.closing_flag(),
            shares: shares.filter(|(_, share)| share.excise.is_some() || !share.layers.is_empty()).collect(),
            files,
            numbered,
            options: options.clone(),
            progress: progress.clone(),
            took: Duration::ZERO,
        }
    }
}

/// A running prepare. A close waits for its drop, so the directory stays the database's until then.
pub(crate) struct RunningPrepare<'a>(&'a Core);

impl<'a> RunningPrepare<'a> {
    /// # Errors
    /// `Closed`.
    pub(crate) fn begin(core: &'a Core) -> Result<Self> {
        let mut state = core.state.lock();
        core.check_open()?;
        state.prepares_running += 1;
        Ok(RunningPrepare(core))
    }
}

impl Drop for RunningPrepare<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.prepares_running -= 1;
        // Only a close waits for this, and it sets its flag before it reads the count. Waking every waiter on state
        // changes would cost more than preparing a small table.
        if self.0.is_closing() {
            self.0.state_changed.notify_all();
        }
    }
}

/// One file to prepare.
struct Item {
    /// Index of its request.
    request: usize,
    family: Arc<Family>,
    source: Source,
    checksum: Option<FileChecksum>,
}

/// A prepared file. `ready` is `None` if it holds nothing.
struct Done {
    request: usize,
    file: ReadyFile,
    ready: Option<ReadyTable>,
}

struct ReadyTable {
    table: IngestTable,
    made: Option<MadeFile>,
    number_place: Option<NumberPlace>,
}

/// Inputs common to all files of an ingest.
struct Job {
    context: Arc<Context>,
    closing: Arc<AtomicBool>,
    options: IngestOptions,
    progress: IngestProgress,
}

impl Job {
    fn run(&self, item: &Item, gives_up: &dyn Fn() -> bool) -> Result<Done> {
        let (options, checksum) = (&self.options, item.checksum.as_ref());
        let passes = bring::passes(options, checksum) + inspect::passes(options);
        let stops = Stops { gives_up, closing: &self.closing };
        let progress = FileProgress::new(&self.progress, stops, item.source.metadata.len, passes);
        let mut ready = self.prepare(item, &progress).map_err(|error| named(error, &item.source))?;
        progress.done();
        let made = ready.as_mut().and_then(|ready| ready.made.take());
        Ok(Done { request: item.request, file: ReadyFile { source: item.source.clone(), made }, ready })
    }

    /// Brings in and inspects one file. `None` if it holds nothing.
    fn prepare(&self, item: &Item, progress: &FileProgress<'_>) -> Result<Option<ReadyTable>> {
        progress.check()?;
        let (context, checksum) = (&*self.context, item.checksum.as_ref());
        let number = context.numbers.take();
        let bringing = Bringing { vfs: &context.vfs, options: &self.options, progress, checksum };
        let brought = bringing.bring(&item.source, &context.table_path(number))?;
        let candidate = self.candidate(item, number, &brought.file, brought.bytes);
        let (mut table, number_at) = match candidate.inspect(&self.options, progress)? {
            Found::Empty => return Ok(None),
            Found::Table(table, number_at) => (table, number_at),
            Found::ToRewrite(from) => return self.rewrite(item, &from, progress),
        };
        // Ages begin with the ingest, as in RocksDB: a file written long ago is not due at once.
        let now_s = context.now_s();
        (table.meta.file_creation_time, table.meta.oldest_ancestor_time) = (now_s, now_s);
        // A number written into the file later changes its checksum.
        if let Some(checksum) = checksum.filter(|_| !self.options.write_global_seqno) {
            (table.meta.file_checksum, table.meta.file_checksum_func) =
                (checksum.value.clone(), checksum.function.clone());
        }
        let number_place = brought.numbered.zip(number_at).map(|(file, offset)| NumberPlace { file, offset });
        Ok(Some(ReadyTable { table: *table, made: Some(brought.file), number_place }))
    }

    /// Rewrites a table unable to take a sequence number into one with room for it. `None` if nothing is left.
    fn rewrite(
        &self,
        item: &Item,
        from: &Arc<table::BlockBasedTable>,
        progress: &FileProgress<'_>,
    ) -> Result<Option<ReadyTable>> {
        if self.options.write_global_seqno {
            let what = "the table has no place for a number, which write_global_seqno asks for";
            return Err(Error::invalid_argument(what));
        }
        let number = self.context.numbers.take();
        let mut made = MadeFile::at(self.context.vfs.clone(), self.context.table_path(number));
        let needs_times = inspect::needs_times(&self.context, &item.family, from.properties(), &self.options);
        let stamps = needs_times.then(|| Stamps::new(self.context.vfs.clone()));
        let written = rewrite::rewrite(&self.context, &item.family, from, number, stamps.as_ref(), progress)?;
        let Some(bytes) = written else { return Ok(None) };
        made.finish()?;
        // It was just written: default options, for its bounds only.
        match self.candidate(item, number, &made, bytes).inspect(&IngestOptions::default(), progress)? {
            Found::Table(table, _) => Ok(Some(ReadyTable { table: *table, made: Some(made), number_place: None })),
            Found::Empty | Found::ToRewrite(_) => Err(Error::corruption("a table that was rewritten is empty")),
        }
    }

    fn candidate<'a>(&'a self, item: &'a Item, number: FileNumber, made: &'a MadeFile, bytes: u64) -> Candidate<'a> {
        let (file, name) = (made.path(), &item.source.path);
        Candidate { context: &self.context, family: &item.family, number, file, bytes, name }
    }
}

/// Adds the caller's file to an error, beside the database's own.
fn named(error: Error, source: &Source) -> Error {
    if error.kind() == ErrorKind::Closed || error.path() == Some(&source.path) {
        return error;
    }
    match error.path() {
        Some(_) => error.context(format!("while ingesting {}", source.path.display())),
        None => error.at_path(&source.path),
    }
}

/// Looks at all files of the requests.
///
/// # Errors
/// `InvalidArgument`: a file cannot be ingested, or is named twice. `Io`.
fn items_of(requests: &[IngestRequest], context: &Context, options: &IngestOptions) -> Result<Vec<Item>> {
    // A hard link would be of the symbolic link, not of the table.
    let copies = !options.move_files && !options.link_files;
    let mut items = Vec::with_capacity(requests.iter().map(|request| request.files.len()).sum());
    for (index, request) in requests.iter().enumerate() {
        for (at, path) in request.files.iter().enumerate() {
            let source = Source::look(&*context.vfs, path, copies)?;
            let checksum = request.checksums.get(at).cloned();
            items.push(Item { request: index, family: request.family.clone(), source, checksum });
        }
    }
    let mut outside = Outside::of(context, options.move_files);
    items.iter().try_for_each(|item| outside.check(&*context.vfs, &item.source.path))?;
    source::check_each_once(items.iter().map(|item| &item.source))?;
    Ok(items)
}

fn check_requests(requests: &[IngestRequest]) -> Result<()> {
    for (before, request) in requests.iter().enumerate() {
        let IngestRequest { family, files, excise, checksums } = request;
        family.check_live()?;
        let name = family.name();
        let refused = |what: String| Err(Error::invalid_argument(what));
        if requests.iter().take(before).any(|other| other.family.id() == family.id()) {
            return refused(format!("column family \"{name}\" is named twice in one ingest"));
        }
        if let Some((start, end)) = excise
            && family.order().user.compare(start, end).is_ge()
        {
            return refused(format!("the span to excise from \"{name}\" is empty or inverted"));
        }
        if !checksums.is_empty() && checksums.len() != files.len() {
            let (checksums, files) = (checksums.len(), files.len());
            return refused(format!("{checksums} checksums for the {files} files for \"{name}\": state one for each"));
        }
    }
    Ok(())
}

/// Helper threads for this much work.
fn helpers_for(files: usize, bytes: u64) -> usize {
    let by_bytes = usize::try_from(bytes / BYTES_PER_HELPER).unwrap_or(HELPERS_MAX);
    (files / FILES_PER_HELPER).max(by_bytes).min(HELPERS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_come_where_there_is_work_for_them() {
        assert_eq!([0, 1, 3, 4, 8, 100].map(|files| helpers_for(files, 1000)), [0, 0, 0, 1, 2, 3]);
        assert_eq!([1 << 20, 4 << 20, 1 << 30].map(|bytes| helpers_for(1, bytes)), [0, 1, 3]);
    }
}
