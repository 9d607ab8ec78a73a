//! The file `meta/ID` lists a backup's files. Text as in RocksDB: writes schema 1, reads 1 and 2.
//!
//! ```text
//! 1795299786                              seconds since the epoch
//! 8                                       the number of the last write
//! metadata 6162                           may be there: what an application noted, in hexadecimal
//! 2                                       files
//! shared_checksum/000008_1_983.sst crc32 4014929544
//! private/1/CURRENT crc32 238867434       crc32c of the whole file, decimal
//! ```
//!
//! Schema 2 begins with `schema_version 2`. It may have more name-value lines at `metadata` and, after a line
//! `// FOOTER`, behind the files; and more name-value pairs after a file's path. Unknown names that begin with `ni::` are
//! refused. Every line up to the footer is a file: their number proves that the count and the list are whole.

use std::fmt::Write;
use std::str::Lines;

use base::{Error, Result, SeqNo};

use super::path::BackupPath;

/// Largest meta file read, in bytes: a million files and more (B2).
pub(super) const META_BYTES_MAX: u64 = 256 << 20;

const SCHEMA_PREFIX: &str = "schema_version ";
const NOTE: &str = "metadata";
const FOOTER: &str = "// FOOTER";
const MUST_KNOW_PREFIX: &str = "ni::";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MetaFile {
    /// Seconds since the epoch.
    pub timestamp_s: u64,
    pub last_seq: SeqNo,
    /// What an application noted; empty for nothing.
    pub note: Vec<u8>,
    pub files: Vec<MetaEntry>,
}

/// A file's entry in the meta file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MetaEntry {
    pub path: BackupPath,
    /// CRC-32C of the whole file. Always set in schema 1.
    pub crc32c: Option<u32>,
    /// Schema 2 only.
    pub bytes: Option<u64>,
}

impl MetaFile {
    /// The text, in schema 1.
    pub fn encode(&self) -> String {
        let mut text = format!("{}\n{}\n", self.timestamp_s, self.last_seq.0);
        if !self.note.is_empty() {
            let digits: String = self.note.iter().map(|byte| format!("{byte:02X}")).collect();
            writeln!(text, "{NOTE} {digits}").expect("strings take everything");
        }
        writeln!(text, "{}", self.files.len()).expect("strings take everything");
        for file in &self.files {
            let checksum = file.crc32c.unwrap_or_default();
            writeln!(text, "{} crc32 {checksum}", file.path).expect("strings take everything");
        }
        text
    }

    /// # Errors
    /// `Corruption`: malformed or truncated. `Unsupported`: an unknown schema, file or `ni::` name.
    pub fn decode(bytes: &[u8]) -> Result<MetaFile> {
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("is no text"))?;
        if !text.ends_with('\n') {
            return Err(damaged("is cut off: its last line has no end"));
        }
        let mut lines = text.lines();
        let mut first = next(&mut lines, "time")?;
        let schema = first.strip_prefix(SCHEMA_PREFIX).map(str::to_owned);
        if let Some(version) = &schema {
            if version.split('.').next() != Some("2") {
                return Err(Error::unsupported(format!("the meta file has schema {version}; 1 and 2 are known")));
            }
            first = next(&mut lines, "time")?;
        }
        let timestamp_s = number(first, "time")?;
        let last_seq = SeqNo(number(next(&mut lines, "number of the last write")?, "number of the last write")?);
        let mut line = next(&mut lines, "number of files")?;
        let mut note = Vec::new();
        while let Some((name, value)) = line.split_once(' ') {
            if name == NOTE {
                note = bytes_of(value)?;
            } else {
                check_may_be_passed_over(name, schema.is_some())?;
            }
            line = next(&mut lines, "number of files")?;
        }
        let count: u64 = number(line, "number of files")?;
        let is_file = |line: &&str| schema.is_none() || *line != FOOTER;
        let listed = lines.by_ref().take_while(is_file).map(|line| entry(line, schema.is_some()));
        let files = listed.collect::<Result<Vec<_>>>()?;
        if files.len() as u64 != count {
            return Err(damaged(&format!("lists {} files where it counts {count}", files.len())));
        }
        for line in lines {
            check_may_be_passed_over(line.split(' ').next().unwrap_or_default(), true)?;
        }
        Ok(MetaFile { timestamp_s, last_seq, note, files })
    }
}

fn damaged(what: &str) -> Error {
    Error::corruption(format!("the meta file {what}"))
}

fn next<'a>(lines: &mut Lines<'a>, what: &str) -> Result<&'a str> {
    lines.next().ok_or_else(|| damaged(&format!("ends where a line should be: {what}")))
}

fn number<N: std::str::FromStr>(text: &str, what: &str) -> Result<N> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit());
    let parsed = text.parse().ok().filter(|_| is_plain);
    parsed.ok_or_else(|| damaged(&format!("has {text:?} where a number should be: {what}")))
}

