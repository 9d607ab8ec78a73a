//! A file with several tables in it is deleted when the last of them is obsolete and its last pin is gone, not before.

use vfs::memory::MemoryVfs;

use super::*;
use crate::version::builder::{BuiltVersion, VersionBuilder};
use crate::version::log_life::{LogLives, ValueLog};
use crate::version::purge::ObsoleteFile;
use crate::version::table_file::{Backing, TableFile};

/// Whole table 5 in level 1, of which edits make parts.
struct World {
    store: Arc<TableStore>,
    purge: Arc<PurgeQueue>,
    version: Version,
}

/// A part of file 5 over these user keys.
fn part(number: u64, first: u64, last: u64) -> FileMeta {
    let backing = Some(Backing { number: FileNumber(5), file_bytes: 105 });
    FileMeta { backing, file_bytes: 10, ..table(number, first, last, 1) }
}

fn edit(deleted: &[u64], added: &[FileMeta]) -> VersionEdit {
    VersionEdit {
        deleted: deleted.iter().map(|number| (1, FileNumber(*number))).collect(),
        added: added.iter().map(|meta| (1, meta.clone())).collect(),
        ..VersionEdit::default()
    }
}

impl World {
    fn new() -> Self {
        let (store, purge) = store();
        let mut world = World { store, purge, version: empty_version() };
        world.install(&edit(&[], &[table(5, 0, 99, 1)]));
        world
    }

    fn build(&self, edit: &VersionEdit) -> Result<BuiltVersion> {
        let mut builder = VersionBuilder::new(&self.version, &self.store);
        builder.apply(edit)?;
        builder.build()
    }

    /// As a job's edit is: durable, then the tables are marked, then the old version goes.
    fn install(&mut self, edit: &VersionEdit) {
        let built = self.build(edit).unwrap();
        built.removed.iter().for_each(|file| file.mark_obsolete());
        self.version = built.version;
    }

    fn deleted(&self) -> Vec<u64> {
        let path_id = |file: &ObsoleteFile| assert_eq!(file.path_id, 0);
        self.purge.take().iter().inspect(|file| path_id(file)).map(|file| file.number.0).collect()
    }

    fn file(&self, number: u64) -> Arc<TableFile> {
        self.version.file(FileNumber(number)).unwrap().1.clone()
    }
}

#[test]
fn a_file_goes_with_the_last_table_in_it() {
    let mut world = World::new();
    world.install(&edit(&[5], &[part(8, 0, 40), part(9, 60, 99)]));
    assert!(world.deleted().is_empty(), "two parts of it are needed");
    world.install(&edit(&[9], &[part(10, 60, 70), part(11, 80, 99)]));
    world.install(&edit(&[8, 10], &[table(12, 0, 79, 1)]));
    assert!(world.deleted().is_empty(), "one part of it is needed");
    world.install(&edit(&[11], &[]));
    assert_eq!(world.deleted(), [5], "its own number, and no number of a part");
    world.install(&edit(&[12], &[]));
    assert_eq!(world.deleted(), [12]);
}

#[test]
fn a_reader_of_any_of_its_tables_keeps_a_file() {
    for pinned in [5, 8, 9] {
        let mut world = World::new();
        let mut pin = (pinned == 5).then(|| world.file(5));
        world.install(&edit(&[5], &[part(8, 0, 40), part(9, 60, 99)]));
        pin = pin.or_else(|| Some(world.file(pinned)));
        world.install(&edit(&[8, 9], &[]));
        assert!(world.deleted().is_empty(), "{pinned} is read");
        drop(pin);
        assert_eq!(world.deleted(), [5]);
    }
}

#[test]
fn an_old_version_keeps_the_file() {
    let mut world = World::new();
    let old = world.version.clone();
    world.install(&edit(&[5], &[part(8, 0, 40)]));
    let cut = world.version.clone();
    world.install(&edit(&[8], &[]));
    drop(old);
    assert!(world.deleted().is_empty());
    drop(cut);
    assert_eq!(world.deleted(), [5]);
}

