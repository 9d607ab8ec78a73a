//! A database that is closed while an ingest is prepared, or prepared and not committed.

use testkit::engine::{ErrorKind, IngestOptions, IngestProgress, IngestRequest};

use super::common::World;

/// Enough flushes for the new owner's tables to have all numbers that a prepare before can have taken.
fn write_and_flush(world: &World, rounds: u32) {
    for round in 0..rounds {
        world.put(round, "later");
        world.flush();
    }
}

#[test]
fn a_close_ends_what_is_being_prepared_before_others_have_the_directory() {
    let mut cut_off = 0;
    for files in 1..6 {
        let mut world = World::real();
        let tables: Vec<_> = (0..200).map(|i| world.table(&format!("{i}"), i * 10..i * 10 + 5, "new")).collect();
        let (db, family, progress) = (world.db.clone(), world.family.clone(), IngestProgress::default());
        let watched = progress.clone();
        let preparing = std::thread::spawn(move || {
            db.prepare_ingest(&[IngestRequest::new(family, tables)], &IngestOptions::default(), &watched).map(drop)
        });
        while progress.files().1 < files && !preparing.is_finished() {
            std::thread::yield_now();
        }
        world.reopen();
        let done = progress.files().1;
        write_and_flush(&world, 12);
        if let Err(error) = preparing.join().expect("no panic") {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
            cut_off += 1;
        }
        assert_eq!(progress.files().1, done, "nothing is made after the close");
        assert_eq!(world.contents().len(), 12);
    }
    assert!(cut_off > 0, "every prepare had ended before the close");
}

#[test]
fn what_was_prepared_before_a_close_harms_nobody_after_it() {
    for commits in [false, true] {
        let mut world = World::real();
        let tables: Vec<_> = (0..8).map(|i| world.table(&format!("{i}"), i * 10..i * 10 + 5, "new")).collect();
        let requests = [IngestRequest::new(world.family.clone(), tables)];
        let prepared = world.db.prepare_ingest(&requests, &IngestOptions::default(), &IngestProgress::default());
        let prepared = prepared.expect("prepared");
        world.reopen();
        write_and_flush(&world, 20);
        if commits {
            let error = world.db.commit_ingest(prepared).expect_err("of another opening");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        } else {
            drop(prepared);
        }
        world.reopen();
        assert_eq!(world.contents().len(), 20, "every table is there");
    }
}
