//! Formats and parses the names of a database's files.

use std::collections::BTreeSet;
use std::path::Path;

use base::{FileNumber, Result};
use vfs::Vfs;

/// The largest file number: RocksDB keeps the path id in the two bits above.
pub const FILE_NUMBER_MAX: u64 = (1 << 62) - 1;

/// Subdirectory for tables not yet part of the database, written by the holder of `LOCK`. Without a holder it is the
/// leftover of a killed process.
pub const LOAD_DIR: &str = "load.tmp";

/// Type of a file in a database directory, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileType {
    /// `NNNNNN.sst`
    Table,
    /// `NNNNNN.splog`: our WAL.
    Log,
    /// `NNNNNN.spbatch`: one large batch, committed by a record in a WAL.
    LargeBatch,
    /// `NNNNNN.spmem`: the memory of a memtable; it may become the table of the same number.
    MemtableImage,
    /// `NNNNNN.log`: RocksDB's WAL; read and deleted, written into exports only.
    RocksLog,
    /// `MANIFEST-NNNNNN`
    Manifest,
    /// `NNNNNN.spmanifest`: the second copy of `MANIFEST-NNNNNN`.
    ManifestCopy,
    /// `OPTIONS-NNNNNN`
    Options,
    /// `NNNNNN.dbtmp`: incomplete file before its rename; deleted at open.
    Temp,
    /// `CURRENT`: names the MANIFEST.
    Current,
    /// `IDENTITY`: the database's id.
    Identity,
    /// `LOCK`
    Lock,
    /// `RESERVE`: space for a full disk; without content.
    Reserve,
    /// `OBSERVE.sock`: the socket of an open database.
    Socket,
    /// `INCOMPLETE`: the mark of a copy in the making.
    Incomplete,
}

impl FileType {
    /// True for files in the WAL directory.
    pub fn is_log(self) -> bool {
        matches!(self, FileType::Log | FileType::LargeBatch | FileType::RocksLog)
    }
}

/// Minimum digits of a number in a name.
const DIGITS_MIN: usize = 6;

/// Name pattern of a type.
enum Shape {
    /// The number, six digits at least, then this suffix.
    Numbered(&'static str),
    /// This prefix, then the number.
    Prefixed(&'static str),
    Fixed(&'static str),
}

const SHAPES: [(FileType, Shape); 15] = [
    (FileType::Table, Shape::Numbered(".sst")),
    (FileType::Log, Shape::Numbered(".splog")),
    (FileType::LargeBatch, Shape::Numbered(".spbatch")),
    (FileType::MemtableImage, Shape::Numbered(".spmem")),
    (FileType::RocksLog, Shape::Numbered(".log")),
    (FileType::Temp, Shape::Numbered(".dbtmp")),
    (FileType::Manifest, Shape::Prefixed("MANIFEST-")),
    (FileType::ManifestCopy, Shape::Numbered(".spmanifest")),
    (FileType::Options, Shape::Prefixed("OPTIONS-")),
    (FileType::Current, Shape::Fixed("CURRENT")),
    (FileType::Identity, Shape::Fixed("IDENTITY")),
    (FileType::Lock, Shape::Fixed("LOCK")),
    (FileType::Reserve, Shape::Fixed("RESERVE")),
    (FileType::Socket, Shape::Fixed("OBSERVE.sock")),
    (FileType::Incomplete, Shape::Fixed("INCOMPLETE")),
];

/// Same text as the number's `Display`, without the formatting machinery: an ingest names its files in cold code.
fn padded(number: FileNumber) -> String {
    let digits = number.0.to_string();
    let mut padded = "0".repeat(DIGITS_MIN.saturating_sub(digits.len()));
    padded.push_str(&digits);
    padded
}

/// Returns the name of a file in its directory. Types without a number ignore `number`.
pub fn format(file_type: FileType, number: FileNumber) -> String {
    for (candidate, shape) in &SHAPES {
        if *candidate == file_type {
            return match shape {
                Shape::Numbered(suffix) => padded(number) + suffix,
                Shape::Prefixed(prefix) => (*prefix).to_owned() + &padded(number),
                Shape::Fixed(name) => (*name).to_string(),
            };
        }
    }
    unreachable!("every type has a row")
}

/// Parses a file name; `None` for foreign names. Types without a number have number 0.
///
/// Only the name that [`format`] writes: a file with more or fewer zeros would be counted, and not found. RocksDB writes no other,
/// and reads any.
pub fn parse(name: &str) -> Option<(FileType, FileNumber)> {
    SHAPES.iter().find_map(|(file_type, shape)| {
        let digits = match shape {
            Shape::Numbered(suffix) => name.strip_suffix(suffix)?,
            Shape::Prefixed(prefix) => name.strip_prefix(prefix)?,
            Shape::Fixed(fixed) => return (name == *fixed).then_some((*file_type, FileNumber(0))),
        };
        Some((*file_type, parse_number(digits)?))
    })
}

fn parse_number(digits: &str) -> Option<FileNumber> {
    let is_padded = digits.len() == DIGITS_MIN || (digits.len() > DIGITS_MIN && !digits.starts_with('0'));
    if !is_padded || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|&number| number <= FILE_NUMBER_MAX).map(FileNumber)
}

/// The first number above those of all files in a directory.
pub(crate) fn next_number(vfs: &dyn Vfs, dir: &Path) -> Result<FileNumber> {
    let names = vfs.read_dir(dir)?;
    let numbers = names.iter().filter_map(|name| parse(name)).map(|(_, number)| number.0 + 1);
    Ok(FileNumber(numbers.max().unwrap_or(0)))
}

/// The numbers of a directory's files of one type.
pub(crate) fn numbers_in(vfs: &dyn Vfs, dir: &Path, wanted: FileType) -> Result<BTreeSet<FileNumber>> {
    let names = vfs.read_dir(dir)?;
    let found = names.iter().filter_map(|name| parse(name));
    Ok(found.filter(|(kind, _)| *kind == wanted).map(|(_, number)| number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_reads_back_its_own_name() {
        for (file_type, shape) in &SHAPES {
            for number in [0, 1, 7, 999_999, 1_000_000, FILE_NUMBER_MAX] {
                let name = format(*file_type, FileNumber(number));
                let expected = if matches!(shape, Shape::Fixed(_)) { 0 } else { number };
                assert_eq!(parse(&name), Some((*file_type, FileNumber(expected))), "{name}");
            }
        }
    }

    #[test]
    fn names_are_rocksdb_s() {
        for (file_type, name) in [
            (FileType::Table, "000012.sst"),
            (FileType::Log, "000012.splog"),
            (FileType::RocksLog, "000012.log"),
            (FileType::Manifest, "MANIFEST-000012"),
            (FileType::Options, "OPTIONS-000012"),
            (FileType::Temp, "000012.dbtmp"),
            (FileType::Current, "CURRENT"),
        ] {
            assert_eq!(format(file_type, FileNumber(12)), name);
        }
    }

    #[test]
    fn other_names_are_nobody_s() {
        for name in [
            "",
            ".sst",
            "a.sst",
            "+1.sst",
            "-1.log",
            "1.SST",
            "000001.sst2",
            "MANIFEST-",
            "MANIFEST-12.dbtmp",
            "CURRENT2",
            "LOG",
            "99999999999999999999.sst",
            "4611686018427387904.sst",
            "../000001.sst",
            "12.sst",
            "00000012.sst",
            "MANIFEST-0000012",
            "0x10.log",
            "000001.splog ",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
