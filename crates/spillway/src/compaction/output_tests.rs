use std::path::Path;
use std::sync::atomic::AtomicU64;

use base::options::DbOptions;
use table::{BlockBasedTable, Table};
use vfs::{Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule, Vfs};

use super::*;
use crate::background::tasks::Tasks;
use crate::background::{RateLimiter, Throttle};
use crate::compaction::cutter::CutLimits;
use crate::compaction::entries::EntryRules;
use crate::core::flush_ways::FlushCounts;
use crate::core::running::RunningJobs;
use crate::cursor::level::UserBounds;
use crate::cursor::snapshot::CapturedSnapshots;
use crate::cursor::testing::{FakeTable, VecCursor, VersionMaker, fragmented, order};
use crate::info_log::InfoLog;
use crate::observe::events::EventRing;
use crate::queue::flushable::MemtableMaking;
use crate::version::log_life::LogLives;
use crate::version::numbers::FileNumbers;
use crate::version::purge::PurgeQueue;

const DIR: &str = "/db";

fn context(vfs: Arc<dyn Vfs>) -> Context {
    vfs.create_dir_all(Path::new(DIR)).unwrap();
    Context {
        origin: vfs::Origin::here(),
        logs: LogLives::new(vfs.clone(), DIR.into(), PurgeQueue::new()),
        throttle: Throttle::new(vfs.clone(), None, RateLimiter::with(vfs.clone(), 0)),
        info_log: InfoLog::new(&vfs, Path::new(DIR), &DbOptions::default(), true),
        vfs,
        dir: DIR.into(),
        last_options_file: AtomicU64::new(0),
        own_dirs: Vec::new(),
        options: DbOptions::default(),
        raw_values: false,
        options_now: Default::default(),
        numbers: Arc::new(FileNumbers::starting_at(FileNumber(100))),
        memtable_ids: AtomicU64::new(0),
        memtables: MemtableMaking::inline(),
        tasks: Tasks::new(true),
        statistics: None,
        sample: None,
        flushes: FlushCounts::default(),
        running: RunningJobs::default(),
        events: EventRing::default(),
        listeners: Vec::new(),
        db_id: "id".into(),
        session_id: "AAAAAAAAAAAAAAAAAAAA".into(),
        sessions: Vec::new(),
        dir_sync_failed: std::sync::atomic::AtomicBool::new(false),
        recovery_doubts: Default::default(),
        kept_look: Default::default(),
    }
}

fn rules() -> OutputRules {
    OutputRules {
        family: FamilyRules {
            id: FamilyId::DEFAULT,
            name: "default".into(),
            order: order(),
            options: Arc::new(FamilyOptions { paranoid_file_checks: true, ..FamilyOptions::default() }),
        },
        level: 1,
        compression: CompressionKind::None,
        bottommost: false,
        class: IoClass::Compaction,
        epoch_number: 7,
        oldest_ancestor_time: 1000,
    }
}

