//! Tables for ingests of scripts and tests: made outside the database and checked afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::{Db, Family, IngestMode, IngestOptions, IngestRequest, TableWriter};
use base::Result;
use vfs::Vfs;

use crate::ingest::{File, Ingest, Source, Way};
use crate::ops::{Action, Change};

/// Tables outside a database; removed when dropped.
pub struct Tables {
    vfs: Arc<dyn Vfs>,
    paths: Vec<PathBuf>,
}

impl Drop for Tables {
    fn drop(&mut self) {
        self.paths.iter().for_each(|path| drop(self.vfs.remove_file(path))); // some may have been moved
    }
}

impl Tables {
    /// Makes the tables of an ingest, and the ingest's requests to the database. Its families must exist; `next_path`
    /// names the tables.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn make(
        db: &Db,
        vfs: &Arc<dyn Vfs>,
        ingest: &Ingest,
        next_path: &mut dyn FnMut() -> PathBuf,
    ) -> Result<(Tables, Vec<IngestRequest>)> {
        let family = |name: &str| db.family(name).expect("ingests name families that are there");
        let mut tables = Tables { vfs: vfs.clone(), paths: Vec::new() };
        let mut requests: BTreeMap<String, IngestRequest> = BTreeMap::new();
        for (name, start, end) in &ingest.excises {
            request_for(&mut requests, &family(name)).excise = Some((start.clone(), end.clone()));
        }
        for file in &ingest.files {
            let (family, path) = (family(&file.family), next_path());
            tables.paths.push(path.clone());
            write_table(vfs, &path, file, &family)?;
            request_for(&mut requests, &family).files.push(path);
        }
        Ok((tables, requests.into_values().collect()))
    }

    /// The first missing table. A failed check counts as present.
    pub fn gone(&self) -> Option<&Path> {
        let gone = |path: &&PathBuf| matches!(self.vfs.exists(path), Ok(false));
        self.paths.iter().find(gone).map(PathBuf::as_path)
    }
}

fn request_for<'a>(requests: &'a mut BTreeMap<String, IngestRequest>, family: &Arc<Family>) -> &'a mut IngestRequest {
    let request = || IngestRequest::new(family.clone(), Vec::new());
    requests.entry(family.name().to_owned()).or_insert_with(request)
}

fn write_table(vfs: &Arc<dyn Vfs>, path: &Path, file: &File, family: &Family) -> Result<()> {
    let options = family.options();
    let mut table = TableWriter::create(vfs.clone(), path, &options)?;
    for Change { action, .. } in file.changes(&options.order) {
        match action {
            Action::Put(key, value) => table.put(&key, &value.bytes()),
            Action::Delete(key) => table.delete(&key),
            Action::SingleDelete(key) => table.single_delete(&key),
            Action::Merge(key, operand) => table.merge(&key, &operand.bytes()),
            Action::DeleteRange(start, end) => table.delete_range(&start, &end),
        }?;
    }
    table.finish().map(drop)
}

/// Engine options of the ingest.
pub fn options(ingest: &Ingest) -> IngestOptions {
    IngestOptions {
        mode: mode(ingest.way),
        link_files: ingest.source == Source::Linked,
        move_files: ingest.source == Source::Moved,
        write_global_seqno: ingest.source == Source::Numbered,
        verify_checksums_before_ingest: ingest.verified,
        ingest_behind: ingest.demands.behind,
        fail_if_not_bottommost_level: ingest.demands.bottommost,
        allow_global_seqno: !ingest.demands.numberless,
        allow_blocking_flush: !ingest.demands.unblocking,
        no_slowdown: ingest.demands.hasty,
        ..IngestOptions::default()
    }
}

pub fn mode(way: Way) -> IngestMode {
    match way {
        Way::Flushable => IngestMode::Flushable,
        Way::Blocking => IngestMode::Blocking,
        Way::FlushFirst => IngestMode::FlushFirst,
        Way::Direct => IngestMode::Direct,
    }
}
