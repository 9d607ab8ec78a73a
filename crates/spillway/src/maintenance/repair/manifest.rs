//! The old MANIFEST, as far as it can be read: the first source of a repair.

use std::collections::BTreeSet;
use std::path::Path;

use base::{ErrorKind, FamilyId, FileNumber, Result};
use log::framed::FramedReader;
use vfs::{IoClass, Vfs};

use crate::open::replay::row::numbers_in;
use crate::version::current::read_current;
use crate::version::edit_codec;
use crate::version::file_name::FileType;
use crate::version::manifest::manifest_path;
use crate::version::recover::{Recovered, recover};
use crate::version::replay::Replay;

/// What is left of the MANIFEST.
pub(super) struct OldManifest {
    /// `None` where not even one record could be read.
    pub recovered: Option<Recovered>,
    /// What is wrong with it; `None` where it is whole.
    pub damage: Option<String>,
    /// Families that were dropped, as far as it says so.
    pub dropped: BTreeSet<FamilyId>,
}

impl OldManifest {
    /// Reads the MANIFEST that CURRENT names; the newest one, where CURRENT is no help.
    ///
    /// # Errors
    /// `Unsupported`: it says what this version does not know. The file system's.
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

/// Every edit that can be read.
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
