//! Repair: makes a new MANIFEST for a damaged database from its remaining files. Keeps V3, V4, Q1; D2 as far as the
//! files allow.
//!
//! The report never says more than the files prove. The question for each line: is there a history, allowed by the files,
//! in which this answer is wrong? Then it is a doubt, by family and keys.
//!
//! The old MANIFEST, or its second copy, is the first source (`manifest`). If it is whole and proven to its end
//! (`guess`), it is believed: unnamed files are superfluous. Otherwise tables supply the rest: family from logs or
//! properties, level from contents (`order`). The logs are replayed, or salvaged if damaged. Nothing is deleted: files
//! set aside go to `lost/`. Until CURRENT is replaced they stay in their places, too: an interrupted repair is repeated over
//! the same files.

mod damaged;
mod families;
mod guess;
mod manifest;
mod options;
mod order;
mod queued;
mod report;
mod tables;
mod work;

use std::path::Path;

use base::note;
use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, FamilyId, Result};
use vfs::UnreadableVfs;

use crate::core::context::{check_log_dir, log_dir};
use crate::core::open_options::{OpenOptions, OtherFamilies, lock_path};
use crate::database::handle::Database;
use crate::open::{self, Opened};
use crate::version::backup_dirs;
use crate::version::recover::Recovered;

use self::work::Repairing;
use crate::core::lost::Lost;
use crate::engine::Engine;

pub use report::{LostTable, RepairReport, RepairedFamily};
pub(crate) use report::{claim, report_on_unnamed};

/// Makes the damaged database in `dir` openable. `options` are as for opening: comparators that are not built in must
/// be listed, families need not be. An undamaged database is unchanged, except that leftovers of a crash are moved.
///
/// # Errors
/// `Busy`: it is open. `InvalidArgument`: there is nothing to repair, it is a copy in the making or a backup's, or it is
/// RocksDB's and `adopt_rocksdb` is false.
/// `Unsupported`: this version cannot read an undamaged file. After any error the repair can be repeated.
pub fn repair(dir: impl AsRef<Path>, options: &OpenOptions) -> Result<RepairReport> {
    let dir = dir.as_ref();
    open::validate(options)?;
    let vfs = UnreadableVfs::new(options.vfs.clone());
    let options = &OpenOptions { vfs: vfs.clone(), ..options.clone() };
    backup_dirs::check_is_outside(&*options.vfs, dir)?;
    if !options.vfs.exists(dir)? {
        return Err(Error::invalid_argument("there is no directory to repair").at_path(dir));
    }
    let logs = log_dir(dir, &options.db);
    backup_dirs::check_is_outside(&*options.vfs, &logs)?;
    check_log_dir(&*options.vfs, &logs)?;
    open::check_repairable(&*options.vfs, dir, &logs)?;
    let lock = options.vfs.lock(&lock_path(dir))?;
    let mut work = Repairing::begin(options, dir, &logs)?;
    let recovered = work.plan()?;
    let lost = Lost::new(&*options.vfs, dir);
    let (earlier, earlier_options) = (lost.report()?, lost.report_of_options()?);
    let last = recovered.manifest; // as an open would find it
    if let Some(doubt) = lost.unfinished(Some(last))? {
        work.report.doubts.push(doubt);
        // It may have guessed.
        work.to_compact = recovered.families.iter().map(|family| (family.name.clone(), true)).collect();
    }
    // Otherwise there is nothing that a repetition could not tell. Damage of RocksDB's logs shows in replay only, and so does a
    // hole between logs that a salvage passes over; behind it the logs are gone.
    let skips_logs = options.db.wal_recovery_mode == WalRecoveryMode::SkipAnyCorruptedRecords;
    let salvages = skips_logs || work.has_damaged_logs() || work.is_rocksdbs();
    if !work.report.found_every_key() || salvages {
        lost.mark(work.first_new)?;
    }
    options::keep(&*options.vfs, dir, &recovered, work.is_complete, &mut work.report)?;
    work.set_aside()?;
    work.mend_current()?;
    let replayed = work.logs.found.iter().flat_map(|found| &found.logs).map(|log| log.number).collect();
    work.report.report_unreadable(&vfs, &replayed);
    // Durable before the new MANIFEST takes over: a repetition finds the database whole.
    let written = if work.report.found_every_key() { None } else { Some(work.report.write_to(&lost)?) };
    lost.sync()?;
    work.report.may_lack_an_end = work.is_rocksdbs();
    work.report.is_last_seq_unseen = work.is_rocksdbs() && work.last_seen(&recovered.families) < recovered.last_seq;
    let mut options = options_for(options, &recovered);
    if salvages {
        options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    }
    let engine = open_what_is_left(dir, &options, recovered)?;
    engine.core.state.lock().pauses += 1; // the options may be older ones, or the caller's: no table goes by them
    let db = Database::start(Opened { engine, lock: Some(lock) }, &options)?;
    work.merge_guesses(&db)?;
    let mut report = work.report;
    report.doubts.extend(db.recovery_doubts());
    report.last_seq = db.latest_sequence_number();
    report.report_unreadable(&vfs, &replayed);
    (report.earlier, report.earlier_options) = (earlier, earlier_options);
    match written {
        Some(path) => lost.rewrite(&path, report.to_string().as_bytes())?,
        None if report.found_every_key() => {}
        None => drop(report.write_to(&lost)?),
    }
    lost.sync()?;
    db.close()?;
    lost.unmark()?;
    Ok(report)
}

