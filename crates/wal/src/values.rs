//! Values stored in WALs, resolved by reference. Keeps B1: each resolve checks bounds and checksum.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::checksum::crc32c;
use base::value_source::{ValueRef, ValueSource};
use base::{Error, FileNumber, Pinned, Result};
use parking_lot::Mutex;
use vfs::{ReadMapping, Vfs};

use crate::format::{BadHeader, FILE_HEADER_BYTES, FileHeader};
use crate::log_file::LogFile;

impl ValueSource for LogFile {
    fn resolve(&self, value: ValueRef) -> Result<Pinned> {
        let end = value.offset.saturating_add(u64::from(value.len));
        if value.log != self.number() || end > self.tail() {
            return Err(not_there(&value).at_path(self.path()));
        }
        let mut bytes = vec![0; value.len as usize];
        self.read_written(value.offset, &mut bytes)?;
        let lost = |error: Error| self.failure_before(end).unwrap_or_else(|| error.at_path(self.path()));
        check(&bytes, &value).map_err(lost)?;
        let len = bytes.len();
        Ok(Pinned::shared(Arc::new(bytes), 0..len))
    }
}

/// A sealed WAL, mapped to resolve the values in it. A secondary has one of a log that its primary still writes.
pub struct SealedLog {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    number: FileNumber,
    mapping: Arc<dyn ReadMapping>,
    /// Of the file as it grew since. A leaf lock.
    grown: Mutex<Option<Arc<dyn ReadMapping>>>,
}

impl SealedLog {
    /// Maps WAL `number`. The file must not be truncated while the mapping lives.
    ///
    /// # Errors
    /// `Corruption`: the file is not WAL `number`. `Unsupported`: its format version is unknown. `Io`: it is missing or
    /// cannot be mapped.
    pub fn open(vfs: &Arc<dyn Vfs>, path: &Path, number: FileNumber) -> Result<SealedLog> {
        let mapping = vfs.map_read(path)?;
        let bytes = (*mapping).as_ref();
        let header = bytes.get(..FILE_HEADER_BYTES as usize).unwrap_or(bytes);
        let header = FileHeader::decode(header).map_err(BadHeader::error);
        header.and_then(|header| header.check_number(number)).map_err(|e| e.at_path(path).at_offset(0))?;
        let (vfs, path, grown) = (vfs.clone(), path.to_owned(), Mutex::default());
        Ok(SealedLog { vfs, path, number, mapping, grown })
    }

    /// A mapping that has `end`, if the file does.
    fn mapping_to(&self, end: usize) -> Result<Arc<dyn ReadMapping>> {
        let has_end = |mapping: &Arc<dyn ReadMapping>| (**mapping).as_ref().len() >= end;
        if has_end(&self.mapping) {
            return Ok(self.mapping.clone());
        }
        let mut grown = self.grown.lock();
        match grown.as_ref().filter(|mapping| has_end(mapping)) {
            Some(mapping) => Ok(mapping.clone()),
            None => Ok(grown.insert(self.vfs.map_read(&self.path)?).clone()),
        }
    }
}

impl ValueSource for SealedLog {
    fn resolve(&self, value: ValueRef) -> Result<Pinned> {
        let range = usize::try_from(value.offset).ok().and_then(|start| {
            let end = start.checked_add(value.len as usize)?;
            Some(start..end)
        });
        let missing = || not_there(&value).at_path(&self.path);
        let range =
            range.filter(|_| value.log == self.number && value.offset >= FILE_HEADER_BYTES).ok_or_else(missing)?;
        let mapping = self.mapping_to(range.end)?;
        let bytes = (*mapping).as_ref().get(range.clone()).ok_or_else(missing)?;
        check(bytes, &value).map_err(|error| error.at_path(&self.path))?;
        Ok(Pinned::shared(mapping, range))
    }
}

