//! Readahead of cursors: never another entry, and of the file what a walk needs.
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

extern crate spillway_db_table as table;

mod common;

use std::path::Path;
use std::sync::{Arc, Mutex};

use base::options::CompressionKind;
use base::{Cursor, Result};
use common::{Bytes, Entry, mapping_of, put, write};
use table::{BlockBasedTable, Table, TableBuilderConfig, TableContext, TableReadOptions};
use vfs::{IoClass, RandomFile};

const BLOCK_BYTES: usize = 4096;

/// What was asked of a file, reads and hints: offset and length.
#[derive(Default)]
struct Asked {
    reads: Vec<(u64, u64)>,
    hints: Vec<(u64, u64)>,
}

struct Watched {
    bytes: Bytes,
    asked: Arc<Mutex<Asked>>,
}

impl RandomFile for Watched {
    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize> {
        self.asked.lock().expect("unpoisoned").reads.push((offset, buf.len() as u64));
        self.bytes.read_at(offset, buf, class)
    }

    fn len(&self) -> Result<u64> {
        self.bytes.len()
    }

    fn prefetch(&self, offset: u64, len: u64) {
        self.asked.lock().expect("unpoisoned").hints.push((offset, len));
    }
}

/// Four entries a block.
fn entries(count: usize) -> Vec<Entry> {
    (0..count).map(|i| put(&format!("key{i:06}"), 9, &format!("{i:0>1000}"))).collect()
}

fn written(count: usize, compression: CompressionKind) -> Vec<u8> {
    let mut config = TableBuilderConfig::new("t.sst");
    config.compression = compression;
    config.options.block_size = BLOCK_BYTES;
    write(config, &entries(count)).expect("writes").bytes
}

fn open(bytes: &[u8], is_mapped: bool) -> (Arc<BlockBasedTable>, Arc<Mutex<Asked>>) {
    let asked = Arc::<Mutex<Asked>>::default();
    let file = Arc::new(Watched { bytes: Bytes(bytes.to_vec()), asked: asked.clone() });
    let mapping = is_mapped.then(|| mapping_of(bytes) as Arc<dyn vfs::GuardedMapping>);
    let context = TableContext { mapping, ..TableContext::default() };
    let table = BlockBasedTable::open(file, Path::new("t.sst"), bytes.len() as u64, &context).expect("opens");
    *asked.lock().expect("unpoisoned") = Asked::default();
    (table, asked)
}

/// Walks over so many entries from the middle, and returns what was asked.
fn walk(table: &Arc<BlockBasedTable>, asked: &Mutex<Asked>, middle: &[u8], steps: usize, is_forward: bool) -> Asked {
    let mut cursor = table.clone().cursor(&TableReadOptions::default());
    assert!(cursor.seek(middle));
    for _ in 0..steps {
        assert!(if is_forward { cursor.next() } else { cursor.prev() });
    }
    std::mem::take(&mut asked.lock().expect("unpoisoned"))
}

fn bytes(asked: &[(u64, u64)]) -> u64 {
    asked.iter().map(|(_, len)| len).sum()
}

#[test]
fn a_short_walk_reads_little_more_than_it_needs() {
    let file = written(8000, CompressionKind::None);
    let (table, asked) = open(&file, false);
    let middle = &entries(4001)[4000].0;
    for is_forward in [true, false] {
        let alone = walk(&table, &asked, middle, 0, is_forward);
        assert!(bytes(&alone.reads) < 2 * BLOCK_BYTES as u64, "one block: {:?}", alone.reads);
        // Twelve blocks: three alone at most, then windows of 16 and 32 KiB.
        let some = walk(&table, &asked, middle, 48, is_forward);
        assert!(some.reads.len() <= 5, "{:?}", some.reads);
        assert!(bytes(&some.reads) <= 16 * BLOCK_BYTES as u64, "{:?}", some.reads);
        assert!(some.hints.is_empty(), "the next window would be read in vain: {:?}", some.hints);
        let many = walk(&table, &asked, middle, 3900, is_forward);
        assert!(many.reads.len() <= 25, "{:?}", many.reads);
        assert!(bytes(&many.reads) <= 4400 * 1024, "{:?}", many.reads);
        assert!(!many.hints.is_empty(), "a long walk overlaps with the device");
    }
}

#[test]
fn a_walk_over_a_mapped_file_hints_each_window_before_it_touches_it() {
    let file = written(8000, CompressionKind::None);
    let (table, asked) = open(&file, true);
    let middle = &entries(4001)[4000].0;
    for is_forward in [true, false] {
        let some = walk(&table, &asked, middle, 48, is_forward);
        assert!(some.reads.is_empty());
        assert!(some.hints.len() <= 2 && bytes(&some.hints) <= 12 * BLOCK_BYTES as u64, "{:?}", some.hints);
        let many = walk(&table, &asked, middle, 3900, is_forward);
        assert!(many.hints.len() <= 40, "{:?}", many.hints);
        // The hints leave no gap from the third block on.
        let mut hints: Vec<(u64, u64)> = many.hints;
        hints.sort_unstable();
        assert!(hints.windows(2).all(|pair| pair[1].0 <= pair[0].0 + pair[0].1), "{hints:?}");
    }
}

#[test]
fn moves_in_any_order_find_the_same_entries_read_ahead_or_not() {
    let all = entries(3000);
    for compression in [CompressionKind::None, CompressionKind::Lz4] {
        let file = written(3000, compression);
        for is_mapped in [false, true] {
            for readahead_bytes in [0, 20_000] {
                let (table, _) = open(&file, is_mapped);
                let options = TableReadOptions { readahead_bytes, ..TableReadOptions::default() };
                let mut cursor = table.cursor(&options);
                let (mut at, mut random) = (0, 1_u64);
                assert!(cursor.seek_to_first());
                for nth in 0..300 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let steps = (random >> 33) as usize % 120;
                    match nth % 5 {
                        0 => {
                            at = (random >> 40) as usize % all.len();
                            assert!(cursor.seek(&all[at].0));
                        }
                        1 | 3 => (0..steps.min(all.len() - 1 - at)).for_each(|_| {
                            assert!(cursor.next());
                            at += 1;
                        }),
                        _ => (0..steps.min(at)).for_each(|_| {
                            assert!(cursor.prev());
                            at -= 1;
                        }),
                    }
                    assert_eq!((cursor.key(), cursor.value()), (&*all[at].0, &*all[at].1), "move {nth}");
                }
                cursor.status().expect("reads");
            }
        }
    }
}
