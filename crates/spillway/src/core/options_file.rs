//! The writer of the OPTIONS file: the options in force, for people, tools, and programs that open with the newest file.
//!
//! Written anew at every open, and when a family is created or dropped or an option changes, as in RocksDB: under a temporary name,
//! synced, renamed. The previous file is kept. If the write fails, the change stands: the MANIFEST has it, and the next change or
//! open writes the file.
//!
//! The file grows with the families, so families that come and go one after another share writes. The first changes of such a
//! burst are stored at once; the last of these files says that families change, and stands for the later ones. Upkeep stores them after a
//! pause. A kill before costs a new family its options, but for name, comparator and time to live.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::options::{ini, whole};
use base::{FileNumber, Result};
use base::{name, note};
use parking_lot::Mutex;
use vfs::{IfExists, IoClass, Vfs, write_all};

use crate::core::Core;
use crate::core::family::Family;
use crate::core::install::Installer;
use crate::version::file_name::{self, FileType};

/// Between two writes of the file in a burst of changes.
const PAUSE: Duration = Duration::from_secs(1);

/// A burst's changes are stored at once until its files are this long together, for programs look for the file behind a change:
/// some fifteen changes of a database with few families, one of a database with many.
const AT_ONCE_BYTES: usize = 256 << 10;

/// The pause is at least so many times as long as a write of the file takes.
const PAUSE_FACTOR: u32 = 10;

/// The writer of the OPTIONS file.
pub(crate) struct OptionsFile {
    core: Arc<Core>,
    installer: Arc<Installer>,
    /// Serializes writers of the file. Taken under no other lock.
    burst: Mutex<Burst>,
}

/// Families that come and go one after another.
#[derive(Default)]
struct Burst {
    /// A change before this time belongs to the burst.
    until: Duration,
    /// The length of its files together.
    stored_bytes: usize,
    /// The last file says that families change.
    is_marked: bool,
    /// The last file lacks a change. It is marked.
    is_behind: bool,
    /// The families that were dropped since the last file.
    dropped: BTreeSet<String>,
    /// How long the last write took.
    took: Duration,
    is_closed: bool,
}

impl OptionsFile {
    pub fn new(core: Arc<Core>, installer: Arc<Installer>) -> Arc<Self> {
        Arc::new(OptionsFile { core, installer, burst: Mutex::default() })
    }

    /// Writes the options in force, unless the database is closed. Called under no lock. Of concurrent calls, the last one
    /// writes the newest file.
    pub fn write(&self) {
        let mut burst = self.burst.lock();
        let is_marked = burst.is_marked;
        self.write_as(&mut burst, is_marked);
    }

    /// Stores a new family's options, now or soon. What reads of its values need is stored when this returns; and no file gives it
    /// the options of a dropped family of its name.
    pub fn family_made(&self, family: &Family) {
        let mut burst = self.burst.lock();
        let is_urgent = *family.options().value_times || burst.dropped.contains(family.name());
        self.family_changed(&mut burst, is_urgent);
    }

    /// Stores soon that a family's values end with times: until then the MANIFEST alone says so.
    pub fn times_noted(&self) {
        self.family_changed(&mut self.burst.lock(), false);
    }

    /// Has the file pass over a dropped family, now or soon.
    pub fn family_dropped(&self, family: &Family) {
        let mut burst = self.burst.lock();
        burst.dropped.insert(family.name().to_owned());
        self.family_changed(&mut burst, false);
    }

    fn family_changed(&self, burst: &mut Burst, is_urgent: bool) {
        let goes_on = self.now() < burst.until;
        if goes_on && burst.is_marked && !is_urgent {
            burst.is_behind = true;
            return;
        }
        if !goes_on {
            burst.stored_bytes = 0;
        }
        let is_marked = burst.stored_bytes >= AT_ONCE_BYTES || burst.is_marked;
        self.write_as(burst, is_marked);
        self.pause(burst);
    }

    /// Stores the changes of a burst whose pause is over.
    pub fn keep_up(&self) {
        let Some(mut burst) = self.burst.try_lock() else { return };
        if burst.is_marked && self.now() >= burst.until {
            let goes_on = burst.is_behind;
            self.write_as(&mut burst, goes_on);
            self.pause(&mut burst);
        }
    }

    /// How long until [`keep_up`](Self::keep_up) has something to do. Upkeep does not get there with a background error: the
    /// close stores the changes.
    pub fn until_due(&self) -> Option<Duration> {
        let burst = self.burst.lock();
        let is_due = burst.is_marked && self.core.background_error().is_none();
        is_due.then(|| burst.until.saturating_sub(self.now()))
    }

