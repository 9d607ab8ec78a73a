//! `RocksDB`: an open database.

pub mod batches;
pub mod children;
pub mod exists;
pub mod families;
pub mod family_handles;
pub mod manage;
pub mod open;
pub mod properties;
pub mod read;
pub mod read_many;
pub mod snapshots;
pub mod write;

use std::ops::Deref;
use std::sync::Arc;

use capi::database::Database;
use capi::family::FamilyHandle;
use spillway::internal::Family;

use self::children::Children;

/// An open database.
pub struct Db {
    pub database: Arc<Database>,
    children: Children,
}

impl Db {
    pub fn new(database: Box<Database>) -> Box<Db> {
        Box::new(Db { database: Arc::from(database), children: Children::default() })
    }

    pub fn children(&self) -> &Children {
        &self.children
    }

    /// The family of an optional handle: the default one without.
    pub fn family<'a>(&'a self, family: Option<&'a FamilyHandle>) -> &'a Arc<Family> {
        family.map_or_else(|| self.default_family(), |family| &family.0)
    }
}

impl Deref for Db {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}
