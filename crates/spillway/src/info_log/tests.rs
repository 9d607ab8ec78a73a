use std::path::PathBuf;

use base::extend::Logger;
use vfs::fault::{Fault, FaultCode, FaultVfs, Operation, Rule};
use vfs::{IoClass, MemoryVfs};

use super::*;
use crate::internal::{Database, FamilyOptions, OpenOptions, WriteOptions};

/// A file system in memory under which a database has its threads, and so a file.
fn threaded() -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false);
    vfs
}

fn read(vfs: &dyn Vfs, path: &str) -> String {
    String::from_utf8(vfs::read_all(vfs, Path::new(path), 1 << 20, IoClass::Other).expect(path)).expect("text")
}

fn logs_in(vfs: &dyn Vfs, dir: &str) -> Vec<String> {
    let names = vfs.read_dir(Path::new(dir)).expect("there");
    names.into_iter().filter(|name| name.contains("LOG")).collect()
}

fn options(vfs: Arc<dyn Vfs>) -> OpenOptions {
    OpenOptions { vfs, ..OpenOptions::create_if_missing() }
}

fn open_and_close(options: &OpenOptions) {
    Database::open("/db", options).expect("opens").close().expect("closes");
}

#[test]
fn a_log_tells_the_life_of_a_database() {
    let vfs = threaded();
    let mut family = FamilyOptions::default();
    base::options::apply_string(
        &mut family,
        "compaction_options_universal={incremental=true};sample_for_compression=7",
    )
    .expect("taken");
    let mut options = options(vfs.clone()).family("default", family);
    options.db.kept.set("use_fsync", "true");
    let db = Database::open("/db", &options).expect("new");
    let family = db.default_family();
    db.put(&family, b"key", b"value", &WriteOptions::default()).expect("written");
    db.flush(&[&family]).expect("flushed");
    db.create_family("other", FamilyOptions::default()).expect("made");
    db.close().expect("closes");

    let text = read(&*vfs, "/db/LOG");
    let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("Spillway version: "), 1, "{text}");
    assert_eq!(count("Options.max_open_files: -1"), 1, "{text}");
    assert_eq!(count("Options.write_buffer_size: 67108864"), 2, "{text}");
    assert_eq!(count("Options for column family [other]"), 1, "{text}");
    for remark in ["`use_fsync=true` of RocksDB has no effect", "`incremental=true`", "`sample_for_compression=7`"] {
        assert_eq!(count(remark), 1, "{remark}: {text}");
        assert!(text.lines().any(|line| line.contains(" [WARN] ") && line.contains(remark)), "{text}");
    }
    assert_eq!(count("] flushed family=default"), 1, "{text}");
    assert!(text.lines().last().is_some_and(|line| line.ends_with("] the database is closed")), "{text}");
    assert!(text.lines().all(|line| line.starts_with("1970/") || line.starts_with("20")), "{text}");
}

/// The options of 30,000 families would be 200 MB at each open.
#[test]
fn of_many_families_a_log_has_the_options_that_differ() {
    let vfs = threaded();
    let options = options(vfs.clone());
    let small = FamilyOptions { write_buffer_size: 1 << 20, ..FamilyOptions::default() };
    let made = (0..20).map(|i| (format!("f{i}"), if i == 7 { small.clone() } else { FamilyOptions::default() }));
    let mut options = made.fold(options, |options, (name, family)| options.family(name, family));
    options.db.create_missing_column_families = true;
    open_and_close(&options);
    open_and_close(&options);
    let text = read(&*vfs, "/db/LOG");
    let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("Options for column family ["), 21, "{text}");
    assert_eq!(count("Options.write_buffer_size: "), 2, "{text}");
    assert_eq!(count("Options.write_buffer_size: 1048576"), 1, "{text}");
    assert_eq!(count("Options.num_levels: "), 1, "{text}");
}

