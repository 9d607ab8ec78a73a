//! The options file: the options in force, for people, tools, and programs that open with the newest file.
//!
//! Rewritten at every open, and when a family is created or dropped or an option changes, as in RocksDB: written under
//! a temporary name, synced, renamed. The previous file is kept. If the write fails, the change stands: the MANIFEST
//! has it, and the next change or open writes the file.

use base::name;
use std::path::Path;

use base::note;
use base::options::{DbOptions, FamilyOptions, ini, whole};
use base::{Error, ErrorKind, FileNumber, Result};
use vfs::{FileKind, IfExists, IoClass, Vfs, write_all};

use crate::core::Core;
use crate::core::install::Installer;
use crate::version::file_name::{self, FileType};
use crate::version::recover::Recovered;
use parking_lot::Mutex;
use std::sync::Arc;

/// The writer of the options file.
pub(crate) struct OptionsFile {
    core: Arc<Core>,
    installer: Arc<Installer>,
    /// Serializes writers of the file. Taken under no other lock.
    options_file: Mutex<()>,
}

impl OptionsFile {
    pub fn new(core: Arc<Core>, installer: Arc<Installer>) -> Self {
        OptionsFile { core, installer, options_file: Mutex::default() }
    }

    /// Waits for a running write of the file. None begins once closing began.
    pub fn wait(&self) {
        drop(self.options_file.lock());
    }

    /// Writes the options in force, unless the database is closed: another process may have the directory by then.
    /// Called under no lock. Of concurrent calls, the last one writes the newest file.
    pub(crate) fn write_options_file(&self) {
        let _newest_last = self.options_file.lock();
        if self.core.is_closing() {
            return;
        }
        if let Err(error) = self.try_write_options_file() {
            let dir = self.core.context.dir.display();
            note::warn!(%error, %dir, "cannot write the options file: programs that open by it may find older options");
        }
    }

    fn try_write_options_file(&self) -> Result<()> {
        let families: Vec<_> = self.core.families.load().iter().map(|f| (f.name().to_owned(), f.options())).collect();
        let borrowed: Vec<_> = families.iter().map(|(name, options)| (name.as_str(), &**options)).collect();
        let text = ini::write(&self.core.context.options_now.load(), &borrowed, ini::Audience::Spillway);
        let number = self.core.context.numbers.take();
        let text = whole::of_database(&text, &self.core.context.db_id, number.0);
        let (vfs, dir) = (&*self.core.context.vfs, &self.core.context.dir);
        let temp = dir.join(file_name::format(FileType::Temp, number));
        let written = write_all(vfs, &temp, IfExists::Truncate, &name::bytes(&text), IoClass::Other)
            .and_then(|()| vfs.rename(&temp, &dir.join(file_name::format(FileType::Options, number))));
        if let Err(error) = written {
            let _ = vfs.remove_file(&temp); // on failure the next open removes it
            return Err(error);
        }
        vfs.sync_dir(dir)?;
        self.installer.note_options_file(number)?;
        remove_older(vfs, dir, number)
    }
}

/// Largest OPTIONS file read. A family takes a few kilobytes.
const OPTIONS_BYTES_MAX: u64 = 64 << 20;

/// The name and bytes of the newest OPTIONS file.
pub(crate) fn newest(vfs: &dyn Vfs, dir: &Path) -> Result<Option<(String, Vec<u8>)>> {
    let Some(newest) = file_name::numbers_in(vfs, dir, FileType::Options)?.pop_last() else { return Ok(None) };
    let name = file_name::format(FileType::Options, newest);
    let path = dir.join(&name);
    match vfs::read_all(vfs, &path, OPTIONS_BYTES_MAX, IoClass::Other) {
        // The device lost it: as good as damaged.
        Err(error) if error.is_read_failure() => Err(Error::corruption(error.to_string()).at_path(path)),
        Err(_) if vfs.metadata(&path).is_ok_and(|found| found.kind != FileKind::File) => {
            Err(Error::corruption("it is not a file: move it away").at_path(path))
        }
        bytes => Ok(Some((name, bytes?))),
    }
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
        let text = vfs::read_all(vfs, &path, OPTIONS_BYTES_MAX, IoClass::Other).unwrap_or_default();
        let is_of_another = whole::is_of_another(&text, id);
        if is_of_another || whole::has_another_number(&text, number.0) {
            let whose = if is_of_another { "another database's" } else { "another one, by its line \"# file=\"" };
            let what = format!("the stored options are lost: the OPTIONS file is {whose}");
            return Some(Error::corruption(what).at_path(path));
        }
    }
    lost_end_of_row(dir, recovered, newest)
}

/// The error if the last OPTIONS file is gone.
fn lost_end_of_row(dir: &Path, recovered: &Recovered, newest: Option<FileNumber>) -> Option<Error> {
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
    let family = &lacking.next()?.name;
    let more = lacking.count();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("{file} lacks column family {family:?}{more}, or lost its end: default options may be used"))
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
    let before = vfs::read_all(vfs, &path, OPTIONS_BYTES_MAX, IoClass::Other)?;
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
/// file was written after its last record. To be asked where that end is not proven.
///
/// # Errors
/// The file system's. A damaged file tells nothing.
pub(crate) fn family_of_lost_end(vfs: &dyn Vfs, dir: &Path, recovered: &Recovered) -> Result<Option<(String, String)>> {
    let newest = match newest(vfs, dir) {
        Err(error) if error.kind() == ErrorKind::Corruption => None,
        newest => newest?,
    };
    let Some((name, bytes)) = newest.filter(|_| recovered.fenced) else { return Ok(None) };
    let is_later = file_name::parse(&name).is_some_and(|(_, number)| number >= recovered.noted_next);
    let listed = check(&bytes).ok().flatten().filter(|_| is_later).unwrap_or_default();
    if listed.is_empty() {
        return Ok(None);
    }
    let known: Vec<_> = recovered.families.iter().map(|family| &family.name).collect();
    let dropped = known.iter().find(|name| !listed.contains(name)).map(|family| ("lacks", *family));
    let made = || listed.iter().find(|name| !known.contains(name)).map(|family| ("has", family));
    Ok(dropped.or_else(made).map(|(verb, family)| {
        (family.clone(), format!("its end may be missing: {name} {verb} column family {family:?}"))
    }))
}

