//! A converted table beside a block-based one whose blocks are all in the cache, of the same entries; and what making and
//! opening one takes. Run with
//! `cargo run --release -p spillway-db-table --example converted_bench [ENTRIES [TABLE [GETS]]]`; with a TABLE ("blocks",
//! "filtered", "trie", "trie-opened", "skip_list", "skip_list-opened") only that one is read, so that instructions can be
//! counted: those of a run with GETS less those of a run with none.

extern crate spillway_db_table as table;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::checksum::crc32c;
use base::options::FilterPolicy;
use base::{FamilyId, InternalOrder, LookupKey, Result, SeqNo, ValueKind};
use memtable::{Entry, Memtable, MemtableConfig, factory_from_option_string};
use table::{AnyTable, BlockBasedTableBuilder, BlockCache, ConvertConfig, ConvertedTable, Table, TableBuilder};
use table::{TableBuilderConfig, TableContext, TableOrigin, TableReadOptions, convert, open_any};
use vfs::{AppendFile, IfExists, IoClass, MemoryVfs, RealVfs, Vfs};

/// 64 MB: a memtable of the default size.
const ENTRIES_DEFAULT: u64 = 500_000;
const GETS_DEFAULT: u64 = 1_000_000;
const TABLES: [&str; 6] = ["blocks", "filtered", "trie", "trie-opened", "skip_list", "skip_list-opened"];
const VALUE: [u8; 100] = [b'v'; 100];

