//! Excises as text: tables in, spans, tables out. `UPDATE=1 cargo test -p spillway-db version::tests::excise` writes the
//! expected parts anew.
//!
//! A case is input lines, `----`, expected lines, and an empty line. Input lines:
//!
//! - `LEVEL NUMBER: ENTRY ...`: a table; level 0's are newer the later they stand. An entry is `KEY@NUMBER`, or
//!   `START-END@NUMBER` for a range tombstone;
//! - `excise START END`: what becomes of the tables; shown are all tables then, with what can be read of each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use base::UserOrder;
use base::tombstone::{FragmentedTombstones, RangeTombstone};
use table::{
    BlockBasedTable, BlockBasedTableBuilder, TableBuilder, TableBuilderConfig, TableContext, TableReadOptions,
};
use vfs::{IfExists, IoClass, MemoryVfs, Vfs};

use super::*;
use crate::core::tables::identified;
use crate::version::builder::VersionBuilder;
use crate::version::excise::{ExciseSpan, plan};
use crate::version::file_name::{self, FileType};
use crate::version::table_file::TableFile;

fn path_of(number: FileNumber) -> PathBuf {
    dir().join(file_name::format(FileType::Table, number))
}

struct Opener {
    vfs: Arc<MemoryVfs>,
    order: InternalOrder,
}

impl TableOpener for Opener {
    fn open(&self, meta: &FileMeta) -> Result<Arc<dyn Table>> {
        let path = path_of(meta.physical_number());
        let context =
            TableContext { order: self.order.clone(), largest_seq: Some(meta.largest_seq), ..TableContext::default() };
        let file = BlockBasedTable::open(self.vfs.open(&path)?, &path, meta.physical_bytes(), &context)?;
        identified(meta, &self.order, file)
    }
}

struct World {
    vfs: Arc<MemoryVfs>,
    order: InternalOrder,
    store: Arc<TableStore>,
    version: Version,
    last_number: u64,
}

/// `KEY@NUMBER` or `START-END@NUMBER`.
type Entry<'a> = (&'a str, Option<&'a str>, u64);

impl World {
    fn new(order: UserOrder) -> Self {
        let (vfs, order) = (MemoryVfs::new(1), InternalOrder::new(order));
        vfs.create_dir_all(dir()).unwrap();
        let opener = Opener { vfs: vfs.clone(), order: order.clone() };
        let store = TableStore::new(
            Box::new(opener),
            OpenSlots::new(-1),
            crate::version::log_life::LogLives::new(vfs::MemoryVfs::new(1), "/logs".into(), PurgeQueue::new()),
        );
        let version = Version::empty(order.clone(), 7);
        World { vfs, order, store, version, last_number: 0 }
    }

    fn apply(&mut self, edit: &VersionEdit) {
        let mut builder = VersionBuilder::new(&self.version, &self.store);
        builder.apply(edit).unwrap();
        self.version = builder.build().unwrap().version;
    }

