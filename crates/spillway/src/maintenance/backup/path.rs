//! Paths in the backup directory, named as in RocksDB: `private/ID/NAME` for files of one backup,
//! `shared_checksum/NUMBER_UNIQUE.EXT` and `shared/NUMBER.EXT` for shared files. Paths come from meta files: only paths
//! that parse are used (B1), and no path leads out of the directory.

use std::fmt;
use std::path::{Path, PathBuf};

use base::FileNumber;

use super::BackupId;
pub(super) use crate::version::backup_dirs::{META_DIR, PRIVATE_DIR, SHARED_CHECKSUM_DIR, SHARED_DIR};
use crate::version::file_name::{self, FileType};

/// Suffix of files being written; their names begin with a dot.
const TEMP_SUFFIX: &str = ".tmp";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Private(BackupId),
    Shared,
    SharedChecksum,
}

/// A file's path in a backup directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BackupPath {
    place: Place,
    name: String,
    /// Its type in a database.
    file_type: FileType,
    number: FileNumber,
}

impl BackupPath {
    /// The path of file `name` owned by one backup.
    pub fn private(id: BackupId, name: &str) -> Option<BackupPath> {
        Self::in_place(Place::Private(id), name)
    }

    /// The path of a table under its own name: usable for one database only.
    pub fn shared(name: &str) -> Option<BackupPath> {
        Self::in_place(Place::Shared, name)
    }

    /// The path of a file shared by backups of any databases. `unique` identifies the file among equal numbers.
    pub fn shared_checksum(file_type: FileType, number: FileNumber, unique: &str) -> Option<BackupPath> {
        let name = file_name::format(file_type, number);
        let (stem, extension) = name.rsplit_once('.')?;
        Self::in_place(Place::SharedChecksum, &format!("{stem}_{unique}.{extension}"))
    }

    /// `None` if `text` is not a path of a backup's file.
    pub fn parse(text: &str) -> Option<BackupPath> {
        let (dir, rest) = text.split_once('/')?;
        match dir {
            PRIVATE_DIR => {
                let (id, name) = rest.split_once('/')?;
                Self::private(parse_id(id)?, name)
            }
            SHARED_DIR => Self::shared(rest),
            SHARED_CHECKSUM_DIR => Self::in_place(Place::SharedChecksum, rest),
            _ => None,
        }
    }

    fn in_place(place: Place, name: &str) -> Option<BackupPath> {
        let (file_type, number) = match place {
            Place::Private(_) => file_name::parse(name)?,
            Place::Shared => file_name::parse(name).filter(|(kind, _)| *kind == FileType::Table)?,
            Place::SharedChecksum => file_name::parse(&without_unique(name)?)?,
        };
        let is_kept = !matches!(
            file_type,
            FileType::Temp
                | FileType::Lock
                | FileType::MemtableImage
                | FileType::ManifestCopy
                | FileType::Reserve
                | FileType::Socket
                | FileType::Incomplete
        );
        is_kept.then(|| BackupPath { place, name: name.to_owned(), file_type, number })
    }

    pub fn place(&self) -> Place {
        self.place
    }

    pub fn file_type(&self) -> FileType {
        self.file_type
    }

    /// Its number in a database.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Its name in a database.
    pub fn database_name(&self) -> String {
        file_name::format(self.file_type, self.number)
    }

    /// The size at the end of a name in `shared_checksum`.
    pub fn named_bytes(&self) -> Option<u64> {
        let (stem, _) = self.name.rsplit_once('.').filter(|_| self.place == Place::SharedChecksum)?;
        stem.rsplit_once('_')?.1.parse().ok()
    }

    pub fn at(&self, root: &Path) -> PathBuf {
        self.dir(root).join(&self.name)
    }

    /// The file's path while it is written.
    pub fn temp_at(&self, root: &Path) -> PathBuf {
        self.dir(root).join(temp_name(&self.name))
    }

    fn dir(&self, root: &Path) -> PathBuf {
        match self.place {
            Place::Private(id) => root.join(PRIVATE_DIR).join(id.to_string()),
            Place::Shared => root.join(SHARED_DIR),
            Place::SharedChecksum => root.join(SHARED_CHECKSUM_DIR),
        }
    }
}

impl fmt::Display for BackupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Private(id) => write!(f, "{PRIVATE_DIR}/{id}/{}", self.name),
            Place::Shared => write!(f, "{SHARED_DIR}/{}", self.name),
            Place::SharedChecksum => write!(f, "{SHARED_CHECKSUM_DIR}/{}", self.name),
        }
    }
}

/// `000012_UNIQUE.sst` without `_UNIQUE`.
fn without_unique(name: &str) -> Option<String> {
    let (number, rest) = name.split_once('_')?;
    let (unique, extension) = rest.split_once('.')?;
    let is_plain = !unique.is_empty() && unique.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_plain.then(|| format!("{number}.{extension}"))
}

/// Parses an id in a name: a number from 1 on.
pub(super) fn parse_id(text: &str) -> Option<BackupId> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain)
}

pub(super) fn temp_name(name: &str) -> String {
    format!(".{name}{TEMP_SUFFIX}")
}

/// Whether a file is an unfinished leftover, ours or RocksDB's. Some of RocksDB's begin with a dot.
pub(super) fn is_temp_name(name: &str) -> bool {
    name.ends_with(TEMP_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rocksdbs_paths_read_back_and_name_the_files_they_stand_for() {
        for (text, name, bytes) in [
            ("shared_checksum/000008_s8MHKX21C8ULG2BUHOWY8_983.sst", "000008.sst", Some(983)),
            ("shared_checksum/000007_2894567812_590.sst", "000007.sst", Some(590)),
            ("shared/000008.sst", "000008.sst", None),
            ("private/12/CURRENT", "CURRENT", None),
            ("private/1/MANIFEST-000032", "MANIFEST-000032", None),
            ("private/1/000042.log", "000042.log", None),
        ] {
            let path = BackupPath::parse(text).unwrap();
            assert_eq!((path.to_string().as_str(), path.database_name().as_str()), (text, name));
            assert_eq!(path.named_bytes(), bytes, "{text}");
            assert_eq!(path.at(Path::new("/b")), Path::new("/b").join(text));
        }
    }

    #[test]
    fn no_path_leads_out_of_the_directory() {
        for text in [
            "",
            "CURRENT",
            "/etc/passwd",
            "meta/1",
            "private/1",
            "private/0/CURRENT",
            "private/01/CURRENT",
            "private/../CURRENT",
            "private/1/../CURRENT",
            "private/1/LOCK",
            "private/1/000001.dbtmp",
            "shared/../000001.sst",
            "shared/CURRENT",
            "shared/000001_1_2.sst",
            "shared_checksum/000001.sst",
            "shared_checksum/000001_.sst",
            "shared_checksum/000001_../../1.sst",
            "shared_checksum/000001_1/2.sst",
            "shared_checksum/000001_1_2.blob",
        ] {
            assert_eq!(BackupPath::parse(text), None, "{text}");
        }
    }
}
