//! A database's directory `lost/`: files removed or replaced by a repair. Nothing in it is deleted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base::{Error, FileNumber, Result};
use vfs::{FileKind, IfExists, IoClass, Vfs};
use wal::DatabaseId;

use crate::background::staging::create_durable_dir;
use crate::background::staging::scan;
use crate::core::doubt::Doubt;
use crate::version::file_name::{self, FileType, numbers_in};

pub(crate) const LOST_DIR: &str = "lost";

/// The name of a repair's report.
pub(crate) const REPORT: &str = "REPORT";

/// The name of a report of stored options that are lost. It is a file of its own: no key is in doubt for it.
const REPORT_OF_OPTIONS: &str = "REPORT-OPTIONS";

/// The mark of a repair that has not ended: the text of a [`Mark`].
const UNFINISHED: &str = "UNFINISHED";

const MARK_BYTES_MAX: u64 = 64;

/// Steps of a repair, in its mark.
const COPYING: &str = "copying";
const SWITCHING: &str = "switching";

/// Copies kept under one name.
const COPIES_MAX: u32 = 1000;

/// How far a repair that has not ended came.
struct Mark {
    /// The repair's files have this number and larger ones.
    first_new: FileNumber,
    /// Its MANIFEST was about to become the last one. All before is a copy of what a repetition reads.
    has_switched: bool,
}

impl Mark {
    /// Whether the repair's MANIFEST is the last one, or was. `last` is the last one now; 0 if all are lost.
    fn counts(&self, last: FileNumber) -> bool {
        self.has_switched && (last.0 == 0 || last >= self.first_new)
    }

    /// A mark that cannot be read may be of any repair.
    fn parse(text: &str) -> Mark {
        let known =
            text.split_once(' ').and_then(|(first_new, step)| Some((FileNumber(first_new.parse().ok()?), step)));
        match known {
            Some((first_new, COPYING)) => Mark { first_new, has_switched: false },
            Some((first_new, SWITCHING)) => Mark { first_new, has_switched: true },
            _ => Mark { first_new: FileNumber(0), has_switched: true },
        }
    }
}

pub(crate) struct Lost<'a> {
    vfs: &'a dyn Vfs,
    dir: PathBuf,
}

impl<'a> Lost<'a> {
    pub fn new(vfs: &'a dyn Vfs, database: &Path) -> Lost<'a> {
        Lost { vfs, dir: database.join(LOST_DIR) }
    }

    /// Returns the path of a file `name` moved here before; the latest of several.
    ///
    /// # Errors
    /// The file system's.
    pub fn find(&self, name: &str) -> Result<Option<PathBuf>> {
        Ok(self.copies(name)?.pop().map(|last| self.dir.join(numbered(name, last))))
    }

    /// Numbers of the copies under one name, ascending. Some may have been moved away since.
    fn copies(&self, name: &str) -> Result<Vec<u32>> {
        let names = match self.vfs.read_dir(&self.dir) {
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            names => names?,
        };
        let number = |copy: &String| match copy.strip_prefix(name)? {
            "" => Some(0),
            rest => rest.strip_prefix('.')?.parse().ok(),
        };
        let mut copies: Vec<u32> = names.iter().filter_map(number).collect();
        copies.sort_unstable();
        Ok(copies)
    }

    /// Moves a file here. Returns its new path.
    ///
    /// # Errors
    /// `InvalidArgument`: too many copies. Otherwise the file system's.
    pub fn take(&self, path: &Path) -> Result<PathBuf> {
        let to = self.free_path(path)?;
        if self.vfs.rename(path, &to).is_err() {
            copy(self.vfs, path, &to)?; // another file system, as `wal_dir` may be
            self.vfs.sync_dir(&self.dir)?;
            self.vfs.remove_file(path)?;
        }
        Ok(to)
    }

    /// Links or copies a file here. The original stays in place and may be deleted later.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn keep(&self, path: &Path) -> Result<PathBuf> {
        let to = self.free_path(path)?;
        if self.vfs.hard_link(path, &to).is_err() {
            copy(self.vfs, path, &to)?;
        }
        Ok(to)
    }