fn check(bytes: &[u8], value: &ValueRef) -> Result<()> {
    if crc32c(bytes) == value.crc {
        return Ok(());
    }
    Err(Error::corruption("a value in a log does not match the checksum of the reference to it")
        .at_offset(value.offset))
}

fn not_there(value: &ValueRef) -> Error {
    let ValueRef { log, offset, len, .. } = value;
    Error::corruption(format!("a value of {len} bytes in log {log} is not there")).at_offset(*offset)
}

#[cfg(test)]
mod tests {
    use base::ErrorKind;
    use base::options::LogBacking;
    use vfs::{Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule};

    use super::*;
    use crate::{LogConfig, RecordKind};

    #[test]
    fn a_value_is_read_after_a_failed_sync_as_long_as_it_is_there() {
        for backing in [LogBacking::Mapped, LogBacking::Pwrite] {
            let (vfs, path) = (FaultVfs::new(MemoryVfs::new(1)), Path::new("/000007.log"));
            let config = LogConfig { backing, ..LogConfig::default() };
            let log = LogFile::create(&*vfs, path, FileNumber(7), config).expect("created");
            assert!(log.ensure(100).expect("room"));
            let at = log.try_reserve(5).expect("room");
            log.append(&at, RecordKind::Batch, &[b"value"]).expect("written");
            log.publish(at.end());
            vfs.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Sync));
            log.sync().expect_err("injected");
            let value = ValueRef { log: FileNumber(7), offset: at.payload_offset(), len: 5, crc: crc32c(b"value") };
            assert_eq!(&*log.resolve(value).expect("the kernel has it"), b"value", "{backing:?}");
            vfs.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Read));
            assert_eq!(log.resolve(value).expect_err("dropped, and the disk gives nothing").kind(), ErrorKind::Io);
            // What the disk has in its place.
            log.append(&at, RecordKind::Batch, &[b"zeros"]).expect("written");
            assert_eq!(log.resolve(value).expect_err("not what was written").kind(), ErrorKind::Io, "{backing:?}");
        }
    }

    #[test]
    fn a_value_is_found_while_the_log_is_written_and_after() {
        let vfs = MemoryVfs::new(1);
        let path = Path::new("/000007.log");
        let log = LogFile::create(&*vfs, path, FileNumber(7), LogConfig::default()).expect("created");
        assert!(log.ensure(100).expect("room"));
        let at = log.try_reserve(10).expect("room");
        log.append(&at, RecordKind::Batch, &[b"key", b"the val"]).expect("written");
        let value = ValueRef { log: FileNumber(7), offset: at.payload_offset() + 3, len: 7, crc: crc32c(b"the val") };
        assert_eq!(&*log.resolve(value).expect("there"), b"the val", "before it is published");
        for wrong in [
            ValueRef { crc: value.crc ^ 1, ..value },
            ValueRef { log: FileNumber(8), ..value },
            ValueRef { offset: u64::MAX, ..value },
            ValueRef { len: u32::MAX, ..value },
        ] {
            assert_eq!(log.resolve(wrong).expect_err("wrong").kind(), ErrorKind::Corruption);
        }
        log.publish(at.end());
        log.sync().expect("synced");
        drop(log);
        let sealed = SealedLog::open(&(vfs.clone() as Arc<dyn Vfs>), path, FileNumber(7)).expect("mapped");
        assert_eq!(&*sealed.resolve(value).expect("there"), b"the val");
        for wrong in [
            ValueRef { crc: value.crc ^ 1, ..value },
            ValueRef { log: FileNumber(8), ..value },
            ValueRef { offset: u64::MAX, ..value },
            ValueRef { offset: 0, ..value },
        ] {
            assert_eq!(sealed.resolve(wrong).expect_err("wrong").kind(), ErrorKind::Corruption);
        }
        assert!(SealedLog::open(&(vfs.clone() as Arc<dyn Vfs>), path, FileNumber(9)).is_err(), "another log");
    }
}
