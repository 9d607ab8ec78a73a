//! Naming and opening the database.

use std::path::PathBuf;
use std::sync::Arc;

use spillway::version::recover;
use spillway::vfs::{RealVfs, Vfs};
use spillway::{DEFAULT_FAMILY, Db, Family, OpenOptions, OtherFamilies};

use crate::failure::{Failure, Outcome};
use crate::settings::Settings;

/// Which database.
#[derive(clap::Args, Debug)]
pub struct DatabaseArgs {
    /// The database's directory.
    #[arg(long, env = "SPILLWAY_DB", value_name = "DIR")]
    pub db: PathBuf,
    /// Options over those stored with the database: an OPTIONS, .json or .yaml file, or a string such as
    /// "write_buffer_size=64M;compression=kZSTD". `spillway options` lists them.
    #[arg(long, value_name = "FILE|STRING")]
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

impl DatabaseArgs {
    pub fn open(&self, access: Access) -> Outcome<Db> {
        let vfs: Arc<dyn Vfs> = RealVfs::new();
        let exists = vfs.exists(&self.db.join("CURRENT"))?;
        let create = matches!(access, Access::Write { create: true, .. });
        if !exists && !create {
            let dir = self.db.display();
            return Err(Failure::refused(format!("there is no database in {dir}; `spillway load` makes one")));
        }
        let Settings { mut db, mut families, others } = Settings::load(&vfs, &self.db, self.options.as_deref())?;
        if exists {
            self.refuse_rocksdbs(&vfs, access)?;
            let stored = Db::list_families(&self.db, &vfs)?;
            families.retain(|(name, _)| stored.contains(name));
        } else {
            families.retain(|(name, _)| name == DEFAULT_FAMILY);
        }
        if !families.iter().any(|(name, _)| name == DEFAULT_FAMILY) {
            families.push((DEFAULT_FAMILY.to_owned(), others.clone()));
        }
        (db.create_if_missing, db.error_if_exists) = (create, false);
        let options = OpenOptions {
            db,
            families,
            other_families: OtherFamilies::OpenWith(Box::new(others)),
            read_only: matches!(access, Access::Read),
            adopt_rocksdb: matches!(access, Access::Write { adopt: true, .. }),
            vfs,
            block_cache: None,
        };
        Ok(Db::open(&self.db, &options)?)
    }

    fn refuse_rocksdbs(&self, vfs: &Arc<dyn Vfs>, access: Access) -> Outcome {
        let Access::Write { adopt: false, .. } = access else { return Ok(()) };
        if recover::recover(&**vfs, &self.db)?.fenced {
            return Ok(());
        }
        Err(Failure::refused(format!(
            "{} is RocksDB's, and writing to it takes it over: RocksDB refuses it from then on (`spillway export` leads \
             back). Say --adopt if that is wanted; get, scan, stats and check work without",
            self.db.display()
        )))
    }
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
