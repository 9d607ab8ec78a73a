//! The databases of a configuration: paths, open methods, and options.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use base::options::document::check_names;
use base::options::tree::Node;
use base::options::{DbOptions, FamilyOptions, string};
use base::{Error, Result};
use table::BlockCache;
use vfs::Vfs;

use crate::config::groups::{FamilySet, ignores_unsupported, is_db_option};
use crate::config::objects::CacheUse;
use crate::config::sections::{DATABASES, DB_OPTIONS, Document, FAMILY_OPTIONS};
use crate::config::without_repetitions;
use crate::core::open_options::{DEFAULT_FAMILY, OpenOptions, OtherFamilies};
use crate::core::settled::settle;
use crate::database::handle::Database;

/// Limit on families of one database.
const FAMILIES_MAX: usize = 1 << 16;

const KEYS: [&str; 2] = ["method", "params"];

const PARAMS: [&str; 7] =
    ["path", "db_options", "cf_options", "options", "column_families", "dyna_cf_opt", "error_if_log_file_exist"];

/// ToplingDB's open methods not supported here.
const METHODS_UNSUPPORTED: &[(&str, &str)] = &[
    ("BlobDB::Open", "there are no blob files"),
    ("DB::OpenAsSecondary", "not from a document; DB::OpenForReadOnly shows the database as it was when opened"),
    ("DBWithTTL::Open", "entries have no time to live"),
    ("OptimisticTransactionDB::Open", "there are no transactions"),
    ("TransactionDB::Open", "there are no transactions"),
];

/// A block cache, made when the first database using it is opened.
#[derive(Clone)]
pub(super) struct SharedCache {
    used: CacheUse,
    cache: Arc<OnceLock<Arc<BlockCache>>>,
}

impl SharedCache {
    pub(super) fn get(&self) -> Arc<BlockCache> {
        let make = || {
            let cache = BlockCache::new(self.used.bytes);
            cache.set_strict(self.used.is_strict);
            cache.set_high_priority_ratio(self.used.high_priority_ratio);
            Arc::new(cache)
        };
        self.cache.get_or_init(make).clone()
    }
}

/// A database of a configuration.
#[derive(Clone)]
pub struct ConfiguredDb {
    /// The name in the document.
    pub name: String,
    /// As written: relative to the process's directory. Defaults to the name.
    pub path: PathBuf,
    /// True if the path is written down.
    pub(super) has_path: bool,
    /// Opened for reading only.
    pub read_only: bool,
    /// Options of the database.
    pub db: DbOptions,
    /// By name, in the document's order.
    pub families: Vec<(String, FamilyOptions)>,
    /// For existing families not named here.
    pub other_families: Option<FamilyOptions>,
    pub(super) cache: Option<SharedCache>,
    /// Parts of the document without effect here.
    pub(super) warnings: Vec<String>,
}

impl ConfiguredDb {
    /// The options to open it. Databases of one configuration share a cache by its name.
    pub fn open_options(&self, vfs: Arc<dyn Vfs>) -> OpenOptions {
        let mut options = OpenOptions {
            db: self.db.clone(),
            families: self.families.clone(),
            other_families: match &self.other_families {
                Some(options) => OtherFamilies::OpenWith(Box::new(options.clone())),
                None => OtherFamilies::Refuse,
            },
            read_only: self.read_only,
            vfs,
            block_cache: self.cache.as_ref().map(SharedCache::get),
            ..OpenOptions::default()
        };
        options.remark_on(&self.warnings);
        options
    }

    /// Derives what the document does not set, and returns remarks on options without effect beside others. An open
    /// does and says the same.
    pub(super) fn settle(&mut self) -> Result<Vec<String>> {
        let named = self.families.iter_mut().map(|(name, options)| (format!("\"{name}\""), options));
        let others = self.other_families.iter_mut().map(|options| ("not named".to_owned(), options));
        let mut told = Vec::new();
        for (family, options) in named.chain(others) {
            let mut settled = options.clone();
            let remarks =
                settle(&self.db, &mut settled).map_err(|error| error.context(format!("column family {family}")))?;
            options.max_bytes_for_level_base = settled.max_bytes_for_level_base;
            told.extend(
                remarks.iter().map(|remark| format!("database {}, column family {family}: {remark}", self.name)),
            );
        }
        Ok(told)
    }

    /// Opens it in the real file system.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open(&self) -> Result<Database> {
        Database::open(&self.path, &self.open_options(vfs::RealVfs::new()))
    }
}

impl<'a> Document<'a> {
    /// Every database of the document.
    pub(super) fn databases(&mut self, caches: &mut Vec<SharedCache>) -> Result<Vec<ConfiguredDb>> {
        let mut databases = Vec::new();
        for node in self.named(DATABASES)? {
            let before = self.warnings.len();
            let database = self.database(node, caches)?;
            let own = self.warnings.get(before..).unwrap_or_default().to_vec();
            databases.push(ConfiguredDb { warnings: without_repetitions(own), ..database });
        }
        Ok(databases)
    }

    fn database(&mut self, node: &'a Node, caches: &mut Vec<SharedCache>) -> Result<ConfiguredDb> {
        for member in node.members("`method` and `params`")? {
            if !KEYS.contains(&member.name()) {
                return Err(member.unknown("there is no key", KEYS.into_iter()));
            }
        }
        let read_only = read_only(node)?;
        let params = Params::new(node, &mut self.warnings)?;
        let mut draft = self.draft(&params)?;
        let mut families = std::mem::take(&mut draft.families);
        let cache = one_cache(node, families.iter().map(|(_, set)| set).chain(&draft.others), caches)?;
        Ok(ConfiguredDb {
            name: node.name().to_owned(),
            path: params.path.map_or(Ok(node.name().to_owned()), Node::text)?.into(),
            has_path: params.path.is_some(),
            read_only,
            db: draft.db,
            families: families.drain(..).map(|(name, set)| (name, set.options)).collect(),
            other_families: draft.others.map(|set| set.options),
            cache,
            warnings: Vec::new(),
        })
    }

