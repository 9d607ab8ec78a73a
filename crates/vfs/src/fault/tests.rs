use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::{ErrorKind, Result};

use super::{Fault, FaultCode, FaultVfs, Operation, Rule};
use crate::{CrashPolicy, IfExists, IoClass, MemoryVfs, ReadRequest, Vfs, read_many};

fn wrapped() -> (Arc<MemoryVfs>, Arc<FaultVfs>) {
    let memory = MemoryVfs::new(3);
    let faulty = FaultVfs::new(Arc::clone(&memory) as Arc<dyn Vfs>);
    (memory, faulty)
}

/// A little life with every kind of call.
fn life(vfs: &dyn Vfs) -> Result<()> {
    let [dir, a, b, c] = ["/d", "/d/a", "/d/b", "/d/c"].map(Path::new);
    vfs.create_dir_all(dir)?;
    let _lock = vfs.lock(Path::new("/d/LOCK"))?;
    let mut file = vfs.create(a, IfExists::Fail)?;
    file.append(b"0123456789", IoClass::Log)?;
    file.sync(IoClass::Log)?;
    vfs.open_append(a)?;
    vfs.open(a)?.read_at(0, &mut [0; 4], IoClass::Foreground)?;
    vfs.map_read(a)?;
    vfs.metadata(a)?;
    vfs.canonicalize(a)?;
    vfs.rename(a, b)?;
    vfs.hard_link(b, c)?;
    vfs.sync_dir(dir)?;
    let mapping = vfs.create_mapped(a, 4096)?;
    mapping.ensure(4096)?;
    mapping.start_writeback(0, 4096, IoClass::Log)?;
    let shared = vfs.create_shared(Path::new("/d/s"))?;
    shared.start_writeback(0, 1, IoClass::Log)?;
    shared.truncate(0)?;
    for name in vfs.read_dir(dir)? {
        vfs.remove_file(&dir.join(name))?;
    }
    vfs.remove_dir(dir)?;
    vfs.spawn("job", Box::new(|| {}))?.join();
    Ok(())
}

#[test]
fn every_kind_of_call_can_be_counted_and_failed() {
    let (memory, counting) = wrapped();
    memory.set_runs_inline(false);
    life(&*counting).unwrap();
    for operation in Operation::ALL {
        let calls = counting.calls(operation);
        assert!(calls > 0, "{operation:?} never called");
        for nth in 1..=calls {
            for fault in [Fault::Error(FaultCode::Io), Fault::ErrorAfter(FaultCode::TooManyFiles)] {
                let (memory, faulty) = wrapped();
                memory.set_runs_inline(false);
                faulty.inject(Rule::new(fault).on(operation).nth(nth));
                let error = life(&*faulty).unwrap_err();
                assert!(error.message().starts_with("injected fault"), "{error}");
                assert_eq!(faulty.calls(operation), nth, "{operation:?}");
                assert_eq!(faulty.fired(), 1);
            }
        }
    }
}

#[test]
fn a_rule_chooses_by_class_path_and_count() {
    let (_, vfs) = wrapped();
    let rule = Rule::new(Fault::Error(FaultCode::NoSpace)).on(Operation::Write).class(IoClass::Flush).path("sst");
    let id = vfs.inject(rule.nth(2));
    let mut table = vfs.create(Path::new("/1.sst"), IfExists::Fail).unwrap();
    let mut log = vfs.create(Path::new("/2.log"), IfExists::Fail).unwrap();
    table.append(b"a", IoClass::Flush).unwrap();
    table.append(b"b", IoClass::Compaction).unwrap();
    log.append(b"c", IoClass::Flush).unwrap();
    assert_eq!(table.append(b"d", IoClass::Flush).unwrap_err().kind(), ErrorKind::NoSpace);
    table.append(b"e", IoClass::Flush).unwrap();
    assert_eq!(vfs.matched(id), 3);
    assert_eq!(vfs.calls(Operation::Write), 5);
    assert_eq!(table.len(), 3);
}

