//! Stored options. An open deletes older OPTIONS files, so a repair keeps them in `lost/` if the newest one may not be the last that
//! was stored, and tells it. It keeps them without a MANIFEST, too, which would tell the last one.

use std::path::Path;

use base::{Result, name};
use vfs::{FileKind, Vfs};

use super::report::RepairReport;
use crate::core::lost::Lost;
use crate::open::options_file::Survey;
use crate::version::file_name::{self, FileType, numbers_in};
use crate::version::recover::Recovered;

/// Reports what is lost, or may be, of the options that were stored for `recovered`. Keeps their files in `lost/` then.
/// `is_believed`: a whole MANIFEST told the families.
///
/// # Errors
/// The file system's.
pub(super) fn keep(
    vfs: &dyn Vfs,
    dir: &Path,
    recovered: &Recovered,
    is_believed: bool,
    report: &mut RepairReport,
) -> Result<()> {
    let found = Survey::of(vfs, dir, recovered)?;
    if !found.is_amiss() && report.manifest.is_none() {
        return Ok(());
    }
    let lost = Lost::new(vfs, dir);
    let mut newest = None;
    for number in numbers_in(vfs, dir, FileType::Options)? {
        let path = dir.join(file_name::format(FileType::Options, number));
        let is_file = vfs.metadata(&path)?.kind == FileKind::File;
        newest = Some(if is_file { lost.keep(&path)? } else { lost.take(&path)? });
    }
    report.notes.extend(found.note);
    report.lost_options.extend(found.lacking);
    report.lost_options.extend(found.damage.map(|error| error.to_string()));
    if report.lost_options.is_empty() {
        return Ok(());
    }
    if !is_believed {
        let told = recovered.families.iter().filter(|family| family.value_times).map(|family| &family.name);
        let told: Vec<_> = told.map(|name| name::quoted(name)).collect();
        let but = if told.is_empty() { String::new() } else { format!(", but of {}", told.join(", ")) };
        report.lost_options.push(format!(
            "whether values end with the times of a ttl is not known{but}: open a family whose values do with value_times=true"
        ));
    }
    let kept = newest.map(|path| format!("; what is there of them is kept: {}", path.display())).unwrap_or_default();
    report.lost_options.iter_mut().for_each(|what| what.push_str(&kept));
    let lines: String = report.lost_options.iter().map(|what| format!("options: {what}\n")).collect();
    lost.write_report_of_options(&lines)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use base::options::{FamilyOptions, apply_string};
    use base::{ErrorKind, FileNumber, UserOrder};
    use vfs::{MemoryVfs, Vfs};

    use crate::internal::{Database, OpenOptions, OtherFamilies, ReadOptions, RepairReport, WriteOptions};
    use crate::maintenance::check::{CheckOptions, check};
    use crate::maintenance::repair::repair;
    use crate::version::file_name::{self, FileType, numbers_in};

    const DIR: &str = "/db";

    fn options(vfs: &std::sync::Arc<MemoryVfs>) -> OpenOptions {
        let other_families = OtherFamilies::OpenWith(Box::default());
        OpenOptions { vfs: vfs.clone(), other_families, ..OpenOptions::create_if_missing() }
    }

    /// A database whose last OPTIONS file names a family that the one before lacks. Returns the path of the last.
    fn database(vfs: &std::sync::Arc<MemoryVfs>) -> std::path::PathBuf {
        let db = Database::open(DIR, &options(vfs)).unwrap();
        db.create_family("f", FamilyOptions::default()).unwrap();
        db.close().unwrap();
        let newest = numbers_in(&**vfs, Path::new(DIR), FileType::Options).unwrap().pop_last().unwrap();
        Path::new(DIR).join(file_name::format(FileType::Options, newest))
    }

    fn doubts_a_key(report: &RepairReport) -> bool {
        report.is_in_doubt("default", b"a", &UserOrder::Bytewise)
    }

    #[test]
    fn damaged_options_are_a_loss_that_is_told_and_kept() {
        let vfs = MemoryVfs::new(1);
        let newest = database(&vfs);
        let whole = vfs.read_file(&newest).unwrap();
        let cut = &whole[..whole.len() - 20];
        vfs.write_file(&newest, cut).unwrap();
        let report = repair(DIR, &options(&vfs)).unwrap();
        assert!(!report.lost_nothing() && !report.found_nothing() && report.lost_no_key(), "{report}");
        let kept = Path::new(DIR).join("lost").join(newest.file_name().unwrap());
        let told = &report.lost_options[..];
        assert!(told.len() == 1 && told[0].contains(&*kept.to_string_lossy()), "{report}");
        assert!(!doubts_a_key(&report), "{report}");
        for _ in 0..2 {
            drop(Database::open(DIR, &options(&vfs)).unwrap()); // deletes the damaged file
        }
        assert!(!vfs.exists(&newest).unwrap() && vfs.read_file(&kept).unwrap() == cut);
        let again = repair(DIR, &options(&vfs)).unwrap();
        assert!(!again.lost_nothing() && again.found_nothing() && again.lost_no_key(), "{again}");
        assert!(!doubts_a_key(&again), "{again}");
        let written = again.earlier_options.unwrap();
        assert!(String::from_utf8(vfs.read_file(&written).unwrap()).unwrap().contains(&told[0]));
        let checked = || {
            let options = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
            check(Path::new(DIR), &options, &mut |_| {}).unwrap()
        };
        assert!(checked().notes.iter().any(|note| note.contains(&*written.to_string_lossy())));
        vfs.remove_file(&written).unwrap();
        assert!(checked().notes.is_empty() && repair(DIR, &options(&vfs)).unwrap().lost_nothing());
    }

    #[test]
    fn missing_last_file_is_a_loss() {
        let vfs = MemoryVfs::new(1);
        let newest = database(&vfs);
        vfs.remove_file(&newest).unwrap();
        let before = numbers_in(&*vfs, Path::new(DIR), FileType::Options).unwrap().pop_last().unwrap();
        let before = file_name::format(FileType::Options, before);
        let stored = |number| OpenOptions { stored_in: Some(number), ..options(&vfs) };
        for number in [FileNumber(0), file_name::parse(&before).unwrap().1] {
            let error = Database::open(DIR, &stored(number)).err().expect("they are not the last");
            assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*newest)), "{error}");
        }
        let report = repair(DIR, &options(&vfs)).unwrap();
        assert!(!report.lost_nothing() && report.lost_no_key() && report.lost_options.len() == 1, "{report}");
        assert!(report.notes[0].contains(&format!("{before} lacks column family \"f\"")), "{report}");
        assert!(vfs.exists(&Path::new(DIR).join("lost").join(before)).unwrap());
        assert!(repair(DIR, &options(&vfs)).unwrap().found_nothing());
        let newest = numbers_in(&*vfs, Path::new(DIR), FileType::Options).unwrap().pop_last().unwrap();
        Database::open(DIR, &stored(newest)).unwrap();
    }

    /// It is whole, and of the same database. Its number tells, but for files of earlier versions, which note none.
    #[test]
    fn older_file_in_the_place_of_the_last_is_a_loss() {
        let vfs = MemoryVfs::new(1);
        let newest = database(&vfs);
        let (_, number) = file_name::parse(newest.file_name().unwrap().to_str().unwrap()).unwrap();
        let before = numbers_in(&*vfs, Path::new(DIR), FileType::Options).unwrap().pop_first().unwrap();
        let before = vfs.read_file(&Path::new(DIR).join(file_name::format(FileType::Options, before))).unwrap();
        vfs.write_file(&newest, &before).unwrap();
        let stored = OpenOptions { stored_in: Some(number), ..options(&vfs) };
        let error = Database::open(DIR, &stored).err().expect("they are not the last");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*newest)), "{error}");
        let checking = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
        assert!(!check(Path::new(DIR), &checking, &mut |_| {}).unwrap().is_whole());
        let report = repair(DIR, &options(&vfs)).unwrap();
        assert!(report.lost_no_key() && report.lost_options.len() == 1, "{report}");
        assert!(repair(DIR, &options(&vfs)).unwrap().found_nothing());
    }

    /// A MANIFEST that grew and was begun anew is no sign of a loss.
    #[test]
    fn manifest_begun_anew_makes_no_options_old() {
        let vfs = MemoryVfs::new(1);
        let mut small = options(&vfs);
        small.db.max_manifest_file_size = 1024;
        let db = Database::open(DIR, &small).unwrap();
        let default = db.default_family();
        for _ in 0..40 {
            db.put(&default, b"a", b"1", &WriteOptions::default()).unwrap();
            db.flush(&[&default]).unwrap();
        }
        drop(default);
        db.close().unwrap();
        let last = |kind| numbers_in(&*vfs, Path::new(DIR), kind).unwrap().pop_last().unwrap();
        assert!(last(FileType::Manifest) > last(FileType::Options));
        let report = repair(DIR, &options(&vfs)).unwrap();
        assert!(report.lost_nothing() && report.notes.is_empty(), "{report}");
    }

    /// The options may be older than the tables.
    #[test]
    fn repair_lets_no_table_go_by_the_options() {
        let vfs = MemoryVfs::new(1);
        let db = Database::open(DIR, &options(&vfs)).unwrap();
        let default = db.default_family();
        for key in 0..20u32 {
            db.put(&default, &key.to_be_bytes(), &[7; 1000], &WriteOptions::default()).unwrap();
            db.flush(&[&default]).unwrap();
        }
        drop(default);
        db.close().unwrap();
        let mut tight = options(&vfs);
        let fifo = "compaction_style=kCompactionStyleFIFO;compaction_options_fifo={max_table_files_size=1}";
        let mut family = FamilyOptions::default();
        apply_string(&mut family, fifo).unwrap();
        tight.other_families = OtherFamilies::OpenWith(Box::new(family));
        assert_eq!(repair(DIR, &tight).unwrap().families[0].tables, 20);
        let db = Database::open(DIR, &OpenOptions { read_only: true, ..options(&vfs) }).unwrap();
        let found = (0..20u32)
            .filter(|key| db.get(&db.default_family(), &key.to_be_bytes(), &ReadOptions::default()).unwrap().is_some());
        assert_eq!(found.count(), 20);
    }

    /// C's callers give the same options for every family.
    #[test]
    fn repair_opens_each_family_with_the_levels_that_it_has() {
        let vfs = MemoryVfs::new(1);
        let mut deep = options(&vfs);
        let family = FamilyOptions { num_levels: 20, ..FamilyOptions::default() };
        deep.other_families = OtherFamilies::OpenWith(Box::new(family.clone()));
        let db = Database::open(DIR, &deep).unwrap();
        let deepest = db.create_family("f", family).unwrap();
        db.put(&deepest, b"a", b"1", &WriteOptions::default()).unwrap();
        db.flush(&[&deepest]).unwrap();
        db.promote_level0(&deepest, 19).unwrap();
        drop(deepest);
        db.close().unwrap();
        let error = Database::open(DIR, &options(&vfs)).err().expect("7 levels");
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains("num_levels=20"), "{error}");
        assert!(repair(DIR, &options(&vfs)).unwrap().lost_nothing());
    }
}
