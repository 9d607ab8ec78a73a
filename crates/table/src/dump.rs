//! A table as text, for the command line.

use std::fmt::Write;
use std::sync::Arc;

use base::key::{self, ParsedKey};
use base::{Cursor, Result};
use vfs::IoClass;

use memtable::image::Header;

use crate::converted::FORMAT;
use crate::reader::Fetch;
use crate::{AnyTable, BlockBasedTable, ConvertedTable, Table, TableReadOptions};
#[cfg(feature = "topling")]
use crate::{FastTable, ZipTable};

/// Part of a table to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpPart {
    /// Footer and metaindex, or the description of an image.
    Layout,
    /// The properties.
    Properties,
    /// Every data block: separator, first key if indexed, position. The groups of a fast or zip table. A converted
    /// table has none.
    Index,
    /// Every entry.
    Entries,
    /// The range tombstones.
    Tombstones,
}

/// Passes the text of one part to `line`, line by line, until `line` returns false.
///
/// # Errors
/// `Corruption`: damage. The lines before it were shown.
pub fn dump_any(table: &AnyTable, part: DumpPart, line: &mut dyn FnMut(&str) -> bool) -> Result<()> {
    match (part, table) {
        (DumpPart::Layout, AnyTable::BlockBased(table)) => layout(table, line),
        (DumpPart::Layout, AnyTable::Converted(table)) => return image_layout(table, line),
        (DumpPart::Index, AnyTable::BlockBased(table)) => return index(table, line),
        #[cfg(feature = "topling")]
        (DumpPart::Layout, AnyTable::Fast(table)) => show(table.layout(), line),
        #[cfg(feature = "topling")]
        (DumpPart::Index, AnyTable::Fast(table)) => return groups(table, line),
        #[cfg(feature = "topling")]
        (DumpPart::Layout, AnyTable::Zip(table)) => show(table.layout(), line),
        #[cfg(feature = "topling")]
        (DumpPart::Index, AnyTable::Zip(table)) => show(zip_groups(table), line),
        (DumpPart::Index, AnyTable::Converted(_)) => {}
        (DumpPart::Properties, table) => properties(table.table(), line),
        (DumpPart::Entries, table) => return entries(table.clone().into_table(), line),
        (DumpPart::Tombstones, table) => tombstones(table.table(), line),
    }
    Ok(())
}

fn show(lines: impl IntoIterator<Item = String>, line: &mut dyn FnMut(&str) -> bool) {
    lines.into_iter().take_while(|text| line(text)).for_each(drop);
}

fn layout(table: &BlockBasedTable, line: &mut dyn FnMut(&str) -> bool) {
    let footer = table.file().footer();
    let mut lines = vec![
        format!("format version: {}", footer.format_version),
        format!("checksum: {:?}", footer.checksum),
        format!("metaindex: {}+{}", footer.metaindex.offset, footer.metaindex.size),
    ];
    if let Some(index) = footer.index {
        lines.push(format!("index: {}+{}", index.offset, index.size));
    }
    lines.extend(table.metaindex().iter().map(|(name, handle)| format!("{name}: {}+{}", handle.offset, handle.size)));
    show(lines, line);
}

fn image_layout(table: &ConvertedTable, line: &mut dyn FnMut(&str) -> bool) -> Result<()> {
    let header = Header::read(table.image())?;
    let lines = vec![
        format!("format version: {}, {}", FORMAT.version, FORMAT.name),
        format!("representation: {}", header.representation),
        format!("order: {}", header.order),
        format!("image: 0+{}", table.image().len()),
        format!("head: {}", header.head),
    ];
    show(lines, line);
    Ok(())
}

