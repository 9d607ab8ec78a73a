//! Inspection of a file for an ingest: whether it is a table for the family, its bounds, and whether it can take a
//! sequence number as it is.
//!
//! Always read: footer, metaindex, properties, index, filter, range tombstones, the first and the last data block.
//! Every block only with `verify_checksums_before_ingest`. Errors name the caller's file.

use std::path::Path;
use std::sync::Arc;

use base::coding::Reader;
use base::key::{self, ParsedKey};
use base::limits;
use base::note;
use base::{Cursor, Error, FileNumber, Result, SeqNo, UserOrder, ValueKind};
use table::{BlockBasedTable, ExternalFile, Properties, Table, TableContext, TableReadOptions, VerifyWatch};
use vfs::IoClass;

use super::options::IngestOptions;
use super::progress::FileProgress;
use crate::core::context::Context;
use crate::core::family::Family;
use crate::records::ingest_record::IngestTable;
use crate::version::span::widen;
use crate::version::table_file::FileMeta;

/// Version of external tables without a field for the sequence number.
const VERSION_WITHOUT_NUMBER: u32 = 1;

/// Properties written by RocksDB and read by ingests only.
const LARGEST_NUMBER: &str = "rocksdb.key.largest.seqno";
const TIMESTAMPS_PERSISTED: &str = "rocksdb.user.defined.timestamps.persisted";

/// A file of the database's directory, to become a table of the family.
pub(super) struct Candidate<'a> {
    pub context: &'a Context,
    pub family: &'a Family,
    pub number: FileNumber,
    pub file: &'a Path,
    pub bytes: u64,
    /// The caller's name for it.
    pub name: &'a Path,
}

pub(super) enum Found {
    /// Nothing but a footer and properties.
    Empty,
    /// The table, and with `write_global_seqno` the offset of the number in its file.
    Table(Box<IngestTable>, Option<u64>),
    /// A table unable to take a sequence number as it is: its entries are rewritten into a new one.
    ToRewrite(Arc<BlockBasedTable>),
}

/// Passes of [`Candidate::inspect`] over a file.
pub(super) fn passes(options: &IngestOptions) -> u64 {
    u64::from(options.verify_checksums_before_ingest)
}

