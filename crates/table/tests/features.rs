//! A build without a Cargo feature refuses its tables with the feature's name. All assertions hold with any features;
//! the gate runs them without any: `cargo test -p spillway-db-table --no-default-features --test features`.
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

extern crate spillway_db_table as table;

use std::path::Path;
use std::sync::Arc;

use base::options::{CompressionKind, FamilyOptions, TableKind, apply_string};
use base::{ErrorKind, Result};
use table::{TableBuilderConfig, TableContext, TableReadOptions, new_builder, open_any};
use vfs::{IfExists, IoClass, RealVfs, Vfs};

/// Passes if `result` is there just as the feature is.
#[track_caller]
fn check<T>(result: Result<T>, feature: &str, is_there: bool) {
    match result {
        Ok(_) => assert!(is_there, "{feature} is missing, and nothing says so"),
        Err(error) => {
            assert_eq!((error.kind(), is_there), (ErrorKind::Unsupported, false), "{error}");
            let named = format!("Cargo feature `{feature}` of spillway-db");
            assert!(error.message().contains(&named), "{error} does not name {feature}");
        }
    }
}

const COMPRESSIONS: [(CompressionKind, &str, bool); 5] = [
    (CompressionKind::Snappy, "snappy", cfg!(feature = "snappy")),
    (CompressionKind::Zlib, "zlib", cfg!(feature = "zlib")),
    (CompressionKind::Lz4, "lz4", cfg!(feature = "lz4")),
    (CompressionKind::Lz4hc, "lz4", cfg!(feature = "lz4")),
    (CompressionKind::Zstd, "zstd", cfg!(feature = "zstd")),
];

#[test]
fn options_ask_for_what_is_built_in() {
    FamilyOptions::default().validate().expect("the defaults need nothing");
    for (kind, feature, is_there) in COMPRESSIONS {
        let name = kind.name();
        for text in [
            format!("compression={name}"),
            format!("bottommost_compression={name}"),
            format!("compression_per_level=kNoCompression:{name}"),
        ] {
            let mut options = FamilyOptions::default();
            apply_string(&mut options, &text).expect("parses");
            check(options.validate(), feature, is_there);
        }
    }
    for kind in ["SingleFastTable", "ToplingZipTable", "VecAutoSortTable"] {
        let mut options = FamilyOptions::default();
        apply_string(&mut options, &format!("table_factory={kind}")).expect("parses");
        check(options.validate(), "topling", cfg!(feature = "topling"));
    }
}

#[test]
fn tables_are_written_by_what_is_built_in() {
    let dir = tempfile::tempdir().expect("made");
    let vfs: Arc<dyn Vfs> = RealVfs::new();
    let begin = |kind: &TableKind, compression: CompressionKind| {
        let file = vfs.create(&dir.path().join("1.sst"), IfExists::Truncate).expect("made");
        new_builder(kind, &vfs, file, TableBuilderConfig { compression, ..TableBuilderConfig::default() })
    };
    for (compression, feature, is_there) in COMPRESSIONS {
        check(begin(&TableKind::BlockBased, compression), feature, is_there);
    }
    for kind in [TableKind::SingleFast, TableKind::Zip(Default::default())] {
        check(begin(&kind, CompressionKind::None), "topling", cfg!(feature = "topling"));
    }
}

#[test]
fn tables_are_read_by_what_is_built_in() {
    let vfs: Arc<dyn Vfs> = RealVfs::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for (compression, feature, is_there) in COMPRESSIONS.into_iter().filter(|row| row.0 != CompressionKind::Zlib) {
        let name = match compression {
            CompressionKind::Lz4hc => "lz4",
            _ => feature,
        };
        let path = folder.join(format!("fv5-{name}-bloom.sst"));
        let read = || {
            let file = vfs.open(&path)?;
            let bytes = file.len()?;
            let table = open_any(&*vfs, file, &path, bytes, &TableContext::default())?.into_table();
            let mut cursor = table.cursor(&TableReadOptions::default());
            cursor.seek_to_first();
            cursor.status()
        };
        check(read(), feature, is_there);
    }
}

/// The last eight bytes tell the kind: a build without it does not take the file for a damaged one.
#[test]
fn foreign_kinds_are_known_by_their_magic() {
    let dir = tempfile::tempdir().expect("made");
    let vfs: Arc<dyn Vfs> = RealVfs::new();
    for magic in [b"SPILWFST", b"SPILWZIP"] {
        let path = dir.path().join("1.sst");
        let mut file = vfs.create(&path, IfExists::Truncate).expect("made");
        file.append(&[&[0; 200][..], magic].concat(), IoClass::Other).expect("written");
        drop(file);
        let opened = open_any(&*vfs, vfs.open(&path).expect("there"), &path, 208, &TableContext::default());
        let error = opened.err().expect("neither is a whole table");
        let named = error.message().contains("Cargo feature `topling`");
        assert_eq!(named, !cfg!(feature = "topling"), "{error}");
    }
}