fn properties(table: &dyn Table, line: &mut dyn FnMut(&str) -> bool) {
    let p = table.properties();
    let numbers = [
        ("data bytes", p.data_bytes),
        ("index bytes", p.index_bytes),
        ("index partitions", p.index_partitions),
        ("filter bytes", p.filter_bytes),
        ("filter entries", p.filter_entries),
        ("raw key bytes", p.raw_key_bytes),
        ("raw value bytes", p.raw_value_bytes),
        ("data blocks", p.data_blocks),
        ("entries", p.entries),
        ("deletions", p.deletions),
        ("merge operands", p.merge_operands),
        ("range deletions", p.range_deletions),
        ("creation time", p.creation_time_s),
        ("oldest key time", p.oldest_key_time_s),
        ("file creation time", p.file_creation_time_s),
        ("original file number", p.original_file_number),
    ];
    let texts = [
        ("index type", p.index_type.name()),
        ("comparator", &p.comparator),
        ("merge operator", &p.merge_operator),
        ("prefix extractor", &p.prefix_extractor),
        ("filter policy", &p.filter_policy),
        ("compression", &p.compression),
        ("compression options", &p.compression_options),
        ("family", &p.family_name),
        ("database", &p.db_id),
        ("session", &p.session_id),
        ("host", &p.host_id),
    ];
    let mut lines: Vec<String> = numbers.iter().map(|(name, number)| format!("{name}: {number}")).collect();
    lines.extend(texts.iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| format!("{name}: {text}")));
    if let Some(family) = p.family_id {
        lines.push(format!("family id: {family}"));
    }
    if let Some(external) = p.external {
        lines.push(format!("external file: version {}, number {}", external.version, external.global_seqno));
    }
    lines.extend(p.other.iter().map(|(name, value)| format!("{name}: {}", readable(value))));
    show(lines, line);
}

fn index(table: &BlockBasedTable, line: &mut dyn FnMut(&str) -> bool) -> Result<()> {
    let fetch =
        Fetch { verify_checksums: true, ask_cache: true, fill_cache: false, memory_only: false, class: IoClass::Other };
    table.for_each_index_entry(fetch, |block, slot| {
        let separator =
            if block.has_user_keys() { readable(slot.separator) } else { readable_internal(slot.separator) };
        let mut text = format!("{}+{} {separator}", slot.handle.offset, slot.handle.size);
        if !slot.first_key.is_empty() {
            let _ = write!(text, " from {}", readable_internal(slot.first_key));
        }
        line(&text)
    })
}

#[cfg(feature = "topling")]
fn groups(table: &FastTable, line: &mut dyn FnMut(&str) -> bool) -> Result<()> {
    table.for_each_group(|at, bytes, len, first_key| {
        line(&format!("{at}+{bytes}: {len} entries from {}", readable_internal(first_key)))
    })
}

#[cfg(feature = "topling")]
fn zip_groups(table: &ZipTable) -> impl Iterator<Item = String> {
    table.groups().map(|(place, entries, separator)| {
        let bytes = place.end - place.start;
        format!("{}+{bytes}: {entries} entries behind {}", place.start, readable(separator))
    })
}

fn entries(table: Arc<dyn Table>, line: &mut dyn FnMut(&str) -> bool) -> Result<()> {
    let options = TableReadOptions { fill_cache: false, class: IoClass::Other, ..TableReadOptions::default() };
    let mut cursor = table.cursor(&options);
    let mut valid = cursor.seek_to_first();
    while valid {
        if !line(&format!("{} => {}", readable_internal(cursor.key()), readable(cursor.value()))) {
            return Ok(());
        }
        valid = cursor.next();
    }
    cursor.status()
}

fn tombstones(table: &dyn Table, line: &mut dyn FnMut(&str) -> bool) {
    let Some(all) = table.tombstones() else { return };
    let lines = all.fragments().iter().map(|fragment| {
        let seqs: Vec<String> = fragment.seqs.iter().map(|seq| seq.to_string()).collect();
        format!("[{}, {}) at {}", readable(&fragment.start), readable(&fragment.end), seqs.join(", "))
    });
    show(lines, line);
}

/// `user key @ number : kind`.
fn readable_internal(internal_key: &[u8]) -> String {
    match ParsedKey::parse(internal_key) {
        Some(entry) => format!("{} @ {} : {:?}", readable(entry.user_key), entry.seq, entry.kind),
        None => match key::split(internal_key) {
            Some((user_key, trailer)) => format!("{} @ {} : {:#x}", readable(user_key), trailer >> 8, trailer & 0xff),
            None => readable(internal_key),
        },
    }
}

/// Printable bytes as they are, the rest as `\xNN`.
fn readable(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