    fn draft(&mut self, params: &Params<'a>) -> Result<Draft> {
        let mut db = match params.db_options {
            Some(value) => self.db(self.require(DB_OPTIONS, value)?)?,
            None => self.start.db.clone(),
        };
        let mut default = match params.cf_options {
            Some(value) => Some(self.family(self.require(FAMILY_OPTIONS, value)?)?),
            None => None,
        };
        if let Some(options) = params.options {
            let family = default.get_or_insert_with(|| self.new_family());
            let ignores = ignores_unsupported(options)?;
            check_names(&mut family.options, options.members("options of the database and its family")?)?;
            db.ignore_unsupported_options |= ignores;
            family.ignore_unsupported |= ignores;
            for member in options.members("options of the database and its family")? {
                match is_db_option(member.name()) {
                    true => self.apply_to_db(&mut db, member)?,
                    false => self.apply_to_family(family, member)?,
                }
            }
            db.validate().map_err(|error| options.locate(error))?;
            family.options.validate().map_err(|error| options.locate(error))?;
        }
        let families = self.families(params, default)?;
        let others = match params.dyna_cf_opt {
            Some(value) => Some(self.family(self.require(FAMILY_OPTIONS, value)?)?),
            None => None,
        };
        Ok(Draft { db, families, others })
    }

    /// The named families; the default one first if only `cf_options` or `options` describes it.
    fn families(&mut self, params: &Params<'a>, default: Option<FamilySet>) -> Result<Vec<(String, FamilySet)>> {
        let named = params.column_families.map_or(Ok(&[][..]), |node| node.members("options by family"))?;
        if named.len() > FAMILIES_MAX {
            let what = format!("{} families; {FAMILIES_MAX} at most", named.len());
            return Err(Error::invalid_argument(what));
        }
        let mut families = Vec::new();
        for value in named {
            let set = self.family(self.require(FAMILY_OPTIONS, value)?)?;
            families.push((value.name().to_owned(), set));
        }
        let given = families.iter().find(|(name, _)| name == DEFAULT_FAMILY);
        match (default, given) {
            (Some(default), None) => families.insert(0, (DEFAULT_FAMILY.to_owned(), default)),
            (Some(default), Some((_, given))) if string::print(&default.options) != string::print(&given.options) => {
                let value =
                    params.cf_options.or(params.options).expect("one of them gave the default family's options");
                return Err(value.error("column_families describes the family `default` too, and otherwise"));
            }
            _ => {}
        }
        Ok(families)
    }
}

/// A database's options before they are put together.
struct Draft {
    db: DbOptions,
    families: Vec<(String, FamilySet)>,
    others: Option<FamilySet>,
}

/// The contents of `params`.
#[derive(Default)]
struct Params<'a> {
    path: Option<&'a Node>,
    db_options: Option<&'a Node>,
    cf_options: Option<&'a Node>,
    options: Option<&'a Node>,
    column_families: Option<&'a Node>,
    dyna_cf_opt: Option<&'a Node>,
}

impl<'a> Params<'a> {
    fn new(database: &'a Node, warnings: &mut Vec<String>) -> Result<Params<'a>> {
        let mut params = Params::default();
        let Some(node) = database.member("params") else { return Ok(params) };
        for member in node.members("parameters")? {
            match member.name() {
                "path" => params.path = Some(member),
                "db_options" => params.db_options = Some(member),
                "cf_options" => params.cf_options = Some(member),
                "options" => params.options = Some(member),
                "column_families" => params.column_families = Some(member),
                "dyna_cf_opt" => params.dyna_cf_opt = Some(member),
                "error_if_log_file_exist" if member.text()? == "false" => {}
                "error_if_log_file_exist" => warnings.push(member.remark("this has no effect here: logs are replayed")),
                _ => return Err(member.unknown("there is no parameter", PARAMS.into_iter())),
            }
        }
        Ok(params)
    }
}

fn read_only(database: &Node) -> Result<bool> {
    let Some(method) = database.member("method") else { return Ok(false) };
    let name = method.text()?;
    if let Some((_, reason)) = METHODS_UNSUPPORTED.iter().find(|(unsupported, _)| *unsupported == name) {
        return Err(method.locate(Error::unsupported(format!("method `{name}`: {reason}"))));
    }
    match name.as_str() {
        "DB::Open" | "DB::OpenMultiCF" => Ok(false),
        "DB::OpenForReadOnly" => Ok(true),
        _ => Err(method.error(format!("there is no method `{name}`; there are: DB::Open, DB::OpenForReadOnly"))),
    }
}

/// The cache named by the families: one per database.
fn one_cache<'a>(
    database: &Node,
    families: impl Iterator<Item = &'a FamilySet>,
    caches: &mut Vec<SharedCache>,
) -> Result<Option<SharedCache>> {
    let mut uses = families.filter_map(|set| set.cache.as_ref());
    let Some(first) = uses.next() else { return Ok(None) };
    if let Some(other) = uses.find(|other| *other != first) {
        return Err(database.error(format!(
            "a database has one block cache here; its families name `{}` and `{}`",
            first.name, other.name
        )));
    }
    if let Some(shared) = caches.iter().find(|shared| shared.used == *first) {
        return Ok(Some(shared.clone()));
    }
    let shared = SharedCache { used: first.clone(), cache: Arc::default() };
    caches.push(shared.clone());
    Ok(Some(shared))
}
