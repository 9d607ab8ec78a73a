//! The ways out of a damage, each with its verdict.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use vfs::{Fault as IoFault, FaultCode, FaultVfs, Rule, Vfs};

use crate::engine::backup::{BackupEngine, BackupOptions, RestoreOptions};
use crate::engine::check::{CheckOptions, check};
use crate::engine::options::WalRecoveryMode;
use crate::engine::{Db, Doubt, Error, ErrorKind, OpenOptions, repair};
use crate::random::Random;
use crate::run::{DIR, Failure};

use super::damage::{Damage, Kind};
use super::lives::Life;
use super::reading::{Contents, difference, read};
use super::verdict::{Claim, Fault, Wrong, judge_claim, judge_least, judge_values};

/// A way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// An ordinary open.
    Open,
    Check,
    Repair,
    /// A repair that is killed at one of its calls, and repeated.
    CutRepair,
    /// An open with `kSkipAnyCorruptedRecords`.
    Salvage,
    /// An open with `best_efforts_recovery`.
    BestEfforts,
}

impl Way {
    pub const ALL: [Way; 6] = [Way::Open, Way::Check, Way::Repair, Way::CutRepair, Way::Salvage, Way::BestEfforts];
}

/// Goes a way out of a damage. Returns whether it led to an open database.
///
/// # Errors
/// The claim that is refuted, or the doubt that is too much.
pub fn go(life: &Life, damage: &Damage, way: Way) -> Result<bool, Wrong> {
    let vfs = damage.seen(life.mount(&damage.of(&life.files)));
    match way {
        Way::Open => opened(life, damage, &vfs, |_| {}, claim_of),
        Way::Check => checked(life, damage, &vfs),
        Way::Repair => repaired(life, damage, &vfs, true),
        Way::CutRepair => {
            cut_repair(life, damage, &vfs)?;
            repaired(life, damage, &vfs, false)
        }
        Way::Salvage => {
            let salvages =
                |options: &mut OpenOptions| options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
            opened(life, damage, &vfs, salvages, claim_of)
        }
        Way::BestEfforts => opened(life, damage, &vfs, |options| options.db.best_efforts_recovery = true, claim_of),
    }
}

/// The doubts that a recovery has of what it brought back.
fn claim_of(db: &Db) -> Option<Claim> {
    Some(Claim::Doubts(db.recovery_doubts()))
}

/// Opens and judges. An error is no claim.
fn opened(
    life: &Life,
    damage: &Damage,
    vfs: &Arc<dyn Vfs>,
    set: impl Fn(&mut OpenOptions),
    claim: impl Fn(&Db) -> Option<Claim>,
) -> Result<bool, Wrong> {
    let mut options = match life.options_for_open(vfs) {
        Ok(options) => options,
        // Without a MANIFEST only a repair and `best_efforts_recovery` look for families.
        Err(_) => life.options(vfs, &life.reference.keys().cloned().collect::<Vec<_>>()),
    };
    set(&mut options);
    let Ok(db) = Db::open(DIR, &options) else { return Ok(false) };
    let found = match read(&db) {
        Ok(found) => found,
        Err(Failure::Engine(_)) => return Ok(false),
        Err(failure) => return Err(Fault::Broken.of(failure.to_string())),
    };
    judge_values(life, &found)?;
    match claim(&db) {
        Some(claim) => judge_claim(life, damage, &claim, &found).map(|()| true),
        None => Ok(true),
    }
}

