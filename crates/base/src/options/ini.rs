//! RocksDB's OPTIONS files.
//!
//! A file is sections (`[DBOptions]`, `[CFOptions "name"]`, ...) of `name=value` lines; `#` begins a comment. RocksDB
//! refuses a file with an unknown name, so Spillway's own options have their own sections (`[Spillway/DBOptions]`,
//! ...). A file written for RocksDB has no such sections. Whether a file is whole: [`super::whole`].

use crate::error::{Error, Result};
use crate::options::document::{self, Syntax};
use crate::options::kept::{self, Kept};
use crate::options::row::{Home, Load, OptionGroup};
use crate::options::{DbOptions, FamilyOptions, string, whole};

/// The version in written files: this RocksDB knows every name in them.
const ROCKSDB_VERSION: &str = "7.8.3";
const FILE_VERSION: &str = "1.1";

/// Most families in a file. RocksDB has no limit; this one bounds the memory for a damaged file.
const FAMILIES_MAX: usize = 1 << 16;

/// Sections of table formats not written here. The family's `table_factory` names the format and warns.
const TABLES_ELSEWHERE: [&str; 2] = ["TableOptions/PlainTable", "TableOptions/CuckooTable"];

const DEFAULT_FAMILY: &str = "default";

/// The reader of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// For Spillway: every option.
    Spillway,
    /// RocksDB 7.8 and later: private options are left out.
    RocksDb,
}

/// Makes a family's initial options, before the file's are applied. Supply comparators, merge operators and prefix
/// extractors here: the file only names them.
pub type NewFamily<'a> = &'a dyn Fn(&str) -> FamilyOptions;

/// The options of a database and its families.
#[derive(Clone, Debug, Default)]
pub struct OptionsFile {
    /// Options of the database.
    pub db: DbOptions,
    /// By name, in the file's order.
    pub families: Vec<(String, FamilyOptions)>,
}

impl OptionsFile {
    /// Reads an OPTIONS file, ours or RocksDB's, over `db` and the results of `new_family`. Also returns warnings:
    /// options without effect or with another meaning and, under `ignore_unknown_options`, unknown ones. If `db` sets
    /// `ignore_unsupported_options`, options that change the data stored, kept or found only warn.
    ///
    /// # Errors
    /// `InvalidArgument` or `Unsupported`, with the line; the caller adds the path.
    pub fn read(
        text: &str,
        db: DbOptions,
        new_family: NewFamily<'_>,
        ignore_unknown_options: bool,
    ) -> Result<(OptionsFile, Vec<String>)> {
        let load = Load { ignore_unknown_options, ..Load::default() };
        OptionsFile::read_by(text, db, new_family, load)
    }