    /// As [`keep`](Self::keep), for every MANIFEST and copy of one in the database's directory.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn keep_manifests(&self) -> Result<()> {
        let database = self.database();
        for kind in [FileType::Manifest, FileType::ManifestCopy] {
            for number in numbers_in(self.vfs, database, kind)? {
                self.keep(&database.join(file_name::format(kind, number)))?;
            }
        }
        Ok(())
    }

    fn database(&self) -> &Path {
        self.dir.parent().unwrap_or(&self.dir)
    }

    /// Copies a file here, before its original is replaced.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn copy(&self, path: &Path) -> Result<()> {
        copy(self.vfs, path, &self.free_path(path)?)
    }

    /// Writes a text file. Returns its path.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn write(&self, name: &str, text: &[u8]) -> Result<PathBuf> {
        let path = self.free_path(Path::new(name))?;
        vfs::write_all(self.vfs, &path, IfExists::Truncate, text, IoClass::Other)?;
        Ok(path)
    }

    /// Replaces a text file that was written here.
    ///
    /// # Errors
    /// The file system's; the old text stands.
    pub fn rewrite(&self, path: &Path, text: &[u8]) -> Result<()> {
        let temp = path.with_extension("dbtmp");
        vfs::write_all(self.vfs, &temp, IfExists::Truncate, text, IoClass::Other)?;
        self.vfs.rename(&temp, path)
    }

    /// The report of an earlier repair; the latest of several.
    ///
    /// # Errors
    /// The file system's.
    pub fn report(&self) -> Result<Option<PathBuf>> {
        self.find(REPORT)
    }

    /// As [`report`](Self::report), of stored options.
    ///
    /// # Errors
    /// The file system's.
    pub fn report_of_options(&self) -> Result<Option<PathBuf>> {
        self.find(REPORT_OF_OPTIONS)
    }

    /// Writes a report of stored options.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn write_report_of_options(&self, text: &str) -> Result<()> {
        self.write(REPORT_OF_OPTIONS, text.as_bytes()).map(drop)
    }

    /// Marks durably that a repair begins, whose files are numbered from `first_new` on. The mark of an earlier repair that was cut
    /// off stays.
    ///
    /// # Errors
    /// The file system's.
    pub fn mark(&self, first_new: FileNumber) -> Result<()> {
        if self.read_mark()?.is_some() {
            return Ok(());
        }
        if !self.vfs.exists(&self.dir)? {
            create_durable_dir(self.vfs, &self.dir)?;
        }
        self.write_mark(first_new, COPYING)
    }

    /// Notes durably that the repair's MANIFEST comes next: from then on its files may be live ones.
    ///
    /// # Errors
    /// The file system's.
    pub fn record_switch(&self) -> Result<()> {
        match self.read_mark()? {
            Some(Mark { first_new, has_switched: false }) => self.write_mark(first_new, SWITCHING),
            _ => Ok(()),
        }
    }

    fn write_mark(&self, first_new: FileNumber, step: &str) -> Result<()> {
        self.rewrite(&self.dir.join(UNFINISHED), format!("{} {step}", first_new.0).as_bytes())?;
        self.sync()
    }

    /// Removes the mark durably, if there is one, and the directory if nothing else is in it.
    ///
    /// # Errors
    /// The file system's; the mark may remain.
    pub fn unmark(&self) -> Result<()> {
        if !self.vfs.exists(&self.dir.join(UNFINISHED))? {
            return Ok(());
        }
        self.vfs.remove_file(&self.dir.join(UNFINISHED))?;
        if self.vfs.read_dir(&self.dir)?.is_empty() {
            return self.vfs.remove_dir(&self.dir);
        }
        self.sync()
    }

    fn read_mark(&self) -> Result<Option<Mark>> {
        let path = self.dir.join(UNFINISHED);
        if !self.vfs.exists(&path).map_err(|error| self.or_blocked(error))? {
            return Ok(None);
        }
        let text = vfs::read_all(self.vfs, &path, MARK_BYTES_MAX, IoClass::Other).unwrap_or_default();
        Ok(Some(Mark::parse(std::str::from_utf8(&text).unwrap_or_default())))
    }

    /// # Errors
    /// `InvalidArgument`: something else has the place of the directory, a symbolic link to nothing included.
    pub fn check_place(&self) -> Result<()> {
        match self.vfs.metadata(&self.dir) {
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
            Ok(_) => match self.vfs.metadata(&self.dir.join(".")) {
                Ok(found) if found.kind == FileKind::Directory => Ok(()),
                _ => {
                    let what =
                        "it is not a directory, and a repair keeps files in a directory of this name: move it away";
                    Err(Error::invalid_argument(what).at_path(&self.dir))
                }
            },
        }
    }

    /// The error, unless a file has the place of the directory. Every command looks for the mark first.
    fn or_blocked(&self, error: Error) -> Error {
        match self.vfs.metadata(&self.dir) {
            Ok(found) if found.kind != FileKind::Directory => {
                let what = "it is not a directory, and a repair keeps files in a directory of this name: move it away";
                Error::invalid_argument(what).at_path(&self.dir)
            }
            _ => error,
        }
    }

    /// Removes the mark of a repair that was cut off before its MANIFEST became the last one, `last`: the database goes on
    /// without it. Under the lock.
    ///
    /// # Errors
    /// The file system's.
    pub fn forget_cut_off(&self, last: FileNumber) -> Result<()> {
        if self.read_mark()?.is_some_and(|mark| !mark.counts(last)) { self.unmark() } else { Ok(()) }
    }

    /// Ends a repair that was cut off before its switch: moves the files that it made here, and removes its mark. They are
    /// copies of what the repetition reads. Logs of other databases than `own` stay, and tables that the MANIFEST names: RocksDB
    /// went on without the repair. Under the lock. Returns what was moved.
    ///
    /// # Errors
    /// The file system's.
    pub fn clear_cut_off(&self, own: DatabaseId, log_dir: &Path, named: &BTreeSet<FileNumber>) -> Result<Vec<PathBuf>> {
        let Some(Mark { first_new, has_switched: false }) = self.read_mark()? else { return Ok(Vec::new()) };
        let database = self.database();
        let mut moved = Vec::new();
        let made = numbers_in(self.vfs, database, FileType::Table)?.split_off(&first_new);
        for &number in made.difference(named) {
            moved.push(self.take(&database.join(file_name::format(FileType::Table, number)))?);
        }
        // Of logs a repair makes one, for prepared transactions. It notes no MANIFEST, as the logs of a running database do.
        for number in numbers_in(self.vfs, log_dir, FileType::Log)?.split_off(&first_new) {
            let path = log_dir.join(file_name::format(FileType::Log, number));
            let head = wal::read_head(self.vfs, &path, number).unwrap_or_default();
            if head.database.is_known() && !head.database.is_another_than(own) && head.manifest.is_none() {
                moved.push(self.take(&path)?);
            }
        }
        self.unmark()?;
        Ok(moved)
    }

    /// Gives the reports of earlier repairs other names: the database that they are about is gone.
    ///
    /// # Errors
    /// The file system's.
    pub fn retire_reports(&self) -> Result<()> {
        for report in [REPORT, REPORT_OF_OPTIONS] {
            for copy in self.copies(report)? {
                let name = numbered(report, copy);
                let to = self.free_path(Path::new(&format!("EARLIER-{name}")))?;
                self.vfs.rename(&self.dir.join(name), &to)?;
            }
        }
        match self.vfs.remove_file(&self.dir.join(UNFINISHED)) {
            Err(error) if !error.is_not_found() => Err(error),
            _ => self.sync(),
        }
    }

    /// A doubt of everything if a repair was cut off after its MANIFEST became the last one, which `last` is now: only its
    /// report has its losses and doubts. One that was cut off before changed nothing that counts. `None`: the database is
    /// open for writing, and the open removed the mark of such a one.
    ///
    /// # Errors
    /// The file system's.
    pub fn unfinished(&self, last: Option<FileNumber>) -> Result<Option<Doubt>> {
        if self.read_mark()?.is_none_or(|mark| last.is_some_and(|last| !mark.counts(last))) {
            return Ok(None);
        }
        let what = match self.report()? {
            Some(report) => format!("; its losses and doubts, as far as it knew them, are in {}", report.display()),
            None => String::new(),
        };
        Ok(Some(Doubt::of_all(format!("a repair has not ended: wait for it, or repeat it if none is running{what}"))))
    }

    /// Checks that a copy of the database may be made: it would not tell of the losses of a repair that was cut off. `last` is
    /// as in [`unfinished`](Self::unfinished).
    ///
    /// # Errors
    /// `InvalidArgument`: a repair has not ended. The file system's.
    pub fn check_copied(&self, last: Option<FileNumber>) -> Result<()> {
        let refusal =
            |doubt: Doubt| Error::invalid_argument(format!("no copy is made: {}", doubt.why)).at_path(&self.dir);
        self.unfinished(last)?.map_or(Ok(()), |doubt| Err(refusal(doubt)))
    }

    /// Makes all changes here durable.
    ///
    /// # Errors
    /// The file system's.
    pub fn sync(&self) -> Result<()> {
        if self.vfs.exists(&self.dir)? { self.vfs.sync_dir(&self.dir) } else { Ok(()) }
    }

    /// Returns a number above all files here.
    ///
    /// # Errors
    /// The file system's.
    pub fn next_file(&self) -> Result<FileNumber> {
        if !self.vfs.exists(&self.dir)? {
            return Ok(FileNumber(0));
        }
        file_name::next_number(self.vfs, &self.dir)
    }

    /// # Errors
    /// As [`take`](Self::take).
    fn free_path(&self, from: &Path) -> Result<PathBuf> {
        if !self.vfs.exists(&self.dir)? {
            create_durable_dir(self.vfs, &self.dir)?;
        }
        let name = from.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let copy = self.copies(name)?.pop().map_or(0, |last| last.saturating_add(1));
        if copy >= COPIES_MAX {
            let what =
                format!("it has {COPIES_MAX} copies of {name} already; move them elsewhere, and repeat the repair");
            return Err(Error::invalid_argument(what).at_path(&self.dir));
        }
        Ok(self.dir.join(numbered(name, copy)))
    }
}

