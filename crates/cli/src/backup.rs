//! `spillway backup`.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};
use spillway::internal::Error;
use spillway::internal::backup::{BackupEngine, BackupId, BackupOptions, RestoreOptions};
use spillway::internal::vfs::RealVfs;

use crate::database::{AdoptArgs, DatabaseArgs};
use crate::failure::{Failure, Outcome, found_damage, warn};
use crate::long::{Long, Reached, Teller};
use crate::terminal::printable;
use crate::{human, json};

/// Files named before a deletion.
const NAMED_MAX: usize = 8;

/// Makes, lists, verifies, restores and deletes backups. Backups in one directory share equal tables.
///
/// The directory has RocksDB's format: backups made by RocksDB are listed, verified and restored too.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway backup create --db /tmp/people --dir /mnt/people-backups
  spillway backup list --dir /mnt/people-backups
  spillway backup purge --dir /mnt/people-backups --keep 7
  spillway backup restore --dir /mnt/people-backups --to /tmp/people")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// Prints JSON: one line, described in docs/cli.md.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The directory of the backups.
#[derive(clap::Args)]
struct BackupsArgs {
    /// Directory of the backups.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Subcommand)]
enum Action {
    /// Backs up the database. Copies only tables new to the directory, and checks every block it copies. A different process
    /// may have the database open and write to it.
    Create {
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        backups: BackupsArgs,
        /// Flushes memtables to tables first, so that no log is copied.
        #[arg(long)]
        flush: bool,
        #[command(flatten)]
        adopt: AdoptArgs,
    },
    /// Prints the backups, oldest first, the damage of damaged ones, and what there is of unfinished ones.
    List {
        #[command(flatten)]
        backups: BackupsArgs,
    },
    /// Reads every file of one backup or of all, and checks file checksums, every block of the tables and every record of
    /// the logs.
    Verify {
        #[command(flatten)]
        backups: BackupsArgs,
        /// Number of the backup; all backups if not given.
        id: Option<BackupId>,
    },
    /// Restores a backup to a directory. Replaces the database there, after verifying the backup.
    Restore {
        #[command(flatten)]
        backups: BackupsArgs,
        /// Number of the backup; the newest if not given. Say it if the newest is damaged.
        id: Option<BackupId>,
        /// Directory of the database to restore.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        /// Directory for its logs, if not the same.
        #[arg(long, value_name = "DIR")]
        wal_dir: Option<PathBuf>,
        /// Keeps the existing logs, with the ingested tables named in them: the next open replays them over the backup. Refused
        /// where they lack a write that the existing MANIFEST knows, as after a flush. Not in any log, and so not replayed:
        /// writes without a log, ingests with --behind, and newer column families.
        #[arg(long)]
        keep_logs: bool,
        /// Deletes an existing database without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Deletes all backups but the newest.
    Purge {
        #[command(flatten)]
        backups: BackupsArgs,
        /// Number of backups to keep.
        #[arg(long, value_name = "NUMBER")]
        keep: usize,
    },
    /// Deletes one backup, or what is left of one.
    Delete {
        #[command(flatten)]
        backups: BackupsArgs,
        /// Number of the backup.
        id: BackupId,
    },
}

impl BackupsArgs {
    /// Creates nothing until a backup is deleted.
    fn open(&self) -> Outcome<BackupEngine> {
        if !self.dir.is_dir() {
            return Err(Failure::refused(format!("there are no backups: {} is no directory", self.dir.display())));
        }
        Ok(BackupEngine::open_to_read(&self.dir, &BackupOptions::default())?)
    }
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let as_json = args.json;
    match &args.action {
        Action::Create { database, backups, flush, adopt } => {
            let source = database.open_to_copy(adopt.adopt, &backups.dir)?;
            let engine = BackupEngine::open(&backups.dir, &BackupOptions::default())?;
            let long = Long::writing("backing up", || {
                "no backup was made, and existing ones are unchanged; the same command starts again".to_owned()
            })?;
            let id = engine.create_new_backup(&source.db, *flush);
            drop(long);
            let id = id?;
            let report = source.report.as_ref().map(|report| report.to_string_lossy().into_owned());
            drop(source);
            let made = json!({ "created": id, "earlier_report": report });
            say(as_json, made, format!("made backup {id} in {}", backups.dir.display()), out)
        }
        Action::List { backups } => list(&backups.open()?, as_json, out),
        Action::Verify { backups, id } => verify(&backups.open()?, *id, as_json, out),
        Action::Restore { backups, id, to, wal_dir, keep_logs, yes } => {
            let options = RestoreOptions {
                wal_dir: wal_dir.as_ref().map(std::path::absolute).transpose()?,
                keep_log_files: *keep_logs,
            };
            let engine = backups.open()?;
            let id = match id {
                Some(id) => Some(*id),
                None => newest(&engine, to, &options)?,
            };
            let replaces = match id {
                Some(id) => make_way(&engine, id, to, &options, *yes)?,
                None => false,
            };
            let id = restore(&engine, id, to, &options, replaces)?;
            say(as_json, json!({ "restored": id }), format!("restored backup {id} to {}", to.display()), out)
        }
        Action::Purge { backups, keep } => {
            let engine = backups.open()?;
            let before = engine.backups()?.len() as u64;
            engine.purge_old(*keep)?;
            let deleted = before.saturating_sub(engine.backups()?.len() as u64);
            let text = format!("deleted {}", human::counted(deleted, "backup", "backups"));
            say(as_json, json!({ "deleted": deleted }), text, out)
        }
        Action::Delete { backups, id } => {
            backups.open()?.delete(*id)?;
            say(as_json, json!({ "deleted": 1 }), format!("deleted backup {id}"), out)
        }
    }
}

/// The newest backup. Warns of a newer one without a meta file: an interrupted one is no reason not to restore.
///
/// # Errors
/// A newer one is damaged: an older one is restored only by its number.
fn newest(engine: &BackupEngine, to: &Path, how: &RestoreOptions) -> Outcome<Option<BackupId>> {
    let Some(id) = engine.backups()?.last().map(|backup| backup.id) else { return Ok(None) };
    if let Some(damaged) = engine.damaged_backups()?.iter().rfind(|damaged| damaged.id > id) {
        let (newer, error, command) = (damaged.id, &damaged.error, how.command(id, engine.dir(), to));
        let what = format!("backup {newer} is damaged: {error}; to restore an older one, say its number: `{command}`");
        return Err(Failure::refused(what));
    }
    for unfinished in engine.unfinished_backups()?.iter().filter(|unfinished| unfinished.id > id) {
        warn(&format!("backup {id} is restored. {}", unfinished.error));
    }
    Ok(Some(id))
}

/// Prints the value as JSON, or the text.
fn say(as_json: bool, value: Value, text: String, out: &mut dyn Write) -> Outcome {
    if as_json { json::print(&value, out) } else { Ok(writeln!(out, "{text}")?) }
}

/// `replaces`: a database is deleted for it.
fn restore(
    engine: &BackupEngine,
    id: Option<BackupId>,
    to: &Path,
    options: &RestoreOptions,
    replaces: bool,
) -> Outcome<BackupId> {
    let place = to.to_owned();
    let long = Long::writing("restoring", move || {
        let is_gone = replaces && !RealVfs::new().exists(&place.join("CURRENT")).unwrap_or(false);
        let gone = if is_gone { ", and the one that was there is gone" } else { "" };
        let place = place.display();
        format!("{place} is no database until its restore is complete{gone}; the same command begins again")
    })?;
    let restored = match id {
        Some(id) => match engine.restore(id, to, options) {
            Err(error) => Err(without_meta_file(engine, id, error)),
            Ok(()) => Ok(id),
        },
        None => engine.restore_latest(to, options),
    };
    drop(long);
    Ok(restored?)
}

/// Asks for consent and verifies the backup, before a restore deletes a database. Whether there is one.
///
/// # Errors
/// No consent, or a damaged backup. Nothing was changed.
fn make_way(engine: &BackupEngine, id: BackupId, to: &Path, how: &RestoreOptions, is_wanted: bool) -> Outcome<bool> {
    let replaced = engine.replaced_by_restore(to, how)?;
    if replaced.is_empty() {
        return Ok(false);
    }
    if !is_wanted {
        confirm(to, &replaced)?;
    }
    let long = Long::writing("verifying the backup", || "nothing was changed".to_owned())?;
    let verified = engine.verify(id).map_err(|error| without_meta_file(engine, id, error));
    drop(long);
    verified
        .map(|()| true)
        .map_err(|error| Failure::from(error).with("nothing was restored, and the existing database was not touched"))
}

/// The error of a backup that is listed as unfinished, in place of one that says that there is none.
fn without_meta_file(engine: &BackupEngine, id: BackupId, error: Error) -> Error {
    let mut unfinished = engine.unfinished_backups().unwrap_or_default().into_iter().filter(|found| found.id == id);
    unfinished.next().map_or(error, |found| found.error)
}

/// Asks before files are deleted.
///
/// # Errors
/// The answer is no, or there is no terminal to ask on.
fn confirm(to: &Path, files: &[PathBuf]) -> Outcome {
    let Some(first) = files.first() else { return Ok(()) };
    let names: Vec<_> = files.iter().take(NAMED_MAX).filter_map(|path| path.file_name()?.to_str()).collect();
    let more = match files.len().saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let dir = first.parent().unwrap_or(to).display();
    let count = human::counted(files.len() as u64, "file", "files");
    let what = format!("this would delete the database in {dir}, {count}: {}{more}", names.join(", "));
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Failure::refused(format!("{what}; say --yes, or restore to another directory")));
    }
    eprint!("{}. Go on? [y/N] ", printable(&what));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::refused("nothing was changed")),
    }
}

