//! The block cache after the reads by which an ingest finds out what is where.

use testkit::engine::{IngestMode, IngestOptions};

use super::common::{World, mode};

/// Bytes that an ingest brings into the block cache between two keys of one table: it looks whether there are more.
fn cached_by(options: &IngestOptions) -> u64 {
    let world = World::inline();
    world.put_all([0, 1000], "old");
    world.flush();
    let usage = || world.number("rocksdb.block-cache-usage");
    let before = usage();
    let report = world.ingest(world.table("between", 100..200, "new"), options).expect("nothing is in its way");
    let cached = usage() - before;
    assert_eq!((report.tables, world.get(150).as_deref()), (1, Some("new")));
    assert!(usage() > before, "a get does fill it");
    cached
}

#[test]
fn fill_cache_says_whether_the_reads_of_an_ingest_fill_the_cache() {
    let numberless = IngestOptions { allow_global_seqno: false, ..mode(IngestMode::Direct) };
    let deep = IngestOptions { fail_if_not_bottommost_level: true, ..mode(IngestMode::Direct) };
    for options in [numberless, deep] {
        assert!(cached_by(&options) > 0, "{options:?}");
        assert_eq!(cached_by(&IngestOptions { fill_cache: false, ..options.clone() }), 0, "{options:?}");
    }
}

/// Nobody asked for those of a flush, or of the link that ends a call.
#[test]
fn what_is_read_to_link_tables_never_fills_the_cache() {
    for ingest in [IngestMode::Flushable, IngestMode::Direct] {
        assert_eq!(cached_by(&mode(ingest)), 0, "{ingest:?}");
    }
}