/// Scattered over the key space, as hashed names are.
fn user_key(i: u64) -> [u8; 16] {
    let mut key = *b"user0000........";
    key[8..].copy_from_slice(&i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key
}

fn config(path: &Path) -> ConvertConfig {
    ConvertConfig {
        order: InternalOrder::default(),
        merge_operator: String::new(),
        origin: TableOrigin::default(),
        smallest_seq: SeqNo::ZERO,
        largest_seq: SeqNo::MAX,
        references: None,
        sync: true,
        path: path.to_owned(),
        class: IoClass::Other,
    }
}

struct Bench {
    clock: Arc<dyn Vfs>,
    memory: Arc<MemoryVfs>,
    entries: u64,
}

/// Takes bytes and forgets them: what is timed is the conversion, not the file.
#[derive(Default)]
struct Nowhere(u64);

impl AppendFile for Nowhere {
    fn append(&mut self, bytes: &[u8], _class: IoClass) -> Result<()> {
        self.0 += bytes.len() as u64;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.0
    }

    fn sync(&mut self, _class: IoClass) -> Result<()> {
        Ok(())
    }
}

impl Bench {
    fn timed<T>(&self, what: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
        let start = self.clock.now();
        let result = what()?;
        Ok((result, self.clock.now() - start))
    }

    fn memtable(&self, name: &str) -> Result<Arc<dyn Memtable>> {
        let option = format!(r#"{name}:{{"convert_to_sst":"kDumpMem"}}"#);
        let capacity = (self.entries * 400).max(1 << 20) as usize;
        let config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, capacity);
        let memtable = factory_from_option_string(&option)?.create(&config)?;
        for i in 0..self.entries {
            assert!(memtable.try_reserve(memtable.worst_case_bytes(1, 116)));
            let (user_key, seq) = (&user_key(i), SeqNo(i + 1));
            memtable.insert(Entry { user_key, seq, kind: ValueKind::Value, value: &VALUE });
        }
        memtable.seal();
        Ok(memtable)
    }

    /// Writes the entries of a memtable as a flush that rewrites does.
    fn rewrite(&self, from: &Arc<dyn Memtable>, bits: Option<f64>, file: Box<dyn AppendFile>) -> Result<u64> {
        let mut config = TableBuilderConfig::new("/blocks");
        config.options.filter_policy = FilterPolicy { bits_per_key: bits };
        let mut builder = Box::new(BlockBasedTableBuilder::new(file, config)?);
        let mut cursor = from.clone().cursor();
        let mut found = cursor.seek_to_first();
        while found {
            builder.add(cursor.key(), cursor.value())?;
            found = cursor.next();
        }
        Ok(builder.finish()?.file_bytes)
    }

    fn open(&self, path: &Path) -> Result<AnyTable> {
        let file = self.memory.open(path)?;
        let bytes = file.len()?;
        let cache = Some(Arc::new(BlockCache::new(1 << 30)));
        open_any(&*self.memory, file, path, bytes, &TableContext { cache, ..TableContext::default() })
    }

    /// The table called `name`, ready to be read.
    fn table(&self, name: &str) -> Result<Arc<dyn Table>> {
        let memtable = self.memtable(name.strip_suffix("-opened").unwrap_or(match name {
            "blocks" | "filtered" => "trie",
            other => other,
        }))?;
        let path = Path::new("/t.sst");
        let file = self.memory.create(path, IfExists::Truncate)?;
        if let "blocks" | "filtered" = name {
            self.rewrite(&memtable, (name == "filtered").then_some(10.0), file)?;
            return Ok(self.open(path)?.into_table());
        }
        let summary = convert(&memtable, file, &config(path))?;
        if name.ends_with("-opened") {
            return Ok(self.open(path)?.into_table());
        }
        let file = self.memory.open(path)?;
        Ok(ConvertedTable::of_memtable(memtable, &summary, file, path, &TableContext::default())?)
    }

    fn lookups(&self, count: u64) -> impl Iterator<Item = LookupKey> {
        let entries = self.entries;
        let next = |state: &u64| Some(state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
        let states = std::iter::successors(Some(1u64), next).take(count as usize);
        states.map(move |state| LookupKey::new(&user_key((state >> 33) % entries), SeqNo::MAX))
    }

    fn read(&self, name: &str, gets: u64) -> Result<()> {
        let table = self.table(name)?;
        let options = TableReadOptions::default();
        let (walked, walk) = self.timed(|| {
            let mut cursor = table.clone().cursor(&options);
            let (mut found, mut walked) = (cursor.seek_to_first(), 0);
            while found {
                walked += 1;
                found = cursor.next();
            }
            cursor.status().map(|()| walked)
        })?;
        assert_eq!(walked, self.entries);
        let (found, get) = self.timed(|| {
            let mut found = 0;
            for lookup in self.lookups(gets) {
                table.get(&lookup, &options, &mut |_, _, _| {
                    found += 1;
                    false
                })?;
            }
            Ok(found)
        })?;
        let (many, multi_get) = self.timed(|| {
            let (mut many, all) = (0, self.lookups(gets).collect::<Vec<_>>());
            for chunk in all.chunks(16) {
                let mut chunk: Vec<&LookupKey> = chunk.iter().collect();
                chunk.sort_by(|a, b| a.user_key().cmp(b.user_key()));
                table.multi_get(&chunk, &options, &mut |_, _, _, _| {
                    many += 1;
                    false
                })?;
            }
            Ok(many)
        })?;
        assert_eq!((found, many), (gets, gets));
        let each = |time: Duration, count: u64| time.as_nanos() as f64 / count.max(1) as f64;
        let (get, multi_get, next) = (each(get, gets), each(multi_get, gets), each(walk, walked));
        println!("{name:<18} get {get:>7.1} ns, 16 at once {multi_get:>7.1} ns, next (first walk) {next:>6.1} ns");
        Ok(())
    }

    /// What making a table takes, beside writing it.
    fn make(&self) -> Result<()> {
        for name in ["trie", "skip_list"] {
            let memtable = self.memtable(name)?;
            let bytes = memtable.image().map_or(0, |image| image.bytes.len());
            let per_mib = |time: Duration| time.as_nanos() as f64 / 1000.0 / (bytes as f64 / f64::from(1 << 20));
            let config = config(Path::new("/nowhere"));
            let ((), sums) = self.timed(|| {
                let sum = memtable.image().map_or(0, |image| crc32c(image.bytes));
                std::hint::black_box(sum);
                Ok(())
            })?;
            let (_, whole) = self.timed(|| convert(&memtable, Box::new(Nowhere::default()), &config))?;
            let (_, rewritten) = self.timed(|| self.rewrite(&memtable, None, Box::new(Nowhere::default())))?;
            let path = Path::new("/m.sst");
            convert(&memtable, self.memory.create(path, IfExists::Truncate)?, &config)?;
            let (_, opened) = self.timed(|| self.open(path))?;
            println!(
                "{name}: {:.1} MiB of image; convert {:.1} us/MiB, of that checksums {:.1}; rewrite {:.1} us/MiB; open {:.1} us/MiB",
                bytes as f64 / f64::from(1 << 20),
                per_mib(whole),
                per_mib(sums),
                per_mib(rewritten),
                per_mib(opened)
            );
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |nth: usize, default| arguments.get(nth).and_then(|n| n.parse().ok()).unwrap_or(default);
    let bench = Bench { clock: RealVfs::new(), memory: MemoryVfs::new(1), entries: number(0, ENTRIES_DEFAULT) };
    let gets = number(2, GETS_DEFAULT);
    if let Some(name) = arguments.get(1) {
        return bench.read(name, gets);
    }
    bench.make()?;
    TABLES.iter().try_for_each(|name| bench.read(name, gets))
}