/// Opens with the given recovery mode first. On damage or a missing file, salvages the logs.
fn open_what_is_left(dir: &Path, options: &OpenOptions, recovered: Recovered) -> Result<std::sync::Arc<Engine>> {
    match open::open_as(dir, options, recovered.clone()) {
        Err(error) if error.kind() == ErrorKind::Corruption || error.is_not_found() => {
            note::warn!(%error, "the logs are salvaged");
            Lost::new(&*options.vfs, dir).mark(recovered.next_file)?;
            let (mut options, mut recovered) = (options.clone(), recovered);
            for dir in [dir, &log_dir(dir, &options.db)] {
                recovered.pass_numbers_in(&*options.vfs, dir)?; // of files that the first try made
            }
            options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
            open::open_as(dir, &options, recovered)
        }
        opened => opened,
    }
}

/// Opens every family, each with as many levels as it has tables in, and creates none.
fn options_for(options: &OpenOptions, recovered: &Recovered) -> OpenOptions {
    let mut options = options.clone();
    options.families.retain(|(name, _)| recovered.families.iter().any(|family| family.name == *name));
    let (mut named, rest) = match std::mem::take(&mut options.other_families) {
        OtherFamilies::Refuse => (Vec::new(), Box::default()),
        OtherFamilies::OpenWith(rest) => (Vec::new(), rest),
        OtherFamilies::OpenBy { named, rest } => (named, rest),
    };
    options.read_only = false;
    options.db.wal_recovery_mode = WalRecoveryMode::PointInTime;
    let levels = |name: &str| {
        let tables = recovered.families.iter().filter(|family| family.name == name).flat_map(|family| &family.tables);
        tables.map(|(level, _)| level + 1).max().unwrap_or(1)
    };
    for family in &recovered.families {
        if named.iter().all(|(name, _)| *name != family.name) {
            named.push((family.name.clone(), (*rest).clone()));
        }
    }
    for (name, family) in options.families.iter_mut().chain(&mut named) {
        family.num_levels = family.num_levels.max(levels(name));
    }
    options.other_families = OtherFamilies::OpenBy { named, rest };
    options
}

/// Stands in for a missing family name.
fn unnamed(id: FamilyId) -> String {
    format!("family-{}", id.0)
}
