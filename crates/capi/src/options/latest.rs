//! The options of a database's last open, from its OPTIONS file.

use spillway::internal::name;
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};

use spillway::internal::options::{OptionsFile, apply_string, whole};
use spillway::internal::version::file_name::{self, FileType};
use spillway::internal::vfs::{self, IoClass, Vfs};
use spillway::internal::{DbOptions, Error, FamilyOptions};

use super::Options;
use crate::boundary::argument::Out;
use crate::boundary::reply::{FreedArray, FreedHandles, Given, free_texts};
use crate::boundary::{export, fallible};
use crate::cache::Cache;
use crate::env::EnvHandle;
use crate::failure::Failure;
use crate::text::path;

/// Limit on retries: an open database removes a file once two newer ones follow.
const LOOKS_MAX: usize = 100;

/// The newest OPTIONS file in a directory, ours or RocksDB's.
///
/// # Errors
/// `Not found`: there is none.
pub fn newest(vfs: &dyn Vfs, dir: &Path) -> Result<PathBuf, Failure> {
    let names = vfs.read_dir(dir)?;
    let numbered = names.iter().filter_map(|name| match file_name::parse(name) {
        Some((FileType::Options, number)) => Some((number, name)),
        _ => None,
    });
    let what = "No such file or directory: No options files found in the DB directory.";
    let nothing = || Failure::not_found(format!("{what}: {}", dir.display()));
    let (_, name) = numbered.max().ok_or_else(nothing)?;
    Ok(dir.join(name))
}

/// The text of the newest OPTIONS file. If the open database removes it before it is `read`, there are newer ones.
fn newest_text(
    vfs: &dyn Vfs,
    dir: &Path,
    mut read: impl FnMut(&Path) -> Result<String, Error>,
) -> Result<String, Failure> {
    let mut looks = 0;
    loop {
        let file = newest(vfs, dir)?;
        looks += 1;
        match read(&file) {
            Err(error) if error.is_not_found() && looks < LOOKS_MAX => {}
            Err(error) => return Err(error.into()),
            Ok(text) => return Ok(text),
        }
    }
}

/// Options naming an object perhaps made by the caller.
const OBJECTS: [&str; 5] =
    ["comparator", "merge_operator", "prefix_extractor", "compaction_filter", "compaction_filter_factory"];

/// Whether a line names an object other than a built-in one.
fn is_callers_object(line: &str) -> bool {
    let Some((name, _)) = line.split_once('=') else { return false };
    OBJECTS.contains(&name.trim()) && apply_string(&mut FamilyOptions::default(), line.trim()).is_err()
}

