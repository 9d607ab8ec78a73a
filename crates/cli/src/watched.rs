//! A database that is looked at: the live process, by its socket, or else the files of the directory.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use live::Source;
use spillway::internal::vfs::RealVfs;
use spillway::internal::{Database, DbOptions, Error, ErrorKind, Result};
use spillway::observe::{Attached, Observation, ObservedEvents};

use crate::database::{Access, PlaceArgs};
use crate::failure::{Outcome, note, warn};

/// The database to look at.
#[derive(clap::Args, Debug)]
pub struct WatchedArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

/// # Errors
/// There is no such database, or it cannot be read.
pub fn open(args: &WatchedArgs) -> Outcome<Box<dyn Source>> {
    let database = args.place.database();
    let dir = database.locate()?.dir;
    match Attached::connect(&dir) {
        Ok(attached) => return Ok(Box::new(Live { dir, attached: Mutex::new(Some(attached)) })),
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Busy) => {
            note(&format!("{error}. Shown are the figures of its files"));
        }
        Err(error) => return Err(error.into()),
    }
    let own = own_dir();
    let db = database.open_to_follow(&own)?;
    Ok(Box::new(Files { db: Some(db), own }))
}

/// The stored options of the database, with those given: a reader opens it with others of its own.
pub fn stored_options(args: &WatchedArgs) -> Outcome<DbOptions> {
    Ok(args.place.database().options_for(Access::Read)?.1.db)
}

/// Where a reader that follows has its own files.
fn own_dir() -> PathBuf {
    std::env::temp_dir().join(format!("spillway-{}-{:016x}", std::process::id(), RealVfs::new().random_u64()))
}

/// A process that serves observations. After its end the next one is looked for.
struct Live {
    dir: PathBuf,
    attached: Mutex<Option<Attached>>,
}

impl Live {
    fn ask<T>(&self, ask: impl FnOnce(&mut Attached) -> Result<T>) -> Result<T> {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connected = match attached.take() {
            Some(connected) => connected,
            None => Attached::connect(&self.dir)?,
        };
        let answer = ask(&mut connected);
        if answer.as_ref().map_err(Error::kind).err().is_none_or(|kind| kind == ErrorKind::InvalidArgument) {
            *attached = Some(connected);
        }
        answer
    }
}

impl Source for Live {
    fn observe(&self) -> Result<Observation> {
        self.ask(|attached| {
            // Readings are refused by a closed database alone. The next one is asked by another connection.
            let refused = |error: &Error| error.kind() == ErrorKind::InvalidArgument;
            attached
                .observe()
                .map_err(|error| if refused(&error) { Error::closed(error.message().to_owned()) } else { error })
        })
    }

    fn events(&self, since: u64) -> Result<ObservedEvents> {
        self.ask(|attached| attached.events(since))
    }

    fn set_option(&self, family: Option<&str>, name: &str, value: &str) -> Result<()> {
        self.ask(|attached| attached.set(family, name, value))
    }
}

/// A reader that follows the files.
struct Files {
    /// `None` while it is dropped.
    db: Option<Database>,
    own: PathBuf,
}

impl Files {
    fn db(&self) -> Result<&Database> {
        self.db.as_ref().ok_or_else(|| Error::closed("the reader is closed"))
    }
}

impl Source for Files {
    fn observe(&self) -> Result<Observation> {
        let db = self.db()?;
        db.try_catch_up_with_primary()?;
        Ok(db.observe())
    }

    fn set_option(&self, _: Option<&str>, _: &str, _: &str) -> Result<()> {
        Err(Error::unsupported(
            "options are changed in the process that has the database open: it needs observe_socket and observe_changes",
        ))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        drop(self.db.take());
        if let Err(error) = RealVfs::new().remove_dir(&self.own) {
            warn(&error.to_string());
        }
    }
}
