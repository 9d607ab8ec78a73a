//! The header of an event log: the version, and the options in force.

use std::path::Path;

use base::note::{self, Sink};
use base::options::row::OptionGroup;
use base::options::{DbOptions, InfoLogLevel};

use crate::core::family::Family;
use crate::info_log::InfoLog;
use crate::open::engine::Engine;

/// Logs the identity of the opened database, and the options of its families. Called under no lock.
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

/// Logs the options of a family, when opened or created. Called under no lock.
pub(crate) fn note_family_options(log: &InfoLog, family: &Family) {
    if log.takes(InfoLogLevel::Header) {
        log.header(format!("--------------- Options for column family [{}]:", family.name()));
        log.group("Options", &*family.options());
        log.write_out(); // the buffer cannot hold the options of many families
    }
}

impl InfoLog {
    /// Logs the program's version, the directory and the options of the database.
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

    /// Logs every option of a group, in RocksDB's format.
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
