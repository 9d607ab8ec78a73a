//! Queues as text: writes and ingests in, the queue's order, what flushes take from it, and how far the family is flushed
//! then (Q1, Q2, F2). `UPDATE=1 cargo test -p spillway-db ingest::queued` writes the expected parts anew.
//!
//! A case is input lines, `----`, expected lines, and an empty line. Input lines:
//!
//! - `put KEY ...`: one write each; `delete-range START END`; `switch`: the mutable memtable is full; `seal`: and somebody
//!   waits for its flush;
//! - `ingest [excise START END] [KEY,KEY... ...]`: one ingest, of a table for each list of keys; `START~END` in a list
//!   deletes that range;
//! - `write KEY with ...`: an ingest, and a batch with it;
//! - `merge BYTES`: ingests of so many bytes are merged from then on, where nothing else keeps them from that;
//! - `queue`: the queue, the young end first: each entry's numbers, and an ingest's tables by layer;
//! - `flush`: the next run from the old end is flushed; shown are the ways, what each took, and how far that leads (an
//!   ingest may be linked in part, and merged in part); `job`: as
//!   many runs as a background flush takes;
//! - `get KEY ...`: which of the keys are found, by each of the ways to look;
//! - `sleep SECONDS`; `age`: seconds since the oldest queued ingest arrived, by the property and by a reading; `waited`: how
//!   many ingests have left the queue since the open, and the longest time of one in it;
//! - `tables`: the levels; `snapshot`, `release`; `reopen`: what the log holds is replayed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::metrics::Histogram;
use base::options::{DbOptions, FamilyOptions, apply_string};
use vfs::{IfExists, IoClass, MemoryVfs, RealVfs, Vfs};

use super::*;
use crate::core::{FamilyState, State};
use crate::cursor::damage::SkippedDamage;
use crate::flush::divide::{Divided, Run};
use crate::flush::job::FlushPlan;
use crate::internal::{
    Database, ErrorKind, Family, IngestOptions, IngestProgress, IngestRequest, OpenOptions, ReadOptions, ReadTier,
    Snapshot, TableWriter, WriteBatch, WriteOptions,
};
use crate::queue::entries::SmallIngests;

struct World {
    vfs: Arc<MemoryVfs>,
    db: Option<Database>,
    snapshot: Option<Snapshot>,
    files: u64,
}

impl World {
    fn new() -> Self {
        let vfs = MemoryVfs::new(1);
        let db = Some(open(&vfs));
        let world = World { vfs, db, snapshot: None, files: 0 };
        world.hold_flushes();
        world
    }

    fn db(&self) -> &Database {
        self.db.as_ref().expect("open but while it is reopened")
    }

    fn family(&self) -> Arc<Family> {
        self.db().default_family()
    }

    fn with_state<T>(&self, look: impl FnOnce(&mut State, base::FamilyId) -> T) -> T {
        look(&mut self.db().core().state.lock(), self.family().id())
    }

    fn with<T>(&self, look: impl FnOnce(&mut FamilyState) -> T) -> T {
        self.with_state(|state, id| look(state.families.get_mut(&id).expect("it is there")))
    }

    /// A family that is being flushed is not picked again: nothing leaves the queue but by `flush`.
    fn hold_flushes(&self) {
        self.with(|family| family.flushing = true);
    }

    fn ingest(&mut self, words: &[&str]) {
        let request = self.request(words);
        self.db().ingest_all(&[request], &IngestOptions::default()).unwrap();
    }

    fn write_with_ingest(&mut self, key: &str, words: &[&str]) {
        let request = self.request(words);
        let mut batch = WriteBatch::new();
        batch.put(self.family().id(), key.as_bytes(), b"");
        let options = IngestOptions::default();
        let prepared = self.db().prepare_ingest(&[request], &options, &IngestProgress::default()).unwrap();
        self.db().write_with_ingest(&batch, prepared).unwrap();
    }

    fn request(&mut self, words: &[&str]) -> IngestRequest {
        let (excise, files) = match words {
            ["excise", start, end, files @ ..] => (Some((start.as_bytes().to_vec(), end.as_bytes().to_vec())), files),
            files => (None, files),
        };
        let files = files.iter().map(|keys| self.table(keys)).collect();
        IngestRequest { excise, ..IngestRequest::new(self.family(), files) }
    }