/// Bytes in hexadecimal digits.
fn bytes_of(digits: &str) -> Result<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((char::from(*high).to_digit(16)? << 4 | char::from(*low).to_digit(16)?) as u8),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
    bytes.ok_or_else(|| damaged(&format!("has {digits:?} in place of hexadecimal digits")))
}

fn check_may_be_passed_over(name: &str, is_known_place: bool) -> Result<()> {
    if name.starts_with(MUST_KNOW_PREFIX) {
        return Err(Error::unsupported(format!("the meta file says {name:?}, which must not be passed over")));
    }
    if is_known_place { Ok(()) } else { Err(damaged(&format!("has a line that does not belong there: {name:?}"))) }
}

/// Parses a file's line: its path, then name-value pairs; without `has_more_names` the checksum alone.
fn entry(line: &str, has_more_names: bool) -> Result<MetaEntry> {
    let mut words = line.split(' ');
    let text = words.next().unwrap_or_default();
    let path = BackupPath::parse(text).ok_or_else(|| {
        Error::unsupported(format!(
            "the meta file names {text:?}, which is no file of a database that this version knows"
        ))
    })?;
    let mut entry = MetaEntry { path, crc32c: None, bytes: None };
    while let Some(name) = words.next() {
        let value = words.next().ok_or_else(|| damaged(&format!("has no value for {name:?} in {line:?}")))?;
        match name {
            "crc32" => entry.crc32c = Some(number(value, "checksum")?),
            "size" if has_more_names => entry.bytes = Some(number(value, "size")?),
            _ => check_may_be_passed_over(name, has_more_names)?,
        }
    }
    if entry.crc32c.is_none() && !has_more_names {
        return Err(damaged(&format!("has no checksum in {line:?}")));
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use base::ErrorKind;

    use super::*;

    const ROCKSDBS: &str = "1795299786\n8\n2\n\
        shared_checksum/000008_s8MHKX21C8ULG2BUHOWY8_983.sst crc32 4014929544\n\
        private/1/CURRENT crc32 238867434\n";

    #[test]
    fn what_rocksdb_writes_reads_back_as_it_is() {
        let meta = MetaFile::decode(ROCKSDBS.as_bytes()).unwrap();
        assert_eq!((meta.timestamp_s, meta.last_seq, meta.files.len()), (1_795_299_786, SeqNo(8), 2));
        assert_eq!(meta.encode(), ROCKSDBS);
        let noted = ROCKSDBS.replace("\n8\n", "\n8\nmetadata 616F\n");
        let with_note = MetaFile::decode(noted.as_bytes()).unwrap();
        assert_eq!(with_note, MetaFile { note: b"ao".to_vec(), ..meta });
        assert_eq!(with_note.encode(), noted);
    }

    #[test]
    fn schema_2_is_read_and_what_must_be_known_is_refused() {
        let text =
            "schema_version 2.1\n5\n6\nplace here\n1\nprivate/1/CURRENT size 16 crc32 7 temp 2\n// FOOTER\nend x\n";
        let meta = MetaFile::decode(text.as_bytes()).unwrap();
        let path = BackupPath::parse("private/1/CURRENT").unwrap();
        assert_eq!(meta.files, [MetaEntry { path, crc32c: Some(7), bytes: Some(16) }]);
        for (from, to) in [("place", "ni::place"), ("temp", "ni::temp"), ("end", "ni::end"), ("2.1", "3")] {
            let error = MetaFile::decode(text.replace(from, to).as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        }
        for (from, to) in [("\n1\n", "\n0\n"), ("\n1\n", "\n3\n"), ("// FOOTER", "private/1/CURRENT")] {
            assert!(MetaFile::decode(text.replace(from, to).as_bytes()).is_err(), "{from:?} as {to:?}");
        }
    }

    #[test]
    fn every_cut_and_every_foreign_line_is_told() {
        for end in 0..ROCKSDBS.len() {
            assert!(MetaFile::decode(&ROCKSDBS.as_bytes()[..end]).is_err(), "the first {end} bytes");
        }
        for (from, to) in [
            ("\n8\n", "\n-8\n"),
            ("\n2\n", "\n18446744073709551615\n"),
            ("\n2\n", "\n1\n"),
            ("\n2\n", "\nplace here\n2\n"),
            ("\n2\n", "\nmetadata 616\n2\n"),
            ("\n2\n", "\nmetadata 6x\n2\n"),
            (" crc32 238867434", " crc32"),
            (" crc32 238867434", " crc22 238867434"),
            (" crc32 238867434", ""),
            (" crc32 238867434", " crc32 +1"),
            ("private/1/", "private/1/../"),
            ("1795299786", "\u{e9}"),
        ] {
            assert!(MetaFile::decode(ROCKSDBS.replacen(from, to, 1).as_bytes()).is_err(), "{from:?} as {to:?}");
        }
        assert!(MetaFile::decode(b"\xff\n").is_err());
    }
}
