//! Runs through a framed log under one of the four recovery modes.

use base::{Error, ErrorKind, Result};

use super::{FramedEnd, FramedReader, FramedRecord};
use crate::RecoveryMode;

/// Visits the records of `reader` in order, and ends where `mode` says.
///
/// # Errors
/// What `visit` returns; `Unsupported` and file errors in every mode; `Corruption` where the mode does not bear the
/// damage. Damage in a file that held another log before may be what that one left, so that the tolerant mode takes it
/// for the end.
pub fn replay(
    reader: &mut FramedReader,
    mode: RecoveryMode,
    visit: &mut dyn FnMut(FramedRecord) -> Result<()>,
) -> Result<FramedEnd> {
    loop {
        let error = match reader.next() {
            Ok(Some(record)) => {
                visit(record)?;
                continue;
            }
            Ok(None) => break,
            Err(error) => error,
        };
        if error.kind() != ErrorKind::Corruption {
            return Err(error);
        }
        let damaged = FramedEnd::Damaged { offset: error.offset().unwrap_or_default() };
        match mode {
            RecoveryMode::SkipAnyCorruptedRecords => reader.skip_damage()?,
            RecoveryMode::PointInTime => return Ok(damaged),
            RecoveryMode::TolerateCorruptedTailRecords if reader.is_recycled() => return Ok(damaged),
            RecoveryMode::TolerateCorruptedTailRecords | RecoveryMode::AbsoluteConsistency => return Err(error),
        }
    }
    let end = reader.end().unwrap_or(FramedEnd::Clean);
    match end {
        FramedEnd::Torn { offset } if mode == RecoveryMode::AbsoluteConsistency => {
            Err(Error::corruption("the log ends inside a record").at_path(reader.path()).at_offset(offset))
        }
        end => Ok(end),
    }
}
