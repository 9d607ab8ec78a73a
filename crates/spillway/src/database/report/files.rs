//! The files of a database, and the properties of its tables.

use std::path::PathBuf;
use std::sync::Arc;

use base::Result;
use table::Properties;

use crate::core::family::Family;
use crate::database::handle::Database;
use crate::version::file_name::{self, FileType};
use crate::version::level::overlaps;
use crate::version::table_file::TableFile;
use crate::version::{current, manifest};

/// A range of user keys, both inclusive.
pub type KeyRange<'a> = (&'a [u8], &'a [u8]);

/// The files that make up a database without its logs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveFileNames {
    /// Tables, CURRENT, the MANIFEST and the newest OPTIONS file.
    pub paths: Vec<PathBuf>,
    /// Bytes of the MANIFEST.
    pub manifest_bytes: u64,
}

impl Database {
    /// The names of the files now. Later changes may delete some of them.
    ///
    /// # Errors
    /// Reading CURRENT or the directory fails.
    pub fn live_file_names(&self) -> Result<LiveFileNames> {
        let (dir, vfs) = (self.path(), self.vfs());
        let mut paths: Vec<PathBuf> = self.live_files().into_iter().map(|file| file.path).collect();
        paths.sort();
        paths.dedup(); // several tables may be parts of one file
        let manifest = manifest::manifest_path(dir, current::read_current(&**vfs, dir)?);
        let manifest_bytes = vfs.metadata(&manifest)?.len;
        paths.extend([dir.join(file_name::format(FileType::Current, Default::default())), manifest]);
        let names = vfs.read_dir(dir)?;
        let numbered = names.iter().filter_map(|name| file_name::parse(name));
        let options = numbered.filter(|(file_type, _)| *file_type == FileType::Options).map(|(_, number)| number).max();
        paths.extend(options.map(|number| dir.join(file_name::format(FileType::Options, number))));
        Ok(LiveFileNames { paths, manifest_bytes })
    }

    /// The properties of a family's tables by file, of those with keys in a range if `ranges` is given.
    ///
    /// # Errors
    /// `InvalidArgument`: the family is of another database. `Corruption`, `Io`: a table cannot be read.
    pub fn table_properties(
        &self,
        family: &Arc<Family>,
        ranges: Option<&[KeyRange<'_>]>,
    ) -> Result<Vec<(PathBuf, Properties)>> {
        self.check_family(family)?;
        let (view, order) = (family.view_full(), &family.order().user);
        let is_asked_for = |table: &Arc<TableFile>| {
            let meets = |&(start, end): &KeyRange<'_>| overlaps(order, &table.meta, Some(start), Some(end));
            ranges.is_none_or(|ranges| ranges.iter().any(meets))
        };
        let placed = view.version.all_files().map(|(_, table)| table);
        let tables = placed.chain(view.queued_tables()).filter(|table| is_asked_for(table));
        let properties = |table: &Arc<TableFile>| {
            let path = self.core().context.table_path(table.meta.physical_number());
            Ok((path, table.with(|table| Ok(table.properties().clone()))?))
        };
        tables.map(properties).collect()
    }
}

#[cfg(test)]
mod tests {
    use vfs::MemoryVfs;

    use crate::internal::{Database, OpenOptions, WriteOptions};

    #[test]
    fn files_and_their_properties_are_told() {
        let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).unwrap();
        let family = db.default_family();
        for keys in [[b"a", b"b"], [b"m", b"n"]] {
            for key in keys {
                db.put(&family, key, b"value", &WriteOptions::default()).unwrap();
            }
            db.flush(&[&family]).unwrap();
        }
        let files = db.live_file_names().unwrap();
        let names: Vec<&str> = files.paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        for part in [".sst", "CURRENT", "MANIFEST-", "OPTIONS-"] {
            assert!(names.iter().any(|name| name.contains(part)), "{part} of {names:?}");
        }
        assert!(files.manifest_bytes > 0);
        assert!(files.paths.iter().all(|path| db.vfs().exists(path).unwrap()));
        let entries = |ranges: Option<&[super::KeyRange<'_>]>| -> Vec<u64> {
            let tables = db.table_properties(&family, ranges).unwrap();
            tables.iter().map(|(_, properties)| properties.entries).collect()
        };
        assert_eq!(entries(None), [2, 2]);
        assert_eq!(entries(Some(&[(b"b", b"c")])), [2]);
        assert!(entries(Some(&[(b"c", b"d")])).is_empty());
        assert_eq!(entries(Some(&[(b"c", b"d"), (b"0", b"z")])), [2, 2]);
    }
}