impl Candidate<'_> {
    /// Opens the table and reads its ends, or all of it with `verify_checksums_before_ingest`.
    ///
    /// # Errors
    /// `InvalidArgument`: it cannot be ingested into the family. `Corruption`, `Unsupported`: it cannot be read.
    pub fn inspect(&self, options: &IngestOptions, progress: &FileProgress<'_>) -> Result<Found> {
        let table = self.open()?;
        let properties = table.properties();
        let takes_number = self.check_properties(properties, options)?;
        let bounds = self.bounds(&table, takes_number)?;
        if bounds.is_none() && properties.entries > 0 {
            let what =
                format!("the table's properties say that it has {} entries, and it has none", properties.entries);
            return Err(Error::corruption(what));
        }
        if options.verify_checksums_before_ingest {
            let order = &self.family.order().user;
            let mut watch = Watch { progress, order, takes_number, last: None };
            table.verify_watched(IoClass::Ingest, &mut watch)?;
        }
        let Some((smallest, largest)) = bounds else { return Ok(Found::Empty) };
        if !takes_number {
            return Ok(Found::ToRewrite(table));
        }
        // A MANIFEST record must be able to hold them.
        limits::check_key(key::user_key(&smallest)).and_then(|()| limits::check_key(key::user_key(&largest)))?;
        let has_range_deletions = table.tombstones().is_some();
        let (number, file_bytes, unique_id) = (self.number, self.bytes, properties.unique_id());
        let meta = FileMeta { number, file_bytes, smallest, largest, unique_id, ..FileMeta::default() };
        let number_at = options.write_global_seqno.then(|| number_offset(&table)).transpose()?;
        let raw_bytes = properties.raw_key_bytes.saturating_add(properties.raw_value_bytes);
        Ok(Found::Table(Box::new(IngestTable { meta, has_range_deletions, raw_bytes }), number_at))
    }

    /// Opens the table without the table and block caches: later reads open it anew, under the ingest's number.
    fn open(&self) -> Result<Arc<BlockBasedTable>> {
        let file = self.context.open_metered(self.file)?;
        let context = TableContext {
            order: self.family.order().clone(),
            prefix_extractor: self.family.options().prefix_extractor(),
            class: IoClass::Ingest,
            keep_tail: true,
            statistics: self.context.statistics.clone(),
            ..TableContext::default()
        };
        BlockBasedTable::open(file, self.name, self.bytes, &context).map_err(|error| match error.kind() {
            base::ErrorKind::InvalidArgument => {
                error.advise(format!("column family \"{}\" takes no such table", self.family.name()))
            }
            _ => error,
        })
    }

    /// Whether the table can take a sequence number as it is.
    ///
    /// # Errors
    /// `InvalidArgument`, `Unsupported`: it cannot be ingested at all.
    fn check_properties(&self, properties: &Properties, options: &IngestOptions) -> Result<bool> {
        let refused = |what: String| Err(Error::invalid_argument(what));
        if properties.comparator.is_empty() {
            return refused("the table does not say by which comparator its keys are ordered".to_owned());
        }
        if properties.other.get(TIMESTAMPS_PERSISTED).is_some_and(|value| value.as_slice() == [0]) {
            return Err(Error::unsupported("the table was made for a family with user-defined timestamps"));
        }
        self.warn_of_merges(properties);
        let takes_any = options.allow_db_generated_files;
        let own_family = self.family.id().0;
        if let Some(other) = properties.family_id.filter(|id| *id != own_family && !takes_any) {
            return refused(format!(
                "the table was made for column family \"{}\" (id {other}), and not for \"{}\" (id {own_family}): make it \
                 without naming a family, or take it with allow_db_generated_files",
                properties.family_name,
                self.family.name()
            ));
        }
        let stamps = self.check_times(properties, options)?;
        let external = match properties.external {
            Some(external) => external,
            None if takes_any => return Ok(false),
            None => {
                let what = "the table comes from a database, and was not made to be ingested: \
                            allow_db_generated_files takes such tables, and rewrites them";
                return refused(what.to_owned());
            }
        };
        match external.version {
            ExternalFile::VERSION | VERSION_WITHOUT_NUMBER => {}
            version => return refused(format!("version {version} of tables for ingest is not known")),
        }
        let largest = properties.other.get(LARGEST_NUMBER).and_then(|value| Reader::new(value).varint64("").ok());
        let own = external.global_seqno.max(largest.filter(|largest| *largest != u64::MAX).unwrap_or(0));
        if own > 0 && !takes_any {
            return Err(numbered(SeqNo(own)));
        }
        Ok(external.version == ExternalFile::VERSION && own == 0 && !stamps)
    }

    /// Whether the table's values get times.
    ///
    /// # Errors
    /// `InvalidArgument`: they have times, and the family's do not. Or they need times, and several operands of a key may be there,
    /// which the family's operator merges with times only.
    fn check_times(&self, properties: &Properties, options: &IngestOptions) -> Result<bool> {
        let family = self.family.name();
        // An open with a ttl notes it once the tables are found good.
        let may_note = self.context.raw_values && options.value_times;
        let have_times = properties.has_value_times() || options.value_times;
        if have_times && !self.family.has_value_times() && !may_note {
            return Err(Error::invalid_argument(format!(
                "values of the table end with times, and those of column family \"{family}\" do not: build the table for this \
                 family, or without a ttl"
            )));
        }
        let stamps = needs_times(self.context, self.family, properties, options);
        if stamps && properties.external.is_none() && properties.merge_operands > 0 {
            return Err(Error::invalid_argument(format!(
                "values of the table have no times, which column family \"{family}\" wants, and it has merge operands: compact \
                 the database that it comes from first"
            )));
        }
        Ok(stamps)
    }

    /// Warns of operands made for a different merge operator. Not an error, as in RocksDB: the family's operator merges
    /// them.
    fn warn_of_merges(&self, properties: &Properties) {
        let own = self.family.options().merge_operator.as_ref().map(|operator| operator.name().to_owned());
        let (own, made_for) = (own.unwrap_or_default(), &properties.merge_operator);
        if properties.merge_operands > 0 && own != *made_for {
            let (file, family) = (self.name.display(), self.family.name());
            note::warn!(%file, family, own, made_for, "a table with merge operands was made for another operator");
        }
    }

    /// The first and the last internal key, range tombstones included. `None` if there are none.
    fn bounds(&self, table: &Arc<BlockBasedTable>, takes_number: bool) -> Result<Option<Bounds>> {
        let mut bounds = entry_bounds(table, takes_number)?;
        if bounds.as_ref().is_some_and(|(first, last)| self.family.order().compare(first, last).is_gt()) {
            return Err(Error::corruption("the table's first key is above its last: its keys are not sorted"));
        }
        for fragment in table.tombstones().iter().flat_map(|tombstones| tombstones.fragments()) {
            if let Some(seq) = fragment.seqs.iter().find(|seq| takes_number && **seq != SeqNo::ZERO) {
                return Err(numbered(*seq));
            }
            let start = key::encode(&fragment.start, SeqNo::ZERO, ValueKind::RangeDeletion);
            let end = key::encode(&fragment.end, SeqNo::MAX, ValueKind::RangeDeletion);
            widen(&mut bounds, &start, &end, |a, b| self.family.order().compare(a, b));
        }
        Ok(bounds)
    }
}

