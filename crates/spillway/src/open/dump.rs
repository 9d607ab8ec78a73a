//! What an event log begins with: the version, and the options in force.

use std::path::Path;

use base::note::{self, Sink};
use base::options::row::OptionGroup;
use base::options::{DbOptions, InfoLogLevel};

use crate::core::family::Family;
use crate::info_log::InfoLog;
use crate::open::engine::Engine;

/// Says which database was opened, and the options of its families. Called off every lock.
pub(crate) fn note_opened(engine: &Engine) {
    let (context, log) = (&engine.core.context, &engine.core.context.info_log);
    if log.takes(InfoLogLevel::Header) {
        log.header(format!("DB ID: {}", context.db_id));
        log.header(format!("DB Session ID: {}", context.session_id));
    }
    let families = engine.core.families.load();
    families.iter().for_each(|family| note_family_options(log, family));
    let (count, last_seq) = (families.iter().count(), engine.core.pipeline.visible().0);
    note::info!(families = count, last_sequence = last_seq, "the database is open");
}

/// The options of a family, when it is opened or made. Called off every lock.
pub(crate) fn note_family_options(log: &InfoLog, family: &Family) {
    if log.takes(InfoLogLevel::Header) {
        log.header(format!("--------------- Options for column family [{}]:", family.name()));
        log.group("Options", &*family.options());
        log.write_out(); // or those of many families would not fit
    }
}

impl InfoLog {
    /// Says which program opens which directory, and the options of the database.
    pub(crate) fn note_program(&self, dir: &Path, options: &DbOptions) {
        if self.takes(InfoLogLevel::Header) {
            self.header(format!("Spillway version: {}", env!("CARGO_PKG_VERSION")));
            self.header(format!("DB path: {}", dir.display()));
            self.group("Options", options);
        }
    }

    fn header(&self, text: String) {
        self.take(InfoLogLevel::Header, text);
    }

    /// Every option of a group, as RocksDB prints them.
    fn group(&self, prefix: &str, group: &dyn OptionGroup) {
        for (row, setting) in group.settings() {
            let name = format!("{prefix}.{}", row.name);
            match setting.group() {
                Some(nested) => self.group(&name, nested),
                None => self.header(format!("{name:>55}: {}", setting.text())),
            }
        }
        group.kept().iter().for_each(|(name, text)| self.header(format!("{:>55}: {text}", format!("{prefix}.{name}"))));
    }
}