fn numbered(name: &str, copy: u32) -> String {
    if copy == 0 { name.to_owned() } else { format!("{name}.{copy}") }
}

fn copy(vfs: &dyn Vfs, from: &Path, to: &Path) -> Result<()> {
    let temp = to.with_extension("dbtmp"); // a part never has the file's name
    let mut copy = vfs.create(&temp, IfExists::Truncate)?;
    let copied = scan(vfs, from, None, &mut |block| copy.append(block, IoClass::Other));
    let made = copied.and_then(|_| copy.sync(IoClass::Other)).and_then(|()| vfs.rename(&temp, to));
    made.inspect_err(|_| drop(vfs.remove_file(&temp)))
}

#[cfg(test)]
mod tests {
    use base::ErrorKind;

    use super::*;

    /// Who has dealt with the first report moves it away. The next one is the latest still.
    #[test]
    fn latest_report_has_the_largest_number() {
        let vfs = vfs::MemoryVfs::new(1);
        vfs.create_dir_all(Path::new("/db")).expect("made");
        let lost = Lost::new(&*vfs, Path::new("/db"));
        let first = lost.write(REPORT, b"1").expect("written");
        lost.write(REPORT, b"2").expect("written");
        vfs.rename(&first, Path::new("/db/first")).expect("moved");
        let third = lost.write(REPORT, b"3").expect("written");
        assert_eq!(third, PathBuf::from("/db/lost/REPORT.2"));
        assert_eq!(lost.report().expect("found"), Some(third));
    }

    #[test]
    fn a_copy_too_many_is_an_error_and_overwrites_nothing() {
        let vfs = vfs::MemoryVfs::new(1);
        vfs.create_dir_all(Path::new("/db")).expect("made");
        let lost = Lost::new(&*vfs, Path::new("/db"));
        for copy in 0..COPIES_MAX {
            lost.write("REPORT", copy.to_string().as_bytes()).expect("written");
        }
        let before = vfs.all_files();
        let error = lost.write("REPORT", b"one more").expect_err("refused");
        assert!(
            error.kind() == ErrorKind::InvalidArgument && error.message().contains("1000 copies of REPORT"),
            "{error}"
        );
        assert_eq!(vfs.all_files(), before);
        assert_eq!(lost.find("REPORT").expect("found"), Some(PathBuf::from("/db/lost/REPORT.999")));
    }
}
