//! Notices at load.

/// Says which engine runs: `version` can only be a version of RocksDB.
pub fn announce() {
    if std::env::var_os("SPILLWAY_QUIET").is_none() {
        eprintln!("librocksdbjni: Spillway {} in place of RocksDB", env!("CARGO_PKG_VERSION"));
    }
}