    fn table(&mut self, keys: &str) -> PathBuf {
        self.files += 1;
        let path = PathBuf::from(format!("/{}.sst", self.files));
        let mut table = TableWriter::create(self.vfs.clone(), &path, &self.family().options()).unwrap();
        for key in keys.split(',') {
            match key.split_once('~') {
                Some((start, end)) => table.delete_range(start.as_bytes(), end.as_bytes()).unwrap(),
                None => table.put(key.as_bytes(), b"").unwrap(),
            }
        }
        table.finish().unwrap();
        path
    }

    fn flush(&self, pick: impl FnOnce(&mut State, base::FamilyId) -> Option<FlushPlan>) -> String {
        let plan = self.with_state(|state, id| {
            state.families.get_mut(&id).expect("it is there").flushing = false;
            pick(state, id)
        });
        let Some(plan) = plan else {
            self.hold_flushes();
            return "nothing\n".into();
        };
        let divided = Divided::new(Arc::new(plan.clone())).unwrap();
        let runs = divided.runs.iter().flat_map(|run| shown_run(run, &plan)).collect::<Vec<_>>().join(", ");
        self.db().engine().flusher.flush_group(vec![plan]).unwrap();
        self.hold_flushes();
        self.with(|family| {
            let linked: Vec<u64> = family.linked_ingests.iter().map(|first| first.0).collect();
            format!("{runs}: through {}, and {linked:?}\n", family.flushed_through.0)
        })
    }

    fn queue(&self) -> String {
        self.with(|family| {
            let mut text = format!("mutable after {}\n", family.mutable.created_at().0);
            for entry in &family.queue {
                writeln!(text, "{}", described(&**entry)).unwrap();
            }
            text
        })
    }

    fn tables(&self) -> String {
        let mut tables = self.db().live_files();
        tables.retain(|table| !table.is_queued);
        tables.sort_by(|a, b| (a.level, &a.smallest).cmp(&(b.level, &b.smallest)));
        let shown = tables.iter().map(|table| {
            let [first, last] = [&table.smallest, &table.largest].map(|key| String::from_utf8_lossy(key));
            let (from, to) = (table.smallest_seq.0, table.largest_seq.0);
            let part = if table.is_virtual { " virtual" } else { "" };
            format!("L{} {first}-{last} @{from}..{to}{part}\n", table.level)
        });
        if tables.is_empty() { "no tables\n".into() } else { shown.collect() }
    }

    /// All keys, as a reader finds them.
    fn keys(&self) -> String {
        let mut iterator = self.db().iter(&self.family(), &ReadOptions::default()).unwrap();
        let mut text = String::from("keys");
        let mut valid = iterator.seek_to_first();
        while valid {
            write!(text, " {}", String::from_utf8_lossy(iterator.key())).unwrap();
            valid = iterator.next();
        }
        text + "\n"
    }

    /// Which of the keys a lookup of each, a lookup of all, and an iterator find.
    fn get(&self, keys: &[&str]) -> String {
        let (family, options) = (self.family(), ReadOptions::default());
        let all: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
        let each = all.iter().map(|key| self.db().get(&family, key, &options).unwrap().is_some());
        let at_once =
            self.db().multi_get(&family, &all, &options).unwrap().into_iter().map(|found| found.unwrap().is_some());
        let mut iterator = self.db().iter(&family, &options).unwrap();
        let sought = all.iter().map(|key| iterator.seek(key) && iterator.key() == *key);
        let ways: [(&str, Vec<bool>); 3] =
            [("get", each.collect()), ("multi-get", at_once.collect()), ("seek", sought.collect())];
        let mut text = String::new();
        for (way, found) in ways {
            let found: String =
                keys.iter().zip(found).filter(|(_, is)| *is).map(|(key, _)| format!(" {key}")).collect();
            writeln!(text, "{way}{found}").unwrap();
        }
        text
    }

    fn age(&self) -> String {
        let property = self.db().int_property(&self.family(), "spillway.oldest-queued-ingest-seconds").unwrap();
        let reading = self.db().observe();
        let of_all = reading.ingests.oldest_queued_s;
        assert_eq!(reading.families[0].oldest_queued_ingest_s, of_all);
        assert!(reading.to_metrics().contains(&format!("spillway_oldest_queued_ingest_seconds {of_all}\n")));
        format!("age {property} s, {of_all} s\n")
    }

