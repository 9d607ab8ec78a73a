//! Tables that nothing names. A MANIFEST with a right copy has its end, and a crash left them. Without one they may be what is
//! left of a lost end (R1).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use base::key::ParsedKey;
use base::value_source::ValueSource;
use base::{Error, FamilyId, FileNumber, Result, SeqNo, UserOrder};
use table::{Properties, Table, TableContext, TableReadOptions};
use vfs::{IoClass, Vfs};

use crate::core::tables::open_in_any;
use crate::records::ingest_record::IngestRecord;
use crate::version::manifest::manifest_path;
use crate::version::manifest_copy::copy_path;
use crate::version::recover::{Recovered, has_named_in};

/// What a MANIFEST without a right copy and the logs account for.
pub(crate) struct Accounted<'a> {
    pub recovered: &'a Recovered,
    /// The database's directory.
    pub dir: &'a Path,
    pub logged: &'a Logged,
    /// Orders of keys that are not built in.
    pub orders: &'a [UserOrder],
    /// The copy proves the MANIFEST's end, and only a later MANIFEST can be lost: what a crash leaves is no sign of it.
    pub is_confirmed: bool,
}

/// A table that nothing names, and no crash explains for certain.
pub(crate) struct Unexplained {
    pub error: Error,
    /// By the table's properties.
    pub family: Option<FamilyId>,
}

/// Contents of the logs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logged {
    /// The numbers of records: runs without a gap, ascending. Unlogged writes leave gaps.
    runs: Vec<(SeqNo, SeqNo)>,
    /// The tables of ingests.
    tables: BTreeSet<FileNumber>,
}

impl Logged {
    /// Adds the numbers of a record. Records come in the order of their numbers.
    pub fn add(&mut self, first: SeqNo, last: SeqNo) {
        match self.runs.last_mut() {
            Some(run) if first.0 <= run.1.0.saturating_add(1) => run.1 = run.1.max(last),
            _ => self.runs.push((first, last)),
        }
    }

    pub fn add_ingest(&mut self, record: &IngestRecord) {
        let tables = record.families.iter().flat_map(|share| share.layers.iter().flatten());
        self.tables.extend(tables.map(|table| table.meta.number));
    }

    pub fn has(&self, seq: SeqNo) -> bool {
        let begun = self.runs.partition_point(|run| run.0 <= seq);
        self.runs.get(..begun).and_then(<[_]>::last).is_some_and(|run| seq <= run.1)
    }
}

/// Numbers in tables of a family that the MANIFEST accounts for, besides those of linked ingests.
struct Known {
    through: SeqNo,
    /// And entries whose numbers a compaction made zero.
    zeros: bool,
}

