//! Encoding of edits: RocksDB's VersionEdit and our private tags. Format: docs/format/manifest.md.
//!
//! Unknown tags are skipped if RocksDB's ignorable bit (8192) is set, else refused. Our own tags have the bit clear:
//! RocksDB refuses a directory with data it would not see. Keeps B1 and B2.

use base::coding::{Reader, put_prefixed, put_varint32, put_varint64};
use base::name;
use base::{Error, FamilyId, Result};
use wal::{Frontiers, Position};

use super::edit::{LogEnd, VersionEdit, WalRange};
use super::file_meta_codec::{self, Form, decode_internal_key, decode_level, decode_number, decode_seq, text};
use super::session;
use super::table_file::Backing;

/// RocksDB's tags.
mod tag {
    pub const COMPARATOR: u32 = 1;
    pub const LOG_NUMBER: u32 = 2;
    pub const NEXT_FILE: u32 = 3;
    pub const LAST_SEQUENCE: u32 = 4;
    pub const COMPACT_CURSOR: u32 = 5;
    pub const DELETED_FILE: u32 = 6;
    pub const NEW_FILE: u32 = 7;
    pub const PREV_LOG: u32 = 9;
    pub const MIN_LOG_TO_KEEP: u32 = 10;
    pub const NEW_FILE_2: u32 = 100;
    pub const NEW_FILE_3: u32 = 102;
    pub const NEW_FILE_4: u32 = 103;
    pub const FAMILY: u32 = 200;
    pub const FAMILY_ADD: u32 = 201;
    pub const FAMILY_DROP: u32 = 202;
    pub const MAX_FAMILY: u32 = 203;
    pub const ATOMIC_GROUP: u32 = 300;
    pub const BLOB_FILE_ADDITION: u32 = 400;
    pub const BLOB_FILE_GARBAGE: u32 = 401;
    /// A tag with this bit may be skipped. Its field has a length prefix.
    pub const IGNORABLE_BIT: u32 = 8192;
    pub const DB_ID: u32 = 8193;
    pub const OLD_BLOB_FILE_ADDITION: u32 = 8194;
    pub const OLD_BLOB_FILE_GARBAGE: u32 = 8195;
    /// This tag and the next have no length prefix, whatever the bit says.
    pub const OLD_WAL_ADDITION: u32 = 8196;
    pub const OLD_WAL_DELETION: u32 = 8197;
    pub const FULL_HISTORY_TIMESTAMP: u32 = 8198;
    pub const WAL_ADDITION: u32 = 8199;
    pub const WAL_DELETION: u32 = 8200;
    pub const PERSIST_TIMESTAMPS: u32 = 8201;
}

/// Our tags, far from RocksDB's, with `tag::IGNORABLE_BIT` clear but for four. Every field has a length prefix.
mod private_tag {
    /// "SP" in the high half.
    const BASE: u32 = 0x5350_0000;
    pub const FENCE: u32 = BASE + 1;
    pub const FLUSHED_THROUGH: u32 = BASE + 2;
    pub const LOG_END: u32 = BASE + 3;
    pub const LINKED_INGEST: u32 = BASE + 4;
    /// Ends one edit and starts the next in the same record. Edits committed together share one record, whole or torn
    /// as a unit.
    pub const NEXT_EDIT: u32 = BASE + 7;
    pub const WAL_RANGE: u32 = BASE + 8;
    pub const LOG_DIR: u32 = BASE + 9;
    /// Replaces `WAL_RANGE` if no WAL is needed.
    pub const NO_LOGS: u32 = BASE + 10;
    // BASE + 5 was never written, and is refused as unknown.
    /// Synced and published position in the logs. Earlier versions pass over it.
    pub const LOG_FRONTIERS: u32 = BASE + super::tag::IGNORABLE_BIT + 1;
    /// Number of the last OPTIONS file. Earlier versions pass over it.
    pub const OPTIONS_FILE: u32 = BASE + super::tag::IGNORABLE_BIT + 2;
    /// As RocksDB's `WAL_ADDITION`, which it passes over here: where an option is off that tells it to verify its logs, opens for
    /// reading of 7.8 to 9.8 crash on their own tag.
    pub const EXPORTED_LOG: u32 = BASE + super::tag::IGNORABLE_BIT + 3;
    /// The family's values end with their times. RocksDB and earlier versions pass over it.
    pub const VALUE_TIMES: u32 = BASE + super::tag::IGNORABLE_BIT + 5;
    /// The database's directory, beside a `LOG_DIR`. Earlier versions pass over it.
    pub const HOME: u32 = BASE + super::tag::IGNORABLE_BIT + 6;
    /// The opens for writing. Earlier versions pass over it.
    pub const SESSIONS: u32 = BASE + super::tag::IGNORABLE_BIT + 7;
    /// Follows an added virtual table: its backing file.
    pub const TABLE_BOUNDS: u32 = BASE + 6;
}

