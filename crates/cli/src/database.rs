//! Naming and opening the database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spillway::config::{Config, ConfiguredDb, Start};
use spillway::version::recover;
use spillway::vfs::{RealVfs, Vfs};
use spillway::{DEFAULT_FAMILY, Db, Family, OpenOptions, OtherFamilies};

use crate::failure::{Failure, Outcome};
use crate::settings::Settings;

/// Names the database's directory where the command line does not.
const DIR_VARIABLE: &str = "SPILLWAY_DB";

/// Which database.
#[derive(clap::Args, Debug)]
pub struct DatabaseArgs {
    /// The database's directory. The environment's SPILLWAY_DB where neither this nor --config is given.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    db: Option<PathBuf>,
    /// A configuration in JSON or YAML that says where the database is and what its options are; after # the name of one
    /// of its databases. `spillway options check` shows what it says.
    #[arg(long, value_name = "FILE[#NAME]")]
    config: Option<String>,
    /// Which of the configuration's databases, if not the one that it opens by itself.
    #[arg(long, value_name = "NAME", requires = "config")]
    database: Option<String>,
    /// Options over those stored with the database: an OPTIONS, .json or .yaml file, or a string such as
    /// "write_buffer_size=64M;compression=kZSTD". `spillway options` lists them.
    #[arg(long, value_name = "FILE|STRING", conflicts_with = "config")]
    pub options: Option<String>,
}

/// Which family of it.
#[derive(clap::Args, Debug)]
pub struct FamilyArgs {
    /// The column family.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_FAMILY)]
    pub family: String,
}

/// For commands that write.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct AdoptArgs {
    /// Takes over a directory that RocksDB wrote. RocksDB refuses it from then on; `export` leads back.
    #[arg(long)]
    pub adopt: bool,
}

/// What the database is opened for.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Nothing is written and no lock is taken: another process may have the database open.
    Read,
    Write {
        adopt: bool,
        create: bool,
    },
}

/// Where the database is, and what a configuration says of it.
pub struct Located {
    pub dir: PathBuf,
    configured: Option<ConfiguredDb>,
}

impl DatabaseArgs {
    /// # Errors
    /// No directory is named, or the configuration is not good.
    pub fn locate(&self) -> Outcome<Located> {
        if let Some(config) = &self.config {
            let (path, name) = split_config(config);
            let configured = read_config(path)?.database(self.database.as_deref().or(name)).cloned();
            let configured = configured.map_err(|error| error.at_path(path))?;
            return Ok(Located { dir: configured.path.clone(), configured: Some(configured) });
        }
        let dir = self.db.clone().or_else(|| std::env::var_os(DIR_VARIABLE).map(PathBuf::from));
        let dir = dir.filter(|dir| !dir.as_os_str().is_empty()).ok_or_else(|| {
            Failure::refused(format!("which database? Say --db DIR or --config FILE, or set {DIR_VARIABLE}"))
        })?;
        Ok(Located { dir, configured: None })
    }

    pub fn open(&self, access: Access) -> Outcome<Db> {
        let Located { dir, configured } = self.locate()?;
        let vfs: Arc<dyn Vfs> = RealVfs::new();
        let exists = vfs.exists(&dir.join("CURRENT"))?;
        let writes = matches!(access, Access::Write { .. });
        let by_document = writes && configured.as_ref().is_some_and(|configured| configured.db.create_if_missing);
        let create = by_document || matches!(access, Access::Write { create: true, .. });
        if !exists && !create {
            let dir = dir.display();
            return Err(Failure::refused(format!(
                "there is no database in {dir}; `load` makes one, and so do `put` and `ingest` with --create"
            )));
        }
        if exists {
            refuse_rocksdbs(&*vfs, &dir, access)?;
        }
        let stored = Settings::load(&vfs, &dir, self.options.as_deref())?;
        let there = if exists { Db::list_families(&dir, &vfs)? } else { vec![DEFAULT_FAMILY.to_owned()] };
        let mut options = match configured {
            Some(configured) => configured_options(&configured, stored, &there, access, vfs)?,
            None => stored_options(stored, &there, vfs),
        };
        (options.db.create_if_missing, options.db.error_if_exists) = (create, false);
        options.read_only = !writes;
        options.adopt_rocksdb = matches!(access, Access::Write { adopt: true, .. });
        Ok(Db::open(&dir, &options)?)
    }
}

/// A configuration, its warnings told.
pub fn read_config(path: &Path) -> Outcome<Config> {
    let config = Config::from_file(&*RealVfs::new(), path, &Start::default())?;
    for warning in config.warnings() {
        eprintln!("warning: {}: {warning}", path.display());
    }
    Ok(config)
}

/// `FILE#NAME`, or `FILE`.
pub fn split_config(text: &str) -> (&Path, Option<&str>) {
    match text.rsplit_once('#') {
        Some((path, name)) if !name.is_empty() && !name.contains('/') => (Path::new(path), Some(name)),
        _ => (Path::new(text), None),
    }
}

fn stored_options(settings: Settings, there: &[String], vfs: Arc<dyn Vfs>) -> OpenOptions {
    let Settings { db, mut families, others } = settings;
    families.retain(|(name, _)| there.contains(name));
    if !families.iter().any(|(name, _)| name == DEFAULT_FAMILY) {
        families.push((DEFAULT_FAMILY.to_owned(), others.clone()));
    }
    let other_families = OtherFamilies::OpenWith(Box::new(others));
    OpenOptions { db, families, other_families, vfs, ..OpenOptions::default() }
}

/// The document's word counts. Families that it does not speak of have the options that are stored.
fn configured_options(
    configured: &ConfiguredDb,
    stored: Settings,
    there: &[String],
    access: Access,
    vfs: Arc<dyn Vfs>,
) -> Outcome<OpenOptions> {
    let writes = matches!(access, Access::Write { .. });
    if writes && configured.read_only {
        let name = &configured.name;
        let what =
            format!("the configuration has {name} opened for reading only (DB::OpenForReadOnly), and this writes");
        return Err(Failure::refused(what));
    }
    let mut options = configured.open_options(vfs.clone());
    if !writes {
        options.families.retain(|(name, _)| there.contains(name));
    }
    if matches!(options.other_families, OtherFamilies::Refuse) {
        let stored = stored_options(stored, there, vfs);
        let unnamed: Vec<_> =
            stored.families.into_iter().filter(|(name, _)| options.families.iter().all(|(n, _)| n != name)).collect();
        options.families.extend(unnamed);
        options.other_families = stored.other_families;
    }
    Ok(options)
}

fn refuse_rocksdbs(vfs: &dyn Vfs, dir: &Path, access: Access) -> Outcome {
    let Access::Write { adopt: false, .. } = access else { return Ok(()) };
    if recover::recover(vfs, dir)?.fenced {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "{} is RocksDB's, and writing to it takes it over: RocksDB refuses it from then on (`spillway export` leads \
         back). Say --adopt if that is wanted; get, scan, stats and check work without",
        dir.display()
    )))
}

impl FamilyArgs {
    pub fn of(&self, db: &Db) -> Outcome<Arc<Family>> {
        db.family(&self.family).ok_or_else(|| {
            let families = db.families();
            let names: Vec<_> = families.iter().map(|family| family.name()).collect();
            let (wanted, there) = (&self.family, names.join(", "));
            Failure::refused(format!("there is no column family \"{wanted}\"; there are: {there}"))
        })
    }
}
