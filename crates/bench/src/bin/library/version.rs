//! The name and version of a library.

use std::path::Path;

use base::Result;
use vfs::{IoClass, Vfs};

use super::Database;

/// Limit of the option file written by RocksDB beside a database.
const OPTIONS_FILE_BYTES_MAX: u64 = 1 << 20;

/// The name and version of the library that opened `database` in the folder `dir`.
pub fn version(vfs: &dyn Vfs, database: &Database, dir: &Path) -> Result<String> {
    let says = database.property("spillway.version")?;
    let spillway = says.is_some() || database.property("spillway.log-bytes")?.is_some();
    let version = match says {
        Some(version) => format!("Spillway {version}"),
        None if spillway => "Spillway".to_owned(),
        None => format!("RocksDB {}", in_options_file(vfs, dir)?.unwrap_or_default()),
    };
    Ok(version.trim().to_owned())
}

/// The version in the option file written by RocksDB beside a database.
fn in_options_file(vfs: &dyn Vfs, dir: &Path) -> Result<Option<String>> {
    let names = vfs.read_dir(dir)?;
    let Some(name) = names.iter().find(|name| name.starts_with("OPTIONS-")) else { return Ok(None) };
    let bytes = vfs::read_all(vfs, &dir.join(name), OPTIONS_FILE_BYTES_MAX, IoClass::Other)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().find_map(|line| line.trim().strip_prefix("rocksdb_version=")).map(str::to_owned))
}