impl Accounted<'_> {
    /// Reads the table `number`, which nothing names. `None` if a crash explains it: the logs have its writes, or it and tables that
    /// the MANIFEST names were made of one another; or if it cannot be read.
    ///
    /// # Errors
    /// The file system's.
    pub fn find_unexplained(
        &self,
        vfs: &dyn Vfs,
        path: &Path,
        number: FileNumber,
        values: Arc<dyn ValueSource>,
    ) -> Result<Option<Unexplained>> {
        if self.logged.tables.contains(&number) {
            return Ok(None);
        }
        let bytes = match vfs.metadata(path) {
            Err(error) if error.is_not_found() => return Ok(None), // deleted beside a writer
            metadata => metadata?.len,
        };
        let orders = [UserOrder::Bytewise, UserOrder::ReverseBytewise];
        let context = TableContext { values: Some(values), class: IoClass::Other, ..TableContext::default() };
        let Ok((table, _)) = open_in_any(vfs, path, bytes, &context, orders.iter().chain(self.orders)) else {
            return Ok(None);
        };
        let table = table.into_table();
        let is_brought = self.is_brought(table.properties(), number);
        let family = table.properties().family_id.map(FamilyId).filter(|_| !is_brought);
        let (which, or) = if is_brought {
            // RocksDB deletes at an open what the MANIFEST of that open lacks. For another MANIFEST, a later one by its number, an ingest
            // has its number before.
            let is_of_open = !self.recovered.fenced && self.recovered.rocksdb_logs.is_of_open;
            let is_older = is_of_open && number < self.recovered.manifest;
            if is_older || self.is_confirmed || self.has_named(vfs, number)? {
                return Ok(None);
            }
            ("this table, which was ingested or imported".to_owned(), "an ingest was cut off")
        } else {
            match self.unknown_number(&table, family, number) {
                None => return Ok(None),
                Some(SeqNo::ZERO) => ("this table, which a compaction made".to_owned(), "the compaction was cut off"),
                Some(SeqNo::MAX) => ("this table, which is damaged".to_owned(), "it is left over"),
                Some(unknown) => {
                    let which = format!("this table, and no log has its writes through number {unknown}");
                    (which, "a flush of unlogged writes was cut off")
                }
            }
        };
        let what = format!("the MANIFEST does not name {which}: the MANIFEST's end is missing, or {or}");
        Ok(Some(Unexplained { error: Error::corruption(what).at_path(path), family }))
    }

    /// Whether a record of the MANIFEST, or of its copy, adds the table.
    fn has_named(&self, vfs: &dyn Vfs, number: FileNumber) -> Result<bool> {
        let manifest = self.recovered.manifest;
        let files = [manifest_path(self.dir, manifest), copy_path(self.dir, manifest)];
        files.iter().try_fold(false, |has_named, path| Ok(has_named || has_named_in(vfs, path, number)?))
    }

    /// Whether the table was made elsewhere, or under another number: its numbers and family are then of another database or
    /// family.
    fn is_brought(&self, properties: &Properties, number: FileNumber) -> bool {
        let is_of_another = !properties.db_id.is_empty() && self.recovered.db_id.as_ref() != Some(&properties.db_id);
        let is_of_this = properties.original_file_number == number.0 && !is_of_another;
        properties.external.is_some() || (self.recovered.fenced && !is_of_this)
    }

    /// The largest number of the table's entries that neither the logs nor the MANIFEST account for; `MAX` if entries cannot be
    /// read: the table was finished, since its end can be.
    fn unknown_number(&self, table: &Arc<dyn Table>, family: Option<FamilyId>, number: FileNumber) -> Option<SeqNo> {
        let known = self.known(family, number);
        let linked = family.and_then(|id| self.recovered.family(id)).map_or(&[][..], |family| &family.linked_ingests);
        let is_known = |seq: SeqNo| match seq {
            SeqNo::ZERO => known.zeros,
            seq => seq <= known.through || self.logged.has(seq) || linked.contains(&seq),
        };
        let tombstones = table.tombstones();
        let of_ranges = tombstones.iter().flat_map(|all| all.fragments()).flat_map(|fragment| fragment.seqs.iter());
        let mut unknown = of_ranges.copied().filter(|seq| !is_known(*seq)).max();
        let options = TableReadOptions { fill_cache: false, class: IoClass::Other, ..TableReadOptions::default() };
        let mut cursor = table.clone().cursor(&options);
        let mut valid = cursor.seek_to_first();
        while valid {
            let seq = ParsedKey::parse(cursor.key()).map_or(SeqNo::ZERO, |key| key.seq);
            unknown = unknown.max(Some(seq).filter(|seq| !is_known(*seq)));
            valid = cursor.next();
        }
        if cursor.status().is_err() { Some(SeqNo::MAX) } else { unknown }
    }

    /// What the MANIFEST accounts for in an unnamed table. Records of ours tell how far each family was flushed; and a compaction
    /// of tables that a lost record named was begun behind the last record, so its tables have later file numbers.
    fn known(&self, family: Option<FamilyId>, number: FileNumber) -> Known {
        let recovered = self.recovered;
        let known = family.and_then(|id| recovered.family(id));
        match (known, recovered.fenced) {
            (Some(family), true) => {
                let zeros = number < recovered.noted_next || self.is_confirmed;
                Known { through: family.flushed_through.unwrap_or_default(), zeros }
            }
            (Some(family), false) => {
                let has_later = family.tables.iter().any(|(_, meta)| meta.number > number);
                let largest = family.tables.iter().map(|(_, meta)| meta.largest_seq).max().unwrap_or_default();
                Known { through: if has_later { SeqNo::MAX } else { largest }, zeros: !family.tables.is_empty() }
            }
            (None, true) => {
                let was_dropped = family.is_some_and(|id| id.0 <= recovered.max_family);
                Known { through: if was_dropped { SeqNo::MAX } else { SeqNo::ZERO }, zeros: was_dropped }
            }
            (None, false) => Known { through: recovered.last_seq, zeros: true },
        }
    }
}
