//! The first half of an ingest: files become tables of the database's directory, checked, under fresh numbers, synced.
//! No lock is held and nothing is visible. What is not committed is removed again; the caller's files stay as they are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, Result, UserOrder};
use vfs::{FileKind, IfExists, IoClass};

use super::inspect;
use super::options::{IngestOptions, IngestProgress, IngestRequest};
use super::record::{FamilyIngest, IngestTable};
use crate::compaction::Span;
use crate::context::Context;
use crate::core::Core;
use crate::family::Family;
use crate::staging::copy_bytes;

/// Tables that are ready to become part of the database. Dropped, they are removed.
pub struct PreparedIngest {
    context: Arc<Context>,
    shares: Vec<(Arc<Family>, FamilyIngest)>,
    /// What was made in the database's directory.
    made: Vec<PathBuf>,
    /// The caller's files that go once the ingest is committed.
    moved: Vec<PathBuf>,
    pub(super) options: IngestOptions,
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

    pub(super) fn shares(&self) -> &[(Arc<Family>, FamilyIngest)] {
        &self.shares
    }

    /// The tables are the database's from now on.
    pub(super) fn keep(&mut self) {
        self.made.clear();
    }

    /// Removes the files that were to be moved: the ingest is durable.
    pub(super) fn remove_moved(&mut self) {
        for path in self.moved.drain(..) {
            if let Err(error) = self.context.vfs.remove_file(&path) {
                tracing::warn!(%error, "a file was ingested, but could not be removed from where it was");
            }
        }
    }
}

impl Drop for PreparedIngest {
    fn drop(&mut self) {
        for path in &self.made {
            if let Err(error) = self.context.vfs.remove_file(path) {
                tracing::warn!(%error, "cannot remove a table that was not ingested; the next open does");
            }
        }
    }
}

impl Core {
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
        self.check_writable()?;
        options.check()?;
        let mut prepared = PreparedIngest {
            context: self.context.clone(),
            shares: Vec::new(),
            made: Vec::new(),
            moved: Vec::new(),
            options: options.clone(),
        };
        check_requests(requests)?;
        for path in requests.iter().flat_map(|request| &request.files) {
            progress.expect(1, regular_file_bytes(&self.context, path)?);
        }
        for request in requests {
            request.family.check_live()?;
            let mut tables = Vec::with_capacity(request.files.len());
            for path in &request.files {
                progress.check()?;
                tables.extend(prepared.add_file(&request.family, path, progress)?);
            }
            let layers = layers_of(&request.family.order().user, tables);
            let excise = request.excise.clone();
            prepared
                .shares
                .push((request.family.clone(), FamilyIngest { family: request.family.id(), excise, layers }));
        }
        prepared.shares.retain(|(_, share)| share.excise.is_some() || !share.layers.is_empty());
        if !prepared.made.is_empty() {
            self.context.vfs.sync_dir(&self.context.dir)?;
        }
        Ok(prepared)
    }
}

impl PreparedIngest {
    /// Brings one file in; `None` where it holds nothing.
    fn add_file(&mut self, family: &Family, from: &Path, progress: &IngestProgress) -> Result<Option<IngestTable>> {
        let number = self.context.numbers.take();
        let to = self.context.table_path(number);
        let bytes = self.link_or_copy(from, &to, progress)?;
        let found = inspect::inspect(family, number, bytes, &self.options).map_err(|e| e.context(from.display()))?;
        let table = match found {
            inspect::Found::Empty => None,
            inspect::Found::Table(table) => Some(table),
            inspect::Found::ToRewrite => {
                let rewritten = self.context.numbers.take();
                self.made.push(self.context.table_path(rewritten));
                Some(inspect::rewrite(&self.context, family, (number, bytes), rewritten)?)
            }
        };
        if table.as_ref().is_none_or(|table| table.meta.number != number) {
            self.made.retain(|path| *path != to);
            self.context.vfs.remove_file(&to)?;
        }
        if self.options.move_files {
            self.moved.push(from.to_owned());
        }
        progress.done(bytes);
        Ok(table)
    }

    /// Gives a file a name in the database, its bytes durable. Returns its size.
    fn link_or_copy(&mut self, from: &Path, to: &Path, progress: &IngestProgress) -> Result<u64> {
        let vfs = self.context.vfs.clone();
        if self.options.links() {
            match vfs.hard_link(from, to) {
                Ok(()) => {
                    self.made.push(to.to_owned());
                    vfs.open_append(to)?.sync(IoClass::Ingest)?;
                    return regular_file_bytes(&self.context, to);
                }
                Err(error) if !self.options.failed_move_fall_back_to_copy => {
                    return Err(error.context("the file cannot be linked, and failed_move_fall_back_to_copy is off"));
                }
                Err(error) => tracing::info!(%error, "a file cannot be linked into the database, so it is copied"),
            }
        }
        self.made.push(to.to_owned());
        let source = vfs.open(from)?;
        let mut copy = vfs.create(to, IfExists::Fail)?;
        let copied = copy_bytes(&*source, &mut *copy, u64::MAX, IoClass::Ingest, &|| progress.check())?;
        copy.sync(IoClass::Ingest)?;
        Ok(copied)
    }
}

/// # Errors
/// `InvalidArgument`: not a regular file; links are not followed.
fn regular_file_bytes(context: &Context, path: &Path) -> Result<u64> {
    let metadata = context.vfs.metadata(path)?;
    if metadata.kind != FileKind::File {
        return Err(
            Error::invalid_argument("not a regular file: name the table itself, not a link to it").at_path(path)
        );
    }
    Ok(metadata.len)
}

fn check_requests(requests: &[IngestRequest]) -> Result<()> {
    let mut families = BTreeSet::new();
    let mut paths = BTreeSet::new();
    for request in requests {
        let name = request.family.name();
        if !families.insert(request.family.id()) {
            return Err(Error::invalid_argument(format!("column family \"{name}\" is named twice in one ingest")));
        }
        if let Some((start, end)) = &request.excise
            && request.family.order().user.compare(start, end).is_ge()
        {
            return Err(Error::invalid_argument(format!("the span to excise from \"{name}\" is empty or inverted")));
        }
        if let Some(twice) = request.files.iter().find(|path| !paths.insert(path.as_path())) {
            return Err(Error::invalid_argument("the file is named twice in one ingest").at_path(twice));
        }
    }
    Ok(())
}

/// Sorts tables into layers in which none overlaps another; a table stands above every earlier one that it overlaps.
fn layers_of(order: &UserOrder, tables: Vec<IngestTable>) -> Vec<Vec<IngestTable>> {
    let mut layers: Vec<Vec<IngestTable>> = Vec::new();
    for table in tables {
        let span = Span::of_file(&table.meta);
        let meets = |layer: &Vec<IngestTable>| layer.iter().any(|other| span.overlaps_file(order, &other.meta));
        let above = layers.iter().rposition(meets).map_or(0, |at| at + 1);
        match layers.get_mut(above) {
            Some(layer) => layer.push(table),
            None => layers.push(vec![table]),
        }
    }
    for layer in &mut layers {
        layer.sort_by(|a, b| order.compare(a.meta.smallest_user_key(), b.meta.smallest_user_key()));
    }
    layers
}
