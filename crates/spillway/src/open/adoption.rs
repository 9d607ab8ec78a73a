//! Adoption of a RocksDB directory: only with the caller's consent, and with warnings for every RocksDB option handled
//! differently here. Its options tell which families DBWithTTL had open: their values carry times.

use base::name;
use std::path::Path;

use base::options::known::IGNORE_UNSUPPORTED;
use base::options::{DbOptions, FamilyOptions, OptionsFile, ValueTimes, whole};
use base::{Error, ErrorKind, Result, note};

use crate::core::open_options::OpenOptions;
use crate::open::options_file;
use crate::version::recover::Recovered;

/// # Errors
/// `InvalidArgument`: the caller does not consent. `Unsupported`, unless unsupported options are ignored: RocksDB's
/// last options change data in storage, retention or lookup and cannot be honoured, or they cannot be read.
pub(super) fn check(dir: &Path, options: &OpenOptions, recovered: &mut Recovered) -> Result<()> {
    if recovered.fenced || options.read_only {
        return Ok(());
    }
    if !options.adopt_rocksdb {
        let what = "RocksDB wrote this database; opening it for writing takes it over, and RocksDB will refuse it until \
                    it is exported again. Set adopt_rocksdb if this is wanted";
        return Err(Error::invalid_argument(what).at_path(dir));
    }
    let Some((name, text)) = options_file::newest(&*options.vfs, dir)? else { return Ok(()) };
    let text = name::text(&text);
    let start = DbOptions {
        ignore_unsupported_options: options.db.ignore_unsupported_options,
        info_log: None,
        ..DbOptions::default()
    };
    // The caller's options supply the objects that the file only names. Whether values carry times the file alone tells.
    let objects = |family: &str| FamilyOptions {
        value_ttl_s: 0,
        value_times: ValueTimes::AUTO,
        ..options.family_or_others(family)
    };
    let read = whole::check_whole(&text).and_then(|()| OptionsFile::read(&text, start, &objects, true));
    match read {
        Ok((mut file, warnings)) => {
            for family in &mut recovered.families {
                family.value_times |= file.family(&family.name).is_some_and(|options| *options.value_times);
            }
            let settled = file.families.iter_mut().flat_map(|(family, options)| {
                let changes = options.settle();
                changes.into_iter().map(|change| format!("column family \"{family}\": {change}")).collect::<Vec<_>>()
            });
            let told: Vec<String> = warnings.into_iter().chain(settled).collect();
            told.iter().for_each(|told| note::warn!("what RocksDB did otherwise, by {name}: {told}"));
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            let remedy = match error.message().contains(IGNORE_UNSUPPORTED) {
                true => "",
                false => " (ignore_unsupported_options goes on without them)",
            };
            let what = format!("RocksDB ran with options that cannot be honoured{remedy}");
            Err(error.context(what).at_path(dir.join(name)))
        }
        Err(error) if !options.db.ignore_unsupported_options => {
            let what = "what RocksDB's options said of this database is not known, and so not what would be done otherwise; \
                        mend the file, or set ignore_unsupported_options to go on without it";
            Err(Error::unsupported(format!("{what}: {}", error.message())).at_path(dir.join(name)))
        }
        Err(error) => {
            note::warn!(%error, "what RocksDB's options said of this database is not known: {name} cannot be read");
            Ok(())
        }
    }
}
