//! Divides a flush's entries between tables to be written and ingested tables that get their levels as they are. Decided
//! table by table, once every entry is complete. Keeps Q1, V4.
//!
//! A flush is a sequence of *runs*, oldest first. A run has ingested tables and, above them, one table written from
//! memtables and from ingested tables:
//!
//! - An ingested table that shares no key with the older contents of the written table lies beneath it. What it does
//!   share keys with there is newer. So it gets the deepest level it fits in.
//! - An ingested table that does share a key is newer than some of the written table. It is written into it too, if such
//!   tables of its ingest are small.
//! - If they are not, the ingest begins the next run, above that table.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, FileNumber, Result, UserOrder};
use table::TableReadOptions;
use vfs::IoClass;

use crate::commit::overlap;
use crate::flush::job::FlushPlan;
use crate::queue::entries::SmallIngests;
use crate::queue::flushable::Flushable;
use crate::queue::ingest::QueuedIngest;
use crate::version::span::Span;
use crate::version::table_file::TableFile;

/// Ingested tables, and the table above them.
#[derive(Default)]
pub(crate) struct Run {
    /// Oldest first. They get levels before the run's own table.
    pub linked: Vec<Arc<TableFile>>,
    /// The entries of the run's table: memtables, and ingests with only the tables to be rewritten. `None` without a
    /// memtable.
    pub rewrite: Option<Arc<FlushPlan>>,
}

/// A plan, divided. Its runs are oldest first.
pub(crate) struct Divided {
    pub plan: Arc<FlushPlan>,
    pub runs: Vec<Run>,
}

impl Divided {
    /// Reads the memtables' keys, and no table. The entries' writers are done.
    ///
    /// # Errors
    /// A memtable's values could not be read from a log.
    pub fn new(plan: Arc<FlushPlan>) -> Result<Self> {
        let mut runs = Vec::new();
        let mut run = Growing::default();
        // Otherwise the keys do not matter.
        let may_link = plan.has_ingests() && plan.small != SmallIngests::RewriteAll;
        for entry in &plan.entries {
            match entry.as_ingest().filter(|_| may_link) {
                Some(ingest) if run.takes_ingest(&plan, ingest)? => {}
                Some(ingest) => {
                    runs.push(std::mem::take(&mut run).end(&plan));
                    run.linked.extend(ingest.files().cloned());
                }
                None => {
                    if may_link {
                        run.contents.entries.push(KeysOf::of(entry)?);
                    }
                    run.rewritten.push(entry.clone());
                }
            }
        }
        runs.push(run.end(&plan));
        Ok(Divided { plan, runs })
    }

    /// A plan for each table to be written.
    pub fn rewrites(&self) -> impl Iterator<Item = &Arc<FlushPlan>> {
        self.runs.iter().filter_map(|run| run.rewrite.as_ref())
    }

    /// The ingested tables that are linked, with the handles by which they were read while they were queued.
    pub fn linked(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.runs.iter().flat_map(|run| &run.linked)
    }

    /// Whether a MANIFEST edit of its own carries out the flush: it gives tables levels, or excises.
    pub fn links(&self) -> bool {
        let excises = || self.plan.ingests().any(QueuedIngest::has_excise);
        self.linked().next().is_some() || (self.plan.small != SmallIngests::RewriteAll && excises())
    }

    /// The ingested tables that are written into tables with memtables.
    pub fn merged(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.rewrites().flat_map(|plan| plan.ingests()).flat_map(QueuedIngest::files)
    }
}

/// A run while entries are added, oldest first.
#[derive(Default)]
struct Growing {
    linked: Vec<Arc<TableFile>>,
    rewritten: Vec<Arc<dyn Flushable>>,
    contents: Contents,
}

impl Growing {
    /// Adds an ingest. False if it must lie above the run's table.
    fn takes_ingest(&mut self, plan: &FlushPlan, ingest: &QueuedIngest) -> Result<bool> {
        let order = &plan.family.order().user;
        let merged_max_bytes = if plan.small == SmallIngests::Link { 0 } else { ingest.merged_max_bytes() };
        let (mut bytes, mut merged, held) = (0u64, BTreeSet::new(), self.contents.tables.len());
        for (table, file) in ingest.tables().zip(ingest.files()) {
            let span = Span::of_file(&file.meta);
            if self.contents.meet(order, &span)? {
                bytes = bytes.saturating_add(table.bytes());
                if bytes > merged_max_bytes {
                    self.contents.tables.truncate(held);
                    return Ok(false);
                }
                self.contents.tables.push(span);
                merged.insert(file.number());
            }
        }
        self.linked.extend(ingest.files().filter(|file| !merged.contains(&file.number())).cloned());
        if !merged.is_empty() {
            self.rewritten.push(ingest.part(|number: FileNumber| merged.contains(&number)));
        }
        Ok(true)
    }

    fn end(self, plan: &FlushPlan) -> Run {
        let rewrite = FlushPlan { entries: self.rewritten, ..plan.clone() };
        Run { linked: self.linked, rewrite: (!rewrite.entries.is_empty()).then(|| Arc::new(rewrite)) }
    }
}

/// What a run's table will hold.
#[derive(Default)]
struct Contents {
    entries: Vec<KeysOf>,
    /// The ingested tables.
    tables: Vec<Span>,
}

impl Contents {
    fn meet(&mut self, order: &UserOrder, span: &Span) -> Result<bool> {
        if self.tables.iter().any(|table| table.overlaps(order, span)) {
            return Ok(true);
        }
        for keys in &mut self.entries {
            if overlap::meets(order, span, keys.tombstones.as_deref(), &mut *keys.cursor) {
                return Ok(true);
            }
            keys.cursor.status()?;
        }
        Ok(false)
    }
}

/// Keys and range tombstones of a memtable.
struct KeysOf {
    cursor: Box<dyn Cursor>,
    tombstones: Option<Arc<FragmentedTombstones>>,
}

impl KeysOf {
    fn of(entry: &Arc<dyn Flushable>) -> Result<Self> {
        let options = TableReadOptions { fill_cache: false, class: IoClass::Flush, ..TableReadOptions::default() };
        let cursor = match entry.as_memtable() {
            Some(memtable) => memtable.clone().cursor(), // values left in a log are not read
            None => entry.clone().cursor(&options)?,
        };
        Ok(KeysOf { cursor, tombstones: entry.tombstones(&options)? })
    }
}