/// Last field of `LOG_END` if the WAL was not synced before its end was noted.
const NOT_ON_DISK: u64 = 1;

/// Offsets in files are signed.
const FILE_BYTES_MAX: u64 = i64::MAX as u64;

fn encode(out: &mut Vec<u8>, edit: &VersionEdit) {
    encode_private(out, edit);
    if let Some(id) = &edit.db_id {
        put_tagged_bytes(out, tag::DB_ID, &name::bytes(id));
    }
    if let Some(name) = &edit.comparator {
        put_tagged_bytes(out, tag::COMPARATOR, &name::bytes(name));
    }
    put_tagged_number(out, tag::LOG_NUMBER, edit.log_number.map(|n| n.0));
    put_tagged_number(out, tag::PREV_LOG, edit.prev_log.map(|n| n.0));
    put_tagged_number(out, tag::NEXT_FILE, edit.next_file.map(|n| n.0));
    put_tagged_number(out, tag::MAX_FAMILY, edit.max_family.map(u64::from));
    put_tagged_number(out, tag::MIN_LOG_TO_KEEP, edit.min_log_to_keep.map(|n| n.0));
    put_tagged_number(out, tag::LAST_SEQUENCE, edit.last_seq.map(|n| n.0));
    for (level, key) in &edit.compact_cursors {
        put_tagged_number(out, tag::COMPACT_CURSOR, Some(*level as u64));
        put_prefixed(out, key);
    }
    for (level, number) in &edit.deleted {
        put_tagged_number(out, tag::DELETED_FILE, Some(*level as u64));
        put_varint64(out, number.0);
    }
    for (level, meta) in &edit.added {
        file_meta_codec::encode(out, *level, meta);
        if let Some(backing) = meta.backing {
            put_private(out, private_tag::TABLE_BOUNDS, &[meta.number.0, backing.number.0, backing.file_bytes]);
        }
    }
    if edit.family != FamilyId::DEFAULT {
        put_tagged_number(out, tag::FAMILY, Some(u64::from(edit.family.0)));
    }
    if let Some(name) = &edit.add_family {
        put_tagged_bytes(out, tag::FAMILY_ADD, &name::bytes(name));
    }
    if edit.drop_family {
        put_varint32(out, tag::FAMILY_DROP);
    }
    put_tagged_number(out, tag::ATOMIC_GROUP, edit.atomic_group.map(u64::from));
}

fn encode_private(out: &mut Vec<u8>, edit: &VersionEdit) {
    if let Some(version) = edit.fence {
        put_private(out, private_tag::FENCE, &[u64::from(version)]);
    }
    if let Some(through) = edit.flushed_through {
        put_private(out, private_tag::FLUSHED_THROUGH, &[through.0]);
    }
    for end in &edit.log_ends {
        let fields = [end.log.0, end.end_offset, end.last_seq.0, NOT_ON_DISK];
        let written = if end.on_disk { &fields[..3] } else { &fields[..] };
        put_private(out, private_tag::LOG_END, written);
    }
    if let Some(range) = &edit.wal_range {
        match range.newest {
            Some(newest) => put_private(out, private_tag::WAL_RANGE, &[range.oldest.0, newest.0]),
            None => put_private(out, private_tag::NO_LOGS, &[range.last().0]),
        }
    }
    if let Some(Frontiers { synced, published }) = &edit.log_frontiers {
        let fields = [synced.log.0, synced.offset, published.log.0, published.offset];
        put_private(out, private_tag::LOG_FRONTIERS, &fields);
    }
    if let Some(dir) = &edit.log_dir {
        put_tagged_bytes(out, private_tag::LOG_DIR, &name::bytes(dir));
    }
    if let Some(home) = &edit.home {
        put_tagged_bytes(out, private_tag::HOME, &name::bytes(home));
    }
    if let Some(sessions) = &edit.sessions {
        put_tagged_bytes(out, private_tag::SESSIONS, &session::encode(sessions));
    }
    if let Some(number) = edit.options_file {
        put_private(out, private_tag::OPTIONS_FILE, &[number.0]);
    }
    for seq in &edit.linked_ingests {
        put_private(out, private_tag::LINKED_INGEST, &[seq.0]);
    }
    for (log, bytes) in &edit.tracked_logs {
        put_private(out, private_tag::EXPORTED_LOG, &[log.0, 2, *bytes, 1]);
    }
    if edit.value_times {
        put_private(out, private_tag::VALUE_TIMES, &[]);
    }
}

