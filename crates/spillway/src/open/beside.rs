//! Copying a database while another process has it open for writing. The copy is a reader's state, a prefix of the
//! history (D2).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, FileNumber, Result, SeqNo};

use super::opening::Opening;
use super::reading::{self, Attempt};
use crate::background::staging::Staging;
use crate::core::FamilyState;
use crate::core::context::{Context, log_dir};
use crate::core::family::Family;
use crate::core::lost::Lost;
use crate::core::open_options::{OpenOptions, OtherFamilies};
use crate::info_log::InfoLog;
use crate::manage::checkpoint::describe_options;
use crate::open::replay::Replayed;
use crate::version::edit::{LOG_DIR_OF_COPY, LogEnd, WalRange};
use crate::version::file_name::{self, FileType};
use crate::version::manifest::ManifestWriter;
use crate::version::snapshot::ManifestSnapshot;
use base::name;
use base::options::ini;

/// A reader's state of a database that another process may be writing: a prefix of the history.
struct Beside<'a> {
    pub context: &'a Context,
    pub families: Vec<Arc<Family>>,
    pub snapshot: ManifestSnapshot,
    /// The number of the copy's MANIFEST.
    pub manifest: FileNumber,
    pub tables: BTreeSet<FileNumber>,
    /// Logs and large batches to copy, and how many bytes. `None`: the whole file (large batches; logs needed only by
    /// tables).
    pub logs: Vec<(FileType, FileNumber, Option<u64>)>,
}

/// See [`Database::checkpoint_beside`](crate::internal::Database::checkpoint_beside).
pub(crate) fn checkpoint_beside(dir: &Path, options: &OpenOptions, to: &Path) -> Result<SeqNo> {
    let mut options = OpenOptions { read_only: true, bear_damage: false, ..options.clone() };
    if matches!(options.other_families, OtherFamilies::Refuse) {
        options.other_families = OtherFamilies::OpenWith(Box::default()); // include every family
    }
    let mut made = None;
    let last = copy_beside(dir, &options, |found| {
        made = None; // removes the previous attempt's files
        made = Some(stage_beside(found, to)?);
        Ok(())
    })?;
    made.map_or(Ok(()), Staging::commit)?;
    Ok(last)
}

/// Links tables first: they may be deleted at any time. Copies only the bytes read of a log.
fn stage_beside(found: &Beside<'_>, to: &Path) -> Result<Staging> {
    let context = found.context;
    let staging = Staging::begin(context.vfs.clone(), to, "checkpoint")?;
    found.tables.iter().try_for_each(|number| staging.link_or_copy(&context.table_path(*number)))?;
    for (kind, number, bytes) in &found.logs {
        let path = context.log_dir().join(file_name::format(*kind, *number));
        match bytes {
            Some(bytes) => staging.copy(&path, Some(*bytes))?,
            None => staging.link_or_copy(&path)?,
        }
    }
    let audience = ini::Audience::Spillway;
    let options = describe_options(context, &found.families, &context.db_id, found.manifest, audience);
    staging.write(&file_name::format(FileType::Options, found.manifest), &name::bytes(&options))?;
    let identity = found.snapshot.db_id.as_deref().unwrap_or_default();
    staging.write(&file_name::format(FileType::Identity, FileNumber(0)), identity.as_bytes())?;
    let limit = context.options.max_manifest_file_size;
    ManifestWriter::create(context.vfs.clone(), staging.dir(), found.manifest, &found.snapshot, limit)?;
    Ok(staging)
}

