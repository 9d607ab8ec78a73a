//! Opening and closing.

use spillway::internal::name;
use std::path::Path;

use capi::database::Database;
use capi::database::open::Mode;
use capi::options::Options;
use spillway::internal::{Database as Engine, ErrorKind};

use super::Db;
use crate::boundary::argument::{Closed, Handles};
use crate::boundary::natives;
use crate::callbacks::listener::opening::Opening;
use crate::fault::Fault;

/// Names as Java passes them: bytes.
pub fn named<'a>(names: Vec<Vec<u8>>, options: &[&'a Options]) -> Result<Vec<(String, &'a Options)>, Fault> {
    if names.len() != options.len() {
        return Err(Fault::illegal(format!("{} names of families, and options of {}", names.len(), options.len())));
    }
    Ok(names.iter().zip(options).map(|(bytes, options)| (name::text(bytes).into_owned(), *options)).collect())
}

/// Opens the default family: the database's handle.
pub fn open_alone(options: &Options, path: &str, mode: Mode<'_>) -> Result<i64, Fault> {
    let opening = Opening::new(options, path);
    let database = Database::open_at(&opening.options, Path::new(path), mode)?;
    Ok(opening.done_alone(Db::new(database)))
}

/// Opens families: the database's handle, then the families', in their order.
fn open_families(
    options: &Options,
    path: &str,
    names: Vec<Vec<u8>>,
    family_options: &Handles,
    mode: Mode<'_>,
) -> Result<Vec<i64>, Fault> {
    let families = named(names, &family_options.get::<Options>()?)?;
    let opening = Opening::new(options, path);
    let (database, families) = Database::open_named(&opening.options, Path::new(path), &families, mode)?;
    Ok(super::families::handles_of(opening.done(Db::new(database)), families))
}

natives! { "RocksDB";
    "open__JLjava_lang_String_2" => fn(_env, options: &Options, path: String) -> i64 {
        open_alone(options, &path, Mode::Write)
    }

    "open__JLjava_lang_String_2_3_3B_3J" =>
    fn(_env, options: &Options, path: String, names: Vec<Vec<u8>>, family_options: Handles) -> Vec<i64> {
        open_families(options, &path, names, &family_options, Mode::Write)
    }

    "openROnly__JLjava_lang_String_2Z" =>
    fn(_env, options: &Options, path: String, _error_if_wal_file_exists: bool) -> i64 {
        open_alone(options, &path, Mode::ReadOnly)
    }

    "openROnly__JLjava_lang_String_2_3_3B_3JZ" => fn(
        _env,
        options: &Options,
        path: String,
        names: Vec<Vec<u8>>,
        family_options: Handles,
        _error_if_wal_file_exists: bool,
    ) -> Vec<i64> {
        open_families(options, &path, names, &family_options, Mode::ReadOnly)
    }

    "openAsSecondary__JLjava_lang_String_2Ljava_lang_String_2" =>
    fn(_env, options: &Options, path: String, own_dir: String) -> i64 {
        open_alone(options, &path, Mode::Secondary(Path::new(&own_dir)))
    }

    "openAsSecondary__JLjava_lang_String_2Ljava_lang_String_2_3_3B_3J" => fn(
        _env,
        options: &Options,
        path: String,
        own_dir: String,
        names: Vec<Vec<u8>>,
        family_options: Handles,
    ) -> Vec<i64> {
        open_families(options, &path, names, &family_options, Mode::Secondary(Path::new(&own_dir)))
    }

    "closeDatabase" => fn(_env, database: &Db) -> () {
        database.close()
    }

    "disposeInternal" | "disposeInternalJni" => fn(_env, database: Closed<Db>) -> () {
        Db::dispose(database);
        Ok(())
    }

    /// Empty where there is no database, as in RocksDB: Kafka Streams asks before the first open.
    "listColumnFamilies" => fn(_env, options: &Options, path: String) -> Vec<Vec<u8>> {
        match Engine::list_families(Path::new(&path), &options.vfs()) {
            Ok(names) => Ok(names.iter().map(|name| name::bytes(name).into_owned()).collect()),
            Err(error) if error.is_not_found() || error.kind() == ErrorKind::InvalidArgument => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    "destroyDB" => fn(_env, path: String, options: &Options) -> () {
        Ok(options.destroy(Path::new(&path))?)
    }

    /// A real version of RocksDB: clients print it, and some compare it.
    "version" => fn(_env) -> i32 {
        const MAJOR: i32 = 11;
        const MINOR: i32 = 8;
        const PATCH: i32 = 1;
        Ok(MAJOR << 16 | MINOR << 8 | PATCH)
    }
}
