//! `TtlDB`: values expire.

use spillway::internal::name;
use std::path::Path;

use capi::database::Database;
use capi::database::open::Mode;
use capi::family::FamilyHandle;
use capi::options::Options;

use super::Db;
use super::families::handles_of;
use super::open::{named, open_alone};
use crate::boundary::argument::{Closed, Handles, Whole};
use crate::boundary::natives;
use crate::callbacks::listener::opening::Opening;
use crate::fault::Fault;

/// The mode of an open with times to live in seconds.
fn mode(ttls_s: &[i32], is_read_only: bool) -> Mode<'_> {
    if is_read_only { Mode::ReadStamped(ttls_s) } else { Mode::WriteStamped(ttls_s) }
}

natives! { "TtlDB";
    "open" => fn(_env, options: &Options, path: String, ttl_s: i32, is_read_only: bool) -> i64 {
        open_alone(options, &path, mode(&[ttl_s], is_read_only))
    }

    "openCF" => fn(
        _env,
        options: &Options,
        path: String,
        names: Vec<Vec<u8>>,
        family_options: Handles,
        ttls_s: Vec<i32>,
        is_read_only: bool,
    ) -> Vec<i64> {
        if ttls_s.len() != names.len() {
            return Err(Fault::illegal(format!("{} names of families, and {} times to live", names.len(), ttls_s.len())));
        }
        let families = named(names, &family_options.get::<Options>()?)?;
        let mode = mode(&ttls_s, is_read_only);
        let opening = Opening::new(options, &path);
        let (database, families) = Database::open_named(&opening.options, Path::new(&path), &families, mode)?;
        Ok(handles_of(opening.done(Db::new(database)), families))
    }

    "createColumnFamilyWithTtl" =>
    fn(_env, database: &Db, name: Whole, options: &Options, ttl_s: i32) -> Box<FamilyHandle> {
        Ok(database.create_named(options, &name::text(&name), ttl_s)?)
    }

    "closeDatabase" => fn(_env, database: &Db) -> () {
        database.close()
    }

    "disposeInternal" | "disposeInternalJni" => fn(_env, database: Closed<Db>) -> () {
        Db::dispose(database);
        Ok(())
    }
}