/// `check` may say "whole" only of what a plain open reads right.
fn checked(life: &Life, damage: &Damage, vfs: &Arc<dyn Vfs>) -> Result<bool, Wrong> {
    let options = CheckOptions { vfs: vfs.clone(), orders: vec![life.order()], ..CheckOptions::default() };
    let Ok(report) = check(Path::new(DIR), &options, &mut |_| {}) else { return Ok(false) };
    if !report.is_whole() {
        return Ok(false);
    }
    if has_damaged_options(life, damage) && report.notes.is_empty() {
        return Err(Fault::Refuted.of("check does not tell of the damaged OPTIONS file"));
    }
    match opened(life, damage, vfs, |_| {}, |_| Some(Claim::NONE)) {
        Ok(true) => Ok(true),
        Ok(false) => {
            let what = format!("check says that it is whole, and it does not open: {}", error_of(life, vfs));
            Err(Fault::Refuted.of(what))
        }
        Err(wrong) => Err(wrong.fault.of(format!("check says that it is whole: {}", wrong.what))),
    }
}

/// Whether the newest OPTIONS file is damaged or lost. An older one is a spare.
fn has_damaged_options(life: &Life, damage: &Damage) -> bool {
    let newest = life.files.keys().rfind(|path| path.to_string_lossy().contains("OPTIONS"));
    matches!(damage.kind, Kind::SideDamaged | Kind::SideLost)
        && newest.is_some_and(|newest| damage.paths.contains(newest))
}

fn error_of(life: &Life, vfs: &Arc<dyn Vfs>) -> String {
    let opened = life.options_for_open(vfs).and_then(|options| Db::open(DIR, &options));
    opened.err().map_or_else(|| "reading fails".to_owned(), |error| error.to_string())
}

/// Begins a repair, and ends it at one of its calls.
fn cut_repair(life: &Life, damage: &Damage, vfs: &Arc<dyn Vfs>) -> Result<(), Wrong> {
    let repair_over = |inner: Arc<dyn Vfs>, nth: u64| {
        let faulty = FaultVfs::new(inner);
        let all = faulty.inject(Rule::new(IoFault::Error(FaultCode::Io)).nth(nth).sticky());
        let ended = repair(DIR, &OpenOptions { vfs: faulty.clone(), ..life.options_for_repair(vfs) });
        (faulty.matched(all), ended.map(drop))
    };
    let (calls, _) = repair_over(damage.seen(life.mount(&damage.of(&life.files))), u64::MAX);
    let nth = 1 + Random::new(life.seed ^ calls).below(calls.max(1));
    drop(repair_over(vfs.clone(), nth));
    Ok(())
}

/// `is_first`: it is not the repetition of a repair that was cut off, which may have left no more than its report.
fn repaired(life: &Life, damage: &Damage, vfs: &Arc<dyn Vfs>, is_first: bool) -> Result<bool, Wrong> {
    let options = life.options_for_repair(vfs);
    let report = match repair(DIR, &options) {
        Err(error) if is_nothing_left(life, damage, &error) => return Ok(false),
        repaired => repaired.map_err(|error| Fault::Broken.of(format!("the repair fails: {error:?}")))?,
    };
    let with_report = |wrong: Wrong| wrong.fault.of(format!("{}\n{report}", wrong.what));
    let broken = |what: String| with_report(Fault::Broken.of(what));
    let found = read_again(life, vfs).map_err(broken)?;
    let claim = Claim::Report(Box::new(report.clone()));
    judge_values(life, &found).map_err(with_report)?;
    judge_claim(life, damage, &claim, &found).map_err(with_report)?;
    if is_first {
        judge_least(life, damage, &claim).map_err(with_report)?;
        let are_damaged = has_damaged_options(life, damage);
        let is_told = !report.lost_options.is_empty();
        // RocksDB's file has no checksum: one that lacks a family may have lost its end. A kill can come before the MANIFEST notes
        // ours.
        let shows = is_told || damage.kind == Kind::SideDamaged;
        if is_told != are_damaged && shows && life.is_own() {
            return Err(with_report(Fault::Refuted.of(format!("stored options are damaged: {are_damaged}"))));
        }
    }
    let again = repair(DIR, &options).map_err(|error| broken(format!("the second repair fails: {error:?}")))?;
    let is_quiet = again.lost.is_empty() && again.manifest.is_none() && again.logs.is_empty();
    let is_new = |doubt: &Doubt| !report.doubts.contains(doubt);
    if !is_quiet || again.doubts.iter().any(is_new) {
        return Err(broken(format!("the second repair finds more: {again}")));
    }
    let after = read_again(life, vfs).map_err(broken)?;
    match difference(&after, &found, |_, _| true) {
        Some(what) => Err(broken(format!("the second repair changes something: {what}"))),
        None => Ok(true),
    }
}