    fn add(&mut self, level: usize, number: u64, entries: &[Entry<'_>]) {
        let meta = self.write(number, entries);
        self.apply(&VersionEdit { added: vec![(level, meta)], ..VersionEdit::default() });
        self.last_number = self.last_number.max(number);
    }

    /// Writes a table whose blocks hold one entry each, so that shares show.
    fn write(&self, number: u64, entries: &[Entry<'_>]) -> FileMeta {
        let path = path_of(FileNumber(number));
        let mut config = TableBuilderConfig::new(&path);
        config.order = self.order.clone();
        config.options.block_size = 1;
        let file = self.vfs.create(&path, IfExists::Fail).unwrap();
        let mut builder = Box::new(BlockBasedTableBuilder::new(file, config).unwrap());
        let mut keys = Vec::new();
        for (start, end, seq) in entries {
            let (start, seq) = (start.as_bytes().to_vec(), SeqNo(*seq));
            match end {
                None => keys.push(key::encode(&start, seq, ValueKind::Value)),
                Some(end) => {
                    let end = end.as_bytes().to_vec();
                    builder.add_tombstone(&RangeTombstone { start, end, seq }).unwrap();
                }
            }
        }
        keys.sort_by(|a, b| self.order.compare(a, b));
        keys.iter().for_each(|key| builder.add(key, &[b'v'; 50]).unwrap());
        let summary = builder.finish().unwrap();
        for (start, end, seq) in entries {
            let Some(end) = end else { continue };
            keys.push(key::encode(start.as_bytes(), SeqNo(*seq), ValueKind::RangeDeletion));
            keys.push(key::encode(end.as_bytes(), SeqNo::MAX, ValueKind::RangeDeletion));
        }
        keys.sort_by(|a, b| self.order.compare(a, b));
        FileMeta {
            number: FileNumber(number),
            file_bytes: summary.file_bytes,
            smallest: keys.first().unwrap().clone(),
            largest: keys.last().unwrap().clone(),
            smallest_seq: summary.smallest_seq,
            largest_seq: summary.largest_seq,
            epoch_number: number,
            ..FileMeta::default()
        }
    }

    /// False where there was nothing in the span.
    fn excise(&mut self, start: &str, end: &str) -> bool {
        let span = ExciseSpan { start: start.as_bytes(), end: end.as_bytes() };
        let last = &mut self.last_number;
        let plan = plan(&self.version, span, &mut || {
            *last += 1;
            FileNumber(*last)
        });
        let plan = plan.unwrap();
        if plan.deleted.is_empty() {
            assert!(plan.added.is_empty());
            return false;
        }
        let mut edit = VersionEdit::default();
        plan.add_to(&mut edit);
        self.apply(&edit);
        true
    }

    fn describe(&self) -> String {
        self.version.all_files().map(|(level, file)| format!("L{level} {}\n", describe(file))).collect()
    }
}

fn shown(internal_key: &[u8]) -> String {
    let (user_key, trailer) = key::split(internal_key).unwrap();
    let user_key = String::from_utf8_lossy(user_key);
    if key::is_exclusive_end(internal_key) { format!("{user_key})") } else { format!("{user_key}@{}", trailer >> 8) }
}

fn points(file: &TableFile) -> Vec<Vec<u8>> {
    let mut cursor = file.open().unwrap().cursor(&TableReadOptions::default());
    let mut keys = Vec::new();
    let mut valid = cursor.seek_to_first();
    while valid {
        keys.push(cursor.key().to_vec());
        valid = cursor.next();
    }
    cursor.status().unwrap();
    keys
}

fn tombstones(file: &TableFile) -> Arc<FragmentedTombstones> {
    file.open().unwrap().tombstones().unwrap_or_default()
}

/// Number, file, bounds, share in hundredths; then what can be read.
fn describe(file: &TableFile) -> String {
    let meta = &file.meta;
    let mut text = format!("{}", meta.number.0);
    if let Some(backing) = meta.backing {
        let share = 100 * meta.file_bytes / backing.file_bytes;
        write!(text, " in {}, {share}%", backing.number.0).unwrap();
    }
    write!(text, " [{} {}] epoch {}:", shown(&meta.smallest), shown(&meta.largest), meta.epoch_number).unwrap();
    points(file).iter().for_each(|key| write!(text, " {}", shown(key)).unwrap());
    for fragment in tombstones(file).fragments() {
        let (start, end) = (String::from_utf8_lossy(&fragment.start), String::from_utf8_lossy(&fragment.end));
        fragment.seqs.iter().for_each(|seq| write!(text, " {start}-{end}@{seq}").unwrap());
    }
    text
}

fn parse_entry(word: &str) -> Entry<'_> {
    let (keys, seq) = word.split_once('@').unwrap();
    let seq = seq.parse().unwrap();
    match keys.split_once('-') {
        Some((start, end)) => (start, Some(end), seq),
        None => (keys, None, seq),
    }
}

fn outcome(input: &str) -> String {
    let reversed = input.lines().any(|line| line == "reverse");
    let mut world = World::new(if reversed { UserOrder::ReverseBytewise } else { UserOrder::Bytewise });
    let mut text = String::new();
    for line in input.lines().filter(|line| !line.starts_with('#') && *line != "reverse") {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["excise", start, end] if world.excise(start, end) => text += &world.describe(),
            ["excise", ..] => text += "nothing\n",
            [level, number, ref entries @ ..] => {
                let entries: Vec<_> = entries.iter().map(|word| parse_entry(word)).collect();
                let (level, number) = (level.parse().unwrap(), number.trim_end_matches(':').parse().unwrap());
                world.add(level, number, &entries);
            }
            _ => panic!("no such line: {line}"),
        }
    }
    text
}

#[test]
fn excises_as_text() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/version/tests/testdata/excise.txt");
    let real = vfs::RealVfs::new();
    let text = String::from_utf8(vfs::read_all(&*real, &path, 1 << 20, IoClass::Other).unwrap()).unwrap();
    let mut written = String::new();
    for case in text.split("\n\n").filter(|case| !case.trim().is_empty()) {
        let input = case.split_once("----").map_or(case, |(input, _)| input).trim();
        writeln!(written, "{input}\n----\n{}", outcome(input)).unwrap();
    }
    if std::env::var_os("UPDATE").is_some() {
        let mut file = real.create(&path, IfExists::Truncate).unwrap();
        file.append(written.as_bytes(), IoClass::Other).unwrap();
        return;
    }
    assert_eq!(text, written, "excise.txt; UPDATE=1 rewrites it");
}

/// What a level has, told by key: entries, and the numbers of the tombstones over the key.
type Contents = BTreeMap<(usize, Vec<u8>), Vec<String>>;

