//! Ingesting tables, and `rocksdb_ingestexternalfileoptions_t`.

use std::ffi::{CStr, c_char, c_int, c_uchar};
use std::path::PathBuf;
use std::sync::Arc;

use spillway::internal::{Family, IngestOptions, IngestProgress, IngestRequest};

use crate::boundary::array::{Array, Count};
use crate::boundary::settings::settings;
use crate::boundary::{export, fallible, handles};
use crate::database::Database;
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::kept::{Kept, keeps_numbers};
use crate::text::{path, text};

/// Options of an ingest. Tables join the family's queue without stalling writers. If a level is needed at once
/// (`allow_global_seqno` off, `fail_if_not_bottommost_level`), the call finds it.
#[derive(Default)]
pub struct IngestSettings {
    pub options: IngestOptions,
    kept: Kept,
}

handles!(IngestSettings);

keeps_numbers!(IngestSettings);

settings! { IngestSettings, "rocksdb_ingestexternalfileoptions_";
    move_files: c_uchar => options.move_files;
    link_files: c_uchar => options.link_files;
    failed_move_fall_back_to_copy: c_uchar => options.failed_move_fall_back_to_copy;
    snapshot_consistency: c_uchar => options.snapshot_consistency;
    allow_global_seqno: c_uchar => options.allow_global_seqno;
    allow_blocking_flush: c_uchar => options.allow_blocking_flush;
    ingest_behind: c_uchar => options.ingest_behind;
    write_global_seqno: c_uchar => options.write_global_seqno;
    verify_checksums_before_ingest: c_uchar => options.verify_checksums_before_ingest;
    verify_file_checksum: c_uchar => options.verify_file_checksum;
    fail_if_not_bottommost_level: c_uchar => options.fail_if_not_bottommost_level;
    allow_db_generated_files: c_uchar => options.allow_db_generated_files;
    fill_cache: c_uchar => options.fill_cache;

    file_opening_threads: c_int = 1;
    verify_checksums_readahead_size: usize = 0;
}

fn paths(files: Array<*const c_char>, count: Count) -> Vec<PathBuf> {
    files.texts(count).map(|file| path(file).to_owned()).collect()
}

impl Database {
    pub fn ingest(&self, family: &Arc<Family>, files: &[PathBuf], settings: &IngestSettings) -> Result<(), Failure> {
        if files.is_empty() {
            return Err(Failure::invalid_argument("external_files[0] is empty"));
        }
        self.tell(&settings.kept);
        let request = IngestRequest::new(family.clone(), files.to_vec());
        let options = IngestOptions { value_times: self.stamps().is_some(), ..settings.options.clone() };
        let prepared = self.db.prepare_ingest(&[request], &options, &IngestProgress::default());
        let ingested = prepared.and_then(|prepared| {
            if options.value_times && prepared.files() > 0 {
                self.db.record_times(family)?;
            }
            self.db.commit_ingest(prepared)
        });
        ingested.map(drop).map_err(|error| self.refused(error))
    }
}

export! {
    fn rocksdb_ingestexternalfileoptions_create() -> Box<IngestSettings> {
        Box::default()
    }

    fn rocksdb_ingestexternalfileoptions_destroy(options: Option<Box<IngestSettings>>) {
        drop(options);
    }
}

fallible! {
    /// Not RocksDB's. How the ingest is ordered against writes: flushable, blocking, flush-first, or direct (TiKV:
    /// allow_write). An unknown name changes nothing.
    fn spillway_ingestexternalfileoptions_set_mode(options: &mut IngestSettings, name: &CStr) {
        options.options.mode = text(name).parse()?;
        Ok(())
    }

    fn rocksdb_ingest_external_file(
        database: &Database,
        files: Array<*const c_char>,
        count: Count,
        options: &IngestSettings,
    ) {
        database.ingest(database.default_family(), &paths(files, count), options)
    }

    fn rocksdb_ingest_external_file_cf(
        database: &Database,
        family: &FamilyHandle,
        files: Array<*const c_char>,
        count: Count,
        options: &IngestSettings,
    ) {
        database.ingest(&family.0, &paths(files, count), options)
    }
}
