//! Compactions of tables that a program names.

use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_uchar};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spillway::internal::options::CompressionKind;
use spillway::internal::{CompactFilesOptions, Error, Family, FileNumber, name};

use crate::boundary::argument::Out;
use crate::boundary::array::{Array, Count};
use crate::boundary::reply::{FreedArray, Given, free_texts};
use crate::boundary::settings::settings;
use crate::boundary::{export, fallible, handles};
use crate::database::Database;
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::kept::{Kept, keeps_numbers};
use crate::text::text;

/// `rocksdb_compaction_options_t`.
pub struct CompactFilesSettings {
    pub compression: CompressionKind,
    output_file_size_limit: u64,
    max_subcompactions: usize,
    allow_trivial_move: bool,
    canceled: Option<Arc<AtomicBool>>,
    pub kept: Kept,
}

/// A flag that ends compactions. To C it is an `unsigned char*`, and nothing reads through that.
pub struct Canceled(Arc<AtomicBool>);

handles!(CompactFilesSettings, Canceled);

keeps_numbers!(CompactFilesSettings);

impl Default for CompactFilesSettings {
    fn default() -> Self {
        let CompactFilesOptions { compression, output_file_size_limit, max_subcompactions, allow_trivial_move, .. } =
            CompactFilesOptions::default();
        let (canceled, kept) = (None, Kept::default());
        CompactFilesSettings {
            compression,
            output_file_size_limit,
            max_subcompactions,
            allow_trivial_move,
            canceled,
            kept,
        }
    }
}

/// The number in a table's name, with or without its directory.
pub fn number_of(name: &str) -> Result<FileNumber, Error> {
    let number = name.rsplit('/').next().and_then(|file| file.split('.').next()).and_then(|number| number.parse().ok());
    number.map(FileNumber).ok_or_else(|| Error::invalid_argument(format!("compact_files: \"{name}\" names no table")))
}

/// Arguments of a call.
struct Call {
    names: Array<*const c_char>,
    count: Count,
    output_level: c_int,
    output_path_id: c_int,
    made: Out<*mut *mut c_char>,
    made_count: Out<usize>,
    info: Out<u8>,
}

impl Database {
    fn compact_named(&self, family: &Arc<Family>, settings: &CompactFilesSettings, call: Call) -> Result<(), Failure> {
        call.made_count.set(0);
        if call.info.is_given() {
            return Err(Failure::not_implemented("the report of a compaction (compaction_job_info) is not there"));
        }
        let names: Vec<_> = call.names.texts(call.count).map(text).collect();
        let made = self.compact_files(family, settings, &names, call.output_level, call.output_path_id)?;
        if call.made.is_given() {
            let names: Vec<_> = made.iter().map(|name| Given::text(name::bytes(name)).into_raw()).collect();
            call.made.set(Given::pointers(&names).into_raw());
            call.made_count.set(made.len());
        }
        Ok(())
    }

    /// Compacts the named tables into a level; paths of the tables made.
    pub fn compact_files(
        &self,
        family: &Arc<Family>,
        settings: &CompactFilesSettings,
        names: &[impl AsRef<str>],
        output_level: c_int,
        output_path_id: c_int,
    ) -> Result<Vec<String>, Failure> {
        if output_path_id > 0 {
            return Err(Error::invalid_argument("compact_files: there is one path for tables, 0").into());
        }
        let options = CompactFilesOptions {
            compression: settings.compression,
            output_file_size_limit: settings.output_file_size_limit,
            max_subcompactions: settings.max_subcompactions,
            allow_trivial_move: settings.allow_trivial_move,
            canceled: settings.canceled.clone(),
        };
        let output_level = usize::try_from(output_level).unwrap_or(usize::MAX);
        let files = names.iter().map(|name| number_of(name.as_ref()));
        let files: BTreeSet<FileNumber> = files.collect::<Result<_, Error>>()?;
        let made = self.db.compact_files(family, &files, output_level, &options)?;
        let dir = name::of_path(self.db.path());
        Ok(made.iter().map(|number| format!("{dir}/{:06}.sst", number.0)).collect())
    }
}

settings! { CompactFilesSettings, "rocksdb_compaction_options_";
    compression: c_int => compression;
    output_file_size_limit: u64 => output_file_size_limit;
    max_subcompactions: u32 => max_subcompactions;
    allow_trivial_move: c_uchar => allow_trivial_move;

    output_temperature_override: c_int = 0;
}

export! {
    fn rocksdb_compaction_options_create() -> Box<CompactFilesSettings> {
        Box::default()
    }

    fn rocksdb_compaction_options_destroy(options: Option<Box<CompactFilesSettings>>) {
        drop(options);
    }

    fn rocksdb_compaction_options_canceled_create() -> Box<Canceled> {
        Box::new(Canceled(Arc::default()))
    }

    fn rocksdb_compaction_options_canceled_destroy(canceled: Option<Box<Canceled>>) {
        drop(canceled);
    }

    fn rocksdb_compaction_options_canceled_set(canceled: &Canceled, value: bool) {
        canceled.0.store(value, Ordering::Release);
    }

    /// The flag may be destroyed before the options.
    fn rocksdb_compaction_options_set_canceled(options: &mut CompactFilesSettings, canceled: Option<&Canceled>) {
        options.canceled = canceled.map(|canceled| canceled.0.clone());
    }

    fn rocksdb_compact_files_output_file_names_destroy(names: FreedArray, count: usize) {
        free_texts(names, count);
    }
}

fallible! {
    /// On the caller's thread. A negative path is 0.
    fn rocksdb_compact_files(
        database: &Database,
        options: &CompactFilesSettings,
        names: Array<*const c_char>,
        count: Count,
        output_level: c_int,
        output_path_id: c_int,
        made: Out<*mut *mut c_char>,
        made_count: Out<usize>,
        info: Out<u8>,
    ) {
        let call = Call { names, count, output_level, output_path_id, made, made_count, info };
        database.compact_named(database.default_family(), options, call)
    }

    fn rocksdb_compact_files_cf(
        database: &Database,
        family: &FamilyHandle,
        options: &CompactFilesSettings,
        names: Array<*const c_char>,
        count: Count,
        output_level: c_int,
        output_path_id: c_int,
        made: Out<*mut *mut c_char>,
        made_count: Out<usize>,
        info: Out<u8>,
    ) {
        let call = Call { names, count, output_level, output_path_id, made, made_count, info };
        database.compact_named(&family.0, options, call)
    }
}
