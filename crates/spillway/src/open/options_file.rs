//! The stored options: what the newest OPTIONS file says, and whether it is the last one.

use base::name;
use std::path::Path;

use base::options::{DbOptions, FamilyOptions, whole};
use base::{Error, ErrorKind, FileNumber, Result};
use vfs::{FileKind, IfExists, IoClass, Vfs, write_all};

use crate::version::file_name::{self, FileType};
use crate::version::recover::Recovered;

/// The name and bytes of the newest OPTIONS file.
pub(crate) fn newest(vfs: &dyn Vfs, dir: &Path) -> Result<Option<(String, Vec<u8>)>> {
    let Some(newest) = file_name::numbers_in(vfs, dir, FileType::Options)?.pop_last() else { return Ok(None) };
    let name = file_name::format(FileType::Options, newest);
    let path = dir.join(&name);
    match vfs::read_all(vfs, &path, whole::BYTES_MAX, IoClass::Other) {
        // The device lost it: as good as damaged.
        Err(error) if error.is_read_failure() => Err(Error::corruption(error.to_string()).at_path(path)),
        Err(_) if vfs.metadata(&path).is_ok_and(|found| found.kind != FileKind::File) => {
            Err(Error::corruption("it is not a file: move it away").at_path(path))
        }
        bytes => Ok(Some((name, bytes?))),
    }
}

/// Whether RocksDB's stored options are those of a database whose transactions can be prepared. Its plain writes look like any other's.
pub(crate) fn may_prepare(vfs: &dyn Vfs, dir: &Path) -> bool {
    let stored = newest(vfs, dir).ok().flatten();
    stored.is_some_and(|(_, text)| text.split(|byte| *byte == b'\n').any(|line| line.trim_ascii() == b"allow_2pc=true"))
}

/// The number of an OPTIONS file.
pub(crate) fn number_of(name: &str) -> FileNumber {
    file_name::parse(name).map_or(FileNumber(0), |(_, number)| number)
}

/// What is amiss with the stored options of a database.
#[derive(Default)]
pub(crate) struct Survey {
    /// The last OPTIONS file is damaged or missing: what is stored in it is lost.
    pub damage: Option<Error>,
    /// What the newest file may have lost, which has no checksum: a family, with its end; or a line, which cannot be read.
    pub lacking: Option<String>,
    /// There is no file, and none is missed; or a whole one lacks a family, or has a line that cannot be read: it may be of an object
    /// of the program's own, or of another version.
    pub note: Option<String>,
}

impl Survey {
    /// Looks at the newest OPTIONS file of the database `recovered`.
    ///
    /// # Errors
    /// The file system's.
    pub fn of(vfs: &dyn Vfs, dir: &Path, recovered: &Recovered) -> Result<Survey> {
        let mut found = Survey::default();
        let read = match newest(vfs, dir) {
            Err(error) if error.kind() == ErrorKind::Corruption => {
                found.damage = Some(error);
                return Ok(found);
            }
            read => read?,
        };
        let number = read.as_ref().map(|(name, _)| number_of(name));
        found.damage = lost_last(vfs, dir, recovered, number);
        let Some((name, bytes)) = read else {
            let what = "there is no OPTIONS file: what is opened without options has the defaults";
            found.note = found.damage.is_none().then(|| what.to_owned());
            return Ok(found);
        };
        match check(&bytes).map_err(|error| error.at_path(dir.join(&name))) {
            Err(error) if error.kind() == ErrorKind::Corruption => found.damage = found.damage.or(Some(error)),
            unreadable_or_named => {
                let lacking = match unreadable_or_named {
                    Err(error) => Some(error.to_string()),
                    Ok(named) => lacking(&name, &named.unwrap_or_default(), recovered),
                };
                // A whole file of ours lost nothing: a kill came before the family's options were stored, or the family is a guess.
                *(if whole::has_checksum(&bytes) { &mut found.note } else { &mut found.lacking }) = lacking;
            }
        }
        Ok(found)
    }