/// A database without keys can be lost whole with its MANIFESTs.
fn is_nothing_left(life: &Life, damage: &Damage, error: &Error) -> bool {
    let has_no_copy = matches!(damage.kind, Kind::EveryManifestLost | Kind::BothManifests) || !life.is_own();
    has_no_copy && error.kind() == ErrorKind::InvalidArgument && life.reference.values().all(BTreeMap::is_empty)
}

fn read_again(life: &Life, vfs: &Arc<dyn Vfs>) -> Result<Contents, String> {
    let opened = life.options_for_open(vfs).and_then(|options| Db::open(DIR, &options));
    let db = opened.map_err(|error| format!("what was repaired does not open: {error:?}"))?;
    let found = read(&db).map_err(|failure| format!("what was repaired is not read: {failure}"))?;
    db.close().map_err(|error| format!("what was repaired does not close: {error:?}"))?;
    Ok(found)
}

const BACKUPS: &str = "/backups";

/// Backs the undamaged life up, damages a file of the backup, and restores it over nothing. Returns whether the restore
/// succeeded; it must then have brought everything.
///
/// # Errors
/// A restore, or a verification, that passed over the damage.
pub fn restore_damaged(life: &Life, random: &mut Random) -> Result<bool, Wrong> {
    let memory = life.mount(&life.files);
    let vfs: Arc<dyn Vfs> = memory.clone();
    let text = |error: Error| Fault::Broken.of(error.to_string());
    let options = BackupOptions { vfs: vfs.clone(), orders: vec![life.order()], ..BackupOptions::default() };
    let engine = BackupEngine::open(BACKUPS, &options).map_err(text)?;
    let db = Db::open(DIR, &life.options_for_open(&vfs).map_err(text)?).map_err(text)?;
    let Ok(id) = engine.create_new_backup(&db, random.chance(30)) else { return Ok(false) };
    drop(db);
    let files: Vec<_> = memory.all_files().into_iter().filter(|path| path.starts_with(BACKUPS)).collect();
    let path = random.pick(&files);
    let len = memory.read_file(path).map_err(text)?.len();
    let place = random.below(len.max(1) as u64);
    let what = match random.below(3) {
        0 => memory.truncate(path, place as usize).map(|()| format!("cut to {place} of {len}")),
        1 => memory.flip_bit(path, 8 * place).map(|()| format!("byte {place} of {len} flipped")),
        _ => memory.truncate(path, 0).and_then(|()| memory.truncate(path, len)).map(|()| "zeroed".to_owned()),
    };
    let what = format!("{}, {}", path.display(), what.map_err(text)?);
    let all: Vec<_> = memory.all_files().into_iter().filter(|path| path.starts_with(DIR)).collect();
    for path in all {
        vfs.remove_file(&path).map_err(text)?;
    }
    let verified = engine.verify(id);
    let restored = engine.restore(id, DIR, &RestoreOptions::default());
    if let Err(error) = restored {
        return match verified {
            Ok(()) => Err(Fault::Refuted.of(format!("{what}: verified, and not restored: {error}"))),
            Err(_) => Ok(false),
        };
    }
    let found = read_again(life, &vfs).map_err(|failure| Fault::Broken.of(format!("{what}: {failure}")))?;
    match difference(&found, &life.reference, |_, _| true) {
        Some(difference) => Err(Fault::Refuted.of(format!("{what}: {difference}"))),
        None => Ok(true),
    }
}
