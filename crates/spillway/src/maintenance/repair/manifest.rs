//! The first source of a repair: the last MANIFEST, or its second copy.
//!
//! One of the two files is enough to know the whole state, if it is whole and nothing can lie behind its end in the other.
//! Otherwise the readable edits of the longer one are a guess.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base::{Error, ErrorKind, FamilyId, FileNumber, Result};
use vfs::{IoClass, Vfs};
use wal::framed::FramedReader;

use crate::open::log_owner;
use crate::version::current::read_current;
use crate::version::edit_codec;
use crate::version::file_name::{FileType, numbers_in};
use crate::version::manifest::manifest_path;
use crate::version::manifest_copy::copy_path;
use crate::version::recover::{Pair, ReadManifest, Recovered, recover};
use crate::version::replay::Replay;

/// The state according to the MANIFEST.
#[derive(Default)]
pub(super) struct OldManifest {
    /// `None` if no family could be recovered.
    pub recovered: Option<Recovered>,
    /// The damage; `None` if CURRENT and the MANIFEST are whole.
    pub damage: Option<String>,
    /// Whether `recovered` is the last durable state, by the MANIFEST's files alone.
    pub is_complete: bool,
    /// Whether there is a copy.
    pub has_copy: bool,
    /// Whether both files prove the end.
    pub is_confirmed: bool,
    /// Whether CURRENT names this MANIFEST, or an earlier one before this pair.
    pub is_named: bool,
    /// Dropped families, by the readable part.
    pub dropped: BTreeSet<FamilyId>,
}

impl OldManifest {
    /// Reads the MANIFEST named by CURRENT. If it is damaged, takes the newest of all files that is whole.
    ///
    /// # Errors
    /// `Unsupported`: contents unknown to this version. The file system's.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<OldManifest> {
        let error = match recover(vfs, dir) {
            Ok(recovered) => return OldManifest::whole(vfs, dir, recovered),
            Err(error) if error.is_not_found() => Error::corruption("CURRENT is missing").at_path(dir),
            Err(error) if error.kind() == ErrorKind::Corruption => error,
            Err(error) => return Err(error),
        };
        let damage = match (error.path(), error.offset()) {
            (Some(path), Some(at)) => format!("{}, byte {at}: {}", name_of(path), error.message()),
            (Some(path), None) if path != dir => format!("{}: {}", name_of(path), error.message()),
            _ => error.message().to_owned(),
        };
        OldManifest::of_files(vfs, dir, damage)
    }

    fn whole(vfs: &dyn Vfs, dir: &Path, recovered: Recovered) -> Result<OldManifest> {
        let has_copy = vfs.exists(&copy_path(dir, recovered.manifest))?;
        let Pair { proven, is_confirmed, .. } = Pair::read(vfs, dir, recovered.manifest)?;
        Ok(OldManifest {
            recovered: Some(recovered),
            is_complete: true,
            has_copy,
            is_confirmed,
            is_named: true,
            dropped: proven.map(|proven| proven.replay.dropped().clone()).unwrap_or_default(),
            ..OldManifest::default()
        })
    }

    /// Takes the newest MANIFEST of which a file is whole. Of two files that differ, IDENTITY tells which is this database's.
    fn of_files(vfs: &dyn Vfs, dir: &Path, damage: String) -> Result<OldManifest> {
        let mut numbers = numbers_in(vfs, dir, FileType::Manifest)?;
        numbers.extend(numbers_in(vfs, dir, FileType::ManifestCopy)?);
        let named = read_current(vfs, dir).ok();
        let owner = log_owner(vfs, dir, None);
        let was_later = |number| named.is_some_and(|named| named > number);
        // CURRENT names a MANIFEST once its copy is durable: a later one without a right copy was never in use.
        let from_named = named.iter().flat_map(|named| numbers.range(named..).rev());
        let in_use = from_named.map(|number| (*number, named != Some(*number)));
        for (number, wants_copy) in in_use.chain(numbers.iter().rev().map(|number| (*number, false))) {
            let (pair, is_certain) = Pair::of_owner(vfs, dir, number, owner)?;
            let is_named = named == Some(number);
            let is_last = is_named || (numbers.last() == Some(&number) && !was_later(number));
            let Pair { proven, is_confirmed, has_right_copy } = pair;
            let counts = has_right_copy || !wants_copy;
            let Some(ReadManifest { path, replay, end, .. }) = proven.filter(|_| counts) else { continue };
            let is_copy = path == copy_path(dir, number);
            let damage = if is_copy { format!("{damage}; its copy {} stands in", name_of(&path)) } else { damage };
            let dropped = replay.dropped().clone();
            let mut recovered = replay.finish(number).map_err(|error| error.at_path(&path))?;
            recovered.manifest_end = Some(end);
            recovered.see_files_in(vfs, dir)?;
            let has_copy = is_copy || vfs.exists(&copy_path(dir, number))?;
            let (recovered, damage, is_complete) = (Some(recovered), Some(damage), is_last && is_certain);
            return Ok(OldManifest { recovered, damage, is_complete, has_copy, is_confirmed, is_named, dropped });
        }
        OldManifest::of_rest(vfs, dir, named, &numbers, damage)
    }

    /// Takes every readable edit of a damaged MANIFEST: CURRENT's, or else the newest.
    fn of_rest(
        vfs: &dyn Vfs,
        dir: &Path,
        named: Option<FileNumber>,
        numbers: &BTreeSet<FileNumber>,
        damage: String,
    ) -> Result<OldManifest> {
        let damage = Some(damage);
        let none = |damage| OldManifest { damage, ..OldManifest::default() };
        let named = named.filter(|number| numbers.contains(number));
        let Some(number) = named.or_else(|| numbers.last().copied()) else { return Ok(none(damage)) };
        let readable = |path: PathBuf| -> Result<Option<(u64, Replay)>> {
            if vfs.exists(&path)? { read_rest(vfs, &path).map(Some) } else { Ok(None) }
        };
        let files = [readable(manifest_path(dir, number))?, readable(copy_path(dir, number))?];
        let Some((_, replay)) = files.into_iter().flatten().max_by_key(|(records, _)| *records) else {
            return Ok(none(damage));
        };
        let dropped = replay.dropped().clone();
        let recovered = replay.finish(number).map(Some).or_else(|error| match error.kind() {
            ErrorKind::Corruption => Ok(None),
            _ => Err(error),
        })?;
        let recovered = recovered.filter(|recovered| !recovered.families.is_empty());
        Ok(OldManifest { recovered, damage, dropped, ..OldManifest::default() })
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Replays every readable edit. Also returns their number.
fn read_rest(vfs: &dyn Vfs, path: &Path) -> Result<(u64, Replay)> {
    let (mut replay, mut records) = (Replay::lenient(), 0);
    let mut reader = FramedReader::open(vfs, path, None, IoClass::Manifest)?;
    loop {
        let edits = match reader.next() {
            Ok(Some(record)) => edit_codec::decode_record(&record.payload),
            Ok(None) => return Ok((records, replay)),
            Err(error) if error.kind() == ErrorKind::Corruption => {
                reader.skip_damage()?;
                continue;
            }
            Err(error) => return Err(error),
        };
        match edits.and_then(|edits| edits.into_iter().try_for_each(|edit| replay.add(edit))) {
            Ok(()) => records += 1,
            Err(error) if error.kind() == ErrorKind::Corruption => {}
            Err(error) => return Err(error),
        }
    }
}