#[test]
fn logs_are_put_aside_and_so_many_are_kept() {
    let vfs = threaded();
    let mut options = options(vfs.clone());
    options.db.keep_log_file_num = 3;
    for _ in 0..5 {
        open_and_close(&options);
    }
    let names = logs_in(&*vfs, "/db");
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names[0] == "LOG" && names[1].starts_with("LOG.old.") && names[2].starts_with("LOG.old."), "{names:?}");

    options.db.max_log_file_size = 1000; // the header is longer
    open_and_close(&options);
    let newest = read(&*vfs, "/db/LOG");
    assert!(newest.contains("Spillway version") && newest.contains("closed"), "each begins with the header: {newest}");

    options.db.keep_log_file_num = 1;
    open_and_close(&options);
    assert_eq!(logs_in(&*vfs, "/db"), ["LOG"]);
    Database::destroy("/db", None, &(vfs.clone() as Arc<dyn Vfs>)).expect("destroyed");
    assert!(!vfs.exists(Path::new("/db")).expect("answers"), "nothing is left");
}

#[test]
fn logs_can_lie_elsewhere() {
    let vfs = threaded();
    let mut options = options(vfs.clone());
    options.db.db_log_dir = "/logs".to_owned();
    open_and_close(&options);
    open_and_close(&options);
    assert_eq!(logs_in(&*vfs, "/db"), Vec::<String>::new());
    let names = logs_in(&*vfs, "/logs");
    assert!(names.len() == 2 && names[0] == "db_LOG" && names[1].starts_with("db_LOG.old."), "{names:?}");
    Database::destroy_by("/db", &options.db, &(vfs.clone() as Arc<dyn Vfs>)).expect("destroyed");
    assert_eq!(logs_in(&*vfs, "/logs"), Vec::<String>::new());
}

#[derive(Default)]
struct Collected(Mutex<Vec<(InfoLogLevel, String)>>);

impl Logger for Collected {
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Warn
    }

    fn log(&self, level: InfoLogLevel, line: &str) {
        self.0.lock().push((level, line.to_owned()));
    }
}

struct Changed {
    level: Mutex<InfoLogLevel>,
    lines: Mutex<Vec<String>>,
}

impl Logger for Changed {
    fn level(&self) -> InfoLogLevel {
        *self.level.lock()
    }

    fn log(&self, _level: InfoLogLevel, line: &str) {
        self.lines.lock().push(line.to_owned());
    }
}

#[test]
fn a_loggers_level_changes_at_any_time_and_a_flush_has_its_lines_when_it_returns() {
    let logger = Arc::new(Changed { level: Mutex::new(InfoLogLevel::Header), lines: Mutex::default() });
    let mut options = options(threaded());
    options.db.info_log = Some(logger.clone());
    options.db.info_log_level = InfoLogLevel::Header;
    let db = Database::open("/db", &options).expect("opened");
    let last = logger.lines.lock().last().cloned();
    assert!(last.as_ref().is_some_and(|line| line.starts_with("DB pointer 0x")), "{last:?}");
    *logger.level.lock() = InfoLogLevel::Debug;
    db.put(&db.default_family(), b"key", b"value", &Default::default()).expect("put");
    db.flush(&[&db.default_family()]).expect("flushed");
    let lines = logger.lines.lock();
    assert!(lines.iter().any(|line| line.contains("a flush was asked for")), "{lines:?}");
}

#[test]
fn a_logger_takes_the_lines_in_place_of_the_file() {
    for inline in [false, true] {
        let vfs = MemoryVfs::new(1);
        vfs.set_runs_inline(inline);
        let logger = Arc::new(Collected::default());
        let mut options = options(vfs.clone());
        options.db.info_log = Some(logger.clone());
        options.db.kept.set("use_fsync", "true");
        open_and_close(&options);
        let told = std::mem::take(&mut *logger.0.lock());
        assert!(told.iter().all(|(level, _)| *level >= InfoLogLevel::Warn), "{told:?}");
        let warned =
            |(level, line): &&(InfoLogLevel, String)| *level == InfoLogLevel::Warn && line.contains("use_fsync");
        assert_eq!(told.iter().filter(warned).count(), 1, "{told:?}");
        options.read_only = true;
        open_and_close(&options);
        assert!(logger.0.lock().iter().any(|(_, line)| line.contains("use_fsync")), "for reading only too");
        assert_eq!(logs_in(&*vfs, "/db"), Vec::<String>::new());
    }
}