/// Whether values of a table get times as it is rewritten.
pub(super) fn needs_times(context: &Context, family: &Family, of: &Properties, options: &IngestOptions) -> bool {
    let have_times = of.has_value_times() || options.value_times || context.raw_values;
    family.has_value_times() && !have_times
}

/// The least and the largest internal key.
type Bounds = (Vec<u8>, Vec<u8>);

/// The first and the last entry's internal key.
fn entry_bounds(table: &Arc<BlockBasedTable>, takes_number: bool) -> Result<Option<Bounds>> {
    let mut bounds = None;
    let mut cursor = table.clone().cursor(&read_options());
    if cursor.seek_to_first() {
        let first = checked(cursor.key(), takes_number)?;
        if cursor.seek_to_last() {
            bounds = Some((first, checked(cursor.key(), takes_number)?));
        }
    }
    cursor.status()?;
    Ok(bounds)
}

fn number_offset(table: &BlockBasedTable) -> Result<u64> {
    table.global_seqno_offset()?.ok_or_else(|| Error::corruption("the table's properties have no place for a number"))
}

/// Read options for a table not yet in the database.
pub(super) fn read_options() -> TableReadOptions {
    TableReadOptions { fill_cache: false, class: IoClass::Ingest, ..TableReadOptions::default() }
}

fn checked(internal_key: &[u8], takes_number: bool) -> Result<Vec<u8>> {
    let parsed = ParsedKey::parse(internal_key).ok_or_else(|| Error::corruption("a key of the table is malformed"))?;
    if takes_number {
        check_unnumbered(&parsed)?;
    }
    Ok(internal_key.to_vec())
}

/// An entry must have sequence number 0: the ingest's number replaces it.
fn check_unnumbered(key: &ParsedKey<'_>) -> Result<()> {
    if key.seq == SeqNo::ZERO { Ok(()) } else { Err(numbered(key.seq)) }
}

fn numbered(seq: SeqNo) -> Error {
    Error::invalid_argument(format!(
        "the table has sequence numbers of its own ({seq}): it comes from a database; allow_db_generated_files takes such \
         tables, and rewrites them"
    ))
}

/// Progress and entry checks while every block is read.
struct Watch<'a> {
    progress: &'a FileProgress<'a>,
    order: &'a UserOrder,
    takes_number: bool,
    last: Option<Vec<u8>>,
}

impl VerifyWatch for Watch<'_> {
    fn block(&mut self, stored_bytes: u64) -> Result<()> {
        self.progress.worked(stored_bytes);
        self.progress.check()
    }

    fn entry(&mut self, key: &ParsedKey<'_>) -> Result<()> {
        if !self.takes_number {
            return Ok(());
        }
        check_unnumbered(key)?;
        // Two entries of a key would share one sequence number.
        if self.last.as_ref().is_some_and(|last| self.order.equal(last, key.user_key)) {
            return Err(Error::corruption("a key is in the table twice"));
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key.user_key);
        Ok(())
    }
}