    /// Stores the changes of a burst. The file stays as it is from now on: another process may have the directory.
    pub fn close(&self) {
        let mut burst = self.burst.lock();
        if burst.is_marked {
            self.write_as(&mut burst, false);
        }
        burst.is_closed = true;
    }

    fn now(&self) -> Duration {
        self.core.context.vfs.now()
    }

    fn pause(&self, burst: &mut Burst) {
        burst.until = self.now() + PAUSE.max(burst.took * PAUSE_FACTOR);
        if burst.is_marked {
            self.core.upkeep.raise(); // it waits for the end of the pause
        }
    }

    fn write_as(&self, burst: &mut Burst, is_marked: bool) {
        if burst.is_closed {
            return;
        }
        let began = self.now();
        let written = self.try_write(is_marked);
        burst.took = self.now().saturating_sub(began);
        (burst.is_marked, burst.is_behind) = (is_marked && written.is_ok(), false);
        match written {
            Ok(bytes) => {
                burst.stored_bytes += bytes;
                burst.dropped.clear();
            }
            Err(error) => {
                let dir = self.core.context.dir.display();
                note::warn!(%error, %dir, "cannot write the options file: programs that open by it may find older options");
            }
        }
    }

    /// Returns the length of the file.
    fn try_write(&self, is_marked: bool) -> Result<usize> {
        let (number, families) = {
            // A later change of families notes a larger number, an earlier one is in the file.
            let _unchanged = self.installer.manifest.lock();
            let families: Vec<_> = self.core.families.load().iter().cloned().collect();
            (self.core.context.numbers.take(), families)
        };
        let options: Vec<_> = families.iter().map(|family| family.options()).collect();
        let named: Vec<_> =
            families.iter().zip(&options).map(|(family, options)| (family.name(), &**options)).collect();
        let text = ini::write(&self.core.context.options_now.load(), &named, ini::Audience::Spillway);
        let text = if is_marked { whole::marked(&text) } else { text };
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
        self.installer.record_options_file(number)?;
        remove_older(vfs, dir, number)?;
        Ok(text.len())
    }
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
    use base::UserOrder;
    use base::options::{CompactionStyle, FamilyOptions, OptionsFile};
    use std::collections::{BTreeMap, BTreeSet};
    use vfs::fault::{Fault, FaultCode, FaultVfs, Operation, Rule};
    use vfs::{CrashPolicy, IoClass, MemoryVfs};

    use super::*;
    use crate::internal::{Database, OpenOptions, OtherFamilies};

    fn numbers(vfs: &dyn Vfs) -> Vec<u64> {
        let numbers = file_name::numbers_in(vfs, Path::new("/db"), FileType::Options).unwrap();
        numbers.into_iter().map(|number| number.0).collect()
    }

    /// The path of the newest options file.
    fn newest(vfs: &dyn Vfs) -> String {
        format!("/db/OPTIONS-{:06}", numbers(vfs).last().unwrap())
    }

    fn read(vfs: &dyn Vfs) -> String {
        String::from_utf8(vfs::read_all(vfs, Path::new(&newest(vfs)), 1 << 30, IoClass::Other).unwrap()).unwrap()
    }

    fn is_marked(vfs: &dyn Vfs) -> bool {
        whole::check_whole(&read(vfs)).unwrap();
        whole::is_marked(read(vfs).as_bytes())
    }

