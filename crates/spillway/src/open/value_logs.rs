//! Logs that an open needs for values of tables alone.

use std::collections::BTreeSet;
use std::path::Path;

use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, FileNumber, Result};

use super::opening::Opening;
use crate::core::doubt::Doubt;
use crate::version::file_name::{self, FileType};
use crate::version::version::Version;

impl Opening<'_> {
    /// Notes the sizes of logs with values of tables. The tables name them. A salvage goes on without one: its values cannot be
    /// read. Damage shows when the damaged part is read.
    ///
    /// # Errors
    /// `Corruption`: a log is missing. The file system's.
    pub(super) fn measure_value_logs(&self, family: &str, version: &Version) -> Result<()> {
        let shares = version.all_files().flat_map(|(_, file)| &file.meta.value_logs);
        for log in shares.map(|share| share.log).collect::<BTreeSet<_>>() {
            let path = self.context.log_dir().join(file_name::format(FileType::Log, log));
            let bytes = match self.context.vfs.metadata(&path) {
                Err(_) if self.bears_damage() => continue,
                Err(error) if error.is_not_found() => {
                    self.bear_missing_values(family, version, log, &path)?;
                    continue;
                }
                found => found?.len,
            };
            let life = self.context.logs.of_log(log);
            life.set_bytes(bytes);
            if self.keeps_tables_open() {
                // Opened now, since the writer may delete it later.
                match life.values() {
                    Err(_) if self.bears_damage() => {}
                    Err(error) if error.kind() == ErrorKind::Corruption && !self.doubts_values() => {}
                    Err(error) if error.kind() == ErrorKind::Corruption => {
                        self.doubt_values(family, version, log, &error.to_string());
                    }
                    values => drop(values?),
                }
            }
        }
        Ok(())
    }

    /// Whether this open goes on without the values of a log, and says so.
    fn doubts_values(&self) -> bool {
        let options = &self.context.options;
        options.wal_recovery_mode == WalRecoveryMode::SkipAnyCorruptedRecords || options.best_efforts_recovery
    }

    /// Doubts the tables that have values in a missing log.
    ///
    /// # Errors
    /// `Corruption`, unless this open salvages.
    fn bear_missing_values(&self, family: &str, version: &Version, log: FileNumber, path: &Path) -> Result<()> {
        let what = format!("log {log} is missing, which holds values of tables");
        if !self.doubts_values() {
            let way_out = "restore the file, or open with wal_recovery_mode=kSkipAnyCorruptedRecords, which leaves these values \
                           unreadable; `spillway repair` removes them";
            return Err(Error::corruption(what).advise(way_out).at_path(path));
        }
        self.doubt_values(family, version, log, &what);
        Ok(())
    }

    fn doubt_values(&self, family: &str, version: &Version, log: FileNumber, what: &str) {
        for (_, file) in version.all_files().filter(|(_, file)| file.meta.value_logs.iter().any(|s| s.log == log)) {
            let keys = (file.meta.smallest_user_key().to_vec(), file.meta.largest_user_key().to_vec());
            self.context.recovery_doubts.add(Doubt::of_keys(family, keys, format!("{what}: they cannot be read")));
        }
    }
}