    fn command(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let options = WriteOptions::default();
        match words[..] {
            ["put", ref keys @ ..] => {
                keys.iter().for_each(|key| self.db().put(&self.family(), key.as_bytes(), b"", &options).unwrap());
            }
            ["delete-range", start, end] => {
                self.db().delete_range(&self.family(), start.as_bytes(), end.as_bytes(), &options).unwrap();
            }
            ["merge", bytes] => self.db().set_options(&self.family(), &[("merge_ingests_max_bytes", bytes)]).unwrap(),
            ["seal"] => drop(self.db().engine().flusher.memtables.seal_for_flush(&self.family()).unwrap()),
            ["ingest", ref words @ ..] => self.ingest(words),
            ["write", key, "with", ref words @ ..] => self.write_with_ingest(key, words),
            ["snapshot"] => self.snapshot = Some(self.db().snapshot()),
            ["release"] => self.snapshot = None,
            ["queue"] => return self.queue(),
            ["flush"] => return self.flush(|state, id| state.plan_flush(id, SmallIngests::Merge)),
            ["job"] => return self.flush(|state, _| state.pick_flush()),
            ["switch"] => {
                let family = self.family();
                self.db().engine().flusher.memtables.replace_memtable(&family, family.mutable_id(), 0).unwrap();
            }
            ["get", ref keys @ ..] => return self.get(keys),
            ["tables"] => return self.tables(),
            ["sleep", seconds] => self.vfs.sleep(Duration::from_secs(seconds.parse().unwrap())),
            ["age"] => return self.age(),
            ["waited"] => {
                let waited = self.db().statistics().unwrap().distribution(Histogram::IngestQueued);
                return format!("{} ingests, {} s at most\n", waited.count(), waited.max() / 1_000_000);
            }
            ["keys"] => return self.keys(),
            ["reopen"] => {
                self.with(|family| family.flushing = false);
                // As after a kill: closing would flush what the log does not need to.
                self.db = None;
                self.db = Some(open(&self.vfs));
                self.hold_flushes();
            }
            _ => panic!("no command: {line}"),
        }
        String::new()
    }
}

fn open(vfs: &Arc<MemoryVfs>) -> Database {
    let db = DbOptions { create_if_missing: true, statistics: true, ..DbOptions::default() };
    let mut options = OpenOptions { db, vfs: vfs.clone(), ..OpenOptions::default() };
    apply_string(&mut options.db, "log_file_bytes=64K").unwrap();
    let mut of_family = FamilyOptions::default();
    let queueing = "min_write_buffer_number_to_merge=16;max_write_buffer_number=40;disable_auto_compactions=true;\
                    merge_ingests_max_bytes=0";
    apply_string(&mut of_family, queueing).unwrap();
    Database::open("/db", &options.family("default", of_family)).unwrap()
}

/// The numbers after which an entry begins and with which it ends.
fn numbers(entry: &dyn Flushable) -> String {
    let last = entry.largest_seq().expect("sealed").0;
    format!("({}, {last}]", entry.created_at().0)
}

/// The ingests of which a run links tables, and the entries that it writes into a table. An ingest may be in both.
fn shown_run(run: &Run, plan: &FlushPlan) -> Vec<String> {
    let is_linked = |file: &Arc<TableFile>| run.linked.iter().any(|linked| Arc::ptr_eq(linked, file));
    let linked: String = plan
        .ingests()
        .filter(|ingest| ingest.files().any(is_linked))
        .map(|ingest| format!(" {}", numbers(ingest)))
        .collect();
    let entries = run.rewrite.iter().flat_map(|plan| &plan.entries);
    let rewritten: String = entries.map(|entry| format!(" {}", numbers(&**entry))).collect();
    let way = if run.rewrite.iter().any(|plan| plan.has_ingests()) { "merge" } else { "rewrite" };
    let shown = [("link", linked), (way, rewritten)];
    shown.iter().filter(|(_, of)| !of.is_empty()).map(|(way, of)| format!("{way}{of}")).collect()
}

fn described(entry: &dyn Flushable) -> String {
    let Some(ingest) = entry.as_ingest() else { return format!("memtable {}", numbers(entry)) };
    let mut text = format!("ingest {}", numbers(entry));
    if let Some(excise) = ingest.excise() {
        let [start, end] = [&excise.start, &excise.end].map(|key| String::from_utf8_lossy(key));
        write!(text, " excise {start}-{end} @{}", excise.seq.0).unwrap();
    }
    for table in ingest.files() {
        let [first, last] =
            [table.meta.smallest_user_key(), table.largest_user_key()].map(|key| String::from_utf8_lossy(key));
        write!(text, " {first}-{last} @{}", table.meta.largest_seq.0).unwrap();
    }
    text
}

