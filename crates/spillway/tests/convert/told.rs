//! What is told of conversions: properties, statistics, events, and whose the memory is.

use std::sync::Arc;

use parking_lot::Mutex;
use testkit::engine::extend::{Event, EventListener, FlushWay};
use testkit::engine::metrics::Ticker;
use testkit::engine::{Db, ReadOptions};

use crate::common::{Place, WAYS, flush, get, number, options, put};

#[derive(Default)]
struct Ways(Mutex<Vec<FlushWay>>);

impl EventListener for Ways {
    fn on_event(&self, event: &Event) {
        if let Event::FlushEnd { way, .. } = event {
            self.0.lock().push(*way);
        }
    }
}

#[test]
fn flushes_are_told_by_their_way() {
    for way in WAYS {
        let place = Place::memory();
        let ways = Arc::new(Ways::default());
        let mut options = options(&place.vfs, way);
        options.db.statistics = true;
        options.db.listeners.push(ways.clone());
        let db = Db::open(&place.dir, &options).unwrap();
        for round in 0..3 {
            put(&db, "k", &format!("{round}"));
            flush(&db);
        }
        assert_eq!(*ways.0.lock(), [FlushWay::Convert; 3]);
        assert_eq!(number(&db, "spillway.flushes-converted"), 3);
        assert_eq!(number(&db, "spillway.flushes-rewritten"), 0);
        assert_eq!(number(&db, "spillway.flushes-fallen-back"), 0);
        let statistics = db.statistics().unwrap();
        assert_eq!(statistics.count(Ticker::FlushesConverted), 3);
        let bytes: u64 = db.live_files().iter().map(|file| file.bytes).sum();
        assert_eq!(statistics.count(Ticker::FlushWriteBytes), bytes);
        assert_eq!(number(&db, "rocksdb.estimate-num-keys"), 3, "every version is in the table");
    }
}

/// A converted memtable's memory is the table's: it is charged to no memtable, even while readers hold on to it.
#[test]
fn the_memory_of_a_converted_memtable_is_the_tables() {
    for way in WAYS {
        let place = Place::memory();
        let mut options = options(&place.vfs, way);
        options.db.db_write_buffer_size = 1 << 20;
        let db = Db::open(&place.dir, &options).unwrap();
        let memtables = || number(&db, "rocksdb.size-all-mem-tables") as usize;
        let tables = || number(&db, "rocksdb.estimate-table-readers-mem") as usize;
        let charged = || number(&db, "spillway.memtable-bytes-charged") as usize;
        let empty = (memtables(), charged());
        (0..600).for_each(|i| put(&db, &format!("key{i:04}"), &"v".repeat(100)));
        let held = db.iter(&db.default_family(), &ReadOptions::default()).unwrap();
        assert!(memtables() > 60_000 && charged() > 60_000 && tables() == 0);
        flush(&db);
        assert_eq!(db.flushes().converted, 1);
        let spare = 2 * (empty.0.max(empty.1) + 4096);
        assert!(memtables() <= spare && charged() <= spare, "{way}: {} and {}, {empty:?}", memtables(), charged());
        assert!(tables() > 60_000, "{}", tables());
        drop(held);
        assert!(tables() > 60_000 && charged() <= spare);
        // Far more than the limit goes through.
        for i in 0..30_000 {
            put(&db, &format!("key{i:05}"), &"v".repeat(100));
        }
        assert!(charged() <= 1 << 20);
        assert_eq!(get(&db, "key29999"), Some("v".repeat(100).into_bytes()));
    }
}
