//! Column families.

use spillway::internal::name;
use std::ffi::{CStr, c_char, c_int};

use spillway::internal::config::Environment;
use spillway::internal::ttl::MergeName;
use spillway::internal::{ErrorKind, FamilyOptions};

use super::Database;
use crate::boundary::argument::Out;
use crate::boundary::array::{Array, IntCount};
use crate::boundary::reply::{Freed, Given};
use crate::boundary::{export, fallible};
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::options::Options;
use crate::text::text;

/// No expiry.
pub const NO_TTL: c_int = 0;

impl Database {
    /// If values have stamps, the family's expire after `ttl_s` seconds; 0 or less for never.
    pub fn create_family(&self, options: &Options, name: &CStr, ttl_s: c_int) -> Result<Box<FamilyHandle>, Failure> {
        self.create_named(options, &text(name), ttl_s)
    }

    pub fn create_named(&self, options: &Options, name: &str, ttl_s: c_int) -> Result<Box<FamilyHandle>, Failure> {
        let created = self.db.create_family(name, self.options_of_new(options, name, ttl_s)?);
        Ok(Box::new(FamilyHandle(created.map_err(|error| self.refused(error))?)))
    }

    /// The options of a new family, as in [`create_family`](Self::create_family).
    pub fn options_of_new(&self, options: &Options, name: &str, ttl_s: c_int) -> Result<FamilyOptions, Failure> {
        options.check(self.db.path())?;
        let mut options = options.within_bounds();
        let told = Environment::of_process().apply_to_family(self.db.path(), name, &mut options)?;
        told.iter().for_each(|remark| self.db.log_remark(remark));
        if let Some(stamps) = self.stamps() {
            check_stamped(name, &options)?;
            stamps.wrap(&mut options, ttl_s, MergeName::RocksDb);
        } else {
            check_unstamped(name, &options)?;
        }
        Ok(options)
    }

    pub fn drop_family(&self, family: &FamilyHandle) -> Result<(), Failure> {
        self.db.drop_family(&family.0).map_err(|error| match error.kind() {
            ErrorKind::Closed if family.0.is_dropped() => Failure::invalid_argument("Column family already dropped!\n"),
            _ => self.refused(error),
        })
    }
}

/// An open with a time to live stamps what it writes, whatever the options say.
pub fn check_stamped(family: &str, options: &FamilyOptions) -> Result<(), Failure> {
    if !options.value_times.is_denied() {
        return Ok(());
    }
    let what = "value_times=false: values that are written with a time to live end with times; leave the option out";
    Err(Failure::invalid_argument(format!("column family \"{family}\", {what}")))
}

/// Values written without stamps would be damaged ones to whoever removes stamps.
pub fn check_unstamped(family: &str, options: &FamilyOptions) -> Result<(), Failure> {
    if options.value_ttl_s == 0 {
        return Ok(());
    }
    let what = "value_ttl_s: its values carry times; open it by rocksdb_open_with_ttl, or for reading only";
    Err(Failure::invalid_argument(format!("column family \"{family}\", {what}")))
}

fallible! {
    fn rocksdb_create_column_family(database: &Database, options: &Options, name: &CStr) -> Box<FamilyHandle> {
        database.create_family(options, name, NO_TTL)
    }

    fn rocksdb_create_column_family_with_ttl(
        database: &Database,
        options: &Options,
        name: &CStr,
        ttl: c_int,
    ) -> Box<FamilyHandle> {
        if database.stamps().is_none() {
            return Err(Failure::invalid_argument("the database was not opened with a time to live"));
        }
        database.create_family(options, name, ttl)
    }

    /// After an error the families made before it stay, without handles.
    fn rocksdb_create_column_families(
        database: &Database,
        options: &Options,
        count: IntCount,
        names: Array<*const c_char>,
        len: Out<usize>,
    ) -> Given<*mut FamilyHandle> {
        let created = names.texts(count).map(|name| database.create_family(options, name, NO_TTL));
        let handles = created.collect::<Result<Vec<_>, Failure>>().inspect_err(|_| len.set(0))?;
        let handles: Vec<*mut FamilyHandle> = handles.into_iter().map(Box::into_raw).collect();
        len.set(handles.len());
        Ok(Given::pointers(&handles))
    }

    fn rocksdb_drop_column_family(database: &Database, family: &FamilyHandle) {
        database.drop_family(family)
    }
}

export! {
    /// Frees the list; its handles are the caller's.
    fn rocksdb_create_column_families_destroy(list: Freed) {
        drop(list);
    }

    fn rocksdb_column_family_handle_destroy(family: Option<Box<FamilyHandle>>) {
        drop(family);
    }

    fn rocksdb_get_default_column_family_handle(database: &Database) -> Box<FamilyHandle> {
        Box::new(FamilyHandle(database.default_family().clone()))
    }

    fn rocksdb_column_family_handle_get_id(family: &FamilyHandle) -> u32 {
        family.0.id().0
    }

    fn rocksdb_column_family_handle_get_name(family: &FamilyHandle, len: Out<usize>) -> Given<c_char> {
        let name = name::bytes(family.0.name());
        len.set(name.len());
        Given::bytes(&name)
    }
}