    /// Whether the stored options are not known to be the last ones.
    pub fn is_amiss(&self) -> bool {
        self.damage.is_some() || self.lacking.is_some() || self.note.is_some()
    }
}

/// The error if `newest` is not the last OPTIONS file that the database `recovered` wrote, but an earlier one, or another
/// database's. Every open for writing leaves a file, and the MANIFEST notes it; that of earlier versions does not.
pub(crate) fn lost_last(vfs: &dyn Vfs, dir: &Path, recovered: &Recovered, newest: Option<FileNumber>) -> Option<Error> {
    // A kill can come between the MANIFEST of a new id and the first OPTIONS file.
    let id = recovered.db_id.as_ref().filter(|_| recovered.options_file.is_some());
    if let (Some(number), Some(id)) = (newest, id) {
        let path = dir.join(file_name::format(FileType::Options, number));
        let text = vfs::read_all(vfs, &path, whole::BYTES_MAX, IoClass::Other).unwrap_or_default();
        let is_of_another = whole::is_of_another(&text, id);
        if is_of_another || whole::has_another_number(&text, number.0) {
            let whose = if is_of_another { "another database's" } else { "another one, by its line \"# file=\"" };
            let what = format!("the stored options are lost: the OPTIONS file is {whose}");
            return Some(Error::corruption(what).at_path(path));
        }
    }
    lost_end_of_range(dir, recovered, newest)
}

/// The error if the last OPTIONS file is gone.
fn lost_end_of_range(dir: &Path, recovered: &Recovered, newest: Option<FileNumber>) -> Option<Error> {
    let missing = match recovered.options_file {
        Some(last) if newest < Some(last) => {
            let name = file_name::format(FileType::Options, last);
            Error::corruption("the last OPTIONS file is missing").at_path(dir.join(name))
        }
        None if newest.is_none() && recovered.fenced && recovered.is_in_use() => {
            Error::corruption("the OPTIONS file is missing").at_path(dir)
        }
        _ => return None,
    };
    let others = match newest.map(|number| file_name::format(FileType::Options, number)) {
        Some(name) => format!("those of {name}, which came before,"),
        None => "defaults".to_owned(),
    };
    Some(missing.context(format!("the stored options are lost, and {others} do not replace them unasked")))
}

/// RocksDB's OPTIONS file, which has no checksum, looks whole if it was cut between two families.
fn lacking(file: &str, named: &[String], recovered: &Recovered) -> Option<String> {
    let mut lacking = recovered.families.iter().filter(|family| !named.is_empty() && !named.contains(&family.name));
    let family = name::quoted(&lacking.next()?.name);
    let more = lacking.count();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("{file} lacks column family {family}{more}, or lost its end: default options may be used"))
}

/// `wal_dir` in the newest OPTIONS file; `None` if unset. Where a line of the file cannot be read, that of this option is read by
/// itself.
///
/// # Errors
/// `Corruption`: the file does not tell. The file system's.
pub(crate) fn wal_dir(vfs: &dyn Vfs, dir: &Path) -> Result<Option<String>> {
    let Some((name, bytes)) = newest(vfs, dir)? else { return Ok(None) };
    let start = || DbOptions { ignore_unsupported_options: true, ..DbOptions::default() };
    let read = |text: &str| base::options::OptionsFile::read(text, start(), &|_| FamilyOptions::default(), true);
    let text = name::text(&bytes);
    let in_file = check(&bytes).and_then(|_| read(&text));
    let file = in_file.or_else(|error| {
        let is_of_it = |line: &&str| line.split_once('=').is_some_and(|(key, _)| key.trim() == "wal_dir");
        let alone = text.lines().find(is_of_it).filter(|line| !line.contains('\0'));
        let alone = alone.and_then(|line| read(&format!("[DBOptions]\n{line}\n")).ok());
        alone.ok_or_else(|| {
            let what = format!(
                "there are no logs here, and the options cannot tell where they are ({}); open with the wal_dir that RocksDB \
                 had, or go on without them by a repair",
                error.message()
            );
            Error::corruption(what).at_path(dir.join(name))
        })
    })?;
    Ok(Some(file.0.db.wal_dir).filter(|dir| !dir.is_empty()))
}