/// Fails if a backup is damaged or if there is none, for scripts; not for an unfinished one: it may never have been a
/// backup.
fn list(engine: &BackupEngine, as_json: bool, out: &mut dyn Write) -> Outcome {
    let (backups, damaged) = (engine.backups()?, engine.damaged_backups()?);
    let unfinished = engine.unfinished_backups()?;
    let is_empty = backups.is_empty() && damaged.is_empty() && unfinished.is_empty();
    if is_empty && !as_json {
        return Err(no_backup(engine));
    }
    if is_empty || !damaged.is_empty() {
        found_damage();
    }
    if as_json {
        let shown: Vec<_> = backups.iter().map(json::backup).collect();
        let [unreadable, unfinished] =
            [&damaged, &unfinished].map(|list| list.iter().map(json::damaged_backup).collect::<Vec<_>>());
        json::print(&json!({ "backups": shown, "damaged": unreadable, "unfinished": unfinished }), out)?;
    } else {
        for backup in &backups {
            let (files, bytes) = (human::counted(backup.files as u64, "file", "files"), human::bytes(backup.bytes));
            let (time, last) = (human::utc(backup.timestamp_s), human::count(backup.last_seq.0));
            writeln!(out, "{}\t{time}\t{files}, {bytes}, through number {last}", backup.id)?;
        }
        for backup in &damaged {
            writeln!(out, "{}\tdamaged: {}", backup.id, backup.error)?;
        }
        for backup in &unfinished {
            writeln!(out, "{}\tunfinished: {}", backup.id, backup.error)?;
        }
    }
    Ok(())
}