/// Recovers the database in `dir` for reading only, and calls `copy` to copy its files. Retries if a file was deleted
/// meanwhile. Returns the last sequence number in the copy. Leaves nothing out, whatever the options say of damage: the
/// copy's MANIFEST would not tell.
///
/// # Errors
/// As opening for reading only, as `copy`, if nothing changed meanwhile.
fn copy_beside(dir: &Path, options: &OpenOptions, mut copy: impl FnMut(&Beside<'_>) -> Result<()>) -> Result<SeqNo> {
    super::validate(options)?;
    let mut options = options.clone();
    (options.db.wal_recovery_mode, options.db.best_efforts_recovery) = (WalRecoveryMode::PointInTime, false);
    let logs = log_dir(dir, &options.db);
    let info_log = InfoLog::new(&options.vfs, dir, &options.db, true); // the writer's file is left alone
    let copied = reading::open_steadily(&*options.vfs, dir, &logs, || {
        let mut opening = super::prepare(dir, &options, &info_log)?;
        if !opening.recovered.fenced {
            let what = "RocksDB's database cannot be copied while another process has it open; close it there first";
            return Err(Error::invalid_argument(what).at_path(dir));
        }
        Lost::new(&*options.vfs, dir).check_copied(Some(opening.recovered.manifest))?;
        let replayed = opening.recover()?;
        let last_seq = replayed.last_seq;
        let notices_missing_logs = opening.recovered.wal_range.is_some();
        copy(&opening.beside(&replayed))?;
        opening.context.tasks.end();
        Ok(Attempt { opened: last_seq, notices_missing_logs })
    });
    copied.map_err(|error| match error.kind() {
        ErrorKind::Corruption => error.advise(
            "a copy beside the program that has the database open leaves nothing out, whatever the options say: copy through \
             that program, or close it first",
        ),
        _ => error,
    })
}

impl Opening<'_> {
    fn beside(&self, replayed: &Replayed) -> Beside<'_> {
        let (recovered, context) = (&self.recovered, &*self.context);
        let (manifest, log_number) = (context.numbers.take(), recovered.next_file);
        let family = |state: &FamilyState| state.snapshot(log_number, state.flushed_through);
        let ends = replayed.logs.iter().map(|log| LogEnd { on_disk: true, ..log.end });
        let own = || replayed.logs.iter().filter(|log| log.file_type == FileType::Log).map(|log| log.end.log);
        let tables = || self.families.values().flat_map(FamilyState::tables);
        let of_values: BTreeSet<FileNumber> =
            tables().flat_map(|table| &table.meta.value_logs).map(|share| share.log).collect();
        // Logs that may be gone, which later ones name.
        let noted = recovered.noted_logs();
        let gone = noted.in_tables().filter(|end| own().all(|log| log != end.log)).copied();
        let range = own().min().map(|oldest| WalRange { oldest, newest: own().max() });
        // Without a range recovery would replay logs that are there for their values only.
        let wal_range = range.or_else(|| of_values.last().copied().map(WalRange::none_through));
        let snapshot = ManifestSnapshot {
            db_id: Some(context.db_id.clone()),
            next_file: context.numbers.peek(),
            last_seq: replayed.last_seq,
            min_log_to_keep: log_number,
            max_family: recovered.max_family,
            log_ends: ends.filter(|end| own().any(|log| log == end.log)).chain(gone).collect(),
            wal_range,
            log_frontiers: None,
            log_dir: LOG_DIR_OF_COPY.to_owned(),
            home: String::new(),
            sessions: recovered.sessions.clone(),
            options_file: Some(manifest), // as the copy names its own
            families: self.families.values().map(family).collect(),
        };
        let of_values = of_values.into_iter().filter(|log| own().all(|own| own != *log));
        let replayed_logs = replayed.logs.iter().map(|log| {
            let is_log = log.file_type == FileType::Log;
            (log.file_type, log.end.log, is_log.then_some(log.end.end_offset))
        });
        Beside {
            context,
            families: self.families.values().map(|state| state.family.clone()).collect(),
            tables: tables().map(|table| table.meta.physical_number()).collect(),
            logs: replayed_logs.chain(of_values.map(|log| (FileType::Log, log, None))).collect(),
            snapshot,
            manifest,
        }
    }
}