    /// Numbers of the options files, ascending, and the families that the newest names.
    fn look(vfs: &dyn Vfs) -> (Vec<u64>, Vec<String>) {
        let family = |_: &str| FamilyOptions::default();
        let (file, _) = OptionsFile::read(&read(vfs), base::options::DbOptions::default(), &family, false).unwrap();
        (numbers(vfs), file.families.into_iter().map(|(name, _)| name).collect())
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
            vfs.sleep(PAUSE);
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

    /// Bytes of the files that are written while `count` families are made and dropped, and how many they are.
    fn written_in_a_burst(count: usize) -> (u64, usize) {
        let vfs = MemoryVfs::new(1);
        let db = Database::open("/db", &options(vfs.clone())).unwrap();
        let mut files = BTreeMap::new();
        let mut note = || {
            let newest = newest(&*vfs);
            files.insert(newest.clone(), vfs.metadata(Path::new(&newest)).unwrap().len);
        };
        note();
        let made = (0..count).map(|i| {
            let family = db.create_family(&format!("family {i}"), FamilyOptions::default()).unwrap();
            note();
            family
        });
        let made: Vec<_> = made.collect();
        assert!(is_marked(&*vfs));
        assert!((10..20).contains(&look(&*vfs).1.len()), "the last change that is stored marks the file");
        vfs.sleep(PAUSE);
        db.engine().jobs.turn_of_upkeep(false);
        note();
        assert_eq!((look(&*vfs).1.len(), is_marked(&*vfs)), (1 + count, true), "the burst may go on");
        for family in &made {
            db.drop_family(family).unwrap();
            note();
        }
        assert_eq!(look(&*vfs).1.len(), 1 + count);
        for is_marked_still in [true, false, false] {
            vfs.sleep(PAUSE);
            db.engine().jobs.turn_of_upkeep(false);
            note();
            assert_eq!((look(&*vfs).1.len(), is_marked(&*vfs)), (1, is_marked_still));
        }
        (files.values().sum(), files.len())
    }

    #[test]
    fn families_that_come_and_go_share_writes() {
        let [of_100, of_400] = [100, 400].map(written_in_a_burst);
        assert_eq!(of_100.1, of_400.1, "files");
        assert!(of_400.0 < 5 * of_100.0, "{of_400:?} after {of_100:?}");
    }

    #[test]
    fn a_burst_beside_many_families_shares_a_write() {
        let vfs = MemoryVfs::new(1);
        let db = Database::open("/db", &options(vfs.clone())).unwrap();
        (0..400).for_each(|i| drop(db.create_family(&format!("family {i}"), FamilyOptions::default()).unwrap()));
        db.close().unwrap();
        let db = Database::open("/db", &options(vfs.clone())).unwrap();
        vfs.sleep(PAUSE);
        let files = (0..20).map(|i| {
            db.create_family(&format!("more {i}"), FamilyOptions::default()).unwrap();
            newest(&*vfs)
        });
        let files: BTreeSet<_> = files.collect();
        assert_eq!(files.len(), 2, "the first at once, and the mark of a burst");
        db.close().unwrap();
        assert_eq!((look(&*vfs).1.len(), is_marked(&*vfs)), (421, false));
    }

    #[test]
    fn close_stores_a_burst() {
        let vfs = MemoryVfs::new(1);
        let db = Database::open("/db", &options(vfs.clone())).unwrap();
        (0..29).for_each(|i| drop(db.create_family(&format!("family {i}"), FamilyOptions::default()).unwrap()));
        assert!(look(&*vfs).1.len() < 20);
        db.close().unwrap();
        assert_eq!((look(&*vfs).1.len(), is_marked(&*vfs)), (30, false));
    }

    /// The MANIFEST has its name and comparator, and that its values have times; the time to live is in the file.
    #[test]
    fn a_kill_in_a_burst_loses_no_family() {
        let vfs = MemoryVfs::new(1);
        let db = Database::open("/db", &options(vfs.clone())).unwrap();
        let fifo = FamilyOptions { compaction_style: CompactionStyle::Fifo, ..FamilyOptions::default() };
        while !is_marked(&*vfs) {
            let family = db.create_family("before", fifo.clone()).unwrap();
            db.drop_family(&family).unwrap();
        }
        let made: Vec<_> = ["a", "b", "c"].map(|name| db.create_family(name, fifo.clone()).unwrap()).into();
        db.drop_family(&made[1]).unwrap();
        let backwards = FamilyOptions { order: UserOrder::ReverseBytewise, ..FamilyOptions::default() };
        db.create_family("b", backwards.clone()).unwrap();
        db.create_family("late", backwards).unwrap();
        let stored = |name: &str| {
            let text = read(&*vfs);
            let family = |_: &str| FamilyOptions::default();
            let (file, _) = OptionsFile::read(&text, base::options::DbOptions::default(), &family, false).unwrap();
            file.family(name).cloned()
        };
        assert_eq!(stored("b").unwrap().compaction_style, CompactionStyle::Level, "not that of the dropped one");
        assert!(stored("late").is_none());
        db.create_family("timed", FamilyOptions { value_ttl_s: 60, ..FamilyOptions::default() }).unwrap();
        assert_eq!(stored("timed").unwrap().value_ttl_s, 60);
        db.create_family("last", FamilyOptions::default()).unwrap();
        let killed = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
        let db = Database::open("/db", &options(killed)).unwrap();
        let names: Vec<_> = db.families().iter().map(|family| family.name().to_owned()).collect();
        assert_eq!(names, ["default", "a", "c", "b", "late", "timed", "last"]);
        assert_eq!(db.family("late").unwrap().order().user.name(), UserOrder::ReverseBytewise.name());
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
