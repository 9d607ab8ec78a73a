//! `spillway destroy`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use base::name;
use spillway::internal::version::file_name::{self, FileType};
use spillway::internal::version::incomplete;
use spillway::internal::vfs::{RealVfs, Vfs};
use spillway::internal::{Database, DbOptions};

use crate::database::{PlaceArgs, unfinished_beside};
use crate::failure::{Failure, Outcome, note};
use crate::settings::Settings;

/// Deletes a database, or what is left of an unfinished copy or deletion of one: all its files, and the directory if it is empty then.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  spillway destroy --db /tmp/people --yes")]
pub struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    /// Confirms the deletion; required.
    #[arg(long)]
    yes: bool,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let vfs: Arc<dyn Vfs> = RealVfs::new();
    let dir = &args.place.database().locate()?.dir;
    if let Some(what) = incomplete::what(&*vfs, dir)? {
        return destroy_unfinished(args, dir, &what, &vfs, out);
    }
    let settings = Settings::load(&vfs, dir, None)?;
    if !was_database(&*vfs, dir)? {
        let beside = unfinished_beside(&*vfs, dir);
        return Err(Failure::refused(format!("there is no database in {}{beside}", dir.display())));
    }
    if !args.yes {
        let what = format!("this would delete the database in {} and cannot be undone; say --yes", dir.display());
        return Err(Failure::refused(what));
    }
    // Event logs in `db_log_dir` have the database's path in their names. WALs elsewhere do not, and stay.
    let DbOptions { db_log_dir, wal_dir, .. } = settings.db;
    Database::destroy_by(dir, &DbOptions { db_log_dir, ..DbOptions::default() }, &vfs)?;
    writeln!(out, "deleted the database in {}", dir.display())?;
    tell_logs_left(&*vfs, &wal_dir)
}

/// Whether the directory has CURRENT, or a MANIFEST that CURRENT named before it was lost.
fn was_database(vfs: &dyn Vfs, dir: &Path) -> Outcome<bool> {
    let names = if vfs.exists(dir)? { vfs.read_dir(dir)? } else { Vec::new() };
    let mut kinds = names.iter().filter_map(|name| file_name::parse(name)).map(|(kind, _)| kind);
    Ok(kinds.any(|kind| matches!(kind, FileType::Current | FileType::Manifest | FileType::ManifestCopy)))
}

/// Notes that logs in a directory of their own stay: they may be those of the database that this one is a copy of.
fn tell_logs_left(vfs: &dyn Vfs, wal_dir: &str) -> Outcome {
    let is_log = |name: &String| file_name::parse(name).is_some_and(|(kind, _)| kind.is_log());
    let dir = name::path(wal_dir);
    if !wal_dir.is_empty() && vfs.exists(&dir)? && vfs.read_dir(&dir)?.iter().any(is_log) {
        note(&format!(
            "the logs in {}, its wal_dir, stay: delete them if no other database has its logs there",
            dir.display()
        ));
    }
    Ok(())
}

/// Deletes what a cut-off restore, checkpoint, export or deletion left. Its options file is not read: it may be there in part.
fn destroy_unfinished(args: &Args, dir: &Path, what: &str, vfs: &Arc<dyn Vfs>, out: &mut dyn Write) -> Outcome {
    if !args.yes {
        let (dir, how) = (dir.display(), "to delete what there is of it instead, say --yes");
        return Err(Failure::refused(format!("{dir} is no database, but {what}; {how}")));
    }
    Database::destroy_by(dir, &DbOptions::default(), vfs)?;
    Ok(writeln!(out, "deleted what there was in {}", dir.display())?)
}
