//! Many files at once: progress, cancelling, and one that fails among many.

use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::engine::vfs::{Fault, FaultVfs, IoClass, Operation, RealVfs, Rule};
use testkit::engine::{ErrorKind, IngestOptions, IngestProgress, IngestRequest};

use crate::common::{Place, default, verifying};

/// A disk so slow that another thread sees what is going on: a table has a few reads.
fn slow(dir: &Path, read_micros: u64) -> Place {
    let vfs = FaultVfs::new(RealVfs::new());
    let place = Place::on(vfs.clone(), dir);
    for (operation, micros) in [(Operation::Read, read_micros), (Operation::Sync, 20_000)] {
        vfs.inject(
            Rule::new(Fault::Latency(Duration::from_micros(micros))).on(operation).class(IoClass::Ingest).sticky(),
        );
    }
    place
}

/// Four times the readahead of a verification, about.
fn large(place: &Place, name: &str, first: u32) -> PathBuf {
    let value =
        |key: u32| -> String { (0..25).map(|i| format!("{:08x}", (key ^ i).wrapping_mul(0x9e37_79b9))).collect() };
    place.table_of(name, |table| {
        (first..first + 10_000)
            .for_each(|key| table.put(format!("k{key:08}").as_bytes(), value(key).as_bytes()).unwrap());
    })
}

fn requests(place: &Place, files: &[PathBuf]) -> [IngestRequest; 1] {
    [IngestRequest::new(place.family.clone(), files.to_vec())]
}

#[test]
fn progress_grows_within_files_and_ends_at_their_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let place = slow(dir.path(), 20_000);
    let files: Vec<PathBuf> = (0..5).map(|i| large(&place, &format!("{i}.sst"), i * 100_000)).collect();
    let sizes: u64 = files.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum();
    for options in [default(), verifying(), IngestOptions { link_files: true, ..verifying() }] {
        let progress = IngestProgress::default();
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            let preparing = scope.spawn(|| place.db.prepare_ingest(&requests(&place, &files), &options, &progress));
            while !preparing.is_finished() {
                seen.push((progress.files().1, progress.bytes().1));
                std::thread::yield_now();
            }
            drop(preparing.join().unwrap().unwrap());
        });
        assert_eq!((progress.files(), progress.bytes()), ((5, 5), (sizes, sizes)));
        assert!(seen.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1), "it only grows");
        let within = seen.iter().filter(|(files, bytes)| *files == 0 && *bytes > 0).count();
        assert!(within > 0, "bytes are told before a file is done: {} looks", seen.len());
    }
}

/// A cancel at whatever moment ends in the error or in tables that are ready, and nothing is left of either.
#[test]
fn a_prepare_can_be_cancelled_at_any_moment() {
    let dir = tempfile::tempdir().unwrap();
    let place = slow(dir.path(), 2_000);
    let files: Vec<PathBuf> = (0..4).map(|i| large(&place, &format!("{i}.sst"), i * 100_000)).collect();
    let sizes: u64 = files.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum();
    let (before, listing) = (place.contents(), place.listing());
    let any = IngestOptions { link_files: true, ..verifying() };
    let mut cancelled = 0;
    for options in [default(), verifying(), any] {
        for part in 0..8 {
            let progress = IngestProgress::default();
            std::thread::scope(|scope| {
                let preparing = scope.spawn(|| place.db.prepare_ingest(&requests(&place, &files), &options, &progress));
                while progress.bytes().1 < sizes * part / 8 && !preparing.is_finished() {
                    std::thread::yield_now();
                }
                progress.cancel();
                match preparing.join().unwrap() {
                    Ok(prepared) => drop(prepared),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
                        assert!(error.message().contains("cancelled"), "{error}");
                        cancelled += 1;
                    }
                }
            });
            assert_eq!(place.listing(), listing);
        }
    }
    assert!(cancelled > 12, "only {cancelled} were in time");
    assert_eq!(place.contents(), before);
    assert!(files.iter().all(|file| file.exists()));
}

#[test]
fn a_cancel_that_comes_first_counts() {
    let place = Place::in_memory();
    let file = place.table("in.sst", 0..10, "new");
    let progress = IngestProgress::default();
    progress.cancel();
    let error = place.db.prepare_ingest(&requests(&place, &[file]), &default(), &progress).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
}

#[test]
fn one_bad_file_among_many_undoes_all() {
    let place = Place::real();
    let mut files: Vec<PathBuf> =
        (0..60).map(|i| place.table(&format!("{i}.sst"), i * 100..i * 100 + 100, "new")).collect();
    let bad = place.path("bad.sst");
    place.write(&bad, b"no table");
    for at in [0, 30, 60] {
        files.insert(at, bad.clone());
        for options in [default(), IngestOptions { move_files: true, ..default() }] {
            place.refused(&files, &bad, &options);
        }
        files.remove(at);
    }
    let report = place.ingest(&files, &default()).unwrap();
    assert_eq!((report.tables, report.first), (60, report.last));
    assert_eq!(place.contents().len(), 6001);
}

/// Prepared side by side, committed in another order: what counts is the commits'.
#[test]
fn prepares_go_on_side_by_side() {
    let place = Place::real();
    let file = |i: u32| place.table(&format!("{i}.sst"), 0..100, &format!("v{i}"));
    let files: Vec<PathBuf> = (0..8).map(file).collect();
    let prepared = std::thread::scope(|scope| {
        let threads: Vec<_> = files
            .iter()
            .map(|file| {
                scope.spawn(|| {
                    place.db.prepare_ingest(
                        &requests(&place, std::slice::from_ref(file)),
                        &default(),
                        &IngestProgress::default(),
                    )
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect::<Vec<_>>()
    });
    for prepared in prepared.into_iter().rev() {
        place.db.commit_ingest(prepared).unwrap();
    }
    assert_eq!(place.contents()["k00050"], "v0");
}
