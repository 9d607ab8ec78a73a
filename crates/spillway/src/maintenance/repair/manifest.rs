//! The readable part of the old MANIFEST: the first source of a repair.

use std::collections::BTreeSet;
use std::path::Path;

use base::{ErrorKind, FamilyId, FileNumber, Result};
use log::framed::FramedReader;
use vfs::{IoClass, Vfs};

use crate::version::current::read_current;
use crate::version::edit_codec;
use crate::version::file_name::{FileType, numbers_in};
use crate::version::manifest::manifest_path;
use crate::version::recover::{Recovered, recover};
use crate::version::replay::Replay;

/// The readable part of the MANIFEST.
pub(super) struct OldManifest {
    /// `None` if no family could be recovered.
    pub recovered: Option<Recovered>,
    /// The damage; `None` if the MANIFEST is whole.
    pub damage: Option<String>,
    /// Dropped families, by the readable part.
    pub dropped: BTreeSet<FamilyId>,
}

impl OldManifest {
    /// Reads the MANIFEST named by CURRENT; the newest one if CURRENT is unusable.
    ///
    /// # Errors
    /// `Unsupported`: contents unknown to this version. The file system's.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<OldManifest> {
        let damage = match recover(vfs, dir) {
            Ok(recovered) => {
                return Ok(OldManifest { recovered: Some(recovered), damage: None, dropped: BTreeSet::new() });
            }
            Err(error) if error.is_not_found() => "CURRENT is missing".to_owned(),
            Err(error) if error.kind() == ErrorKind::Corruption => error.to_string(),
            Err(error) => return Err(error),
        };
        let damage = Some(damage);
        let newest = || -> Result<Option<FileNumber>> { Ok(numbers_in(vfs, dir, FileType::Manifest)?.last().copied()) };
        let named = read_current(vfs, dir).ok();
        let named = named.filter(|number| vfs.exists(&manifest_path(dir, *number)).unwrap_or(false));
        let Some(number) = named.map_or_else(newest, |number| Ok(Some(number)))? else {
            return Ok(OldManifest { recovered: None, damage, dropped: BTreeSet::new() });
        };
        let replay = read_rest(vfs, dir, number)?;
        let dropped = replay.dropped().clone();
        let recovered = replay.finish(number).map(Some).or_else(|error| match error.kind() {
            ErrorKind::Corruption => Ok(None),
            _ => Err(error),
        })?;
        let recovered = recovered.filter(|recovered| !recovered.families.is_empty());
        Ok(OldManifest { recovered, damage, dropped })
    }
}

/// Replays every readable edit.
fn read_rest(vfs: &dyn Vfs, dir: &Path, number: FileNumber) -> Result<Replay> {
    let mut replay = Replay::lenient();
    let mut reader = FramedReader::open(vfs, &manifest_path(dir, number), None, IoClass::Manifest)?;
    loop {
        let edits = match reader.next() {
            Ok(Some(record)) => edit_codec::decode_record(&record.payload),
            Ok(None) => return Ok(replay),
            Err(error) if error.kind() == ErrorKind::Corruption => {
                reader.skip_damage()?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let added = edits.and_then(|edits| edits.into_iter().try_for_each(|edit| replay.add(edit)));
        match added {
            Err(error) if error.kind() != ErrorKind::Corruption => return Err(error),
            _ => {}
        }
    }
}