fn put_tagged_number(out: &mut Vec<u8>, tag: u32, number: Option<u64>) {
    if let Some(number) = number {
        put_varint32(out, tag);
        put_varint64(out, number);
    }
}

fn put_tagged_bytes(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    put_varint32(out, tag);
    put_prefixed(out, bytes);
}

fn put_private(out: &mut Vec<u8>, tag: u32, numbers: &[u64]) {
    let mut field = Vec::new();
    for &number in numbers {
        put_varint64(&mut field, number);
    }
    put_tagged_bytes(out, tag, &field);
}

/// Encodes edits committed together as one record. A single edit without private fields is RocksDB's record.
pub fn encode_record(edits: &[VersionEdit]) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, edit) in edits.iter().enumerate() {
        if i > 0 {
            put_private(&mut out, private_tag::NEXT_EDIT, &[]);
        }
        encode(&mut out, edit);
    }
    out
}

/// Decodes the edits of a record, nearly always one. An empty record is an edit without changes; RocksDB 11 writes such
/// records.
///
/// # Errors
/// `Corruption` if the bytes are not an edit, `Unsupported` for unsupported fields. Both name the tag and its offset in
/// the record. The caller adds file and offset.
pub fn decode_record(record: &[u8]) -> Result<Vec<VersionEdit>> {
    let mut edits = Vec::new();
    let mut edit = VersionEdit::default();
    let mut reader = Reader::new(record);
    while !reader.is_empty() {
        let at = record.len() - reader.len();
        let tag = reader.varint32("tag of an edit").map_err(|e| e.context(format!("byte {at} of the record")))?;
        if tag == private_tag::NEXT_EDIT {
            reader.prefixed("border between edits")?;
            edits.push(std::mem::take(&mut edit));
            continue;
        }
        decode_field(tag, &mut reader, &mut edit)
            .map_err(|e| e.context(format!("tag {tag} at byte {at} of the record")))?;
    }
    edits.push(edit);
    Ok(edits)
}

