//! Compactions beside which an ingest comes: one that takes something from their inputs, one that they must not touch.

use std::ops::Range;
use std::sync::Arc;

use base::extend::{CompactionFilter, Event, FilterDecision};
use parking_lot::Mutex;
use testkit::engine::{CompactRangeOptions, IngestMode, IngestOptions, IngestRequest};

use super::common::{Contents, MODES, World, mode, name};

#[test]
fn a_compaction_by_hand_starts_again_where_an_excise_takes_its_inputs() {
    let world = World::with(|options| {
        options.families.iter_mut().for_each(|(_, family)| family.disable_auto_compactions = true);
    });
    for value in ["first", "second"] {
        world.put_all(0..30, value);
        world.flush();
    }
    let mut is_first = true;
    world.whenever(move |db, event| {
        if let Event::CompactionBegin { .. } = event
            && std::mem::take(&mut is_first)
        {
            let excise = Some((name(10).into_bytes(), name(20).into_bytes()));
            let request = IngestRequest { excise, ..IngestRequest::new(db.default_family(), Vec::new()) };
            db.ingest_all(&[request], &IngestOptions::default()).expect("excised");
        }
    });
    world.db.compact_range(&world.family, None, None, &CompactRangeOptions::default()).expect("compacted");
    let used: Vec<usize> = world.db.levels(&world.family).iter().map(|level| level.files).collect();
    assert_eq!(used.iter().filter(|files| **files > 0).count(), 1, "all is in one level: {used:?}");
    assert_eq!(used[0], 0);
    assert!(world.contents().into_iter().all(|(_, value)| value == "second"));
    assert_eq!(world.contents().len(), 20);
}

/// The keys that a filter removes.
const REMOVED: Range<u32> = 10..20;

/// Notes which values it saw, too.
#[derive(Default)]
struct RemoveSome(Mutex<Vec<String>>);

impl CompactionFilter for RemoveSome {
    fn name(&self) -> &str {
        "remove-some"
    }

    fn filter(&self, _level: usize, key: &[u8], value: &[u8]) -> FilterDecision {
        self.0.lock().push(String::from_utf8_lossy(value).into_owned());
        match (name(REMOVED.start).as_bytes()..name(REMOVED.end).as_bytes()).contains(&key) {
            true => FilterDecision::Remove,
            false => FilterDecision::Keep,
        }
    }
}

/// What comes while a filter is at work on its keys was not shown to it, and stays; what was below is gone.
#[test]
fn a_filter_removes_nothing_that_is_ingested_meanwhile() {
    for ingest in MODES {
        ingest_beside_a_filter(ingest, &(0..30).collect::<Vec<_>>(), 5..15);
    }
}

/// The same between two keys of what is compacted, where there is nothing above the level that it is written to.
#[test]
fn a_filter_removes_nothing_that_is_ingested_between_its_keys() {
    for ingest in MODES {
        ingest_beside_a_filter(ingest, &(0..10).chain(20..30).collect::<Vec<_>>(), 12..15);
    }
}

fn ingest_beside_a_filter(ingest: IngestMode, old: &[u32], new: Range<u32>) {
    let filter = Arc::new(RemoveSome::default());
    let mut world = World::with(|options| {
        for (_, family) in &mut options.families {
            family.disable_auto_compactions = true;
            family.compaction_filter = Some(filter.clone());
        }
    });
    world.put_all(old.iter().copied(), "old");
    world.flush();
    let file = world.table("new", new.clone(), "new");
    let mut is_first = true;
    world.whenever(move |db, event| {
        if let Event::CompactionBegin { .. } = event
            && std::mem::take(&mut is_first)
        {
            let report = db.ingest(&db.default_family(), std::slice::from_ref(&file), &mode(ingest));
            assert_eq!(report.expect("ingested").flushes, 0);
        }
    });
    world.db.compact_range(&world.family, None, None, &CompactRangeOptions::default()).expect("compacted");
    let seen = std::mem::take(&mut *filter.0.lock());
    assert_eq!(seen, vec!["old"; old.len()], "{ingest:?}: it is not shown what comes meanwhile");
    let left = old.iter().copied().filter(|key| !REMOVED.contains(key) && !new.contains(key));
    let left = left.map(|key| (name(key), "old".to_owned()));
    let expected: Contents = new.clone().map(|key| (name(key), "new".to_owned())).chain(left).collect();
    assert_eq!(world.contents(), expected, "{ingest:?}");
    world.reopen();
    assert_eq!(world.contents(), expected, "{ingest:?}");
    let kept = old.iter().filter(|key| !REMOVED.contains(key)).count() + new.len();
    assert_eq!(world.number("rocksdb.estimate-num-keys"), kept as u64, "{ingest:?}: nothing that was removed is below");
}
