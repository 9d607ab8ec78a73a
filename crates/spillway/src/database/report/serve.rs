//! What an open does for those who watch: advice in the event log, and readings at the socket, if the option
//! `observe_socket` asks for it.

use std::sync::Arc;

use base::note;

use super::observation::Reading;
use crate::engine::Engine;
use crate::observe::{Advice, AdviceSeverity};

#[cfg(feature = "observe")]
use {
    crate::observe::socket::{OptionChange, Served, Server},
    crate::observe::{Observation, ObservedEvents},
    base::options::{DbOptions, OptionGroup},
    base::{Error, Result},
    std::sync::Weak,
};

/// An engine that may close at any time.
#[cfg(feature = "observe")]
struct Live(Weak<Engine>);

/// Notes advice, and begins to serve.
pub(crate) fn begin(engine: &Arc<Engine>) {
    if engine.core.read_only || engine.core.context.vfs.runs_inline() {
        return;
    }
    let _noting = engine.core.context.noting();
    for advice in Reading::new(engine).take().advice(None) {
        if advice.severity >= AdviceSeverity::Warning {
            let Advice { rule, family, seen, advice, .. } = advice;
            let family = family.unwrap_or_default();
            note::warn!(family, "advice ({rule}): {seen}. {advice}");
        }
    }
    if engine.core.context.options.observe_socket {
        serve(engine);
    }
}

#[cfg(not(feature = "observe"))]
fn serve(_engine: &Arc<Engine>) {
    note::warn!("no socket for observations (observe_socket): this build lacks the feature `observe`");
}

/// Without a socket the database goes on, and the event log says why.
#[cfg(feature = "observe")]
fn serve(engine: &Arc<Engine>) {
    let context = &engine.core.context;
    match Server::start(&context.vfs, &context.dir, Box::new(Live(Arc::downgrade(engine)))) {
        Ok(server) => {
            let _ = engine.observer.set(server); // once, at the open
        }
        Err(error) => note::warn!(%error, "no socket for observations (observe_socket): the database goes on without"),
    }
}

#[cfg(feature = "observe")]
impl Live {
    fn engine(&self) -> Result<Arc<Engine>> {
        let closed = || Error::closed("the database is closed");
        let engine = self.0.upgrade().ok_or_else(closed)?;
        engine.core.check_open().map(|()| engine)
    }
}

#[cfg(feature = "observe")]
impl Served for Live {
    fn observation(&self) -> Result<Observation> {
        Ok(Reading::new(&*self.engine()?).take())
    }

    fn events(&self, since: u64) -> Result<ObservedEvents> {
        Ok(self.engine()?.core.context.events.since(since))
    }

    fn set(&self, change: &OptionChange) -> Result<()> {
        let (engine, OptionChange { family, name, value }) = (self.engine()?, change);
        if !engine.core.context.options.observe_changes {
            return Err(Error::read_only(
                "options cannot be changed here: open the database with observe_changes=true",
            ));
        }
        note::info!(name, value, "an option is changed through the socket");
        if family.is_none() && DbOptions::default().find_mut(name).is_some() {
            return engine.set_db_options(&[(name, value)]);
        }
        let family = family.as_deref().unwrap_or(crate::core::open_options::DEFAULT_FAMILY);
        let there = engine.core.families.load().by_name(family).cloned();
        let family = there.ok_or_else(|| Error::invalid_argument(format!("there is no column family {family:?}")))?;
        engine.set_options(&family, &[(name, value)])
    }
}