fn contents(version: &Version, keys: &[Vec<u8>]) -> Contents {
    let mut all = Contents::new();
    for (level, file) in version.all_files() {
        for point in points(file) {
            all.entry((level, key::user_key(&point).to_vec())).or_default().push(shown(&point));
        }
        let tombstones = tombstones(file);
        for user_key in keys {
            for seq in (0..100).rev().map(SeqNo).filter(|seq| tombstones.covering(user_key, *seq) == Some(*seq)) {
                all.entry((level, user_key.clone())).or_default().push(format!("over@{seq}"));
            }
        }
    }
    all.values_mut().for_each(|found| found.sort());
    all
}

/// A table's bounds are the first and the last of what is in it: nothing of it is out of reach, and it reaches no further.
fn check_bounds(version: &Version) {
    let order = version.order();
    for (_, file) in version.all_files() {
        let mut keys = points(file);
        for fragment in tombstones(file).fragments() {
            keys.push(key::encode(&fragment.start, fragment.seqs[0], ValueKind::RangeDeletion));
            keys.push(key::encode(&fragment.end, SeqNo::MAX, ValueKind::RangeDeletion));
        }
        keys.sort_by(|a, b| order.compare(a, b));
        assert_eq!(keys.first(), Some(&file.meta.smallest), "{}", describe(file));
        assert_eq!(keys.last(), Some(&file.meta.largest), "{}", describe(file));
    }
}

fn random_table(random: &mut Random, names: &[String], seq: u64) -> Vec<(String, Option<String>, u64)> {
    let mut entries = Vec::new();
    for (at, name) in names.iter().enumerate() {
        if random.chance(3) {
            let versions = 1 + random.below(2);
            entries.extend((0..versions).map(|version| (name.clone(), None, seq + version)));
        }
        if random.chance(7) && at + 1 < names.len() {
            let end = at + 1 + random.below((names.len() - at - 1) as u64) as usize;
            entries.push((name.clone(), Some(names[end].clone()), seq + random.below(3)));
        }
    }
    entries
}

#[test]
fn an_excise_takes_out_its_span_and_nothing_else() {
    for seed in 1..120 {
        let mut random = Random(seed);
        let reversed = random.chance(3);
        let order = if reversed { UserOrder::ReverseBytewise } else { UserOrder::Bytewise };
        let mut world = World::new(order.clone());
        let mut names: Vec<String> = (0..26u8).map(|i| char::from(b'a' + i).to_string()).collect();
        names.sort_by(|a, b| order.compare(a.as_bytes(), b.as_bytes()));
        // Keys between the names too: a bound must not lie half a key off.
        let keys: Vec<Vec<u8>> =
            names.iter().flat_map(|name| [name.clone().into_bytes(), format!("{name}m").into_bytes()]).collect();
        for number in 1..6 {
            let level = if number <= 3 { 0 } else { number as usize };
            let entries = random_table(&mut random, &names, number * 10);
            let entries: Vec<Entry<'_>> =
                entries.iter().map(|(key, end, seq)| (&**key, end.as_deref(), *seq)).collect();
            if !entries.is_empty() {
                world.add(level, number, &entries);
            }
        }
        for _ in 0..6 {
            let before = contents(&world.version, &keys);
            let first = random.below(25) as usize;
            let last = (first + 1 + random.below(9) as usize).min(25);
            let (start, end) = (names[first].clone(), names[last].clone());
            world.excise(&start, &end);
            let is_outside =
                |key: &[u8]| order.compare(key, start.as_bytes()).is_lt() || order.compare(key, end.as_bytes()).is_ge();
            let expected: Contents = before.into_iter().filter(|((_, key), _)| is_outside(key)).collect();
            assert_eq!(contents(&world.version, &keys), expected, "seed {seed}, excise {start} {end}");
            check_bounds(&world.version);
        }
    }
}

#[test]
fn an_inverted_or_empty_span_takes_out_nothing() {
    let mut world = World::new(UserOrder::Bytewise);
    world.add(1, 1, &[("a", None, 1), ("c", None, 1)]);
    assert!(!world.excise("b", "b") && !world.excise("c", "a"));
}

#[test]
fn a_table_that_cannot_be_read_fails_the_plan() {
    let mut world = World::new(UserOrder::Bytewise);
    world.add(1, 1, &[("a", None, 1), ("c", None, 1), ("e", None, 1)]);
    let mut bytes = world.vfs.read_file(&path_of(FileNumber(1))).unwrap();
    bytes[3] ^= 1; // in the block of `a`, which a plan reads to see what is left on that side
    world.vfs.write_file(&path_of(FileNumber(1)), &bytes).unwrap();
    let number = &mut || FileNumber(9);
    let error = plan(&world.version, ExciseSpan { start: b"b", end: b"d" }, number).map(drop).unwrap_err();
    assert_eq!(error.kind(), base::ErrorKind::Corruption);
    assert_eq!(plan(&world.version, ExciseSpan { start: b"a", end: b"d" }, number).unwrap().added.len(), 1);
}
