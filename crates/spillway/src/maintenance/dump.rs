//! Prints single files as text: tables, logs (ours and RocksDB's) and MANIFESTs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, FamilyId, FileNumber, InternalOrder, Result, UserOrder, ValueKind};
use table::{AnyTable, TableContext, open_any};
use vfs::{FileKind, IoClass, Vfs};
use wal::framed::{FramedEnd, FramedReader};
use wal::{EndReason, ReplayOptions, ReplayRecord};

use crate::batch::{BatchReader, BatchRecord, HEADER_BYTES};
use crate::info_log::date_and_time;
use crate::records::ingest_record::{IngestRecord, IngestTable};
use crate::records::record::{CommitRecord, LargeBatchRecord, RecordedBatch};
use crate::records::rocksdb_record::{RocksdbStep, steps_of};
use crate::records::two_phase_record::{Step, TransactionRecord};
use crate::version::file_name::{self, FileType};
use crate::version::log_life::LogsOnDemand;
use crate::version::{current, manifest};

pub use table::{DumpPart, Properties, Table, dump_any as dump_table};

/// Called with each line; returning false ends the dump.
pub type Line<'a> = &'a mut dyn FnMut(&str) -> bool;

/// Opens a table file by itself, in either built-in key order. Reads separated values from logs in the same directory.
///
/// # Errors
/// `Corruption`: damage. `Unsupported`: another format. `InvalidArgument`: its comparator is not built in.
pub fn open_table(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<AnyTable> {
    match open_table_in(vfs, path, UserOrder::Bytewise) {
        Err(error) if error.kind() == base::ErrorKind::InvalidArgument => {
            open_table_in(vfs, path, UserOrder::ReverseBytewise).map_err(|_| error)
        }
        opened => opened,
    }
}

/// As [`open_table`], in the given key order.
///
/// # Errors
/// As of [`open_table`]. `InvalidArgument`: the table's comparator is another one.
pub fn open_table_in(vfs: &Arc<dyn Vfs>, path: &Path, order: UserOrder) -> Result<AnyTable> {
    let logs = LogsOnDemand::in_dir(vfs.clone(), path.parent().unwrap_or(Path::new("")).to_owned());
    let file = vfs.open(path)?;
    let bytes = file.len().map_err(|error| error.at_path(path))?;
    let context = TableContext { order: InternalOrder::new(order), values: Some(logs), ..TableContext::default() };
    open_any(&**vfs, file, path, bytes, &context)
}

/// Shows the edits of a MANIFEST; of a directory's current MANIFEST if `path` is a directory.
///
/// # Errors
/// `Corruption`, `Unsupported`: the file and the offset. Earlier lines are valid.
pub fn dump_manifest(vfs: &dyn Vfs, path: &Path, line: Line<'_>) -> Result<()> {
    let manifest: PathBuf = match vfs.metadata(path)?.kind {
        FileKind::Directory => manifest::manifest_path(path, current::read_current(vfs, path)?),
        FileKind::File | FileKind::Other => path.to_owned(),
    };
    let mut wanted = true;
    crate::version::dump::dump(vfs, &manifest, &mut |text| wanted = wanted && line(text))
}

/// Shows a log's records: one line each, and an indented line for each change. The file name gives the kind and number.
///
/// # Errors
/// `InvalidArgument`: not a log's name. `Corruption`, with the offset. Earlier lines are valid.
pub fn dump_log(vfs: &dyn Vfs, path: &Path, line: Line<'_>) -> Result<()> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match file_name::parse(name) {
        Some((FileType::Log | FileType::LargeBatch, number)) => dump_own_log(vfs, path, number, line),
        Some((FileType::RocksLog, number)) => dump_rocksdb_log(vfs, path, number, line),
        _ => {
            let what =
                "not the name of a log; a log is NNNNNN.splog or NNNNNN.spbatch (Spillway), or NNNNNN.log (RocksDB)";
            Err(Error::invalid_argument(what).at_path(path))
        }
    }
}

/// Error to end a replay early. Never shown.
fn stopped() -> Error {
    Error::closed("the dump was ended")
}

