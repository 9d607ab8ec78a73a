//! The header of an event log: the version, and the options in force.

use std::path::Path;

use base::FamilyId;
use base::note::{self, Sink};
use base::options::row::OptionGroup;
use base::options::{DbOptions, InfoLogLevel, differences};

use crate::core::Core;
use crate::core::family::Family;
use crate::engine::Engine;
use crate::info_log::InfoLog;

/// The group of a table's options.
const TABLE_OPTIONS: &str = "block_based_table_factory";

/// Families of a database whose options are logged whole. Of more, those that are not the default family's are.
const FAMILIES_WHOLE: usize = 10;

/// Logs the identity of the opened database, and the options of its families. Called under no lock.
pub(crate) fn log_opened(engine: &Engine) {
    let (context, log) = (&engine.core.context, &engine.core.context.info_log);
    if log.takes(InfoLogLevel::Header) {
        log.header(format!("DB ID: {}", context.db_id));
        log.header(format!("DB Session ID: {}", context.session_id));
    }
    let families = engine.core.families.load();
    families.iter().for_each(|family| log_family_options(&engine.core, family));
    if log.takes(InfoLogLevel::Header) {
        // Where programs that read event logs look for the header's end.
        log.header(format!("DB pointer {:p}", std::ptr::from_ref(engine)));
    }
    let (count, last_seq) = (families.iter().len(), engine.core.pipeline.visible().0);
    note::info!(families = count, last_sequence = last_seq, "the database is open");
}

/// Logs the options of a family, when opened or created. Called under no lock.
pub(crate) fn log_family_options(core: &Core, family: &Family) {
    let log = &core.context.info_log;
    if !log.takes(InfoLogLevel::Header) {
        return;
    }
    log.header(format!("--------------- Options for column family [{}]:", family.name()));
    let families = core.families.load();
    let default = families.get(FamilyId::DEFAULT).filter(|_| families.iter().len() > FAMILIES_WHOLE);
    match default.filter(|default| default.id() != family.id()) {
        Some(default) => {
            log.header(format!("{:>55}", "as those of [default], but for:"));
            let different = differences(&*default.options(), &*family.options());
            different.iter().for_each(|(name, text)| log.header(format!("{:>55}: {text}", format!("Options.{name}"))));
        }
        None => log.group("Options", &*family.options()),
    }
    log.write_out(); // the buffer cannot hold the options of many families
}

impl InfoLog {
    /// Logs the program's version, the directory and the options of the database.
    pub(crate) fn log_program(&self, dir: &Path, options: &DbOptions) {
        if self.takes(InfoLogLevel::Header) {
            self.header(format!("Spillway version: {}", env!("CARGO_PKG_VERSION")));
            self.header(format!("DB path: {}", dir.display()));
            let crc32 = if has_crc32() { "Supported" } else { "Not supported" };
            let processor = if cfg!(target_arch = "aarch64") { "Arm64" } else { "x86" };
            self.header(format!("Fast CRC32 supported: {crc32} on {processor}"));
            self.header("Jemalloc supported: 0".to_owned());
            self.group("Options", options);
        }
    }

    fn header(&self, text: String) {
        self.take(InfoLogLevel::Header, text);
    }

    /// Logs every option of a group, in RocksDB's format: options of tables by number.
    fn group(&self, prefix: &str, group: &dyn OptionGroup) {
        let by_number = prefix.ends_with(TABLE_OPTIONS);
        for (row, setting) in group.settings() {
            let name = format!("{prefix}.{}", row.name);
            let number = setting.number().filter(|number| by_number && number.fract() == 0.0);
            match (setting.group(), number) {
                (Some(nested), _) => self.group(&name, nested),
                (None, Some(number)) => self.header(format!("{name:>55}: {number}")),
                (None, None) => self.header(format!("{name:>55}: {}", setting.logged())),
            }
        }
        group.kept().iter().for_each(|(name, text)| self.header(format!("{:>55}: {text}", format!("{prefix}.{name}"))));
    }
}

/// Whether checksums use the processor's instruction. It is asked when the program runs, not when it is built.
fn has_crc32() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("sse4.2");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("crc");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}