/// Removes all but `newest` and the file before it. A larger number is left by a crash, and was not recorded as used.
fn remove_older(vfs: &dyn Vfs, dir: &Path, newest: FileNumber) -> Result<()> {
    let mut others = file_name::numbers_in(vfs, dir, FileType::Options)?;
    others.remove(&newest);
    let before = others.range(..newest).next_back().copied();
    let superfluous = others.into_iter().filter(|number| Some(*number) != before);
    superfluous
        .map(|number| dir.join(file_name::format(FileType::Options, number)))
        .try_for_each(|path| vfs.remove_file(&path))
}

#[cfg(test)]
mod tests {
    use base::options::OptionsFile;
    use std::sync::Arc;
    use vfs::fault::{Fault, FaultCode, FaultVfs, Operation, Rule};
    use vfs::{IoClass, MemoryVfs};

    use super::*;
    use crate::internal::{Database, OpenOptions, OtherFamilies};

    /// Numbers of the options files, ascending, and the families that the newest names.
    fn look(vfs: &dyn Vfs) -> (Vec<u64>, Vec<String>) {
        let numbered = |name: &String| match file_name::parse(name) {
            Some((FileType::Options, number)) => Some(number.0),
            _ => None,
        };
        let mut numbers: Vec<u64> = vfs.read_dir(Path::new("/db")).unwrap().iter().filter_map(numbered).collect();
        numbers.sort_unstable();
        let newest = format!("/db/OPTIONS-{:06}", numbers.last().unwrap());
        let text = vfs::read_all(vfs, Path::new(&newest), 1 << 20, IoClass::Other).unwrap();
        let text = String::from_utf8(text).unwrap();
        let family = |_: &str| FamilyOptions::default();
        let (file, _) = OptionsFile::read(&text, base::options::DbOptions::default(), &family, false).unwrap();
        (numbers, file.families.into_iter().map(|(name, _)| name).collect())
    }

    fn options(vfs: Arc<dyn Vfs>) -> OpenOptions {
        let other_families = OtherFamilies::OpenWith(Box::default());
        OpenOptions { vfs, other_families, ..OpenOptions::create_if_missing() }
    }

    #[test]
    fn every_change_writes_a_newer_file_and_leaves_the_one_before() {
        let vfs = MemoryVfs::new(1);
        let db = Database::open("/db", &options(vfs.clone())).unwrap();
        let mut last = look(&*vfs);
        assert_eq!((last.0.len(), &last.1[..]), (1, &["default".to_owned()][..]));
        let mut changed = |families: &[&str]| {
            let (numbers, names) = look(&*vfs);
            assert_eq!(names, families);
            let [before, newest] = numbers[..] else { panic!("{numbers:?}") };
            assert!(Some(&before) == last.0.last() && before < newest, "{numbers:?} after {last:?}");
            last = (numbers, names);
        };
        let one = db.create_family("one", FamilyOptions::default()).unwrap();
        changed(&["default", "one"]);
        db.create_family("two", FamilyOptions::default()).unwrap();
        changed(&["default", "one", "two"]);
        db.set_options(&one, &[("write_buffer_size", "1M")]).unwrap();
        changed(&["default", "one", "two"]);
        db.drop_family(&one).unwrap();
        changed(&["default", "two"]);
        db.close().unwrap();
        drop(Database::open("/db", &options(vfs.clone())).unwrap());
        changed(&["default", "two"]);
    }

    /// The family is there: the MANIFEST has it. So the call succeeds, and the file before is whole.
    #[test]
    fn where_it_cannot_be_written_the_change_stands() {
        for operation in [Operation::Create, Operation::Write, Operation::Sync, Operation::Rename] {
            let vfs = FaultVfs::new(MemoryVfs::new(1));
            let db = Database::open("/db", &options(vfs.clone())).unwrap();
            let before = look(&*vfs);
            vfs.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(operation).path("dbtmp").sticky());
            db.create_family("one", FamilyOptions::default()).unwrap();
            assert_eq!(look(&*vfs), before, "{operation:?}");
            assert!(vfs.fired() > 0, "{operation:?}");
            vfs.clear();
            db.create_family("two", FamilyOptions::default()).unwrap();
            assert_eq!(look(&*vfs).1, ["default", "one", "two"], "{operation:?}");
        }
    }

    #[test]
    fn a_larger_number_that_a_crash_left_is_not_taken_for_the_newest() {
        let vfs = MemoryVfs::new(1);
        drop(Database::open("/db", &options(vfs.clone())).unwrap());
        vfs.write_file(Path::new("/db/OPTIONS-999999"), b"[Version]").unwrap();
        drop(Database::open("/db", &options(vfs.clone())).unwrap());
        assert_eq!(look(&*vfs).1, ["default"]);
    }
}
