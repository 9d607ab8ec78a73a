//! Compactions from whose inputs an ingest takes something while they run.

use base::extend::Event;
use spillway::{CompactRangeOptions, IngestOptions, IngestRequest};

use super::common::{World, name};

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