#[test]
fn order_of_the_queue_and_runs_of_flushes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ingest/queued/testdata/queue.txt");
    let real = RealVfs::new();
    let text = String::from_utf8(vfs::read_all(&*real, &path, 1 << 20, IoClass::Other).unwrap()).unwrap();
    let mut written = String::new();
    for case in text.split("\n\n").filter(|case| !case.trim().is_empty()) {
        let input = case.split_once("----").map_or(case, |(input, _)| input).trim();
        let mut world = World::new();
        let lines = input.lines().filter(|line| !line.starts_with('#'));
        let outcome = lines.fold(String::new(), |text, line| text + &world.command(line));
        writeln!(written, "{input}\n----\n{outcome}").unwrap();
        world.with(|family| family.flushing = false); // or closing would wait for that
    }
    if std::env::var_os("UPDATE").is_some() {
        let mut file = real.create(&path, IfExists::Truncate).unwrap();
        file.append(written.as_bytes(), IoClass::Other).unwrap();
        return;
    }
    assert_eq!(text, written, "UPDATE=1 rewrites it");
}

#[test]
fn only_so_many_ingests_are_linked_at_once() {
    let mut world = World::new();
    for i in 0..70 {
        world.ingest(&[&format!("k{i:02}")]);
    }
    assert_eq!([(); 2].map(|()| world.flush(|state, _| state.pick_flush()).matches('(').count()), [64, 6]);
    assert_eq!(world.flush(|state, _| state.pick_flush()), "nothing\n");
}

#[test]
fn a_read_limited_to_memory_opens_no_queued_table() {
    let mut world = World::new();
    world.ingest(&["a,c~e", "x"]);
    let memory_only = ReadOptions { read_tier: ReadTier::BlockCache, ..ReadOptions::default() };
    let kind = |key: &str, options: &ReadOptions| {
        let found = world.db().get(&world.family(), key.as_bytes(), options);
        found.map(|value| value.is_some()).map_err(|error| error.kind())
    };
    for key in ["a", "d", "x"] {
        assert_eq!(kind(key, &memory_only), Err(ErrorKind::Incomplete), "{key}");
    }
    assert_eq!(kind("a", &ReadOptions::default()), Ok(true));
    assert_eq!((kind("a", &memory_only), kind("d", &memory_only)), (Ok(true), Ok(false)), "open, and cached");
    assert_eq!(kind("x", &memory_only), Err(ErrorKind::Incomplete));
}

#[test]
fn a_read_past_damage_does_without_a_queued_tables_deletions_and_no_other_read_does() {
    let mut world = World::new();
    for key in ["a", "e"] {
        world.db().put(&world.family(), key.as_bytes(), b"", &WriteOptions::default()).unwrap();
    }
    world.ingest(&["c,d~f"]);
    let is_table = |path: &PathBuf| path.starts_with("/db") && path.extension().is_some_and(|end| end == "sst");
    let table = world.vfs.all_files().into_iter().find(is_table).expect("one");
    let whole = world.vfs.read_file(&table).unwrap();
    world.vfs.write_file(&table, &vec![0; whole.len()]).unwrap();
    let keys = |options: &ReadOptions| {
        let mut iterator = world.db().iter(&world.family(), options)?;
        let (mut keys, mut is_valid) = (String::new(), iterator.seek_to_first());
        while is_valid {
            keys += &String::from_utf8_lossy(iterator.key());
            is_valid = iterator.next();
        }
        iterator.status().map(|()| keys)
    };
    let damage = SkippedDamage::new();
    let past_damage = ReadOptions { skip_damaged: Some(damage.clone()), ..ReadOptions::default() };
    assert_eq!(keys(&past_damage).unwrap(), "ae");
    let [passed_over] = &damage.list()[..] else { panic!("one table: {damage:?}") };
    assert_eq!(passed_over.error.path(), Some(&*table));
    assert_eq!([&passed_over.from, &passed_over.through].map(|key| key.as_deref()), [Some(&b"c"[..]), Some(b"f")]);
    assert_eq!(keys(&ReadOptions::default()).unwrap_err().kind(), ErrorKind::Corruption);
    world.vfs.write_file(&table, &whole).unwrap();
    assert_eq!(keys(&ReadOptions::default()).unwrap(), "ac");
    world.with(|family| family.flushing = false);
}
