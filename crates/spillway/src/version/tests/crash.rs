//! A database's MANIFESTs over crashes at every operation: what was committed is there, what was being committed is
//! there or not, and the directory opens again (V3, D2, D3).

use std::collections::BTreeMap;

use vfs::Vfs;
use vfs::fault::{Fault, FaultCode, FaultVfs, Operation, Rule};
use vfs::memory::{CrashPolicy, MemoryVfs};

use super::*;
use crate::version::manifest::ManifestWriter;
use crate::version::recover::{Recovered, recover};
use crate::version::table_file::Backing;

/// What a MANIFEST says, as far as these tests change it: T and tables of each family.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    families: BTreeMap<u32, (u64, Vec<(usize, FileMeta)>)>,
}

impl State {
    fn of(recovered: &Recovered) -> Self {
        let families = recovered
            .families
            .iter()
            .map(|family| (family.id.0, (family.flushed_through.unwrap_or_default().0, family.tables.clone())));
        State { families: families.collect() }
    }

    fn snapshot(&self) -> ManifestSnapshot {
        let families = self.families.iter().map(|(&id, (through, tables))| FamilySnapshot {
            flushed_through: SeqNo(*through),
            ..family(id, if id == 0 { "default" } else { "second" }, tables)
        });
        snapshot(families.collect())
    }

    /// Step `step` as edits, applied here too. Every third is over both families; some are far longer than a block.
    fn step(&mut self, step: u64) -> Vec<VersionEdit> {
        let ids: &[u32] = if step % 3 == 2 { &[0, 1] } else { &[0] };
        let tables = if step % 4 == 1 { 150 } else { 1 };
        let mut edits = Vec::new();
        for &id in ids {
            let (through, held) = self.families.entry(id).or_default();
            *through += 1;
            let mut edit = VersionEdit { flushed_through: Some(SeqNo(*through)), ..VersionEdit::new(FamilyId(id)) };
            if held.len() > 200 {
                edit.deleted = held.drain(..100).map(|(level, meta)| (level, meta.number)).collect();
            }
            for i in 0..tables {
                let mut meta = table(1000 + step * 1000 + u64::from(id) * 500 + i, i, i, step + 1);
                meta.file_checksum = vec![0xa5; 120];
                meta.file_checksum_func = "long".into();
                edit.added.push((0, meta));
            }
            if step % 2 == 1 {
                excise(held, &mut edit, 1900 + step * 1000);
            }
            held.extend(edit.added.clone());
            edits.push(edit);
        }
        edits
    }
}

/// Has the first table cut up into two virtual ones.
fn excise(held: &mut Vec<(usize, FileMeta)>, edit: &mut VersionEdit, number: u64) {
    let Some((level, whole)) = held.first().cloned() else { return };
    held.remove(0);
    edit.deleted.push((level, whole.number));
    let backing = Some(whole.backing.unwrap_or(Backing { number: whole.number, file_bytes: whole.file_bytes }));
    for side in [0, 1] {
        edit.added.push((level, FileMeta { number: FileNumber(number + side), backing, ..whole.clone() }));
    }
}

/// A state that was reached, and how many operations there had been when it was durable.
struct Reached {
    operations: u64,
    state: State,
}

/// Makes a database, commits, rolls over, commits. Returns every state in order.
fn run(vfs: &Arc<MemoryVfs>) -> Vec<Reached> {
    // Makes the directory itself durable.
    vfs.write_file(&dir().join("IDENTITY"), b"id").unwrap();
    let mut state = State::default();
    state.families.insert(0, (0, Vec::new()));
    state.families.insert(1, (0, Vec::new()));
    let mut writer = ManifestWriter::create(vfs.clone(), dir(), FileNumber(20), &state.snapshot(), 1 << 14).unwrap();
    let mut reached = vec![Reached { operations: vfs.operations(), state: state.clone() }];
    for step in 0..10 {
        writer.commit(&state.step(step)).unwrap();
        reached.push(Reached { operations: vfs.operations(), state: state.clone() });
        if writer.wants_roll_over() {
            let old = writer.roll_over(FileNumber(21 + step), &state.snapshot()).unwrap();
            vfs.remove_file(&crate::version::manifest::manifest_path(dir(), old)).unwrap();
        }
    }
    reached
}

fn check_after_crash(vfs: &Arc<MemoryVfs>, reached: &[Reached], operation: u64) {
    let done = reached.iter().take_while(|r| r.operations <= operation).count();
    let recovered = match recover(&**vfs, dir()) {
        Ok(recovered) => recovered,
        Err(error) if done == 0 && error.is_not_found() => return,
        Err(error) => panic!("{error}, after {done} commits"),
    };
    let state = State::of(&recovered);
    let allowed = reached.iter().take(done + 1).skip(done.saturating_sub(1));
    assert!(allowed.into_iter().any(|r| r.state == state), "neither state {done} nor the one after");
    assert!(recovered.fenced);

    // The directory opens for writing, over whatever the crash left lying.
    let number = recovered.next_file;
    drop(ManifestWriter::create(vfs.clone(), dir(), number, &state.snapshot(), 1 << 14).unwrap());
    assert_eq!(State::of(&recover(&**vfs, dir()).unwrap()), state);
}