/// Versions of a key: its newest number, and how many there are, all of them seen by snapshots.
struct Key(&'static str, u64, u64);

fn stream(keys: &[Key], tombstones: &[(&str, &str, u64)], range: UserBounds) -> EntryStream<VecCursor> {
    let mut entries = Vec::new();
    for Key(name, newest, versions) in keys {
        let seqs = (newest + 1 - versions..=*newest).rev();
        entries.extend(seqs.map(|seq| (encode(name.as_bytes(), SeqNo(seq), ValueKind::Value), vec![b'v'; 1000])));
    }
    let ranges = tombstones.iter().map(|(start, end, seq)| RangeTombstone {
        start: start.as_bytes().to_vec(),
        end: end.as_bytes().to_vec(),
        seq: SeqNo(*seq),
    });
    let tombstones: Vec<_> = fragmented(ranges.collect()).into_iter().collect();
    let rules = EntryRules {
        order: order(),
        snapshots: CapturedSnapshots { snapshots: (0..100).map(SeqNo).collect(), visible: SeqNo(100) },
        merge_operator: None,
        filter: None,
        level: 2,
        bottommost: false,
        key_not_below: None,
        range,
        beneath: None,
    };
    EntryStream::new(VecCursor::new(order(), entries), &tombstones, rules)
}

fn cutter(
    target_bytes: u64,
    grandparent_bytes_max: u64,
    grandparents: Vec<Arc<crate::version::table_file::TableFile>>,
) -> Option<Cutter> {
    Some(Cutter::new(order().user, CutLimits { target_bytes, grandparent_bytes_max }, grandparents))
}

fn shown(key: &[u8]) -> String {
    let parsed = base::ParsedKey::parse(key).unwrap();
    let user_key = String::from_utf8_lossy(parsed.user_key);
    if parsed.seq == SeqNo::MAX { format!("{user_key})") } else { format!("{user_key}@{}", parsed.seq) }
}

/// The tables as `smallest..largest: entries; tombstones`.
fn describe(context: &Context, metas: &[FileMeta]) -> Vec<String> {
    let table = |meta: &FileMeta| {
        let path = context.table_path(meta.number);
        let file = context.vfs.open(&path).unwrap();
        let table = BlockBasedTable::open(file, &path, meta.file_bytes, &TableContext::default()).unwrap();
        let tombstones = table.tombstones().map_or(String::new(), |all| {
            let text = |f: &base::tombstone::Fragment| {
                let (start, end) = (String::from_utf8_lossy(&f.start), String::from_utf8_lossy(&f.end));
                format!(" {start}-{end}:{:?}", f.seqs.iter().map(|seq| seq.0).collect::<Vec<_>>())
            };
            all.fragments().iter().map(text).collect()
        });
        let mut cursor = table.cursor(&table::TableReadOptions::default());
        let mut keys = String::new();
        let mut valid = cursor.seek_to_first();
        while valid {
            keys += &format!(" {}", shown(cursor.key()));
            valid = cursor.next();
        }
        format!("{}..{}:{keys};{tombstones}", shown(&meta.smallest), shown(&meta.largest))
    };
    metas.iter().map(table).collect()
}

fn write(keys: &[Key], tombstones: &[(&str, &str, u64)], range: UserBounds, cutter: Option<Cutter>) -> Vec<String> {
    let context = context(MemoryVfs::new(1));
    let rules = rules();
    let mut outputs = Outputs::new(&context, &rules);
    outputs.write(&mut stream(keys, tombstones, range), cutter, &|| false).unwrap();
    let metas = outputs.keep().unwrap();
    for pair in metas.windows(2) {
        assert!(order().compare(&pair[0].largest, &pair[1].smallest).is_lt(), "tables do not overlap");
    }
    assert!(metas.iter().all(|meta| meta.epoch_number == 7 && meta.oldest_ancestor_time == 1000));
    describe(&context, &metas)
}

#[test]
fn versions_of_a_key_stay_in_one_table() {
    let keys = [Key("a", 10, 1), Key("b", 30, 8), Key("c", 12, 1), Key("d", 40, 1)];
    let tables = write(&keys, &[], UserBounds::default(), cutter(4000, u64::MAX, Vec::new()));
    assert_eq!(
        tables,
        ["a@10..b@23: a@10 b@30 b@29 b@28 b@27 b@26 b@25 b@24 b@23;", "c@12..d@40: c@12 d@40;"],
        "b is not cut, though the table is over its size"
    );
}

#[test]
fn tombstones_are_cut_where_tables_are() {
    let keys = [Key("b", 10, 2), Key("d", 10, 2), Key("f", 10, 2)];
    let tables =
        write(&keys, &[("a", "z", 20), ("c", "d", 30)], UserBounds::default(), cutter(3000, u64::MAX, Vec::new()));
    assert_eq!(
        tables,
        ["a@20..d): b@10 b@9; a-c:[20] c-d:[30, 20]", "d@20..f): d@10 d@9; d-f:[20]", "f@20..z): f@10 f@9; f-z:[20]",]
    );
}

#[test]
fn a_part_keeps_to_its_range() {
    let keys = [Key("b", 10, 1), Key("d", 10, 1), Key("f", 10, 1)];
    let range = UserBounds { lower: Some(b"c".to_vec()), upper: Some(b"f".to_vec()) };
    assert_eq!(write(&keys, &[("a", "z", 20)], range, None), ["c@20..f): d@10; c-f:[20]"]);
}

#[test]
fn tombstones_alone_make_a_table() {
    assert_eq!(write(&[], &[("a", "c", 5)], UserBounds::default(), None), ["a@5..c):; a-c:[5]"]);
    assert!(write(&[], &[], UserBounds::default(), None).is_empty());
}

#[test]
fn tables_end_where_they_would_overlap_too_much_below() {
    let mut maker = VersionMaker::default();
    for (first, last) in [("a", "b"), ("c", "d"), ("e", "f")] {
        let bound = |key: &str| encode(key.as_bytes(), SeqNo(1), ValueKind::Value);
        maker.add(1, (bound(first), bound(last)), FakeTable::new(Vec::new(), None));
    }
    let version = maker.build(); // each file has one byte
    let keys = [Key("a", 10, 1), Key("b", 10, 1), Key("c", 10, 1), Key("d", 10, 1), Key("e", 10, 1)];
    let cut = |most, target| {
        let tables = write(&keys, &[], UserBounds::default(), cutter(target, most, version.level(1).to_vec()));
        tables.iter().map(|table| table.split(':').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(cut(1, 1 << 20), ["a@10..b@10", "c@10..d@10", "e@10..e@10"]);
    assert_eq!(cut(2, 1 << 20), ["a@10..d@10", "e@10..e@10"]);
    assert_eq!(cut(9, 1 << 20), ["a@10..e@10"]);
    assert_eq!(cut(9, 3600), ["a@10..b@10", "c@10..d@10", "e@10..e@10"], "half full, where a grandparent ends");
}

#[test]
fn nothing_is_left_behind_when_writing_fails() {
    let keys = [Key("a", 10, 4), Key("b", 10, 4), Key("c", 10, 4)];
    for (operation, nth) in [
        (Operation::Create, 2),
        (Operation::Write, 1),
        (Operation::Sync, 1),
        (Operation::Sync, 2),
        (Operation::SyncDir, 1),
    ] {
        let memory = MemoryVfs::new(1);
        let faulty = FaultVfs::new(memory.clone());
        let context = context(faulty.clone());
        let rules = rules();
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(operation).nth(nth));
        let mut outputs = Outputs::new(&context, &rules);
        let written =
            outputs
                .write(&mut stream(&keys, &[], UserBounds::default()), cutter(4000, u64::MAX, Vec::new()), &|| false);
        let kept = written.and_then(|()| outputs.keep());
        assert_eq!(kept.unwrap_err().kind(), base::ErrorKind::Io, "{operation:?}");
        assert_eq!(memory.read_dir(Path::new(DIR)).unwrap(), Vec::<String>::new(), "{operation:?}");
    }
}

#[test]
fn a_job_that_is_stopped_leaves_nothing() {
    let memory = MemoryVfs::new(1);
    let context = context(memory.clone());
    let rules = rules();
    let mut outputs = Outputs::new(&context, &rules);
    let written = outputs.write(&mut stream(&[Key("a", 10, 1)], &[], UserBounds::default()), None, &|| true);
    assert_eq!(written.unwrap_err().kind(), base::ErrorKind::Closed);
    drop(outputs);
    assert_eq!(memory.read_dir(Path::new(DIR)).unwrap(), Vec::<String>::new());
}