fn dump_own_log(vfs: &dyn Vfs, path: &Path, number: FileNumber, line: Line<'_>) -> Result<()> {
    let mode = WalRecoveryMode::PointInTime;
    let options = ReplayOptions { number, mode, ..ReplayOptions::default() };
    let mut wanted = true;
    let end = wal::replay(vfs, path, &options, &mut |record| {
        wanted = show_record(&record, line).map_err(|error| error.at_record(path, record.offset))?;
        if wanted { Ok(()) } else { Err(stopped()) }
    });
    let end = match end {
        Err(_) if !wanted => return Ok(()),
        end => end?,
    };
    let at = end.end_offset;
    match end.reason {
        EndReason::Sealed => drop(line(&format!("# ends at byte {at} with its end record: the log is complete"))),
        EndReason::Unfinished { next: Some(next) } => {
            let what = format!(
                "no whole record up to byte {next}, where others follow: they were not synced, or it is damaged"
            );
            return Err(Error::corruption(what).at_path(path).at_offset(at));
        }
        EndReason::Clean | EndReason::KnownEnd | EndReason::Lost | EndReason::Blank | EndReason::Unfinished { .. } => {
            line(&no_more_from(at));
        }
    }
    Ok(())
}

/// The end of a log without an end record. Neither its bytes nor their lack tell whether more was written.
fn no_more_from(offset: u64) -> String {
    format!("# no whole record from byte {offset} on: none was written, or it is lost")
}

fn dump_rocksdb_log(vfs: &dyn Vfs, path: &Path, number: FileNumber, line: Line<'_>) -> Result<()> {
    let mut reader = FramedReader::open(vfs, path, Some(number.0), IoClass::Log)?;
    let mut prepared = BTreeMap::new();
    while let Some(record) = reader.next()? {
        let wanted = BatchReader::new(&record.payload)
            .and_then(|batch| show_rocksdb_record(record.offset, &batch, &mut prepared, line));
        if !wanted.map_err(|e| e.at_path(path).at_offset(record.offset))? {
            return Ok(());
        }
    }
    line(&match reader.end() {
        Some(FramedEnd::Torn { offset } | FramedEnd::Zeros { offset }) => no_more_from(offset),
        Some(FramedEnd::OtherLog { offset }) => format!("# ends at byte {offset}; another log's bytes follow"),
        Some(FramedEnd::Damaged { offset }) => {
            return Err(Error::corruption("damaged; what lies behind is not shown").at_path(path).at_offset(offset));
        }
        Some(FramedEnd::Clean) | None => "# ends with the file".to_owned(),
    });
    Ok(())
}

/// As [`show_record`]. `prepared`: the changes of each transaction that was prepared so far.
fn show_rocksdb_record(
    offset: u64,
    record: &BatchReader<'_>,
    prepared: &mut BTreeMap<Vec<u8>, u32>,
    line: Line<'_>,
) -> Result<bool> {
    let (first, count, bytes) = (record.seq(), record.declared_count(), HEADER_BYTES + record.rest_bytes());
    let mut lines = vec![format!("{offset}: batch from number {first}, {count} changes, {bytes} bytes")];
    let mut next = Some(first.0); // unknown behind a commit whose prepare was not seen
    for step in steps_of(record, false)? {
        match step {
            RocksdbStep::Changes(batch) => {
                for record in batch {
                    let number = next.map_or_else(|| "?".to_owned(), |next| next.to_string());
                    lines.push(format!("  {number} {}", change(&record?)));
                    next = next.map(|next| next + 1);
                }
            }
            RocksdbStep::Prepare { name, batch } => {
                lines.push(format!("  prepare of '{}', {} changes", name.escape_ascii(), batch.declared_count()));
                prepared.insert(name.to_vec(), batch.declared_count());
                for record in batch {
                    lines.push(format!("    {}", change(&record?)));
                }
            }
            RocksdbStep::Commit(name) => {
                lines.push(format!("  commit of '{}'", name.escape_ascii()));
                next = next.zip(prepared.remove(name)).map(|(next, count)| next + u64::from(count));
            }
            RocksdbStep::Rollback(name) => {
                lines.push(format!("  rollback of '{}'", name.escape_ascii()));
                prepared.remove(name);
            }
        }
    }
    Ok(lines.iter().all(|text| line(text)))
}

