//! Reads a WAL record by record, also while its writers append. Keeps B1 and B2.

use std::path::{Path, PathBuf};

use base::{Error, FileNumber, Result};
use vfs::Vfs;

use crate::database_id::DatabaseId;
use crate::format::{BadHeader, FILE_HEADER_BYTES, RecordKind};
use crate::log_bytes::{Header, LogBytes};
use crate::replay::ReplayRecord;

/// A place in a WAL's file. The open file stays readable if its name goes.
pub struct LogReader {
    bytes: LogBytes,
    path: PathBuf,
    offset: u64,
    database: DatabaseId,
}

impl LogReader {
    /// Opens WAL `number` before its first record; `None` if it was never used.
    ///
    /// # Errors
    /// `Corruption`: its header is damaged, or of another WAL. `Unsupported`: its format version is unknown. `Io`.
    pub fn open(vfs: &dyn Vfs, path: &Path, number: FileNumber) -> Result<Option<LogReader>> {
        let mut bytes = LogBytes::open(vfs, path)?;
        let checked = match bytes.header()? {
            Header::Bad(BadHeader::Blank) => return Ok(None),
            Header::Bad(bad) => Err(bad.error()),
            Header::Valid(header) => header.check_number(number).map(|()| header.database),
        };
        let database = checked.map_err(|error| error.at_path(path).at_offset(0))?;
        Ok(Some(LogReader { bytes, path: path.to_owned(), offset: FILE_HEADER_BYTES, database }))
    }

    /// The database of the WAL.
    pub fn database(&self) -> DatabaseId {
        self.database
    }

    /// Start of the record read next.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes on at `offset`: the start of a record, or the end of what is written.
    pub fn go_on_at(&mut self, offset: u64) {
        self.offset = offset.max(FILE_HEADER_BYTES);
    }

    /// The WAL's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the next record, if it is whole by now. A record being written is no error: a later call reads it.
    ///
    /// # Errors
    /// `Io`. `Unsupported`: the record has a kind unknown to this version.
    pub fn read(&mut self) -> Result<Option<ReplayRecord<'_>>> {
        let offset = self.offset;
        let mut found = self.bytes.record_at(offset)?;
        if found.is_none() {
            self.bytes.refresh_for_tail()?;
            found = self.bytes.record_at(offset)?;
        }
        let Some(found) = found else { return Ok(None) };
        let Some(kind) = RecordKind::from_u8(found.header.kind) else {
            let what = format!("a log record of the unknown type {}", found.header.kind);
            return Err(Error::unsupported(what).at_path(&self.path).at_offset(offset));
        };
        self.offset = found.end;
        let payload_offset = self.bytes.payload_offset(offset);
        let payload = self.bytes.payload(offset, found.header.len)?.unwrap_or_default();
        Ok(Some(ReplayRecord { kind, offset, payload_offset, payload, skipped_bytes: 0 }))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use base::FileNumber;
    use base::options::LogBacking;
    use vfs::{MemoryVfs, Vfs};

    use super::*;
    use crate::{LogConfig, LogFile};

    fn next(reader: &mut LogReader) -> Option<Vec<u8>> {
        reader.read().unwrap().map(|record| record.payload.to_vec())
    }

    #[test]
    fn a_record_shows_once_it_is_whole_and_never_before_the_one_in_front_of_it() {
        for backing in [LogBacking::Mapped, LogBacking::Pwrite] {
            let (vfs, path) = (MemoryVfs::new(1), Path::new("/000007.splog"));
            let log =
                LogFile::create(&*vfs, path, FileNumber(7), LogConfig { backing, ..LogConfig::default() }).unwrap();
            let mut reader = LogReader::open(&*vfs, path, FileNumber(7)).unwrap().unwrap();
            assert_eq!(next(&mut reader), None);
            let large = vec![5; 40_000];
            let (first, second) = (log.try_reserve(40_000).unwrap(), log.try_reserve(6).unwrap());
            log.append(&second, RecordKind::Batch, &[b"second"]).unwrap();
            assert_eq!(next(&mut reader), None, "the first is not there");
            log.append(&first, RecordKind::Batch, &[&large]).unwrap();
            assert_eq!(next(&mut reader), Some(large));
            assert_eq!(next(&mut reader).as_deref(), Some(&b"second"[..]));
            assert_eq!((next(&mut reader), reader.offset()), (None, second.end()));
            let end = log.seal().unwrap();
            log.append(&end, RecordKind::End, &[]).unwrap();
            drop(log); // which cuts the file
            vfs.remove_file(path).unwrap();
            assert_eq!(reader.read().unwrap().map(|record| record.kind), Some(RecordKind::End));
            assert_eq!(next(&mut reader), None);
        }
    }

    #[test]
    fn a_log_that_was_never_used_has_no_reader() {
        let vfs = MemoryVfs::new(1);
        vfs.write_file(Path::new("/7"), &[0; 4096]).unwrap();
        assert!(LogReader::open(&*vfs, Path::new("/7"), FileNumber(7)).unwrap().is_none());
        vfs.write_file(Path::new("/8"), &[7; 4096]).unwrap();
        LogReader::open(&*vfs, Path::new("/8"), FileNumber(8)).err().expect("damaged");
    }
}