    /// As [`read`](Self::read), but keeps unsupported options for [`review`](super::kept::review) to refuse.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_keeping(
        text: &str,
        db: DbOptions,
        new_family: NewFamily<'_>,
        ignore_unknown_options: bool,
    ) -> Result<(OptionsFile, Vec<String>)> {
        let load = Load { ignore_unknown_options, defers_refusal: true, ..Load::default() };
        OptionsFile::read_by(text, db, new_family, load)
    }

    fn read_by(
        text: &str,
        db: DbOptions,
        new_family: NewFamily<'_>,
        mut load: Load,
    ) -> Result<(OptionsFile, Vec<String>)> {
        load.ignore_unsupported |= db.ignore_unsupported_options;
        load.adopting = true;
        let mut file = OptionsFile { db, families: Vec::new() };
        let mut section = Section::None;
        // RocksDB's reader passes over a last line without an end.
        let (ended, cut) = text.rsplit_once('\n').unwrap_or(("", text));
        for (index, line) in ended.lines().enumerate() {
            let warned = load.warnings.len();
            file.take_line(line, &mut section, &mut load, new_family)
                .map_err(|error| error.context(format!("line {}", index + 1)))?;
            for warning in load.warnings.iter_mut().skip(warned) {
                *warning = format!("line {}: {warning}", index + 1);
            }
        }
        if !cut.trim().is_empty() {
            load.warnings.push(format!("the last line, `{cut}`, is passed over, as by RocksDB: it has no line end"));
        }
        // Files of before `value_times` have the ttl alone.
        for (_, family) in &mut file.families {
            if family.value_ttl_s > 0 && !family.value_times.is_denied() {
                family.value_times = true.into();
            }
        }
        Ok((file, load.warnings))
    }

    /// Reads JSON or YAML: `DBOptions`, and `CFOptions` with an object per family, table options nested in it.
    ///
    /// # Errors
    /// `InvalidArgument` or `Unsupported`, with the line.
    pub fn read_document(
        text: &str,
        syntax: Syntax,
        db: DbOptions,
        new_family: NewFamily<'_>,
    ) -> Result<(OptionsFile, Vec<String>)> {
        let mut load = Load { ignore_unsupported: db.ignore_unsupported_options, ..Load::default() };
        let mut file = OptionsFile { db, families: Vec::new() };
        document::apply_file(&mut file, text, syntax, &mut load, new_family)?;
        Ok((file, load.warnings))
    }

    /// Options of a family.
    pub fn family(&self, name: &str) -> Option<&FamilyOptions> {
        self.families.iter().rev().find(|(known, _)| known == name).map(|(_, options)| options)
    }

    /// Lines of a family follow each other: the last family is looked at first.
    pub(super) fn family_or(&mut self, name: &str, new_family: NewFamily<'_>) -> &mut FamilyOptions {
        let at = self.families.iter().rposition(|(known, _)| known == name).unwrap_or_else(|| {
            self.families.push((name.to_string(), new_family(name)));
            self.families.len() - 1
        });
        &mut self.families.get_mut(at).expect("found or just added").1
    }

    fn take_line(
        &mut self,
        line: &str,
        section: &mut Section,
        load: &mut Load,
        new_family: NewFamily<'_>,
    ) -> Result<()> {
        let line = without_comment(line).trim();
        if line.is_empty() {
            return Ok(());
        }
        if let Some(header) = line.strip_prefix('[') {
            *section = self.begin_section(header, load, new_family)?;
            return Ok(());
        }
        let (name, value) =
            line.split_once('=').ok_or_else(|| Error::invalid_argument(format!("no `=` in `{line}`")))?;
        let (name, value) = (name.trim(), value.trim());
        let family = match section {
            Section::None => return Err(Error::invalid_argument("an option before the first section")),
            Section::Skipped => return Ok(()),
            Section::Version => return check_version(name, value),
            Section::Db => return string::set(&mut self.db, name, value, load),
            Section::Family(name) | Section::Table(name) => self.family_or(name, new_family),
        };
        let (name, value) = match within_ttl(name, value) {
            Some(within) => {
                family.value_times = true.into(); // the engine brings its own wrappers
                (name, within)
            }
            None => (name, value),
        };
        let group: &mut dyn OptionGroup = if matches!(section, Section::Table(_)) { &mut family.table } else { family };
        string::set(group, name, value, load)
    }

    fn begin_section(&mut self, header: &str, load: &mut Load, new_family: NewFamily<'_>) -> Result<Section> {
        let malformed = || Error::invalid_argument(format!("malformed section `[{header}`"));
        let header = header.strip_suffix(']').ok_or_else(malformed)?.trim();
        let (title, family) = match header.split_once(char::is_whitespace) {
            None => (header, None),
            Some((title, argument)) => {
                let quoted = argument.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                (title, Some(string::unescape(quoted.ok_or_else(malformed)?)))
            }
        };
        match (title, family) {
            ("Version", None) => Ok(Section::Version),
            ("DBOptions" | "Spillway/DBOptions", None) => Ok(Section::Db),
            ("CFOptions", Some(name)) => {
                if !load.named.insert(name.clone()) {
                    return Err(Error::invalid_argument(format!("a second section for family `{name}`")));
                }
                if self.families.len() >= FAMILIES_MAX {
                    return Err(Error::invalid_argument(format!("more than {FAMILIES_MAX} families")));
                }
                self.families.push((name.clone(), new_family(&name)));
                load.given.clear();
                Ok(Section::Family(name))
            }
            (title, Some(name)) if Section::of_family(title, "").is_some() => {
                if self.family(&name).is_none() {
                    return Err(Error::invalid_argument(format!("`{title}` before [CFOptions \"{name}\"]")));
                }
                Ok(Section::of_family(title, &name).expect("tested above"))
            }
            (title, Some(_)) if TABLES_ELSEWHERE.contains(&title) => Ok(Section::Skipped),
            _ if load.ignore_unknown_options => {
                load.warnings.push(format!("unknown section [{header}] was skipped"));
                Ok(Section::Skipped)
            }
            _ => Err(Error::invalid_argument(format!("unknown section [{header}]"))),
        }
    }
}

/// The caller's filter or merge operator in the text of one that RocksDB's DBWithTTL puts around it. `None`: another text.
fn within_ttl<'a>(name: &str, text: &'a str) -> Option<&'a str> {
    let (id, within) = match name {
        "compaction_filter" => ("TtlCompactionFilter", "user_filter"),
        "compaction_filter_factory" => ("TtlCompactionFilterFactory", "user_filter_factory"),
        "merge_operator" => ("TtlMergeOperator", "user_operator"),
        _ => return None,
    };
    let members = string::pairs(text.strip_prefix('{')?.strip_suffix('}')?).ok()?;
    let member = |name: &str| members.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    (member("id") == Some(id)).then(|| member(within).unwrap_or("nullptr"))
}