#[test]
fn who_reads_only_and_who_fails_to_find_a_database_leave_no_file() {
    let vfs = threaded();
    let mut options = options(vfs.clone());
    open_and_close(&options);
    options.read_only = true;
    open_and_close(&options);
    assert_eq!(logs_in(&*vfs, "/db"), ["LOG"]);
    vfs.create_dir_all(Path::new("/empty")).expect("made");
    let there = OpenOptions { vfs: vfs.clone(), ..OpenOptions::default() };
    assert!(Database::open("/empty", &there).is_err());
    assert_eq!(logs_in(&*vfs, "/empty"), Vec::<String>::new());
    // Whoever has the directory keeps its log.
    let open = Database::open("/db", &there).expect("opens");
    let names = logs_in(&*vfs, "/db");
    assert!(Database::open("/db", &there).is_err(), "it is open");
    assert_eq!(logs_in(&*vfs, "/db"), names);
    open.close().expect("closes");
}

#[test]
fn a_log_that_cannot_be_written_harms_nothing() {
    for operation in [Operation::Create, Operation::Write, Operation::Rename] {
        let memory = threaded();
        let vfs = FaultVfs::new(memory.clone());
        vfs.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(operation).path("/LOG").sticky());
        let options = options(vfs.clone());
        open_and_close(&options);
        open_and_close(&options);
        assert!(operation == Operation::Rename || vfs.fired() > 0);
    }
}

#[test]
fn a_failed_open_says_why() {
    let vfs = threaded();
    let options = options(vfs.clone());
    open_and_close(&options);
    let manifest = vfs.read_dir(Path::new("/db")).expect("there").into_iter().find(|name| name.starts_with("MANIFEST"));
    vfs.remove_file(&PathBuf::from("/db").join(manifest.expect("one"))).expect("removed");
    assert!(Database::open("/db", &options).is_err());
    let text = read(&*vfs, "/db/LOG");
    assert!(text.contains("[ERROR]") && text.contains("the database cannot be opened: "), "{text}");
}

/// Families that come and go tell their options each time.
fn come_and_go(db: &Database, times: usize) {
    for _ in 0..times {
        let family = db.create_family("passing", FamilyOptions::default()).expect("made");
        db.drop_family(&family).expect("dropped");
    }
}

#[test]
fn what_each_file_begins_with_is_bounded_and_leaves_room() {
    let vfs = threaded();
    let mut options = options(vfs.clone());
    options.db.max_log_file_size = 20_000; // less than the header gets
    options.db.keep_log_file_num = 100;
    let db = Database::open("/db", &options).expect("opens");
    come_and_go(&db, 70); // five kilobytes each
    db.close().expect("closes");
    let sizes: Vec<usize> =
        logs_in(&*vfs, "/db").iter().map(|name| read(&*vfs, &format!("/db/{name}")).len()).collect();
    assert!(sizes.len() < 60, "several lines share a file: {sizes:?}");
    assert!(sizes.iter().all(|size| *size < 320_000), "{sizes:?}");
}

/// Calls the database once, from where it is told of a new family.
#[derive(Default)]
struct Calling {
    db: Mutex<Option<Arc<Database>>>,
    told: Collected,
}

impl Logger for Calling {
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Debug
    }

    fn log(&self, level: InfoLogLevel, line: &str) {
        self.told.log(level, line);
        let db = self.db.lock().take();
        if let Some(db) = db {
            db.create_family("by the logger", FamilyOptions::default()).expect("made");
        }
    }
}

#[test]
fn a_logger_may_call_the_database() {
    let vfs = threaded();
    let logger = Arc::new(Calling::default());
    let mut options = options(vfs.clone());
    options.db.info_log = Some(logger.clone());
    let db = Arc::new(Database::open("/db", &options).expect("opens"));
    *logger.db.lock() = Some(db.clone());
    db.create_family("other", FamilyOptions::default()).expect("made");
    db.close().expect("closes");
    let told = logger.told.0.lock();
    assert!(told.iter().any(|(_, line)| line.contains("[by the logger]")), "nothing that was told is lost");
}

#[test]
fn a_file_that_was_put_aside_at_the_end_of_time_harms_nothing() {
    let vfs = threaded();
    open_and_close(&options(vfs.clone()));
    vfs.create(Path::new("/db/LOG.old.18446744073709551615"), vfs::IfExists::Fail).expect("made");
    open_and_close(&options(vfs.clone()));
}