/// Its handles go without an edit: had they counted, the log would have stayed once they were the last.
#[test]
fn a_version_for_planning_does_not_keep_a_log() {
    let purge = PurgeQueue::new();
    let logs = LogLives::new(MemoryVfs::new(1), dir().to_path_buf(), purge.clone());
    let store = TableStore::new(Box::new(NoTables), OpenSlots::new(-1), logs);
    let mut world = World { store, purge, version: empty_version() };
    let value_logs = vec![ValueLog { log: FileNumber(7), bytes: 10 }];
    let whole = FileMeta { value_logs: value_logs.clone(), ..table(5, 0, 99, 1) };
    world.install(&edit(&[], &[whole]));
    let mut planning = VersionBuilder::new(&world.version, &world.store).for_planning();
    planning.apply(&edit(&[5], &[FileMeta { value_logs, ..part(8, 0, 40) }])).unwrap();
    let planned = planning.build().unwrap();
    world.install(&edit(&[5], &[table(6, 0, 99, 1)]));
    drop(planned);
    let mut deleted = world.deleted();
    deleted.sort_unstable();
    assert_eq!(deleted, [5, 7]);
}

#[test]
fn an_edit_that_fails_neither_deletes_a_file_nor_keeps_it() {
    let mut world = World::new();
    // Built and not installed: its edit never became durable.
    drop(world.build(&edit(&[5], &[part(8, 0, 40), part(9, 60, 99)])).unwrap());
    // Refused while it is built: the parts overlap.
    assert!(world.build(&edit(&[5], &[part(8, 0, 60), part(9, 50, 99)])).is_err());
    assert!(world.deleted().is_empty());
    world.install(&edit(&[5], &[part(10, 0, 40)]));
    assert!(world.build(&edit(&[10], &[part(11, 0, 20), part(12, 10, 40)])).is_err());
    assert!(world.deleted().is_empty());
    world.install(&edit(&[10], &[]));
    assert_eq!(world.deleted(), [5], "the handles that came to nothing do not hold it");
}

#[test]
fn closing_deletes_nothing_that_a_version_has() {
    let mut world = World::new();
    let reader = world.file(5);
    world.install(&edit(&[5], &[part(8, 0, 40), part(9, 60, 99)]));
    let World { purge, version, store } = world;
    drop((version, store));
    drop(reader); // the whole table is obsolete, and goes last
    assert!(purge.take().is_empty(), "parts of it are in the MANIFEST");
}

#[test]
fn recovered_parts_share_their_file() {
    let (store, purge) = store();
    let mut world = World { store, purge, version: empty_version() };
    world.install(&edit(&[], &[part(8, 0, 40), part(9, 60, 99), table(7, 45, 50, 1)]));
    world.install(&edit(&[8], &[]));
    assert!(world.deleted().is_empty());
    world.install(&edit(&[9], &[]));
    assert_eq!(world.deleted(), [5]);
}

#[test]
fn a_part_moves_and_keeps_its_handle() {
    let mut world = World::new();
    world.install(&edit(&[5], &[part(8, 0, 40)]));
    let before = world.file(8);
    let moved = VersionEdit { added: vec![(3, part(8, 0, 40))], ..edit(&[8], &[]) };
    world.install(&moved);
    assert!(Arc::ptr_eq(&before, &world.version.level(3)[0]), "an open table stays open");
    drop(before);
    let back = VersionEdit { deleted: vec![(3, FileNumber(8))], ..VersionEdit::default() };
    let other = FileMeta { backing: None, ..part(8, 0, 40) };
    let error = world.build(&VersionEdit { added: vec![(1, other)], ..back.clone() }).map(drop).unwrap_err();
    assert!(error.message().contains("changes its file, which a table never does"), "{error}");
    world.install(&back);
    assert_eq!(world.deleted(), [5]);
}
