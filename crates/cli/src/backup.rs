//! `spillway backup`.

use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;
use spillway::backup::{BackupEngine, BackupId, BackupOptions, RestoreOptions};

use crate::database::{Access, AdoptArgs, DatabaseArgs};
use crate::failure::{Failure, Outcome};
use crate::human;

/// Makes, lists, checks, restores and deletes backups: many in one directory, which share the tables they have in common.
///
/// The directory is RocksDB's: backups that RocksDB made are listed, verified and restored too.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway backup create --db /tmp/people --dir /mnt/people-backups
  spillway backup list --dir /mnt/people-backups
  spillway backup restore --dir /mnt/people-backups --to /tmp/people")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

/// Which backups.
#[derive(clap::Args)]
struct BackupsArgs {
    /// The directory of the backups.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Subcommand)]
enum Action {
    /// Backs up the database; tables that are in the directory already are not copied again.
    Create {
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        backups: BackupsArgs,
        /// Moves what is in memory into tables first, so that no log is copied.
        #[arg(long)]
        flush: bool,
        #[command(flatten)]
        adopt: AdoptArgs,
    },
    /// Prints the backups, oldest first, and what is wrong with damaged ones.
    List {
        #[command(flatten)]
        backups: BackupsArgs,
    },
    /// Reads every file of a backup, or of all of them, and compares it with its checksum.
    Verify {
        #[command(flatten)]
        backups: BackupsArgs,
        /// Its number; all of them without.
        id: Option<BackupId>,
    },
    /// Makes a directory the database that a backup holds, in place of what is there.
    Restore {
        #[command(flatten)]
        backups: BackupsArgs,
        /// Its number; the newest without.
        id: Option<BackupId>,
        /// The database's directory.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        /// Where its logs go, if not there.
        #[arg(long, value_name = "DIR")]
        wal_dir: Option<PathBuf>,
        /// Leaves logs that are there, with the ingested tables that they name, for the database to go on with. What went
        /// to no log does not come back: writes without one, ingests from behind, and families made since.
        #[arg(long)]
        keep_logs: bool,
    },
    /// Deletes all backups but the newest.
    Purge {
        #[command(flatten)]
        backups: BackupsArgs,
        /// How many stay.
        #[arg(long, value_name = "NUMBER")]
        keep: usize,
    },
    /// Deletes one backup.
    Delete {
        #[command(flatten)]
        backups: BackupsArgs,
        /// Its number.
        id: BackupId,
    },
}

impl BackupsArgs {
    fn open(&self) -> Outcome<BackupEngine> {
        if !self.dir.is_dir() {
            return Err(Failure::refused(format!("there are no backups: {} is no directory", self.dir.display())));
        }
        Ok(BackupEngine::open(&self.dir, &BackupOptions::default())?)
    }
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    match &args.action {
        Action::Create { database, backups, flush, adopt } => {
            let db = database.open(Access::Write { adopt: adopt.adopt, create: false })?;
            let engine = BackupEngine::open(&backups.dir, &BackupOptions::default())?;
            let id = engine.create_new_backup(&db, *flush)?;
            db.close()?;
            Ok(writeln!(out, "made backup {id} in {}", backups.dir.display())?)
        }
        Action::List { backups } => list(&backups.open()?, out),
        Action::Verify { backups, id } => verify(&backups.open()?, *id, out),
        Action::Restore { backups, id, to, wal_dir, keep_logs } => {
            let options = RestoreOptions { wal_dir: wal_dir.clone(), keep_log_files: *keep_logs };
            let engine = backups.open()?;
            let id = match id {
                Some(id) => engine.restore(*id, to, &options).map(|()| *id)?,
                None => engine.restore_latest(to, &options)?,
            };
            Ok(writeln!(out, "restored backup {id} to {}", to.display())?)
        }
        Action::Purge { backups, keep } => Ok(backups.open()?.purge_old(*keep)?),
        Action::Delete { backups, id } => Ok(backups.open()?.delete(*id)?),
    }
}

/// Fails where a backup is damaged, so that a script notices.
fn list(engine: &BackupEngine, out: &mut dyn Write) -> Outcome {
    for backup in engine.backups()? {
        let (files, bytes) = (human::counted(backup.files as u64, "file", "files"), human::bytes(backup.bytes));
        let (time, last) = (human::utc(backup.timestamp_s), human::count(backup.last_seq.0));
        writeln!(out, "{}\t{time}\t{files}, {bytes}, through number {last}", backup.id)?;
    }
    let damaged = engine.damaged_backups()?;
    for backup in &damaged {
        writeln!(out, "{}\tdamaged: {}", backup.id, backup.error)?;
    }
    if damaged.is_empty() { Ok(()) } else { Err(Failure::Told) }
}

fn verify(engine: &BackupEngine, id: Option<BackupId>, out: &mut dyn Write) -> Outcome {
    let ids = match id {
        Some(id) => vec![id],
        None => engine.backups()?.iter().map(|backup| backup.id).collect(),
    };
    for id in ids {
        engine.verify(id)?;
        writeln!(out, "backup {id} is whole")?;
    }
    match engine.damaged_backups()?.into_iter().next().filter(|_| id.is_none()) {
        Some(damaged) => Err(damaged.error.into()),
        None => Ok(()),
    }
}