/// The text without the caller's own objects, as in RocksDB; lines keep their numbers.
fn without_callers_objects(text: &str) -> String {
    let line = |line| {
        if !is_callers_object(line) {
            return line;
        }
        tracing::warn!(line = line.trim(), "options: to be set before they are used");
        ""
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn read(vfs: &dyn Vfs, file: &Path) -> Result<String, Error> {
    let bytes = vfs::read_all(vfs, file, whole::BYTES_MAX, IoClass::Other)?;
    Ok(name::text(&bytes).into_owned())
}

fn parse(text: &str, ignores_unknown: bool) -> Result<OptionsFile, Failure> {
    let new_family = |_: &str| FamilyOptions::default();
    let text = without_callers_objects(text);
    let (file, _) = OptionsFile::read_keeping(&text, DbOptions::default(), &new_family, ignores_unknown)?;
    Ok(file)
}

/// The options in the newest file of a directory.
///
/// # Errors
/// There is no file, or an option is not known.
pub fn load_latest(vfs: &dyn Vfs, dir: &Path, ignores_unknown: bool) -> Result<OptionsFile, Failure> {
    let text = newest_text(vfs, dir, |file| {
        let text = read(vfs, file)?;
        whole::check_whole(&text).map_err(|error| error.at_path(file))?;
        Ok(text)
    })?;
    parse(&text, ignores_unknown)
}

/// The options in a file.
///
/// # Errors
/// As of `load_latest`.
pub fn load_file(vfs: &dyn Vfs, file: &Path, ignores_unknown: bool) -> Result<OptionsFile, Failure> {
    let text = read(vfs, file)?;
    whole::check_sum(&text).and_then(|()| whole::check_sections(&text)).map_err(|error| error.at_path(file))?;
    parse(&text, ignores_unknown)
}

/// Destinations of the loaded parts.
struct Loaded {
    db: Out<*mut Options>,
    count: Out<usize>,
    names: Out<*mut *mut c_char>,
    families: Out<*mut *mut Options>,
}

impl Loaded {
    fn set_nothing(&self) {
        self.db.set(std::ptr::null_mut());
        self.count.set(0);
        self.names.set(std::ptr::null_mut());
        self.families.set(std::ptr::null_mut());
    }

    fn set(&self, file: OptionsFile, env: &EnvHandle, cache: Option<&Cache>) {
        let options = |db: DbOptions, family: FamilyOptions| {
            let block_cache = cache.map(Cache::shared);
            Box::into_raw(Box::new(Options { db, family, block_cache, env: Some(env.env()), ..Options::default() }))
        };
        let families: Vec<_> =
            file.families.iter().map(|(_, family)| options(DbOptions::default(), family.clone())).collect();
        let names: Vec<_> = file.families.iter().map(|(name, _)| Given::text(name::bytes(name)).into_raw()).collect();
        self.count.set(names.len());
        self.names.set(Given::pointers(&names).into_raw());
        self.families.set(Given::pointers(&families).into_raw());
        self.db.set(options(file.db, FamilyOptions::default()));
    }
}

fallible! {
    /// Set comparators, operators and extractors that are not built in before using the options. All four results are
    /// freed together.
    fn rocksdb_load_latest_options(
        dir: &CStr,
        env: &EnvHandle,
        ignore_unknown_options: bool,
        cache: Option<&Cache>,
        db_options: Out<*mut Options>,
        count: Out<usize>,
        names: Out<*mut *mut c_char>,
        family_options: Out<*mut *mut Options>,
    ) {
        let loaded = Loaded { db: db_options, count, names, families: family_options };
        loaded.set_nothing();
        let file = load_latest(&*env.env().vfs(), path(dir), ignore_unknown_options)?;
        loaded.set(file, env, cache);
        Ok(())
    }
}

export! {
    fn rocksdb_load_latest_options_destroy(
        db_options: Option<Box<Options>>,
        names: FreedArray,
        family_options: FreedHandles<Options>,
        len: usize,
    ) {
        drop(db_options);
        free_texts(names, len);
        family_options.free(len);
    }
}

#[cfg(test)]
mod tests {
    use spillway::internal::options::ini;
    use spillway::internal::vfs::MemoryVfs;

    use super::*;

    #[test]
    fn a_cut_file_is_refused_with_its_name_and_line() {
        let (vfs, dir) = (MemoryVfs::new(1), Path::new("/db"));
        vfs.create_dir_all(dir).expect("done");
        let family = FamilyOptions::default();
        let text = ini::write(&DbOptions::default(), &[("default", &family)], ini::Audience::Spillway);
        let file = dir.join("OPTIONS-000005");
        for (end, is_whole) in [(text.len(), true), (text.len() / 2, false), (text.len() - 20, false), (0, false)] {
            vfs.write_file(&file, &text.as_bytes()[..end]).expect("done");
            let latest = load_latest(&*vfs, dir, true);
            assert_eq!(latest.is_ok(), is_whole, "{end} bytes");
            let told = latest.err().map(|failure| failure.message().to_owned()).unwrap_or_default();
            assert!(
                is_whole || told.contains("OPTIONS-000005") && (told.contains("line ") || told.contains("section")),
                "{told}"
            );
            assert!(end == 0 || load_file(&*vfs, &file, true).is_ok() == is_whole);
        }
    }

    #[test]
    fn a_file_that_is_removed_before_it_is_read_is_followed_by_a_newer_one() {
        let (vfs, dir) = (MemoryVfs::new(1), Path::new("/db"));
        vfs.create_dir_all(dir).expect("done");
        let (older, newer) = (dir.join("OPTIONS-000005"), dir.join("OPTIONS-000009"));
        vfs.write_file(&older, b"old").expect("done");
        let mut looks = 0;
        let text = newest_text(&*vfs, dir, |file| {
            looks += 1;
            if file == older {
                vfs.write_file(&newer, b"new")?;
                vfs.remove_file(&older)?;
            }
            let bytes = vfs::read_all(&*vfs, file, whole::BYTES_MAX, IoClass::Other)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        });
        assert_eq!((text.ok().as_deref(), looks), (Some("new"), 2));
        vfs.remove_file(&newer).expect("done");
        assert!(newest_text(&*vfs, dir, |_| Ok(String::new())).is_err(), "there is none");
    }
}
