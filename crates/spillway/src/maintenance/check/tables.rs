//! Checks each table by itself, against the MANIFEST, and against its neighbours.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, FileNumber, InternalOrder, ParsedKey, Result, UserOrder};
use table::{Table, TableContext, TableReadOptions, open_any};
use vfs::IoClass;

use super::Check;
use crate::core::tables::identified;
use crate::core::unnamed::Accounted;
use crate::records::ingest_record::numbered;
use crate::version::file_name::{self, FileType};
use crate::version::log_life::LogsOnDemand;
use crate::version::replay::RecoveredFamily;
use crate::version::table_file::FileMeta;

/// A table named by a log, without a level yet.
pub(super) struct QueuedTable<'a> {
    pub family: &'a RecoveredFamily,
    pub meta: FileMeta,
}

impl<'a> Check<'a> {
    /// The tables of ingests not linked yet.
    pub(super) fn queued_tables(&self) -> Vec<QueuedTable<'a>> {
        let mut tables = Vec::new();
        let recovered = self.recovered;
        for record in &self.queued {
            let shape = record.shape();
            for share in &record.families {
                let family = recovered.family(share.family);
                let is_linked = |family: &RecoveredFamily| family.has_linked(record.first, record.last());
                let Some(family) = family.filter(|family| !is_linked(family)) else { continue };
                for (i, layer) in share.layers.iter().enumerate() {
                    let number = shape.number_of_layer(record.first, i);
                    let metas = layer.iter().map(|table| numbered(table.meta.clone(), number));
                    tables.extend(metas.map(|meta| QueuedTable { family, meta }));
                }
            }
        }
        tables
    }

    pub(super) fn check_queued(&mut self, tables: &[QueuedTable<'_>]) {
        for QueuedTable { family, meta } in tables {
            if let Some(order) = self.order_named(&family.comparator) {
                self.check_one(meta, &InternalOrder::new(order));
            }
        }
    }
}