fn decode_field(tag: u32, reader: &mut Reader<'_>, edit: &mut VersionEdit) -> Result<()> {
    match tag {
        tag::COMPARATOR => edit.comparator = Some(text(reader.prefixed("comparator")?)),
        tag::LOG_NUMBER => edit.log_number = Some(decode_number(reader, "log number")?),
        tag::PREV_LOG => edit.prev_log = Some(decode_number(reader, "previous log number")?),
        tag::NEXT_FILE => edit.next_file = Some(decode_number(reader, "next file number")?),
        tag::LAST_SEQUENCE => edit.last_seq = Some(decode_seq(reader, "last sequence number")?),
        tag::MIN_LOG_TO_KEEP => edit.min_log_to_keep = Some(decode_number(reader, "log to keep")?),
        tag::COMPACT_CURSOR => {
            let level = decode_level(reader)?;
            edit.compact_cursors.push((level, decode_internal_key(reader, "compaction cursor")?));
        }
        tag::DELETED_FILE => {
            let level = decode_level(reader)?;
            edit.deleted.push((level, decode_number(reader, "deleted table")?));
        }
        tag::NEW_FILE => decode_new_file(reader, Form::NewFile, edit)?,
        tag::NEW_FILE_2 => decode_new_file(reader, Form::NewFile2, edit)?,
        tag::NEW_FILE_3 => decode_new_file(reader, Form::NewFile3, edit)?,
        tag::NEW_FILE_4 => decode_new_file(reader, Form::NewFile4, edit)?,
        tag::FAMILY => edit.family = FamilyId(reader.varint32("family")?),
        tag::FAMILY_ADD => edit.add_family = Some(text(reader.prefixed("family name")?)),
        tag::FAMILY_DROP => edit.drop_family = true,
        tag::MAX_FAMILY => edit.max_family = Some(reader.varint32("largest family")?),
        tag::ATOMIC_GROUP => edit.atomic_group = Some(reader.varint32("edits left in the group")?),
        tag::DB_ID => edit.db_id = Some(text(reader.prefixed("database id")?)),
        tag::OLD_WAL_ADDITION => decode_wal_addition(reader, edit)?,
        tag::WAL_ADDITION | private_tag::EXPORTED_LOG => {
            decode_wal_addition(&mut Reader::new(reader.prefixed("added log")?), edit)?
        }
        tag::OLD_WAL_DELETION => edit.tracked_from = Some(decode_number(reader, "deleted logs")?),
        tag::WAL_DELETION => {
            let mut field = Reader::new(reader.prefixed("deleted logs")?);
            edit.tracked_from = Some(decode_number(&mut field, "deleted logs")?);
        }
        private_tag::FENCE..=private_tag::LINKED_INGEST | private_tag::WAL_RANGE | private_tag::NO_LOGS => {
            decode_private(tag, reader, edit)?;
        }
        private_tag::LOG_FRONTIERS => edit.log_frontiers = Some(decode_frontiers(reader)?),
        private_tag::OPTIONS_FILE => {
            let mut field = Reader::new(reader.prefixed("OPTIONS file")?);
            edit.options_file = Some(decode_number(&mut field, "OPTIONS file")?);
        }
        private_tag::VALUE_TIMES => {
            reader.prefixed("times of values")?; // a field is of later versions
            edit.value_times = true;
        }
        private_tag::TABLE_BOUNDS => decode_table_bounds(reader, edit)?,
        private_tag::HOME => edit.home = Some(text(reader.prefixed("directory")?)),
        private_tag::SESSIONS => edit.sessions = Some(session::decode(reader.prefixed("sessions")?)?),
        private_tag::LOG_DIR => edit.log_dir = Some(text(reader.prefixed("log directory")?)),
        _ => pass_over(tag, reader)?,
    }
    Ok(())
}

fn decode_new_file(reader: &mut Reader<'_>, form: Form, edit: &mut VersionEdit) -> Result<()> {
    let file = file_meta_codec::decode(reader, form)?;
    edit.min_log_to_keep = file.min_log_to_keep.or(edit.min_log_to_keep);
    edit.added.push((file.level, file.meta));
    Ok(())
}

fn decode_private(tag: u32, reader: &mut Reader<'_>, edit: &mut VersionEdit) -> Result<()> {
    let mut field = Reader::new(reader.prefixed("private field")?);
    match tag {
        private_tag::FENCE => edit.fence = Some(field.varint32("version of the private formats")?),
        private_tag::FLUSHED_THROUGH => edit.flushed_through = Some(decode_seq(&mut field, "flushed-through number")?),
        private_tag::LOG_END => edit.log_ends.push(LogEnd {
            log: decode_number(&mut field, "log")?,
            end_offset: field.varint64("end of a log")?,
            last_seq: decode_seq(&mut field, "last number of a log")?,
            on_disk: field.is_empty() || decode_not_on_disk(&mut field)?,
        }),
        private_tag::WAL_RANGE => edit.wal_range = Some(decode_wal_range(&mut field)?),
        private_tag::NO_LOGS => edit.wal_range = Some(WalRange::none_through(decode_number(&mut field, "last log")?)),
        _ => edit.linked_ingests.push(decode_seq(&mut field, "number of an ingest")?),
    }
    if field.is_empty() { Ok(()) } else { Err(Error::corruption("a private field is too long")) }
}

/// Fields behind the four are of later versions.
fn decode_frontiers(reader: &mut Reader<'_>) -> Result<Frontiers> {
    let mut field = Reader::new(reader.prefixed("frontiers of the logs")?);
    let mut position = || -> Result<Position> {
        Ok(Position { log: decode_number(&mut field, "log")?, offset: field.varint64("offset in a log")? })
    };
    Ok(Frontiers { synced: position()?, published: position()? })
}

