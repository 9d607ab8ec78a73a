//! The first half of an ingest: files become tables of the database's directory, checked, under fresh numbers, synced.
//! No lock is held and nothing is visible. What is not committed is removed again; the caller's files stay as they are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::{Error, ErrorKind, FileNumber, Result, SeqNo};
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
use crate::ingest::commit::Ingester;
use crate::queue::ingest_record::{FamilyIngest, IngestShape, IngestTable};

/// Helpers at the most: what a disk gains from more syncs at once ends about there.
const HELPERS_MAX: usize = 3;

/// A helper pays off from so many files or bytes on. Fewer are done before it has started.
const FILES_PER_HELPER: usize = 4;
const BYTES_PER_HELPER: u64 = 4 << 20;

/// Tables that are ready to become part of the database. To give them up, drop this: they are removed, and the caller's
/// files stay. A removal that fails is logged, and the next open of the database removes the file.
pub struct PreparedIngest {
    context: Arc<Context>,
    /// Raised once the database is being closed.
    closing: Arc<AtomicBool>,
    shares: Vec<(Arc<Family>, Arc<FamilyIngest>)>,
    files: Vec<ReadyFile>,
    /// Where each table's file takes the number that the commit gives it, where the options ask for that.
    numbered: Vec<(FileNumber, NumberPlace)>,
    pub(super) options: IngestOptions,
    progress: IngestProgress,
    /// How long that took.
    pub(crate) took: Duration,
}

/// One of the caller's files, and what was made of it: nothing where it holds nothing.
struct ReadyFile {
    source: Source,
    made: Option<MadeFile>,
}

/// Eight bytes of a file.
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

    fn tables(&self) -> impl Iterator<Item = &IngestTable> {
        self.shares.iter().flat_map(|(_, share)| share.layers.iter().flatten())
    }

    pub(super) fn shares(&self) -> &[(Arc<Family>, Arc<FamilyIngest>)] {
        &self.shares
    }

    /// Whether nobody cancelled it, and the tables are what was prepared. A linked file can be changed by its other name:
    /// that is seen by its size and its time, to a microsecond where the file system keeps that.
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

    /// Writes the number of each table into its file, for readers that do not ask the MANIFEST for it. Only where the
    /// options ask for that are there files to write to. `first` is the ingest's.
    ///
    /// # Errors
    /// `Io`, `NoSpace`: some have it and some do not.
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

    /// The tables are the database's from now on.
    pub(super) fn keep(&mut self) {
        self.files.iter_mut().filter_map(|file| file.made.as_mut()).for_each(MadeFile::keep);
    }

    /// Removes the files that were to be moved: the ingest is durable.
    pub(super) fn remove_moved(&mut self) {
        if self.options.move_files {
            self.files.iter().for_each(|file| file.source.remove_moved(&*self.context.vfs));
        }
    }
}

impl Drop for PreparedIngest {
    fn drop(&mut self) {
        // Once the database is closed others may own the directory. Their next open removed what was not committed, and a
        // number, or the file system's own number of a file, may be another file's by now.
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
    /// Prepares files for an ingest that spans all the requests.
    ///
    /// # Errors
    /// `InvalidArgument`: a file that is no table for that family. `Corruption`: a damaged one. `Closed`: cancelled.
    /// `Io`, `NoSpace`. Each names the file; nothing is left behind.
    pub(crate) fn prepare_ingest(
        &self,
        requests: &[IngestRequest],
        options: &IngestOptions,
        progress: &IngestProgress,
    ) -> Result<PreparedIngest> {
        self.core.check_writable()?;
        let _running = RunningPrepare::begin(&self.core)?;
        options.check(requests)?;
        check_requests(requests)?;
        requests.iter().try_for_each(|request| request.family.check_home(&self.core.context))?;
        progress.check()?;
        let items = items_of(requests, &self.core.context)?;
        let bytes = items.iter().map(|item| item.source.metadata.len).sum();
        progress.expect(items.len() as u64, bytes);
        let threads = helpers_for(items.len(), bytes);
        let helpers = self.core.context.tasks.registration().map_or_else(Helpers::none, |env| env.helpers(threads));
        let job = Job {
            context: self.core.context.clone(),
            closing: self.core.closing_flag(),
            options: options.clone(),
            progress: progress.clone(),
        };
        let done = run_parts(helpers, items, &|| false, move |item, gives_up| job.run(item, gives_up)).all()?;
        let prepared = self.assemble(requests, (options, progress), done);
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
        (options, progress): (&IngestOptions, &IngestProgress),
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

/// A prepare that is under way. The directory stays the database's until it is dropped.
struct RunningPrepare<'a>(&'a Core);

impl<'a> RunningPrepare<'a> {
    /// # Errors
    /// `Closed`.
    fn begin(core: &'a Core) -> Result<Self> {
        let mut state = core.state.lock();
        if core.is_closing() {
            return Err(Error::closed("the database is closed"));
        }
        state.prepares_running += 1;
        Ok(RunningPrepare(core))
    }
}

impl Drop for RunningPrepare<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.prepares_running -= 1;
        // Nobody but a close waits for this, and its flag is up before it looks at the count: to wake all that wait for
        // changes would cost more than a small table's prepare.
        if self.0.is_closing() {
            self.0.state_changed.notify_all();
        }
    }
}

/// One file to prepare.
struct Item {
    /// Which of the requests names it.
    request: usize,
    family: Arc<Family>,
    source: Source,
    checksum: Option<FileChecksum>,
}

/// What became of it.
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

/// What all files of an ingest have in common.
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

    /// Brings one file in and looks at it; `None` where it holds nothing.
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
        // A number that is written into the file later changes what its checksum is.
        if let Some(checksum) = checksum.filter(|_| !self.options.write_global_seqno) {
            (table.meta.file_checksum, table.meta.file_checksum_func) =
                (checksum.value.clone(), checksum.function.clone());
        }
        let number_place = brought.numbered.zip(number_at).map(|(file, offset)| NumberPlace { file, offset });
        Ok(Some(ReadyTable { table: *table, made: Some(brought.file), number_place }))
    }

    /// Puts a table that can be given a number in the place of one that cannot.
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
        let written = rewrite::rewrite(&self.context, &item.family, from, number, progress)?;
        let Some(bytes) = written else { return Ok(None) };
        made.finish()?;
        // It was just written: its ends are all that is wanted.
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

/// An error names the caller's file, beside the one of ours at which it came up.
fn named(error: Error, source: &Source) -> Error {
    if error.kind() == ErrorKind::Closed || error.path() == Some(&source.path) {
        return error;
    }
    match error.path() {
        Some(_) => error.context(format!("while ingesting {}", source.path.display())),
        None => error.at_path(&source.path),
    }
}

/// Looks at all files that the requests name.
///
/// # Errors
/// `InvalidArgument`: a file that no ingest takes, or the same file twice. `Io`.
fn items_of(requests: &[IngestRequest], context: &Context) -> Result<Vec<Item>> {
    let mut outside = Outside::of(context);
    let mut items = Vec::with_capacity(requests.iter().map(|request| request.files.len()).sum());
    for (index, request) in requests.iter().enumerate() {
        for (at, path) in request.files.iter().enumerate() {
            let source = Source::look(&*context.vfs, path)?;
            outside.check(&*context.vfs, path)?;
            let checksum = request.checksums.get(at).cloned();
            items.push(Item { request: index, family: request.family.clone(), source, checksum });
        }
    }
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

/// Helpers for so much work.
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
