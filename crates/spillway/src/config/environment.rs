//! Options from the environment of a process, over those of a program written for RocksDB: a document, and an option
//! string over it. For the C library and Java's; programs in Rust read documents themselves. `docs/configuration.md` is
//! the manual.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use base::options::tree::{DOCUMENT_BYTES_MAX, Node, Syntax};
use base::options::{DbOptions, FamilyOptions, apply_both};
use base::{Error, Result};
use parking_lot::Mutex;
use vfs::{IoClass, RealVfs};

use crate::config::databases::{ConfiguredDb, SharedCache};
use crate::config::describe::differing;
use crate::config::{Config, Start};
use crate::core::open_options::OpenOptions;

/// Names a document.
const CONFIG: &str = "SPILLWAY_CONFIG";

/// Has an option string.
const OPTIONS: &str = "SPILLWAY_OPTIONS";

/// The database of a document that stands for each one without a section of its own.
const ANY: &str = "*";

/// The variables of a process, with the document read.
pub struct Environment {
    document: Option<Named>,
    options: Option<Result<String>>,
}

/// A document, and the caches of the databases opened by it.
struct Named {
    path: PathBuf,
    root: Result<Node>,
    caches: Mutex<Vec<SharedCache>>,
}

/// Options of a database and a family after the environment's.
struct Applied {
    db: DbOptions,
    family: FamilyOptions,
    cache: Option<SharedCache>,
    /// The document's section for the database, if it has one.
    section: Option<String>,
    warnings: Vec<String>,
}

impl Environment {
    /// The variables of this process, read at the first call. A mistake in them is an error of each use.
    pub fn of_process() -> &'static Environment {
        static READ: OnceLock<Environment> = OnceLock::new();
        READ.get_or_init(|| Environment::of(std::env::var_os(CONFIG), std::env::var_os(OPTIONS)))
    }

    /// With these values of the variables. Empty ones count as not set.
    fn of(config: Option<OsString>, options: Option<OsString>) -> Environment {
        let document = config.filter(|value| !value.is_empty()).map(|path| Named::read(path.into()));
        let options = options.filter(|value| !value.is_empty());
        let options = options.map(|value| Ok(base::name::of_path(value.as_ref()).into_owned()));
        Environment { document, options }
    }

    fn is_set(&self) -> bool {
        self.document.is_some() || self.options.is_some()
    }

    /// Puts its options over those to open the database in `path` with, and says in the event log what changes. Objects
    /// of the program stay, but for a cache, a limiter or a budget whose size changes.
    ///
    /// # Errors
    /// `InvalidArgument`, `Unsupported`: a mistake in a variable or in the document, with file and place. `Io`: the
    /// document cannot be read.
    pub fn apply(&self, path: &Path, open: &mut OpenOptions) -> Result<()> {
        if !self.is_set() {
            return Ok(());
        }
        let before = open.db.clone();
        let (mut told, mut warnings) = (Vec::new(), Vec::new());
        for (name, family) in &mut open.families {
            let applied = self.over(path, &before, name, family)?;
            if told.is_empty() {
                told.push(self.says(&applied, "DBOptions", differing(&applied.db, &before, false)));
            }
            let title = format!("CFOptions \"{name}\"");
            told.push(self.says(&applied, &title, differing(&applied.family, family, false)));
            if applied.family.table.block_cache != family.table.block_cache {
                open.block_cache = None;
            }
            open.block_cache = applied.cache.map(|cache| cache.get()).or(open.block_cache.take());
            (open.db, *family) = (applied.db, applied.family);
            warnings
                .extend(applied.warnings.into_iter().filter(|warning| !warnings.contains(warning)).collect::<Vec<_>>());
        }
        if open.db.rate_limiter_bytes_per_sec != before.rate_limiter_bytes_per_sec {
            open.rate_limiter = None;
        }
        if open.db.db_write_buffer_size != before.db_write_buffer_size {
            open.write_buffer_manager = None;
        }
        open.remarks.append(&mut told);
        open.remark_on(&warnings);
        Ok(())
    }

    /// Puts its options over those of a family to be made in the open database in `path`. Returns what changes, in words.
    ///
    /// # Errors
    /// As of [`apply`](Self::apply).
    pub fn apply_to_family(&self, path: &Path, name: &str, family: &mut FamilyOptions) -> Result<Option<String>> {
        if !self.is_set() {
            return Ok(None);
        }
        let applied = self.over(path, &DbOptions::default(), name, family)?;
        let told = self.says(&applied, &format!("CFOptions \"{name}\""), differing(&applied.family, family, false));
        *family = applied.family;
        Ok(Some(told))
    }

    fn over(&self, path: &Path, db: &DbOptions, name: &str, family: &FamilyOptions) -> Result<Applied> {
        let (db, family) = (db.clone(), family.clone());
        let mut applied = Applied { db, family, cache: None, section: None, warnings: Vec::new() };
        if let Some(document) = &self.document {
            document.apply(path, name, &mut applied).map_err(|error| {
                error.at_path(&document.path).advise(format!("correct the document, or unset {CONFIG}"))
            })?;
        }
        if let Some(text) = &self.options {
            let told = text.clone().and_then(|text| apply_both(&mut applied.db, &mut applied.family, &text));
            let told = told.map_err(|error| error.context(OPTIONS).advise("correct the variable, or unset it"))?;
            applied.warnings.extend(told.into_iter().map(|warning| format!("{OPTIONS}: {warning}")));
        }
        Ok(applied)
    }

    /// A line about options of `title`, of which `changed` are other ones than before.
    fn says(&self, applied: &Applied, title: &str, changed: Vec<String>) -> String {
        let document = self.document.as_ref().map(|document| {
            let path = document.path.display();
            match &applied.section {
                Some(section) => format!("{CONFIG}={path}, database `{section}`"),
                None => format!("{CONFIG}={path}, which has no section for this database"),
            }
        });
        let options = self.options.as_ref().map(|_| OPTIONS.to_owned());
        let sources: Vec<String> = document.into_iter().chain(options).collect();
        let changed = if changed.is_empty() { "nothing".to_owned() } else { changed.join(";") };
        format!("{} changed of {title}: {changed}", sources.join(" and "))
    }
}