fn decode_not_on_disk(field: &mut Reader<'_>) -> Result<bool> {
    match field.varint64("state of a log")? {
        NOT_ON_DISK => Ok(false),
        state => Err(Error::corruption(format!("a log in the unknown state {state}"))),
    }
}

/// Decodes the backing file of the table before it. The table is the part of the file between its own bounds.
fn decode_table_bounds(reader: &mut Reader<'_>, edit: &mut VersionEdit) -> Result<()> {
    let mut field = Reader::new(reader.prefixed("private field")?);
    let table = decode_number(&mut field, "virtual table")?;
    let number = decode_number(&mut field, "file of a virtual table")?;
    let backing = Backing { number, file_bytes: field.varint64("size of the file of a virtual table")? };
    let refused = |what: &str| Err(Error::corruption(format!("virtual table {table} {what}")));
    let Some((_, meta)) = edit.added.last_mut().filter(|(_, meta)| meta.number == table && !meta.is_virtual()) else {
        return refused("does not stand behind the table itself");
    };
    if number == table {
        return refused("is said to lie in a file of its own number");
    }
    if backing.file_bytes > FILE_BYTES_MAX || meta.file_bytes > backing.file_bytes {
        let (share, bytes) = (meta.file_bytes, backing.file_bytes);
        return refused(&format!("has {share} bytes of file {number}, which has {bytes}"));
    }
    meta.backing = Some(backing);
    if field.is_empty() { Ok(()) } else { Err(Error::corruption("a private field is too long")) }
}

fn decode_wal_range(field: &mut Reader<'_>) -> Result<WalRange> {
    let (oldest, newest) = (decode_number(field, "oldest log")?, decode_number(field, "newest log")?);
    if oldest > newest {
        return Err(Error::corruption(format!("the logs are said to go from {oldest} to {newest}")));
    }
    Ok(WalRange { oldest, newest: Some(newest) })
}

/// Skips fields without meaning for us. Refuses fields unsafe to skip.
fn pass_over(tag: u32, reader: &mut Reader<'_>) -> Result<()> {
    match tag {
        tag::BLOB_FILE_ADDITION | tag::BLOB_FILE_GARBAGE | tag::OLD_BLOB_FILE_ADDITION | tag::OLD_BLOB_FILE_GARBAGE => {
            Err(Error::unsupported(
                "blob files are not read: set enable_blob_files=false in RocksDB and compact all with \
                 enable_blob_garbage_collection first",
            ))
        }
        tag::FULL_HISTORY_TIMESTAMP => Err(Error::unsupported("user-defined timestamps (full_history_ts_low)")),
        tag::PERSIST_TIMESTAMPS => {
            // RocksDB 11.x writes this for every family; 0 only with timestamps kept in memory alone.
            match Reader::new(reader.prefixed("timestamps mark")?).u8("timestamps mark")? {
                0 => Err(Error::unsupported("user-defined timestamps that are not persisted")),
                _ => Ok(()),
            }
        }
        _ if tag & tag::IGNORABLE_BIT != 0 => reader.prefixed("a field that may be passed over").map(drop),
        _ => Err(Error::unsupported("unknown, and not to be passed over")),
    }
}

/// A WAL number, then tags: 1 ends, 2 has the synced size.
fn decode_wal_addition(reader: &mut Reader<'_>, edit: &mut VersionEdit) -> Result<()> {
    let (log, mut bytes) = (decode_number(reader, "added log")?, 0);
    loop {
        match reader.varint32("tag of an added log")? {
            1 => {
                edit.tracked_logs.push((log, bytes));
                return Ok(());
            }
            2 => bytes = reader.varint64("synced size of a log")?,
            other => return Err(Error::corruption(format!("an added log has the unknown tag {other}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rocksdb_must_stop_at_private_tags() {
        for private in private_tag::FENCE..=private_tag::NO_LOGS {
            assert_eq!(private & tag::IGNORABLE_BIT, 0);
            assert!(private > 2 * tag::IGNORABLE_BIT, "clear of RocksDB's own");
        }
    }
}
