#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use spillway::internal::vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule};

use super::*;

const DIR: &str = "/tables";

/// A file system with a directory for tables and a staging directory in it, whose maker lives.
fn staged() -> (Arc<MemoryVfs>, Staging) {
    let vfs = MemoryVfs::new(1);
    vfs.create_dir_all(Path::new(DIR)).unwrap();
    let staging = Staging::inside(vfs.clone(), Path::new(DIR)).unwrap();
    (vfs, staging)
}

fn names(vfs: &MemoryVfs) -> Vec<String> {
    vfs.read_dir(Path::new(DIR)).unwrap()
}

#[test]
fn what_is_locked_stays_and_what_nobody_has_locked_goes() {
    let (vfs, staging) = staged();
    clear_abandoned(&*vfs, Path::new(DIR)).unwrap();
    assert!(vfs.exists(&staging.dir().join(LOCK)).unwrap());
    let after = vfs.crash_clone(2, CrashPolicy::ProcessKilled);
    assert_eq!(names(&after), names(&vfs));
    clear_abandoned(&*after, Path::new(DIR)).unwrap();
    assert_eq!(names(&after), [""; 0]);
    drop(staging);
    assert_eq!(names(&vfs), [""; 0]);
}

#[test]
fn what_another_build_cannot_have_made_stays() {
    let vfs = MemoryVfs::new(1);
    for path in [
        ".spillway-tables-0123456789abcde/LOCK",   // a digit too few
        ".spillway-tables-0123456789abcdeF/LOCK",  // not as we write it
        ".spillway-tables-0123456789abcdef/1.sst", // without a lock
        ".spillway-tables-00000000ffffffff",       // a file
        "other/LOCK",
    ] {
        vfs.write_file(&Path::new(DIR).join(path), b"").unwrap();
    }
    let before = vfs.all_files();
    clear_abandoned(&*vfs, Path::new(DIR)).unwrap();
    assert_eq!(vfs.all_files(), before);
}

#[test]
fn a_directory_that_others_clear_away_is_given_up() {
    let (vfs, staging) = staged();
    assert!(claim(&*vfs, staging.dir()).unwrap().is_none(), "another has locked it");
    let made = Path::new("/tables/.spillway-tables-0123456789abcdef");
    vfs.create_dir_all(made).unwrap();
    assert!(claim(&*vfs, made).unwrap().is_some());
}

#[test]
fn what_cannot_be_locked_or_cleared_is_an_error_or_a_warning() {
    let (vfs, staging) = staged();
    let after = vfs.crash_clone(2, CrashPolicy::ProcessKilled);
    drop(staging);
    let faults = FaultVfs::new(after.clone());
    let failing = |operation| Rule::new(Fault::Error(FaultCode::Io)).on(operation);
    faults.inject(failing(Operation::Lock).sticky());
    assert!(Staging::inside(faults.clone(), Path::new(DIR)).is_err());
    assert_eq!(names(&after).len(), 1, "the one that was there");
    clear_abandoned(&*faults, Path::new(DIR)).unwrap();
    faults.inject(failing(Operation::RemoveFile));
    clear_abandoned(&*faults, Path::new(DIR)).unwrap();
    assert_eq!(names(&after).len(), 1);
    faults.clear();
    clear_abandoned(&*faults, Path::new(DIR)).unwrap();
    assert_eq!(names(&after), [""; 0]);
}

/// Where files have no second names: a note tells what a table was renamed to, and how long it is.
#[test]
fn what_has_only_the_name_of_a_renamed_table_stays() {
    let (vfs, staging) = staged();
    for (nth, contents) in [(1, "a table"), (2, "a table"), (3, "another")] {
        let (from, to) = (staging.dir().join(table_name("000", nth)), Path::new(DIR).join(table_name("t", nth)));
        vfs.write_file(&from, contents.as_bytes()).unwrap();
        if nth < 3 {
            record_rename(&*vfs, &from, &to).unwrap();
            vfs.rename(&from, &to).unwrap();
        }
    }
    vfs.write_file(Path::new("/tables/t-000002.sst"), b"the user's").unwrap();
    vfs.write_file(&staging.dir().join("t-000004.sst.named"), b"").unwrap();
    let after = vfs.crash_clone(2, CrashPolicy::ProcessKilled);
    clear_abandoned(&*after, Path::new(DIR)).unwrap();
    assert_eq!(names(&after), ["t-000002.sst"]);
    assert_eq!(after.read_file(Path::new("/tables/t-000002.sst")).unwrap(), b"the user's");
}

/// Once all tables had their names, those that somebody has moved away since make no part of the rest.
#[test]
fn what_is_left_of_a_whole_set_stays() {
    let (vfs, staging) = staged();
    for nth in [1, 2] {
        let (from, to) = (staging.dir().join(table_name("000", nth)), Path::new(DIR).join(table_name("t", nth)));
        vfs.write_file(&from, format!("table {nth}").as_bytes()).unwrap();
        vfs.hard_link(&from, &to).unwrap();
    }
    record_complete(&*vfs, staging.dir());
    vfs.rename(Path::new("/tables/t-000001.sst"), Path::new("/elsewhere.sst")).unwrap();
    let after = vfs.crash_clone(2, CrashPolicy::ProcessKilled);
    let second = Path::new("/tables/t-000002.sst").to_owned();
    assert_eq!(first_of_a_part(&*after, std::slice::from_ref(&second)), None);
    clear_abandoned(&*after, Path::new(DIR)).unwrap();
    assert_eq!(names(&after), ["t-000002.sst"]);
    // Without that note they are.
    vfs.remove_file(&staging.dir().join(COMPLETE)).unwrap();
    assert_eq!(first_of_a_part(&*vfs, std::slice::from_ref(&second)), Some(second));
    let after = vfs.crash_clone(2, CrashPolicy::ProcessKilled);
    clear_abandoned(&*after, Path::new(DIR)).unwrap();
    assert_eq!(names(&after), [""; 0]);
}

#[test]
fn names_of_tables_are_told_from_others() {
    assert_eq!(table_name("a-1", 7), "a-1-000007.sst");
    assert_eq!(name_of_tables("a-1-000007.sst"), Some("a-1"));
    assert_eq!(name_of_tables(&table_name("t", 12_345_678)), Some("t"));
    for other in ["t.sst", "t-.sst", "t-1.sst.tmp", "t-1x.sst", "000001.sst"] {
        assert_eq!(name_of_tables(other), None, "{other}");
    }
}
