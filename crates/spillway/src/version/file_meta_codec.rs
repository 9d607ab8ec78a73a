//! A table's entry in an edit, in each form ever written by RocksDB. Format: docs/format/manifest.md.
//!
//! Keeps B1 and B2: every decoded entry has been checked to be a file a version could hold.

use base::coding::{Reader, put_prefixed, put_u64, put_varint32, put_varint64};
use base::key::TRAILER_BYTES;
use base::name;
use base::{Error, FileNumber, Result, SeqNo};

use super::file_name::FILE_NUMBER_MAX;
use super::log_life::ValueLog;
use super::table_file::FileMeta;
use super::version::LEVELS_MAX;

/// The tags inside a NewFile4 entry.
mod custom_tag {
    pub const END: u32 = 1;
    pub const NEEDS_COMPACTION: u32 = 2;
    pub const MIN_LOG_TO_KEEP: u32 = 3;
    pub const OLDEST_BLOB: u32 = 4;
    pub const OLDEST_ANCESTOR_TIME: u32 = 5;
    pub const FILE_CREATION_TIME: u32 = 6;
    pub const FILE_CHECKSUM: u32 = 7;
    pub const FILE_CHECKSUM_FUNC: u32 = 8;
    pub const TEMPERATURE: u32 = 9;
    pub const MIN_TIMESTAMP: u32 = 10;
    pub const MAX_TIMESTAMP: u32 = 11;
    pub const UNIQUE_ID: u32 = 12;
    /// RocksDB 7.8 skips it as unknown.
    pub const EPOCH_NUMBER: u32 = 13;
    pub const TIMESTAMPS_PERSISTED: u32 = 16;
    /// A reader must stop at an unknown tag with this bit.
    pub const MUST_KNOW_BIT: u32 = 64;
    pub const PATH_ID: u32 = 65;
    /// Ours, not RocksDB's: WALs holding values of the table's entries. Readers must know it. Only in fenced MANIFESTs.
    pub const VALUE_LOGS: u32 = 112;
}

/// The four forms of an entry, by edit tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// LevelDB's: no sequence numbers.
    NewFile = 7,
    NewFile2 = 100,
    /// Adds the path.
    NewFile3 = 102,
    /// Adds tagged fields. The only form written.
    NewFile4 = 103,
}

/// A decoded entry.
pub(super) struct NewFile {
    pub level: usize,
    pub meta: FileMeta,
    /// RocksDB 5.x to 6.x wrote this field of the edit here.
    pub min_log_to_keep: Option<FileNumber>,
}

pub(super) fn decode_level(reader: &mut Reader<'_>) -> Result<usize> {
    let level = reader.varint32("level")? as usize;
    if level >= LEVELS_MAX {
        return Err(Error::corruption(format!("level {level} is more than any database has")));
    }
    Ok(level)
}

pub(super) fn decode_internal_key(reader: &mut Reader<'_>, what: &str) -> Result<Vec<u8>> {
    let key = reader.prefixed(what)?;
    if key.len() < TRAILER_BYTES {
        return Err(Error::corruption(format!("{what} is {} bytes, too short for an internal key", key.len())));
    }
    Ok(key.to_vec())
}

pub(super) fn decode_number(reader: &mut Reader<'_>, what: &str) -> Result<FileNumber> {
    let number = reader.varint64(what)?;
    if number > FILE_NUMBER_MAX {
        return Err(Error::corruption(format!("{what} {number} is larger than file numbers can be")));
    }
    Ok(FileNumber(number))
}

pub(super) fn decode_seq(reader: &mut Reader<'_>, what: &str) -> Result<SeqNo> {
    let seq = reader.varint64(what)?;
    if seq > SeqNo::MAX.0 {
        return Err(Error::corruption(format!("{what} {seq} is past the end of the sequence numbers")));
    }
    Ok(SeqNo(seq))
}

pub(super) fn decode(reader: &mut Reader<'_>, form: Form) -> Result<NewFile> {
    let level = decode_level(reader)?;
    let mut meta = FileMeta { number: decode_number(reader, "table number")?, ..FileMeta::default() };
    if form == Form::NewFile3 {
        meta.path_id = reader.varint32("path id")?;
    }
    meta.file_bytes = reader.varint64("file size")?;
    meta.smallest = decode_internal_key(reader, "smallest key")?;
    meta.largest = decode_internal_key(reader, "largest key")?;
    if form == Form::NewFile {
        // Unknown: the widest span is never wrong.
        meta.largest_seq = SeqNo::MAX;
    } else {
        meta.smallest_seq = decode_seq(reader, "smallest sequence number")?;
        meta.largest_seq = decode_seq(reader, "largest sequence number")?;
    }
    let mut file = NewFile { level, meta, min_log_to_keep: None };
    if form == Form::NewFile4 {
        decode_custom_fields(reader, &mut file)?;
    }
    if file.meta.smallest_seq > file.meta.largest_seq {
        return Err(Error::corruption(format!(
            "table {} has its sequence numbers the wrong way round",
            file.meta.number
        )));
    }
    Ok(file)
}

fn decode_custom_fields(reader: &mut Reader<'_>, file: &mut NewFile) -> Result<()> {
    loop {
        let tag = reader.varint32("tag of a table's field")?;
        if tag == custom_tag::END {
            return Ok(());
        }
        let mut field = Reader::new(reader.prefixed("a table's field")?);
        decode_custom_field(tag, &mut field, file)?;
        if !field.is_empty() {
            return Err(Error::corruption(format!("field {tag} of table {} is too long", file.meta.number)));
        }
    }
}

