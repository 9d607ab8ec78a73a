//! `spillway destroy`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use spillway::internal::version::incomplete;
use spillway::internal::vfs::{RealVfs, Vfs};
use spillway::internal::{Database, DbOptions};

use crate::database::{DatabaseArgs, unfinished_beside};
use crate::failure::{Failure, Outcome};
use crate::settings::Settings;

/// Deletes a database, or what is left of an unfinished copy or deletion of one: all its files, and the directory if it is empty then.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  spillway destroy --db /tmp/people --yes")]
pub struct Args {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Confirms the deletion; required.
    #[arg(long)]
    yes: bool,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let vfs: Arc<dyn Vfs> = RealVfs::new();
    let dir = &args.database.locate()?.dir;
    if let Some(what) = incomplete::what(&*vfs, dir)? {
        return destroy_unfinished(args, dir, &what, &vfs, out);
    }
    if !vfs.exists(&dir.join("CURRENT"))? {
        let beside = unfinished_beside(&*vfs, dir);
        return Err(Failure::refused(format!("there is no database in {}{beside}", dir.display())));
    }
    if !args.yes {
        let what = format!("this would delete the database in {} and cannot be undone; say --yes", dir.display());
        return Err(Failure::refused(what));
    }
    // Event logs in `db_log_dir` have the database's path in their names. WALs elsewhere do not, and stay.
    let db_log_dir = Settings::load(&vfs, dir, None)?.db.db_log_dir;
    Database::destroy_by(dir, &DbOptions { db_log_dir, ..DbOptions::default() }, &vfs)?;
    Ok(writeln!(out, "deleted the database in {}", dir.display())?)
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