fn no_backup(engine: &BackupEngine) -> Failure {
    Failure::refused(format!("there is no backup in {}", engine.dir().display()))
}

/// Prints for each backup whether it is whole. Fails if one is not, or if there is none.
fn verify(engine: &BackupEngine, id: Option<BackupId>, as_json: bool, out: &mut dyn Write) -> Outcome {
    let ids = match id {
        Some(id) => vec![id],
        None => engine.backups()?.iter().map(|backup| backup.id).collect(),
    };
    let count = ids.len();
    let at = Teller::default();
    let told = at.clone();
    let long = Long::begin(
        move || told.told(),
        || "nothing was changed; a verification begins from the start again".to_owned(),
    )?;
    let mut verified: Vec<(BackupId, Option<Error>)> = Vec::new();
    for (nth, id) in ids.into_iter().enumerate() {
        at.tell(Reached { what: format!("verifying backup {id} ({} of {count})", nth + 1), ..Reached::default() });
        verified.push((id, engine.verify(id).err().map(|error| without_meta_file(engine, id, error))));
    }
    drop(long);
    if id.is_none() {
        let others = [engine.damaged_backups()?, engine.unfinished_backups()?];
        verified.extend(others.into_iter().flatten().map(|damaged| (damaged.id, Some(damaged.error))));
    }
    if verified.is_empty() && !as_json {
        return Err(no_backup(engine));
    }
    if verified.is_empty() || verified.iter().any(|(_, error)| error.is_some()) {
        found_damage();
    }
    if as_json {
        let shown = verified.iter().map(|(id, error)| {
            json!({ "id": id, "whole": error.is_none(), "error": error.as_ref().map(ToString::to_string) })
        });
        json::print(&json!({ "backups": shown.collect::<Vec<_>>() }), out)?;
    } else {
        for (id, _) in verified.iter().filter(|(_, error)| error.is_none()) {
            writeln!(out, "backup {id} is whole")?;
        }
    }
    if !as_json {
        out.flush()?;
        verified.into_iter().filter_map(|(_, error)| error).for_each(|error| Failure::from(error).tell());
    }
    Ok(())
}