/// Decodes one field. The caller refuses bytes left in `field`.
fn decode_custom_field(tag: u32, field: &mut Reader<'_>, file: &mut NewFile) -> Result<()> {
    let meta = &mut file.meta;
    match tag {
        custom_tag::NEEDS_COMPACTION => meta.marked_for_compaction = field.u8("compaction mark")? != 0,
        custom_tag::MIN_LOG_TO_KEEP => file.min_log_to_keep = Some(FileNumber(field.u64("log to keep")?)),
        custom_tag::OLDEST_BLOB => meta.oldest_blob = field.varint64("oldest blob file")?,
        custom_tag::OLDEST_ANCESTOR_TIME => meta.oldest_ancestor_time = field.varint64("oldest ancestor time")?,
        custom_tag::FILE_CREATION_TIME => meta.file_creation_time = field.varint64("file creation time")?,
        custom_tag::FILE_CHECKSUM => meta.file_checksum = rest(field).to_vec(),
        custom_tag::FILE_CHECKSUM_FUNC => meta.file_checksum_func = text(rest(field)),
        custom_tag::TEMPERATURE => meta.temperature = field.u8("temperature")?,
        custom_tag::UNIQUE_ID => meta.unique_id = Some((field.u64("unique id")?, field.u64("unique id")?)),
        custom_tag::EPOCH_NUMBER => meta.epoch_number = field.varint64("epoch number")?,
        custom_tag::VALUE_LOGS => meta.value_logs = decode_value_logs(field)?,
        custom_tag::PATH_ID => meta.path_id = u32::from(field.u8("path id")?),
        custom_tag::MIN_TIMESTAMP | custom_tag::MAX_TIMESTAMP if !field.is_empty() => {
            return Err(timestamps(meta.number));
        }
        custom_tag::TIMESTAMPS_PERSISTED => {
            if field.u8("timestamps mark")? == 0 {
                return Err(timestamps(meta.number));
            }
        }
        _ if tag & custom_tag::MUST_KNOW_BIT != 0 => {
            let what = format!("table {} has the field {tag}, unknown and not to be passed over", meta.number);
            return Err(Error::unsupported(what));
        }
        _ => {
            rest(field);
        }
    }
    Ok(())
}

/// Pairs of WAL number and bytes, ascending by number.
fn decode_value_logs(field: &mut Reader<'_>) -> Result<Vec<ValueLog>> {
    let mut logs: Vec<ValueLog> = Vec::new();
    while !field.is_empty() {
        let share =
            ValueLog { log: decode_number(field, "log with values")?, bytes: field.varint64("bytes of values")? };
        if logs.last().is_some_and(|last| last.log >= share.log) {
            return Err(Error::corruption("the logs with a table's values do not ascend"));
        }
        logs.push(share);
    }
    Ok(logs)
}

fn timestamps(table: FileNumber) -> Error {
    Error::unsupported(format!("table {table} has user-defined timestamps"))
}

fn rest<'a>(field: &mut Reader<'a>) -> &'a [u8] {
    let rest = field.rest();
    *field = Reader::new(&[]);
    rest
}

/// Decodes a name.
pub(super) fn text(bytes: &[u8]) -> String {
    name::text(bytes).into_owned()
}

/// Appends the tag and the entry.
pub(super) fn encode(out: &mut Vec<u8>, level: usize, meta: &FileMeta) {
    put_varint32(out, Form::NewFile4 as u32);
    put_varint64(out, level as u64);
    put_varint64(out, meta.number.0);
    put_varint64(out, meta.file_bytes);
    put_prefixed(out, &meta.smallest);
    put_prefixed(out, &meta.largest);
    put_varint64(out, meta.smallest_seq.0);
    put_varint64(out, meta.largest_seq.0);
    put_varint_field(out, custom_tag::OLDEST_ANCESTOR_TIME, meta.oldest_ancestor_time);
    put_varint_field(out, custom_tag::FILE_CREATION_TIME, meta.file_creation_time);
    put_varint_field(out, custom_tag::EPOCH_NUMBER, meta.epoch_number);
    if !meta.file_checksum_func.is_empty() {
        put_field(out, custom_tag::FILE_CHECKSUM, &meta.file_checksum);
        put_field(out, custom_tag::FILE_CHECKSUM_FUNC, &name::bytes(&meta.file_checksum_func));
    }
    if meta.path_id != 0 {
        // One byte, as RocksDB reads it; a family has at most a handful of paths.
        put_field(out, custom_tag::PATH_ID, &[meta.path_id as u8]);
    }
    if meta.temperature != 0 {
        put_field(out, custom_tag::TEMPERATURE, &[meta.temperature]);
    }
    if meta.marked_for_compaction {
        put_field(out, custom_tag::NEEDS_COMPACTION, &[1]);
    }
    put_varint_field(out, custom_tag::OLDEST_BLOB, meta.oldest_blob);
    if let Some((low, high)) = meta.unique_id {
        let mut id = Vec::with_capacity(16);
        put_u64(&mut id, low);
        put_u64(&mut id, high);
        put_field(out, custom_tag::UNIQUE_ID, &id);
    }
    if !meta.value_logs.is_empty() {
        let mut logs = Vec::with_capacity(10 * meta.value_logs.len());
        for share in &meta.value_logs {
            put_varint64(&mut logs, share.log.0);
            put_varint64(&mut logs, share.bytes);
        }
        put_field(out, custom_tag::VALUE_LOGS, &logs);
    }
    put_varint32(out, custom_tag::END);
}

fn put_field(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    put_varint32(out, tag);
    put_prefixed(out, bytes);
}

/// Omits 0: an absent field means 0.
fn put_varint_field(out: &mut Vec<u8>, tag: u32, value: u64) {
    if value != 0 {
        let mut bytes = Vec::with_capacity(10);
        put_varint64(&mut bytes, value);
        put_field(out, tag, &bytes);
    }
}
