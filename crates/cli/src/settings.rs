//! The options that a database is opened with: those stored beside it, and over them those of the command line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spillway::options::known::IGNORE_UNSUPPORTED;
use spillway::options::row::OptionGroup;
use spillway::options::{OptionsFile, Syntax, apply_string, string};
use spillway::version::file_name::{self, FileType};
use spillway::vfs::{IoClass, Vfs};
use spillway::{DbOptions, Error, ErrorKind, FamilyOptions, Result};

use crate::failure::warn;

/// The longest options file that is read, in bytes.
const OPTIONS_BYTES_MAX: u64 = 16 << 20;

/// Options of a database, of its families by name, and of families that have none of their own.
#[derive(Clone, Default)]
pub struct Settings {
    pub db: DbOptions,
    pub families: Vec<(String, FamilyOptions)>,
    pub others: FamilyOptions,
    /// What of the text that was given has no effect.
    pub warnings: Vec<String>,
}

/// What becomes of stored options that cannot be honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// They are refused.
    Refuse,
    /// They are told of: whoever only reads stores and keeps nothing.
    Tell,
    /// Whoever opens the database tells of them, or refuses it.
    Leave,
}

impl Settings {
    /// What is stored in the directory, as far as it can be honoured, and over it what `given` says: the name of a file (an
    /// OPTIONS file, `.json`, `.yaml`), or an option string.
    pub fn load(vfs: &Arc<dyn Vfs>, dir: &Path, given: Option<&str>) -> Result<Settings> {
        Self::stored(vfs, dir, Unsupported::Tell)?.with(vfs, given)
    }

    /// What is stored in the directory.
    pub fn stored(vfs: &Arc<dyn Vfs>, dir: &Path, unsupported: Unsupported) -> Result<Settings> {
        let Some(path) = newest_options(&**vfs, dir)? else { return Ok(Settings::default()) };
        // What only changes how something is done was told of when it was given.
        let read = read_file(&**vfs, &path, &Settings::default()).map(|(settings, _)| settings);
        let error = match read {
            Ok(settings) => return Ok(settings),
            Err(error) => error,
        };
        match (error.kind(), unsupported) {
            (ErrorKind::Unsupported, Unsupported::Refuse) => Err(error),
            (ErrorKind::Unsupported, _) => {
                if unsupported == Unsupported::Tell {
                    warn(&error.to_string());
                }
                let (mut settings, _) = read_file(&**vfs, &path, &Settings::default().ignoring_unsupported(true))?;
                settings.db.ignore_unsupported_options = false;
                Ok(settings)
            }
            _ => {
                warn(&format!("the stored options are not used: {error}"));
                Ok(Settings::default())
            }
        }
    }

    /// Has options that cannot be honoured told of, if `ignore` says so.
    #[must_use]
    pub fn ignoring_unsupported(mut self, ignore: bool) -> Settings {
        self.db.ignore_unsupported_options |= ignore;
        self
    }

    /// These, and over them what `given` says: see [`load`](Self::load). What of that has no effect is told.
    pub fn with(self, vfs: &Arc<dyn Vfs>, given: Option<&str>) -> Result<Settings> {
        let (mut settings, warnings) = match given {
            None => return Ok(self),
            Some(text) if is_file_name(text) => read_file(&**vfs, Path::new(text), &self)?,
            Some(text) => self.with_string(text)?,
        };
        warnings.iter().for_each(|warning| warn(warning));
        settings.warnings = warnings;
        Ok(settings)
    }

    /// Options of the database go there, others to every family.
    fn with_string(mut self, text: &str) -> Result<(Settings, Vec<String>)> {
        let pairs = string::pairs(text)?;
        let mut warnings = Vec::new();
        for (_, value) in pairs.iter().filter(|(name, _)| *name == IGNORE_UNSUPPORTED) {
            apply_string(&mut self.db, &format!("{IGNORE_UNSUPPORTED}={value}"))?;
        }
        let ignore = self.db.ignore_unsupported_options;
        for (name, value) in pairs {
            let pair = format!("{IGNORE_UNSUPPORTED}={ignore};{name}={{{value}}}");
            let is_of_db = self.db.find_mut(name).is_some() || self.db.unhonoured().iter().any(|row| row.name == name);
            if is_of_db {
                warnings.extend(apply_string(&mut self.db, &pair)?);
                continue;
            }
            let families = self.families.iter_mut().map(|(_, family)| family);
            for family in families.chain([&mut self.others]) {
                warnings.extend(apply_string(family, &pair)?);
            }
        }
        Ok((self, warnings))
    }
}

fn is_file_name(text: &str) -> bool {
    let path = Path::new(text);
    let is_named_so = |suffix: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(suffix));
    !text.contains('=') || ["json", "yaml", "yml", "ini"].into_iter().any(is_named_so)
}

/// The options file with the largest number in a database directory.
fn newest_options(vfs: &dyn Vfs, dir: &Path) -> Result<Option<PathBuf>> {
    if !vfs.exists(dir)? {
        return Ok(None);
    }
    let names = vfs.read_dir(dir)?;
    let numbers = names.iter().filter_map(|name| file_name::parse(name)).filter(|(kind, _)| *kind == FileType::Options);
    Ok(numbers.max().map(|(kind, number)| dir.join(file_name::format(kind, number))))
}

/// The options in a file over others, and what of them has no effect.
fn read_file(vfs: &dyn Vfs, path: &Path, over: &Settings) -> Result<(Settings, Vec<String>)> {
    let bytes = spillway::vfs::read_all(vfs, path, OPTIONS_BYTES_MAX, IoClass::Other)?;
    let not_text = |_| Error::invalid_argument("the options file is not UTF-8 text").at_path(path);
    let text = String::from_utf8(bytes).map_err(not_text)?;
    let start = |name: &str| {
        let known = over.families.iter().find(|(known, _)| known == name);
        known.map_or_else(|| over.others.clone(), |(_, options)| options.clone())
    };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_lowercase();
    let read = match extension.as_str() {
        "json" => OptionsFile::read_document(&text, Syntax::Json, over.db.clone(), &start),
        "yaml" | "yml" => OptionsFile::read_document(&text, Syntax::Yaml, over.db.clone(), &start),
        // What newer versions of RocksDB know and this does not is passed over.
        _ => OptionsFile::read(&text, over.db.clone(), &start, true),
    };
    let (file, warnings) = read.map_err(|error| error.at_path(path))?;
    let mut families = file.families;
    let kept = over.families.iter().filter(|(name, _)| !families.iter().any(|(known, _)| known == name));
    let kept: Vec<_> = kept.cloned().collect();
    families.extend(kept);
    Ok((Settings { db: file.db, families, others: over.others.clone(), warnings: Vec::new() }, warnings))
}
