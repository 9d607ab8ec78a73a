//! The figures of the last `rocksdb.stats` report.

use std::collections::BTreeMap;
use std::time::Duration;

use base::FamilyId;

use crate::version::work::WorkDone;

/// The figures last reported; the next interval begins there.
#[derive(Default)]
pub(crate) struct Reported {
    pub database: ReportedDatabase,
    pub families: BTreeMap<FamilyId, ReportedFamily>,
}

/// A family's figures last reported.
#[derive(Default)]
pub(crate) struct ReportedFamily {
    pub uptime: Duration,
    pub work: WorkDone,
    pub waits: u64,
}

/// A database's.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReportedDatabase {
    pub uptime: Duration,
    pub writes: Writes,
    pub stalled_us: u64,
}

/// Writes since the database was opened.
#[derive(Clone, Copy, Default)]
pub(crate) struct Writes {
    pub writes: u64,
    pub keys: u64,
    pub bytes: u64,
    pub logged: u64,
    pub logged_bytes: u64,
    pub syncs: u64,
}
