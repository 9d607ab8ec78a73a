use std::path::Path;
use std::sync::Arc;

use base::key::encode;
use base::{ErrorKind, SeqNo, ValueKind};
use vfs::{Fault, FaultCode, FaultVfs, IfExists, IoClass, MemoryVfs, Operation, Rule, Vfs};

use super::*;
use crate::{BlockBasedTable, BlockBasedTableBuilder, BlockCache, TableBuilder, TableBuilderConfig, TableContext};
use crate::{TableReadOptions, cache::Cache};

fn write(vfs: &dyn Vfs, path: &Path) {
    let mut config = TableBuilderConfig::new("t.sst");
    config.options.block_size = 128;
    let file = vfs.create(path, IfExists::Fail).expect("created");
    let mut builder = Box::new(BlockBasedTableBuilder::new(file, config).expect("made"));
    for i in 0..100 {
        let key = encode(format!("key{i:03}").as_bytes(), SeqNo(1), ValueKind::Value);
        builder.add(&key, &[path.as_os_str().len() as u8; 20]).expect("added");
    }
    builder.finish().expect("finished");
}

struct World {
    vfs: Arc<FaultVfs>,
    tables: Vec<Arc<BlockBasedTable>>,
    fetch: Fetch,
}

/// Two tables.
fn world(cache: Option<Arc<BlockCache>>) -> World {
    let vfs = FaultVfs::new(MemoryVfs::new(1));
    let context = TableContext { cache, ..TableContext::default() };
    let open = |name| {
        let path = Path::new(name);
        write(&*vfs, path);
        let len = vfs.metadata(path).expect("there").len;
        BlockBasedTable::open(vfs.open(path).expect("opens"), path, len, &context).expect("a table")
    };
    let tables = vec![open("/a"), open("/bb")];
    World { vfs, tables, fetch: Fetch::from(&TableReadOptions::default()) }
}

impl World {
    fn handles(&self, table: usize) -> Vec<BlockHandle> {
        let file = &self.tables[table].file;
        let mut index = self.tables[table].index.cursor(file, self.fetch).expect("an index");
        let mut handles = Vec::new();
        let mut found = index.seek_to_first(file, self.fetch).expect("an index");
        while found {
            handles.extend(index.slot().map(|slot| slot.handle));
            found = index.next(file, self.fetch).expect("an index");
        }
        handles
    }

    /// Every `step`th block of both tables.
    fn wanted(&self, step: usize) -> Vec<WantedBlock<'_>> {
        let of = |table: usize| self.handles(table).into_iter().step_by(step).map(move |handle| (table, handle));
        let wanted = of(0).chain(of(1));
        wanted.map(|(table, handle)| WantedBlock::new(&self.tables[table].file, handle, self.fetch)).collect()
    }

    fn reads(&self) -> u64 {
        self.vfs.calls(Operation::Read)
    }

    fn assert_right(&self, wanted: &WantedBlock<'_>) {
        let fetch = Fetch { ask_cache: false, ..self.fetch };
        let alone = wanted.file.data_block(wanted.handle, fetch, None).expect("reads");
        let block = wanted.block.as_ref().expect("was read").as_ref().expect("a block");
        assert_eq!(block.entries.bytes(), alone.entries.bytes());
    }
}

#[test]
fn blocks_of_several_tables_are_those_read_alone() {
    let world = world(None);
    let mut wanted = world.wanted(3);
    let before = world.reads();
    read_missing(wanted.iter_mut(), world.fetch);
    assert!(wanted.len() > 10);
    assert_eq!(world.reads() - before, wanted.len() as u64);
    wanted.iter().for_each(|wanted| world.assert_right(wanted));
    read_missing([].iter_mut(), world.fetch);
}

#[test]
fn what_the_cache_has_is_not_read_and_what_was_read_is_cached() {
    let world = world(Some(Arc::new(Cache::new(1 << 20))));
    read_missing(world.wanted(6).iter_mut(), world.fetch);
    let mut wanted = world.wanted(3);
    let missing = wanted.iter().filter(|wanted| wanted.is_missing()).count();
    assert!(missing > 0 && missing < wanted.len());
    let before = world.reads();
    read_missing(wanted.iter_mut(), world.fetch);
    assert_eq!(world.reads() - before, missing as u64);
    wanted.iter().for_each(|wanted| world.assert_right(wanted));
    assert!(world.wanted(3).iter().all(|wanted| !wanted.is_missing()));
}

#[test]
fn each_block_has_its_own_error() {
    let world = world(None);
    let damaged =
        |fault, nth| world.vfs.inject(Rule::new(fault).on(Operation::Read).class(IoClass::Foreground).nth(nth));
    let mut wanted = world.wanted(3);
    damaged(Fault::Error(FaultCode::Io), 2);
    damaged(Fault::ShortRead, 4);
    wanted[2].handle.size += 1;
    wanted[4].handle.offset = u64::MAX;
    read_missing(wanted.iter_mut(), world.fetch);
    let kinds: Vec<_> = wanted.iter().map(|wanted| wanted.block.as_ref().unwrap().as_ref().err()).collect();
    let kind = |at: usize| kinds[at].map(|error| (error.kind(), error.message().to_owned()));
    assert_eq!(kind(1).unwrap().0, ErrorKind::Io);
    assert!(kind(2).unwrap().1.contains("checksum"), "{kinds:?}");
    assert!(kind(3).unwrap().1.contains("early"), "{kinds:?}");
    assert!(kind(4).unwrap().1.contains("reaches past"), "{kinds:?}");
    assert_eq!(kinds.iter().flatten().count(), 4);
    wanted.iter().filter(|wanted| wanted.block.as_ref().unwrap().is_ok()).for_each(|wanted| world.assert_right(wanted));
}