/// Returns false if `line` ended the dump.
fn show_record(record: &ReplayRecord<'_>, line: Line<'_>) -> Result<bool> {
    let (offset, bytes) = (record.offset, record.payload.len());
    let commit = match CommitRecord::decode(record.kind, record.payload) {
        Err(error) if error.kind() != ErrorKind::Unsupported => return Err(error),
        Ok(Some(commit)) => commit,
        _ => return Ok(line(&format!("{offset}: {:?}, {bytes} bytes", record.kind))),
    };
    if commit.ingest.is_some_and(|ingest| !show_ingest(offset, bytes, &ingest, line)) {
        return Ok(false);
    }
    match commit.batch {
        None => Ok(true),
        Some(RecordedBatch::InRecord(batch)) => show_batch(offset, batch, line),
        Some(RecordedBatch::InFile(LargeBatchRecord { first, count, file, .. })) => {
            let name = file_name::format(FileType::LargeBatch, file);
            Ok(line(&format!("{offset}: batch from number {first}, {count} changes, in {name}")))
        }
        Some(RecordedBatch::Prepared(record)) => show_transaction(offset, record, line),
    }
}

/// As [`show_record`], for a step of a prepared transaction.
fn show_transaction(offset: u64, record: TransactionRecord<'_>, line: Line<'_>) -> Result<bool> {
    let (name, first) = (record.name.escape_ascii(), record.first);
    match record.step {
        Step::Prepare(batch) => {
            let count = batch.declared_count();
            if !line(&format!("{offset}: prepare of '{name}', number {first}, {count} changes")) {
                return Ok(false);
            }
            for record in batch {
                if !line(&format!("  {}", change(&record?))) {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Step::Commit(commit) => {
            Ok(line(&format!("{offset}: commit of '{name}' from number {first}, {} changes", commit.count)))
        }
        Step::Rollback => Ok(line(&format!("{offset}: rollback of '{name}', number {first}"))),
    }
}

/// As [`show_record`], for a batch.
fn show_batch(offset: u64, batch: BatchReader<'_>, line: Line<'_>) -> Result<bool> {
    let (first, count, bytes) = (batch.seq(), batch.declared_count(), HEADER_BYTES + batch.rest_bytes());
    if !line(&format!("{offset}: batch from number {first}, {count} changes, {bytes} bytes")) {
        return Ok(false);
    }
    for (number, record) in (first.0..).zip(batch) {
        if !line(&format!("  {number} {}", change(&record?))) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// As [`show_record`], for an ingest in a record of `bytes`.
fn show_ingest(offset: u64, bytes: usize, record: &IngestRecord, line: Line<'_>) -> bool {
    let (first, families) = (record.first, record.families.len());
    let arrived = match record.arrived_us {
        0 => String::new(),
        us => format!(", arrived {}", date_and_time(us)),
    };
    if !line(&format!("{offset}: ingest from number {first}, {families} families, {bytes} bytes{arrived}")) {
        return false;
    }
    let shape = record.shape();
    for share in &record.families {
        let family = match share.family {
            FamilyId::DEFAULT => String::new(),
            FamilyId(id) => format!(" in family {id}"),
        };
        if let Some((start, end)) = &share.excise {
            let (start, end) = (start.escape_ascii(), end.escape_ascii());
            if !line(&format!("  {first} excise ['{start}', '{end}'){family}")) {
                return false;
            }
        }
        for (i, layer) in share.layers.iter().enumerate() {
            let number = shape.number_of_layer(first, i);
            for IngestTable { meta, .. } in layer {
                let name = file_name::format(FileType::Table, meta.number);
                let (from, to) = (meta.smallest_user_key().escape_ascii(), meta.largest_user_key().escape_ascii());
                if !line(&format!("  {number} table {name} ['{from}' .. '{to}'], {} bytes{family}", meta.file_bytes)) {
                    return false;
                }
            }
        }
    }
    true
}

fn change(record: &BatchRecord<'_>) -> String {
    let (key, value) = (record.key.escape_ascii(), record.value.escape_ascii());
    let mut text = match record.kind {
        ValueKind::Value => format!("put '{key}' => '{value}'"),
        ValueKind::Merge => format!("merge '{key}' => '{value}'"),
        ValueKind::Deletion => format!("delete '{key}'"),
        ValueKind::SingleDeletion => format!("single delete '{key}'"),
        ValueKind::RangeDeletion => format!("delete range ['{key}', '{value}')"),
    };
    if record.family != FamilyId::DEFAULT {
        let _ = write!(text, " in family {}", record.family.0);
    }
    text
}
