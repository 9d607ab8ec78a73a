//! What a file holds, as far as an ingest must know it: whether it is a table for the family, its bounds, its numbers.

use std::sync::Arc;

use base::key::{self, ParsedKey};
use base::tombstone::RangeTombstone;
use base::{Cursor, Error, FileNumber, Result, SeqNo, ValueKind};
use table::{ExternalFile, Table, TableReadOptions};
use vfs::IoClass;

use super::options::IngestOptions;
use super::record::IngestTable;
use crate::compaction::output::FamilyRules;
use crate::context::Context;
use crate::family::Family;
use crate::table_writer::TableWriter;
use crate::version::table_file::FileMeta;

pub(super) enum Found {
    /// Nothing but a footer and properties.
    Empty,
    Table(IngestTable),
    /// A table that cannot be given a number as it is.
    ToRewrite,
}

/// Opens the table `number` and looks at its ends, or at all of it where the options ask for that.
///
/// # Errors
/// `InvalidArgument`: it cannot be ingested into the family. `Corruption`, `Unsupported`: it cannot be read.
pub(super) fn inspect(family: &Family, number: FileNumber, bytes: u64, options: &IngestOptions) -> Result<Found> {
    let table = open(family, number, bytes)?;
    if options.verify_checksums_before_ingest {
        table.verify()?;
    }
    let external = table.properties().external;
    if external.is_none() && !options.allow_db_generated_files {
        return Err(Error::invalid_argument(
            "the table was not made to be ingested: it comes from a database (allow_db_generated_files takes such)",
        ));
    }
    let read =
        TableReadOptions { fill_cache: options.fill_cache, class: IoClass::Ingest, ..TableReadOptions::default() };
    let Some(mut meta) = bounds(family, &table, &read)? else { return Ok(Found::Empty) };
    if external.is_none_or(|external| external.version != ExternalFile::VERSION) {
        return Ok(Found::ToRewrite);
    }
    let properties = table.properties();
    meta.number = number;
    meta.file_bytes = bytes;
    meta.file_creation_time = properties.file_creation_time_s;
    meta.oldest_ancestor_time = properties.creation_time_s;
    Ok(Found::Table(IngestTable { meta, has_range_deletions: properties.range_deletions > 0 }))
}

fn open(family: &Family, number: FileNumber, bytes: u64) -> Result<Arc<dyn Table>> {
    family.tables().file(FileMeta { number, file_bytes: bytes, ..FileMeta::default() }).open()
}

/// The first and the last key, range tombstones included; `None` where there is nothing.
fn bounds(family: &Family, table: &Arc<dyn Table>, read: &TableReadOptions) -> Result<Option<FileMeta>> {
    let order = family.order();
    let mut ends: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut cursor = table.clone().cursor(read);
    if cursor.seek_to_first() {
        let first = checked(cursor.key())?;
        if cursor.seek_to_last() {
            ends.push((first, checked(cursor.key())?));
        }
    }
    cursor.status()?;
    for fragment in table.tombstones().iter().flat_map(|tombstones| tombstones.fragments()) {
        let start = key::encode(&fragment.start, SeqNo::ZERO, ValueKind::RangeDeletion);
        ends.push((start, key::encode(&fragment.end, SeqNo::MAX, ValueKind::RangeDeletion)));
    }
    let smallest = ends.iter().map(|(first, _)| first).min_by(|a, b| order.compare(a, b));
    let largest = ends.iter().map(|(_, last)| last).max_by(|a, b| order.compare(a, b));
    let (Some(smallest), Some(largest)) = (smallest, largest) else { return Ok(None) };
    if order.compare(smallest, largest).is_gt() {
        return Err(Error::corruption("the table's first key is above its last: its keys are not sorted"));
    }
    Ok(Some(FileMeta { smallest: smallest.clone(), largest: largest.clone(), ..FileMeta::default() }))
}

/// The key of an entry, which must not have a number: the ingest's is to be it.
fn checked(internal_key: &[u8]) -> Result<Vec<u8>> {
    let parsed = ParsedKey::parse(internal_key).ok_or_else(|| Error::corruption("a key of the table is malformed"))?;
    if parsed.seq != SeqNo::ZERO {
        return Err(Error::invalid_argument(format!(
            "an entry has sequence number {}: only tables whose numbers are all zero can be ingested",
            parsed.seq
        )));
    }
    Ok(internal_key.to_vec())
}

/// Writes the entries of a table into one that can be given a number.
///
/// # Errors
/// `InvalidArgument`: an entry has a number of its own. What reading and writing yields.
pub(super) fn rewrite(
    context: &Context,
    family: &Family,
    (number, bytes): (FileNumber, u64),
    to: FileNumber,
) -> Result<IngestTable> {
    let table = open(family, number, bytes)?;
    let mut writer = TableWriter::create_at(context.vfs.clone(), &context.table_path(to), &FamilyRules::of(family))?;
    let mut cursor = table.clone().cursor(&TableReadOptions { fill_cache: false, ..TableReadOptions::default() });
    let mut more = cursor.seek_to_first();
    while more {
        checked(cursor.key())?;
        writer.add_internal(cursor.key(), cursor.value())?;
        more = cursor.next();
    }
    cursor.status()?;
    for fragment in table.tombstones().iter().flat_map(|tombstones| tombstones.fragments()) {
        let (start, end) = (fragment.start.clone(), fragment.end.clone());
        writer.add_tombstone(&RangeTombstone { start, end, seq: SeqNo::ZERO })?;
    }
    let written = writer.finish()?;
    match inspect(family, to, written.file_bytes, &IngestOptions::default())? {
        Found::Table(table) => Ok(table),
        Found::Empty | Found::ToRewrite => Err(Error::corruption("a table that was rewritten is empty")),
    }
}
