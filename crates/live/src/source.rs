//! Whose figures are shown.

use spillway::observe::{Observation, ObservedEvents};
use spillway::{Db, Error, Result};

/// A database that is looked at.
pub trait Source: Send + Sync + 'static {
    /// A reading.
    ///
    /// # Errors
    /// The database is gone.
    fn observe(&self) -> Result<Observation>;

    /// The events after a number: 0 at first, then [`ObservedEvents::last`]. A source may have none.
    ///
    /// # Errors
    /// The database is gone.
    fn events(&self, since: u64) -> Result<ObservedEvents> {
        let _ = since;
        Ok(ObservedEvents::default())
    }

    /// Changes an option of the database, or of a family.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no such family or option, the value is none of its, or it cannot be changed now.
    fn set_option(&self, family: Option<&str>, name: &str, value: &str) -> Result<()>;
}

impl Source for Box<dyn Source> {
    fn observe(&self) -> Result<Observation> {
        (**self).observe()
    }

    fn events(&self, since: u64) -> Result<ObservedEvents> {
        (**self).events(since)
    }

    fn set_option(&self, family: Option<&str>, name: &str, value: &str) -> Result<()> {
        (**self).set_option(family, name, value)
    }
}

impl Source for Db {
    fn observe(&self) -> Result<Observation> {
        Ok(Db::observe(self))
    }

    fn events(&self, since: u64) -> Result<ObservedEvents> {
        Ok(Db::events(self, since))
    }

    fn set_option(&self, family: Option<&str>, name: &str, value: &str) -> Result<()> {
        match family {
            None => self.set_options([(name, value)]),
            Some(of) => {
                let unknown = || Error::invalid_argument(format!("there is no family {of:?}"));
                self.find_family(of).ok_or_else(unknown)?.set_options([(name, value)])
            }
        }
    }
}