#[test]
fn a_sticky_rule_goes_on_until_cleared() {
    let (_, vfs) = wrapped();
    vfs.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Rename).path("b").sticky());
    vfs.create(Path::new("/a"), IfExists::Fail).unwrap();
    for _ in 0..3 {
        assert!(vfs.rename(Path::new("/a"), Path::new("/b")).is_err());
    }
    vfs.rename(Path::new("/a"), Path::new("/c")).unwrap();
    vfs.clear();
    vfs.rename(Path::new("/c"), Path::new("/b")).unwrap();
}

#[test]
fn short_calls_do_half() {
    let (memory, vfs) = wrapped();
    let path = Path::new("/a");
    vfs.inject(Rule::new(Fault::ShortWrite(FaultCode::NoSpace)).on(Operation::Write));
    vfs.inject(Rule::new(Fault::ShortRead).on(Operation::Read));
    let mut file = vfs.create(path, IfExists::Fail).unwrap();
    assert_eq!(file.append(b"12345678", IoClass::Log).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(memory.read_file(path).unwrap(), b"1234");
    assert_eq!(file.len(), 4);
    let mut buf = [0; 4];
    let open = vfs.open(path).unwrap();
    assert_eq!(open.read_at(0, &mut buf, IoClass::Foreground).unwrap(), 2);
    assert_eq!(open.read_at(0, &mut buf, IoClass::Foreground).unwrap(), 4);
}

#[test]
fn trying_a_failed_sync_again_is_told_a_lie() {
    for (fault, durable) in [(Fault::Error(FaultCode::Io), &b""[..]), (Fault::ErrorAfter(FaultCode::Io), &b"data"[..])]
    {
        let (memory, vfs) = wrapped();
        let path = Path::new("/a");
        let mut file = vfs.create(path, IfExists::Fail).unwrap();
        vfs.sync_dir(Path::new("/")).unwrap();
        file.append(b"data", IoClass::Log).unwrap();
        vfs.inject(Rule::new(fault).on(Operation::Sync));
        assert!(file.sync(IoClass::Log).is_err());
        file.sync(IoClass::Log).unwrap();
        let after = memory.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
        assert_eq!(after.read_file(path).unwrap(), durable);
    }
}

#[test]
fn a_latency_passes_on_the_clock_underneath() {
    let (_, vfs) = wrapped();
    vfs.inject(Rule::new(Fault::Latency(Duration::from_secs(5))).on(Operation::SyncDir));
    let before = vfs.now();
    vfs.sync_dir(Path::new("/")).unwrap();
    assert!(vfs.now() - before >= Duration::from_secs(5));
}

#[test]
fn each_read_of_a_batch_is_counted_and_fails_alone() {
    let (memory, faulty) = wrapped();
    let path = Path::new("/a");
    crate::write_all(&*memory, path, IfExists::Fail, &[7; 100], IoClass::Other).unwrap();
    let file = faulty.open(path).unwrap();
    let batch = || {
        let mut bufs = [[0; 10]; 4];
        let mut reads = bufs.each_mut().map(|buf| ReadRequest::new(&*file, 0, buf));
        read_many(&mut reads, IoClass::Foreground);
        reads.map(|read| read.read.ok())
    };
    assert_eq!((batch(), faulty.calls(Operation::Read)), ([Some(10); 4], 4));
    let reads = |fault| Rule::new(fault).on(Operation::Read).class(IoClass::Foreground);
    faulty.inject(reads(Fault::Error(FaultCode::Io)).nth(2));
    faulty.inject(reads(Fault::ShortRead).nth(3));
    assert_eq!(batch(), [Some(10), None, Some(5), Some(10)]);
    faulty.clear();
    faulty.inject(reads(Fault::ErrorAfter(FaultCode::Io)).sticky());
    assert_eq!(batch(), [None; 4]);
}
