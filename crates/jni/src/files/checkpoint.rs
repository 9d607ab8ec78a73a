//! `Checkpoint` and `ExportImportFilesMetaData`.

use spillway::internal::name;
use std::path::Path;

use capi::checkpoint::Checkpoint;
use capi::family::FamilyHandle;
use capi::metadata::exported::Exported;

use crate::boundary::argument::Closed;
use crate::boundary::natives;
use crate::database::Db;

natives! { "Checkpoint";
    "newCheckpoint" => fn(_env, database: &Db) -> Box<Checkpoint> {
        Ok(Checkpoint::of(database))
    }

    /// Flushes, as RocksDB's does by default.
    "createCheckpoint" => fn(_env, checkpoint: &Checkpoint, dir: String) -> () {
        Ok(checkpoint.create(Path::new(&dir), 0)?)
    }

    /// Flushes the family, and links its tables into a new directory.
    "exportColumnFamily" =>
    fn(_env, checkpoint: &Checkpoint, family: &FamilyHandle, dir: String) -> Box<Exported> {
        Ok(Exported::of(checkpoint, family, Path::new(&dir))?)
    }

    "disposeInternal" | "disposeInternalJni" => fn(_env, checkpoint: Closed<Checkpoint>) -> () {
        drop(checkpoint.0);
        Ok(())
    }
}

pub mod exported {
    use super::*;

    natives! { "ExportImportFilesMetaData";
        "disposeInternal" => fn(_env, exported: Closed<Exported>) -> () {
            drop(exported.0);
            Ok(())
        }
    }
}

pub mod import {
    use capi::metadata::exported::ImportSettings;
    use capi::options::Options;

    use super::*;
    use crate::boundary::argument::{Handles, Head};

    natives! { "RocksDB";
        "createColumnFamilyWithImport" => fn(
            _env,
            database: &Db,
            name[len]: Head,
            options: &Options,
            settings: &ImportSettings,
            exports: Handles,
        ) -> Box<FamilyHandle> {
            Ok(database.import(options, &name::text(&name), settings, &exports.get::<Exported>()?)?)
        }
    }
}