#[test]
fn commits_survive_crashes_at_every_operation() {
    let vfs = MemoryVfs::new(3);
    let reached = run(&vfs);
    let operations = vfs.operations();
    assert!(operations > 40, "{operations} operations");
    for policy in CrashPolicy::ALL {
        let random = matches!(policy, CrashPolicy::RandomBlocksKept | CrashPolicy::TornAt512);
        for operation in 0..operations {
            for seed in 1..=if random { 4 } else { 1 } {
                let vfs = MemoryVfs::new(3);
                vfs.crash_at(operation, seed, policy);
                run(&vfs);
                let image = vfs.take_crash_image().expect("the operation came");
                check_after_crash(&image, &reached, operation);
            }
        }
    }
}

#[test]
fn a_failed_commit_ends_the_writer() {
    for operation in [Operation::Write, Operation::Sync] {
        for fault in [Fault::Error(FaultCode::Io), Fault::ErrorAfter(FaultCode::NoSpace)] {
            let memory = MemoryVfs::new(1);
            let faults = FaultVfs::new(memory.clone());
            faults.create_dir_all(dir()).unwrap();
            let mut state = State::default();
            state.step(2);
            let before = state.clone();
            let mut writer =
                ManifestWriter::create(faults.clone(), dir(), FileNumber(20), &state.snapshot(), 1 << 20).unwrap();
            faults.inject(Rule::new(fault).on(operation).path("MANIFEST"));
            let edits = state.step(3);
            let error = writer.commit(&edits).unwrap_err();
            assert!(error.path().is_some_and(|path| path.ends_with("MANIFEST-000020")), "{error}");
            assert!(writer.failure().is_some());
            // What lacks space is mended while the database is open, and who came too late is no worse off.
            let is_mendable = error.kind() == base::ErrorKind::NoSpace;
            let sticky = if is_mendable { base::ErrorKind::NoSpace } else { base::ErrorKind::ReadOnly };
            assert_eq!(writer.commit(&edits).unwrap_err().kind(), sticky);
            assert!(writer.roll_over(FileNumber(21), &state.snapshot()).is_err());
            assert!(!writer.wants_roll_over());
            let found = State::of(&recover(&*memory, dir()).unwrap());
            assert!(found == before || found == state);
        }
    }
}

#[test]
fn a_roll_over_that_fails_leaves_a_manifest_that_counts() {
    for operation in [Operation::Create, Operation::Write, Operation::Sync, Operation::SyncDir, Operation::Rename] {
        for nth in 1..=3 {
            let memory = MemoryVfs::new(1);
            let faults = FaultVfs::new(memory.clone());
            faults.create_dir_all(dir()).unwrap();
            let mut state = State::default();
            state.step(2);
            let mut writer =
                ManifestWriter::create(faults.clone(), dir(), FileNumber(20), &state.snapshot(), 1 << 20).unwrap();
            faults.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(operation).nth(nth));
            let result = writer.roll_over(FileNumber(21), &state.snapshot());
            faults.clear();
            let is_late = operation == Operation::Rename || (operation == Operation::SyncDir && nth == 2);
            assert_eq!(writer.failure().is_some(), result.is_err() && is_late, "{operation:?} {nth}");
            if writer.failure().is_none() {
                let edits = state.step(3);
                writer.commit(&edits).unwrap();
                let leftovers: Vec<_> = memory
                    .read_dir(dir())
                    .unwrap()
                    .into_iter()
                    .filter(|name| name.ends_with(".dbtmp") || (result.is_err() && name == "MANIFEST-000021"))
                    .collect();
                assert_eq!(leftovers, Vec::<String>::new(), "{operation:?} {nth}");
            }
            assert_eq!(State::of(&recover(&*memory, dir()).unwrap()), state, "{operation:?} {nth}");
        }
    }
}

#[test]
fn a_long_manifest_rolls_over_only_when_that_makes_it_shorter() {
    let vfs = MemoryVfs::new(1);
    vfs.create_dir_all(dir()).unwrap();
    let mut state = State::default();
    state.step(1);
    let mut writer = ManifestWriter::create(vfs.clone(), dir(), FileNumber(20), &state.snapshot(), 1).unwrap();
    let snapshot_bytes = writer.len();
    assert!(!writer.wants_roll_over(), "past the limit, but as short as it gets");
    while !writer.wants_roll_over() {
        let mut edit = VersionEdit::new(FamilyId(0));
        edit.flushed_through = Some(SeqNo(60));
        writer.commit(&[edit]).unwrap();
    }
    assert!(writer.len() > 2 * snapshot_bytes);
    assert_eq!(writer.roll_over(FileNumber(21), &state.snapshot()).unwrap(), FileNumber(20));
    assert_eq!((writer.number(), writer.len()), (FileNumber(21), snapshot_bytes));
}