/// The current section of a reader.
enum Section {
    None,
    Skipped,
    Version,
    Db,
    Family(String),
    Table(String),
}

impl Section {
    /// The sections allowed after a family's `CFOptions` section.
    fn of_family(title: &str, name: &str) -> Option<Section> {
        match title {
            "Spillway/CFOptions" => Some(Section::Family(name.to_string())),
            "TableOptions/BlockBasedTable" | "Spillway/TableOptions" => Some(Section::Table(name.to_string())),
            _ => None,
        }
    }
}

/// Cuts at the first `#` without a backslash before it.
pub(super) fn without_comment(line: &str) -> &str {
    let mut escaped = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            _ if std::mem::take(&mut escaped) => {}
            b'\\' => escaped = true,
            b'#' => return line.get(..at).unwrap_or_default(),
            _ => {}
        }
    }
    line
}

fn check_version(name: &str, value: &str) -> Result<()> {
    match name {
        "rocksdb_version" => Ok(()),
        "options_file_version" if value == "1" || value.starts_with("1.") => Ok(()),
        "options_file_version" => Err(Error::unsupported(format!("options_file_version {value}; 1.x is known"))),
        _ => Err(Error::invalid_argument(format!("unknown entry `{name}` in [Version]"))),
    }
}

/// Writes an OPTIONS file. The default family comes first, as RocksDB insists. A file for Spillway ends with a checksum.
pub fn write(db: &DbOptions, families: &[(&str, &FamilyOptions)], audience: Audience) -> String {
    let private = audience == Audience::Spillway;
    let title = if private { whole::CHECKED_TITLE } else { "# Options in RocksDB's format, written by Spillway." };
    let mut text =
        format!("{title}\n\n[Version]\n  rocksdb_version={ROCKSDB_VERSION}\n  options_file_version={FILE_VERSION}\n");
    write_section(&mut text, "[DBOptions]", db, Home::RocksDb);
    if private {
        write_section(&mut text, "[Spillway/DBOptions]", db, Home::Spillway);
    }
    let mut ordered = families.to_vec();
    ordered.sort_by_key(|(name, _)| *name != DEFAULT_FAMILY);
    for (name, family) in ordered {
        let name = string::escape(name);
        let family = &if private { family.clone() } else { without_kept(family) };
        write_section(&mut text, &format!("[CFOptions \"{name}\"]"), family, Home::RocksDb);
        let header = format!("[TableOptions/BlockBasedTable \"{name}\"]");
        write_section(&mut text, &header, &family.table, Home::RocksDb);
        if private {
            write_section(&mut text, &format!("[Spillway/CFOptions \"{name}\"]"), family, Home::Spillway);
            write_section(&mut text, &format!("[Spillway/TableOptions \"{name}\"]"), &family.table, Home::Spillway);
        }
    }
    if private {
        whole::seal(&mut text);
    }
    text
}

/// Drops kept options: RocksDB 7.8 does not know all of their names.
fn without_kept(family: &FamilyOptions) -> FamilyOptions {
    let mut family = family.clone();
    let styles = [&mut family.compaction_options_universal.kept, &mut family.compaction_options_fifo.kept];
    let nested = styles.into_iter().chain([&mut family.compression_opts.kept]);
    [&mut family.kept, &mut family.table.kept].into_iter().chain(nested).for_each(Kept::clear);
    family
}

/// Written as it was asked for, even if tables are written with another one: as by RocksDB, which checks it when a
/// database is opened, and not in the options of a new family.
const FORMAT_VERSION: &str = "format_version";

/// Omits empty values: they are defaults, and RocksDB's parser rejects some of them.
fn write_section(text: &mut String, header: &str, group: &dyn OptionGroup, home: Home) {
    text.push_str(&format!("\n{header}\n"));
    for (row, setting) in group.settings() {
        let asked = group.kept().get(row.name).filter(|_| row.name == FORMAT_VERSION);
        let value = asked.map_or_else(|| setting.text(), str::to_owned);
        if row.home == home && !value.is_empty() {
            text.push_str(&format!("  {}={value}\n", row.name));
        }
    }
    if home == Home::Spillway {
        kept::written(group).iter().for_each(|(name, value)| text.push_str(&format!("  {name}={value}\n")));
    }
}