impl Named {
    fn read(path: PathBuf) -> Named {
        let root = Named::root(&path).map_err(|error| error.context(format!("the document named by {CONFIG}")));
        Named { path, root, caches: Mutex::default() }
    }

    fn root(path: &Path) -> Result<Node> {
        let bytes = vfs::read_all(&*RealVfs::new(), path, DOCUMENT_BYTES_MAX as u64, IoClass::Other)?;
        let text = String::from_utf8(bytes).map_err(|_| Error::invalid_argument("the file is not UTF-8 text"))?;
        Node::read(&text, Syntax::of_file(path).unwrap_or(Syntax::Yaml))
    }

    fn apply(&self, path: &Path, family: &str, applied: &mut Applied) -> Result<()> {
        let root = self.root.as_ref().map_err(Error::clone)?;
        let start = Start { db: applied.db.clone(), family: applied.family.clone() };
        let config = Config::of_node(root, &start, &mut self.caches.lock())?;
        let Some(section) = section_for(config.databases(), path) else { return Ok(()) };
        let named = section.families.iter().find(|(name, _)| name == family).map(|(_, options)| options);
        applied.db = section.db.clone();
        applied.family = named.or(section.other_families.as_ref()).cloned().unwrap_or(start.family);
        applied.cache = section.cache.clone();
        applied.section = Some(section.name.clone());
        applied.warnings = section.warnings.clone();
        Ok(())
    }
}

/// The section for the database in `path`: the one with this path; else one without a path that is called like the last
/// part of it; else the one called `*`.
fn section_for<'a>(databases: &'a [ConfiguredDb], path: &Path) -> Option<&'a ConfiguredDb> {
    // Without a base directory paths are compared as they are written.
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let at_path = whole(path);
    let last = at_path.file_name().and_then(|name| name.to_str());
    let by_path = databases.iter().find(|database| database.has_path && whole(&database.path) == at_path);
    let nameless = || databases.iter().filter(|database| !database.has_path);
    let by_name = || nameless().find(|database| Some(database.name.as_str()) == last);
    by_path.or_else(by_name).or_else(|| nameless().find(|database| database.name == ANY))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vfs::IfExists;

    use super::*;

    const DOCUMENT: &str = "
Cache: { shared: { class: LRUCache, params: { capacity: 8M } } }
TableFactory: { bb: { class: BlockBasedTable, params: { block_cache: shared } } }
CFOptions:
  small: { write_buffer_size: 1M, memtable_factory: trie, table_factory: bb }
  more: { num_levels: 4 }
DBOptions: { few: { max_open_files: 100 } }
databases:
  by_path: { params: { path: /data/users, db_options: few, cf_options: small, dyna_cf_opt: more } }
  store: { params: { column_families: { default: more } } }
  '*': { params: { cf_options: small } }
