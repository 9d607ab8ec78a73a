//! Stored options. An open deletes older OPTIONS files, so a repair keeps them in `lost/` if the newest one may not be the last that
//! was stored, and tells it.

use std::path::Path;

use base::Result;
use vfs::{FileKind, Vfs};

use super::lost::Lost;
use super::report::RepairReport;
use crate::open::options_file::Survey;
use crate::version::file_name::{self, FileType, numbers_in};
use crate::version::recover::Recovered;

/// Reports what is lost, or may be, of the options that were stored for `recovered`. Keeps their files in `lost/` then.
///
/// # Errors
/// The file system's.
pub(super) fn keep(vfs: &dyn Vfs, dir: &Path, recovered: &Recovered, report: &mut RepairReport) -> Result<()> {
    let found = Survey::of(vfs, dir, recovered)?;
    if !found.is_amiss() {
        return Ok(());
    }
    let lost = Lost::new(vfs, dir);
    let mut newest = None;
    for number in numbers_in(vfs, dir, FileType::Options)? {
        let path = dir.join(file_name::format(FileType::Options, number));
        let is_file = vfs.metadata(&path)?.kind == FileKind::File;
        newest = Some(if is_file { lost.keep(&path)? } else { lost.take(&path)? });
    }
    report.notes.extend(found.notes);
    if let (Some(error), Some(kept)) = (found.damage, newest) {
        let what = format!(
            "{error}: the options stored in it are lost, and those that the repair was given are stored; it is kept: {}",
            kept.display()
        );
        lost.write_report_of_options(&format!("options: {what}\n"))?;
        report.lost_options.push(what);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use base::UserOrder;
    use base::options::FamilyOptions;
    use vfs::{MemoryVfs, Vfs};

    use crate::internal::{Database, OpenOptions, OtherFamilies, RepairReport};
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

    /// A kill after a family's record in the MANIFEST leaves the same as the loss of the newest file.
    #[test]
    fn a_missing_file_is_no_proven_loss() {
        let vfs = MemoryVfs::new(1);
        let newest = database(&vfs);
        vfs.remove_file(&newest).unwrap();
        let before = numbers_in(&*vfs, Path::new(DIR), FileType::Options).unwrap().pop_last().unwrap();
        let before = file_name::format(FileType::Options, before);
        let report = repair(DIR, &options(&vfs)).unwrap();
        assert!(report.lost_nothing() && report.notes.len() == 1, "{report}");
        assert!(report.notes[0].contains(&format!("{before} lacks column family \"f\"")), "{report}");
        assert!(vfs.exists(&Path::new(DIR).join("lost").join(before)).unwrap());
        assert!(repair(DIR, &options(&vfs)).unwrap().notes.is_empty());
    }
}