/// Has the newest OPTIONS file say where the logs lie, if that changes, and name the database `id` and its own number. ///
/// # Errors
/// The file system's.
pub(crate) fn tell_place(vfs: &dyn Vfs, dir: &Path, wal_dir: &str, id: Option<&str>) -> Result<()> {
    let Some(newest) = file_name::numbers_in(vfs, dir, FileType::Options)?.pop_last() else { return Ok(()) };
    let path = dir.join(file_name::format(FileType::Options, newest));
    let before = vfs::read_all(vfs, &path, whole::BYTES_MAX, IoClass::Other)?;
    let before = name::text(&before);
    let is_named = || self::wal_dir(vfs, dir).is_ok_and(|named| named.is_some());
    let mut text = before.clone().into_owned();
    if !wal_dir.is_empty() || is_named() {
        text = whole::with_database_option(&text, "wal_dir", wal_dir);
    }
    if let Some(id) = id {
        text = whole::of_database(&text, id, newest.0);
    }
    if text == before {
        return Ok(());
    }
    write_all(vfs, &path, IfExists::Truncate, &name::bytes(&text), IoClass::Other)
}

/// The names of the families in an OPTIONS file. Errors as of [`families_in`].
pub(crate) fn check(bytes: &[u8]) -> Result<Option<Vec<String>>> {
    let names = |families: Vec<(String, FamilyOptions)>| families.into_iter().map(|(name, _)| name).collect();
    Ok(families_in(bytes)?.map(names))
}

/// Checks the bytes of an OPTIONS file. Objects that are not built in are passed over. Returns its families; none if an object
/// hides them.
///
/// # Errors
/// `Corruption`: the file is not whole. `InvalidArgument`: a line cannot be read. Both name the line.
pub(crate) fn families_in(bytes: &[u8]) -> Result<Option<Vec<(String, FamilyOptions)>>> {
    let text = &*name::text(bytes);
    whole::check_whole(text)?;
    let start = DbOptions { ignore_unsupported_options: true, ..DbOptions::default() };
    match base::options::OptionsFile::read(text, start, &|_| FamilyOptions::default(), true) {
        Ok((file, _)) => Ok(Some(file.families)),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
}

/// A family that either the MANIFEST `recovered` or the newest OPTIONS file lacks, and why the MANIFEST's end may be missing: the
/// file was written after its last record. `None` for any family: the file was written while they changed. To be asked where that
/// end is not proven. RocksDB writes the file behind the record, and where that fails it tells of dropped families still.
///
/// # Errors
/// The file system's. A damaged file tells nothing.
pub(crate) fn family_of_lost_end(
    vfs: &dyn Vfs,
    dir: &Path,
    recovered: &Recovered,
) -> Result<Option<(Option<String>, String)>> {
    let newest = match newest(vfs, dir) {
        Err(error) if error.kind() == ErrorKind::Corruption => None,
        newest => newest?,
    };
    let Some((file, bytes)) = newest else { return Ok(None) };
    if whole::is_marked(&bytes) {
        let what = format!("its end may be missing: column families came or went when {file} was written");
        return Ok(Some((None, what)));
    }
    let is_later = file_name::parse(&file).is_some_and(|(_, number)| number >= recovered.noted_next);
    let listed = check(&bytes).ok().flatten().filter(|_| is_later).unwrap_or_default();
    if listed.is_empty() {
        return Ok(None);
    }
    let known: Vec<_> = recovered.families.iter().map(|family| &family.name).collect();
    let dropped = known.iter().find(|name| recovered.fenced && !listed.contains(name)).map(|family| ("lacks", *family));
    let made = || listed.iter().find(|name| !known.contains(name)).map(|family| ("has", family));
    Ok(dropped.or_else(made).map(|(verb, family)| {
        (Some(family.clone()), format!("its end may be missing: {file} {verb} column family {}", name::quoted(family)))
    }))
}