impl Check<'_> {
    pub(super) fn check_family(&mut self, family: &RecoveredFamily) {
        let Some(order) = self.order_named(&family.comparator) else {
            let what = format!(
                "the tables of column family \"{}\" cannot be checked: its comparator \"{}\" is not built in",
                family.name, family.comparator
            );
            self.report.problem(Error::unsupported(what).at_path(self.dir));
            return;
        };
        let order = InternalOrder::new(order);
        for (_, meta) in family.tables.iter().filter(|(_, meta)| meta.path_id == 0) {
            self.check_one(meta, &order);
            self.check_largest_number(meta);
        }
        self.check_levels(family, &order);
    }

    /// Checks a table that the MANIFEST does not name, if the MANIFEST has no copy that proves its end. Returns whether an open
    /// keeps it.
    pub(super) fn check_unnamed(&mut self, path: &Path, number: FileNumber) -> Result<bool> {
        let values = LogsOnDemand::in_dir(self.options.vfs.clone(), self.log_dir().to_owned());
        let (recovered, logged, orders) = (self.recovered, &self.logged, &self.options.orders);
        let accounted = Accounted { recovered, dir: self.dir, logged, orders, is_confirmed: false };
        let found = accounted.find_unexplained(self.vfs(), path, number, values)?.map(|found| found.error);
        let is_kept = found.is_some();
        found.into_iter().for_each(|error| self.report.problem(error));
        Ok(is_kept)
    }

    fn order_named(&self, name: &str) -> Option<UserOrder> {
        let custom = self.options.orders.iter().find(|order| order.name() == name);
        // RocksDB's first MANIFEST names none.
        custom.cloned().or_else(|| if name.is_empty() { Some(UserOrder::Bytewise) } else { UserOrder::by_name(name) })
    }

    fn path_of(&self, meta: &FileMeta) -> PathBuf {
        self.dir.join(file_name::format(FileType::Table, meta.physical_number()))
    }

    fn check_one(&mut self, meta: &FileMeta, order: &InternalOrder) {
        let path = self.path_of(meta);
        self.begin_file(&path);
        let result = self.check_table(&path, meta, order).map_err(|error| error.at_path(&path));
        self.bytes_done += meta.file_bytes;
        if self.vfs().exists(&path).unwrap_or(true) {
            self.report.tables += 1;
            self.report.table_bytes += meta.file_bytes;
        }
        self.report.last_seq = self.report.last_seq.max(meta.largest_seq);
        self.report.table_entries += self.report.take(result).unwrap_or_default();
    }

    fn check_largest_number(&mut self, meta: &FileMeta) {
        if meta.largest_seq > self.recovered.last_seq {
            let (largest, last) = (meta.largest_seq, self.recovered.last_seq);
            let what = format!("the table's largest number is {largest}, but the MANIFEST's last is {last}");
            self.report.problem(Error::corruption(what).at_path(self.path_of(meta)));
        }
    }

    /// Returns the table's number of entries.
    fn check_table(&mut self, path: &Path, meta: &FileMeta, order: &InternalOrder) -> Result<u64> {
        let file = match self.vfs().open(path) {
            Err(error) if error.is_not_found() => return Err(Error::corruption("the table is missing")),
            opened => opened?,
        };
        let context = TableContext {
            order: order.clone(),
            largest_seq: Some(meta.largest_seq),
            values: Some(LogsOnDemand::in_dir(self.options.vfs.clone(), self.log_dir().to_owned())),
            class: IoClass::Other,
            ..TableContext::default()
        };
        let table = open_any(self.vfs(), file, path, meta.physical_bytes(), &context)?.into_table();
        if self.verified.insert(meta.physical_number()) {
            table.verify()?;
        }
        let table = identified(meta, order, table)?;
        let entries = check_span(&table, meta, order)?;
        if !meta.is_virtual() {
            return Ok(table.properties().entries);
        }
        if entries == 0 {
            return Err(Error::corruption("the file has nothing between the bounds that the MANIFEST gives"));
        }
        Ok(entries)
    }

    /// Tables below level 0 do not overlap.
    fn check_levels(&mut self, family: &RecoveredFamily, order: &InternalOrder) {
        let mut sorted: Vec<_> = family.tables.iter().filter(|(level, _)| *level > 0).collect();
        sorted.sort_by(|(a_level, a), (b_level, b)| {
            a_level.cmp(b_level).then_with(|| order.compare(&a.smallest, &b.smallest))
        });
        for ((level, a), (next_level, b)) in sorted.iter().zip(sorted.iter().skip(1)) {
            if level == next_level && order.compare(&a.largest, &b.smallest).is_ge() {
                let (a_name, b_name) = (table_name(a), table_name(b));
                let what = format!("table {a_name} overlaps {b_name} in level {level} of \"{}\"", family.name);
                self.report.problem(Error::corruption(what).at_path(self.path_of(a)));
            }
        }
    }
}

fn table_name(meta: &FileMeta) -> String {
    file_name::format(FileType::Table, meta.number)
}

/// Checks entries against the MANIFEST's bounds of keys and sequence numbers. Returns the number of entries, range
/// tombstone fragments included.
fn check_span(table: &Arc<dyn Table>, meta: &FileMeta, order: &InternalOrder) -> Result<u64> {
    let options = TableReadOptions { fill_cache: false, class: IoClass::Other, ..TableReadOptions::default() };
    let mut cursor = table.clone().cursor(&options);
    let mut valid = cursor.seek_to_first();
    if valid && order.compare(cursor.key(), &meta.smallest).is_lt() {
        return Err(outside("starts below the smallest key", cursor.key()));
    }
    let mut entries = 0;
    while valid {
        entries += 1;
        let entry = ParsedKey::parse(cursor.key()).ok_or_else(|| Error::corruption("an entry of an unknown kind"))?;
        meta.check_number(entry.seq)?;
        valid = cursor.next();
    }
    cursor.status()?;
    if cursor.seek_to_last() && order.compare(cursor.key(), &meta.largest).is_gt() {
        return Err(outside("ends above the largest key", cursor.key()));
    }
    cursor.status()?;
    // Reading cuts tombstones to the table's bounds, so only their sequence numbers are checked.
    let tombstones = table.tombstones();
    let fragments = tombstones.iter().flat_map(|all| all.fragments());
    for seq in fragments.flat_map(|fragment| &fragment.seqs) {
        entries += 1;
        meta.check_number(*seq)?;
    }
    Ok(entries)
}

fn outside(what: &str, internal_key: &[u8]) -> Error {
    let key = base::key::user_key(internal_key).escape_ascii();
    Error::corruption(format!("the table {what} that the MANIFEST gives, with '{key}'"))
}
