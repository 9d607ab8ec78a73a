//! Directories of earlier versions (`testdata/formats-N`, one N per generation of formats) open with their contents.
//! The README there explains how to add a generation.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod held;
mod life;
mod open;
mod store;
mod write;

use std::path::{Path, PathBuf};

/// All directories of all generations.
fn stored() -> Vec<PathBuf> {
    let generations = folders(&store::testdata()).into_iter();
    let generations = generations.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("formats-"));
    generations.flat_map(|generation| folders(&generation)).collect()
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[test]
fn every_directory_of_every_generation_opens_with_what_it_held() {
    let all = stored();
    assert!(!all.is_empty());
    for folder in all {
        held::check(&folder);
        open::open_in_every_way(&folder);
    }
}

/// `SPILLWAY_WRITE_FORMATS=formats-2 cargo test -p spillway-testkit --test formats write -- --ignored`
#[test]
#[ignore = "writes a new generation"]
fn write_a_generation() {
    let generation = std::env::var("SPILLWAY_WRITE_FORMATS").expect("SPILLWAY_WRITE_FORMATS names the generation");
    let written = folders(&store::testdata().join(generation));
    written.iter().for_each(|folder| write::write(folder));
}
