//! Replays a framed log in one of the four recovery modes.

use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, Result};

use super::{FramedEnd, FramedReader, FramedRecord};

/// Visits the records of `reader` in order, up to the end allowed by `mode`. Damage that no record follows is the end,
/// in salvage too. A `Corruption` that `visit` finds in a record counts as damage: parts of different records can make a whole one.
///
/// # Errors
/// Other errors of `visit`. `Unsupported` and file errors in every mode. `Corruption` if the mode does not tolerate the
/// damage.
pub fn replay(
    reader: &mut FramedReader,
    mode: WalRecoveryMode,
    visit: &mut dyn FnMut(FramedRecord) -> Result<()>,
) -> Result<FramedEnd> {
    let mut skipped: Option<FramedEnd> = None;
    loop {
        let error = match reader.next() {
            Ok(Some(record)) => {
                let offset = record.offset;
                match visit(FramedRecord { follows_damage: skipped.take().is_some(), ..record }) {
                    Ok(()) => continue,
                    Err(error) if error.path().is_some_and(|path| path != reader.path()) => {
                        return Err(error.at_record(reader.path(), offset));
                    }
                    Err(error) => error.at_record(reader.path(), offset),
                }
            }
            Ok(None) => break,
            Err(error) => error,
        };
        if error.kind() != ErrorKind::Corruption {
            return Err(error);
        }
        let damaged = FramedEnd::Damaged { offset: error.offset().unwrap_or_default() };
        match mode {
            WalRecoveryMode::SkipAnyCorruptedRecords => {
                reader.skip_damage()?;
                skipped.get_or_insert(damaged);
            }
            WalRecoveryMode::PointInTime => return Ok(damaged),
            _ => return Err(error),
        }
    }
    let end = skipped.or(reader.end()).unwrap_or(FramedEnd::Clean);
    match end {
        FramedEnd::Torn { offset } if mode == WalRecoveryMode::AbsoluteConsistency => {
            Err(Error::corruption("the log ends inside a record").at_path(reader.path()).at_offset(offset))
        }
        end => Ok(end),
    }
}