";

    fn environment(dir: &Path, document: &str, options: Option<&str>) -> Environment {
        let path = dir.join("app.yaml");
        let mut file = RealVfs::new().create(&path, IfExists::Truncate).expect("created");
        file.append(document.as_bytes(), IoClass::Other).expect("written");
        Environment::of(Some(path.into()), options.map(OsString::from))
    }

    fn given(families: &[&str]) -> OpenOptions {
        let family = FamilyOptions { write_buffer_size: 32 << 20, ..FamilyOptions::default() };
        families.iter().fold(OpenOptions::default(), |open, name| open.family(*name, family.clone()))
    }

    #[test]
    fn section_is_found_by_path_then_by_name_then_for_all() {
        let dir = tempfile::tempdir().expect("made");
        let environment = environment(dir.path(), DOCUMENT, None);
        for (path, section, buffer, levels) in [
            ("/data/users", "by_path", 1, 7),
            ("/data/./users/", "by_path", 1, 7),
            ("/elsewhere/users", "*", 1, 7),
            ("/data/store", "store", 32, 4),
            ("/by_path", "*", 1, 7),
        ] {
            let mut open = given(&["default"]);
            environment.apply(Path::new(path), &mut open).expect(path);
            let (_, family) = &open.families[0];
            assert_eq!((family.write_buffer_size >> 20, family.num_levels), (buffer, levels), "{path}");
            assert!(
                open.remarks[0].contains(&format!("database `{section}` changed of DBOptions: ")),
                "{:?}",
                open.remarks
            );
        }
    }

    #[test]
    fn families_take_their_own_set_or_that_of_others_or_stay() {
        let dir = tempfile::tempdir().expect("made");
        let environment = environment(dir.path(), DOCUMENT, None);
        let mut open = given(&["default", "other"]);
        environment.apply(Path::new("/data/users"), &mut open).expect("applied");
        let levels: Vec<_> = open.families.iter().map(|(_, family)| family.num_levels).collect();
        assert_eq!((open.db.max_open_files, levels), (100, vec![7, 4]));
        assert!(open.block_cache.as_ref().is_some_and(|cache| cache.capacity() == 8 << 20));
        let told = open.remarks.join("\n");
        assert!(told.contains("changed of DBOptions: max_open_files=100\n"), "{told}");
        assert!(told.contains("changed of CFOptions \"other\": num_levels=4"), "{told}");

        let mut second = given(&["default", "other"]);
        environment.apply(Path::new("/data/store"), &mut second).expect("applied");
        assert_eq!(second.families[1].1.num_levels, 7, "no set is for this family");
        let mut third = given(&["default"]);
        environment.apply(Path::new("/x"), &mut third).expect("applied");
        assert!(Arc::ptr_eq(&third.block_cache.expect("one"), &open.block_cache.expect("one")), "shared by its name");

        let mut new = FamilyOptions::default();
        let told = environment.apply_to_family(Path::new("/data/users"), "new", &mut new).expect("applied");
        assert_eq!((new.num_levels, told.is_some_and(|told| told.ends_with("num_levels=4"))), (4, true));
    }

    #[test]
    fn option_string_goes_over_the_document_and_to_every_family() {
        let dir = tempfile::tempdir().expect("made");
        let environment = environment(dir.path(), DOCUMENT, Some("write_buffer_size=2M;max_open_files=7"));
        let mut open = given(&["default", "other"]);
        environment.apply(Path::new("/data/users"), &mut open).expect("applied");
        assert_eq!(open.db.max_open_files, 7);
        assert!(open.families.iter().all(|(_, family)| family.write_buffer_size == 2 << 20));
        assert!(open.remarks[0].contains(" and SPILLWAY_OPTIONS changed of DBOptions: "), "{:?}", open.remarks);
    }

    #[test]
    fn mistake_fails_each_open_and_names_file_place_and_remedy() {
        let dir = tempfile::tempdir().expect("made");
        let error_of = |environment: &Environment| {
            let mut errors =
                (0..2).map(|_| environment.apply(Path::new("/x"), &mut given(&["default"])).expect_err("bad"));
            let (first, second) = (errors.next().expect("two"), errors.next().expect("two"));
            assert_eq!(first.to_string(), second.to_string());
            first.to_string()
        };
        let slip = error_of(&environment(dir.path(), &DOCUMENT.replace("num_levels", "num_level"), None));
        for part in [
            "app.yaml",
            "line 6, column 11: CFOptions.more.num_level",
            "did you mean `num_levels`?",
            "unset SPILLWAY_CONFIG",
        ] {
            assert!(slip.contains(part), "{slip}");
        }
        assert!(error_of(&environment(dir.path(), "a: [", None)).contains("app.yaml"));
        let absent = error_of(&Environment::of(Some(dir.path().join("absent.yaml").into()), None));
        assert!(absent.contains("absent.yaml") && absent.contains("SPILLWAY_CONFIG"), "{absent}");
        let options = error_of(&Environment::of(None, Some("num_level=3".into())));
        assert!(options.contains("SPILLWAY_OPTIONS") && options.contains("did you mean `num_levels`?"), "{options}");
    }

    #[test]
    fn unset_variables_change_nothing() {
        for (config, options) in [(None, None), (Some(OsString::new()), Some(OsString::new()))] {
            let mut open = given(&["default"]);
            Environment::of(config, options).apply(Path::new("/x"), &mut open).expect("nothing to do");
            assert_eq!((open.remarks.len(), open.families[0].1.write_buffer_size), (0, 32 << 20));
        }
    }
}
