//! Tables that a database takes over.

use std::path::PathBuf;

use capi::family::FamilyHandle;
use capi::ingest::IngestSettings;

use crate::boundary::natives;
use crate::database::Db;

natives! { "RocksDB";
    "ingestExternalFile" =>
    fn(_env, database: &Db, family: &FamilyHandle, files: Vec<String>, _count: i32, options: &IngestSettings) -> () {
        let files: Vec<PathBuf> = files.into_iter().map(PathBuf::from).collect();
        Ok(database.ingest(&family.0, &files, options)?)
    }
}
