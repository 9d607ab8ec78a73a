//! A MANIFEST as text: one line per edit, starting with the offset of its record. For people and for golden tests.

use std::fmt::{self, Display, Write};
use std::path::Path;

use base::{FileNumber, Result, key};
use vfs::Vfs;

use super::edit::VersionEdit;
use super::file_name::{self, FileType};
use super::manifest_copy::Comparison;
use super::recover::read_edits_from;
use super::session::Session;
use super::table_file::FileMeta;

/// Calls `line` with each edit of the MANIFEST at `path`, then with warnings about a cut-off end, prefixed by `#`. Compares it
/// with its copy, if that lies beside it.
///
/// # Errors
/// As [`recover`](super::recover::recover) for damage, a lost end and unsupported fields. Earlier edits have been shown by then.
pub fn dump(vfs: &dyn Vfs, path: &Path, line: &mut dyn FnMut(&str)) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new(""));
    let manifest = match path.file_name().and_then(|name| file_name::parse(name.to_str()?)) {
        Some((FileType::Manifest, number)) => Some(number),
        _ => None,
    };
    let mut comparison = manifest.map(|number| Comparison::begin(vfs, dir, number)).transpose()?;
    let mut end = 0;
    let warnings = read_edits_from(vfs, path, 0, |record_end, record, edits| {
        end = record_end;
        comparison.iter_mut().for_each(|comparison| comparison.see(record));
        for edit in edits {
            line(&format!("{}: {}", record.offset, EditText(&edit)));
        }
        Ok(())
    })?;
    for warning in warnings {
        line(&format!("# {warning}"));
    }
    if end == 0 {
        line("# it has no record: it was never written, or is lost");
    }
    match manifest.zip(comparison) {
        Some((number, comparison)) => comparison.check(dir, number, Some(end)),
        None => Ok(()),
    }
}

/// An edit on one line.
struct EditText<'a>(&'a VersionEdit);

impl Display for EditText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edit = self.0;
        write!(f, "family {}", edit.family.0)?;
        write_families(f, edit)?;
        write_numbers(f, edit)?;
        for (level, key) in &edit.compact_cursors {
            write!(f, ", compaction cursor L{level} {}", KeyText(key))?;
        }
        for (level, number) in &edit.deleted {
            write!(f, ", - L{level} {number}")?;
        }
        for (level, meta) in &edit.added {
            write!(f, ", + L{level} {}", TableText(meta))?;
        }
        Ok(())
    }
}

fn write_families(f: &mut fmt::Formatter<'_>, edit: &VersionEdit) -> fmt::Result {
    write_field(f, "fence", &edit.fence)?;
    if let Some(left) = edit.atomic_group {
        write!(f, ", in a group with {left} to follow")?;
    }
    if let Some(id) = &edit.db_id {
        write!(f, ", database {id:?}")?;
    }
    if let Some(name) = &edit.add_family {
        write!(f, ", create {name:?}")?;
    }
    if edit.drop_family {
        f.write_str(", drop")?;
    }
    if let Some(name) = &edit.comparator {
        write!(f, ", comparator {name:?}")?;
    }
    if edit.value_times {
        f.write_str(", values with times")?;
    }
    Ok(())
}

fn write_numbers(f: &mut fmt::Formatter<'_>, edit: &VersionEdit) -> fmt::Result {
    let number = |number: &Option<FileNumber>| number.map(|n| n.0);
    write_field(f, "log", &number(&edit.log_number))?;
    write_field(f, "previous log", &number(&edit.prev_log))?;
    write_field(f, "next file", &number(&edit.next_file))?;
    write_field(f, "largest family", &edit.max_family)?;
    write_field(f, "keep logs from", &number(&edit.min_log_to_keep))?;
    write_field(f, "last", &edit.last_seq)?;
    write_field(f, "flushed through", &edit.flushed_through)?;
    for (log, bytes) in &edit.tracked_logs {
        write!(f, ", {bytes} bytes of log {} synced", log.0)?;
    }
    write_field(f, "synced logs from", &number(&edit.tracked_from))?;
    for end in &edit.log_ends {
        write!(f, ", log {} ends at byte {} with {}", end.log.0, end.end_offset, end.last_seq)?;
    }
    if let Some(range) = &edit.wal_range {
        match range.newest {
            Some(newest) => write!(f, ", logs {} to {}", range.oldest.0, newest.0)?,
            None => write!(f, ", no logs through {}", range.last().0)?,
        }
    }
    if let Some(frontiers) = &edit.log_frontiers {
        let (synced, published) = (frontiers.synced, frontiers.published);
        write!(f, ", log {} synced through byte {}", synced.log.0, synced.offset)?;
        write!(f, ", log {} written through byte {}", published.log.0, published.offset)?;
    }
    if let Some(dir) = &edit.log_dir {
        write!(f, ", logs in {dir:?}")?;
    }
    if let Some(home) = &edit.home {
        write!(f, ", of the database in {home:?}")?;
    }
    for Session { id, from, after } in edit.sessions.iter().flatten() {
        write!(f, ", session {id:08x} from file {} on, after {after}", from.0)?;
    }
    write_field(f, "options file", &edit.options_file)?;
    for seq in &edit.linked_ingests {
        write!(f, ", linked ingest {seq}")?;
    }
    Ok(())
}

fn write_field<T: Display>(f: &mut fmt::Formatter<'_>, name: &str, value: &Option<T>) -> fmt::Result {
    match value {
        Some(value) => write!(f, ", {name} {value}"),
        None => Ok(()),
    }
}

/// A table: number, size, span, sequence numbers, and the optional fields in use.
struct TableText<'a>(&'a FileMeta);

impl Display for TableText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meta = self.0;
        write!(f, "{} {} bytes {}..{}", meta.number, meta.file_bytes, KeyText(&meta.smallest), KeyText(&meta.largest))?;
        if let Some(backing) = meta.backing {
            write!(f, " in {} of {} bytes", backing.number, backing.file_bytes)?;
        }
        write!(f, " seq {}..{} epoch {}", meta.smallest_seq, meta.largest_seq, meta.epoch_number)?;
        for (name, value) in [
            ("path", u64::from(meta.path_id)),
            ("temperature", u64::from(meta.temperature)),
            ("oldest", meta.oldest_ancestor_time),
            ("created", meta.file_creation_time),
            ("blob", meta.oldest_blob),
        ] {
            if value != 0 {
                write!(f, " {name} {value}")?;
            }
        }
        if meta.marked_for_compaction {
            f.write_str(" marked")?;
        }
        if !meta.file_checksum_func.is_empty() {
            write!(f, " checksum {}:", meta.file_checksum_func)?;
            meta.file_checksum.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        if let Some((low, high)) = meta.unique_id {
            write!(f, " id {low:016x}-{high:016x}")?;
        }
        Ok(())
    }
}

/// An internal key: `'user key'@number:kind`, the kind in hexadecimal.
struct KeyText<'a>(&'a [u8]);

impl Display for KeyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((user_key, trailer)) = key::split(self.0) else {
            return write!(f, "'{}'", self.0.escape_ascii());
        };
        f.write_char('\'')?;
        write!(f, "{}", user_key.escape_ascii())?;
        write!(f, "'@{}:{:x}", trailer >> 8, trailer & 0xff)
    }
}
