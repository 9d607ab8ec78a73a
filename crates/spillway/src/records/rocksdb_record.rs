//! A record of RocksDB's log: changes, and steps of transactions that are prepared before they are committed. The steps are
//! those of RocksDB's write policy `WriteCommitted`, which numbers changes where they take effect.

use base::coding::{Reader, put_prefixed};
use base::{Error, ErrorKind, Result, SeqNo};
use smallvec::SmallVec;

use crate::batch::{BatchReader, header, is_known, tag};
use crate::records::two_phase_record::NAME_BYTES_MAX;

/// A part of a record. Several writers may share a record.
pub(crate) enum RocksdbStep<'a> {
    /// Each change takes a number.
    Changes(BatchReader<'a>),
    /// Takes no number.
    Prepare { name: &'a [u8], batch: BatchReader<'a> },
    /// Each change of the prepared batch takes a number.
    Commit(&'a [u8]),
    /// Takes no number.
    Rollback(&'a [u8]),
}

const OTHER_COUNT: &str = "a batch in the log does not hold as many records as it says";

pub(crate) type RocksdbSteps<'a> = SmallVec<[RocksdbStep<'a>; 1]>;

/// The parts of a record in their order, every change checked. The readers of the parts have no numbers. `salvages`: a change of
/// an unknown kind is damage, of two records that were joined, and not a later version's.
///
/// # Errors
/// `Corruption`: a malformed record, or it has more or fewer changes than it says. `Unsupported`: a change of a kind unknown
/// here, or a step of another write policy.
pub(crate) fn steps_of<'a>(record: &BatchReader<'a>, salvages: bool) -> Result<RocksdbSteps<'a>> {
    let mut steps = RocksdbSteps::new();
    let mut rest = Reader::new(record.rest());
    let (mut found, mut is_preparing) = (0u64, false);
    loop {
        let left = u64::from(record.declared_count()) - found;
        let Part { changes, count, mark } = Part::read(&mut rest, left, salvages)?;
        found += u64::from(count);
        if found > u64::from(record.declared_count()) {
            return Err(Error::corruption(OTHER_COUNT));
        }
        let batch = BatchReader::of_changes(SeqNo::ZERO, count, changes);
        match (is_preparing, mark) {
            (true, Some(Mark::EndPrepare(name))) => {
                is_preparing = false;
                steps.push(RocksdbStep::Prepare { name: checked(name)?, batch });
                continue;
            }
            (false, _) if count > 0 => steps.push(RocksdbStep::Changes(batch)),
            _ => {}
        }
        match (is_preparing, mark) {
            (false, None) => break,
            (false, Some(Mark::BeginPrepare)) => is_preparing = true,
            (false, Some(Mark::Commit(name))) => steps.push(RocksdbStep::Commit(name)),
            (false, Some(Mark::Rollback(name))) => steps.push(RocksdbStep::Rollback(name)),
            _ => return Err(Error::corruption("the steps of transactions in a log's record are out of order")),
        }
    }
    if found != u64::from(record.declared_count()) {
        return Err(Error::corruption(OTHER_COUNT));
    }
    Ok(steps)
}

/// A record that prepares `batch`. Its changes take no number; `next` is the number of the record behind it.
pub(crate) fn prepare_record(next: SeqNo, name: &[u8], batch: &BatchReader<'_>) -> Vec<u8> {
    let mut record = header(next, batch.declared_count()).to_vec();
    record.push(tag::BEGIN_PREPARE);
    record.extend_from_slice(batch.rest());
    record.push(tag::END_PREPARE);
    put_prefixed(&mut record, name);
    record
}

fn checked(name: &[u8]) -> Result<&[u8]> {
    match (1..=NAME_BYTES_MAX).contains(&name.len()) {
        true => Ok(name),
        false => Err(Error::corruption("a transaction in the log has no name, or one that is too long")),
    }
}

#[derive(Clone, Copy)]
enum Mark<'a> {
    BeginPrepare,
    EndPrepare(&'a [u8]),
    Commit(&'a [u8]),
    Rollback(&'a [u8]),
}

/// Changes, and the mark behind them.
struct Part<'a> {
    /// Encoded.
    changes: &'a [u8],
    count: u32,
    /// `None`: the record ends.
    mark: Option<Mark<'a>>,
}

impl<'a> Part<'a> {
    /// `count_left`: changes that the record still has, as it says. `salvages`: as in [`steps_of`].
    fn read(rest: &mut Reader<'a>, count_left: u64, salvages: bool) -> Result<Self> {
        let (all, mut count) = (rest.rest(), 0);
        loop {
            let changes = all.get(..all.len() - rest.len()).unwrap_or_default();
            let mut ahead = *rest;
            if ahead.is_empty() {
                return Ok(Part { changes, count, mark: None });
            }
            let name = |ahead: &mut Reader<'a>| ahead.prefixed("a transaction's name");
            let mark = match ahead.u8("a record's tag")? {
                tag::BEGIN_PREPARE => Some(Mark::BeginPrepare),
                tag::END_PREPARE => Some(Mark::EndPrepare(name(&mut ahead)?)),
                tag::COMMIT => Some(Mark::Commit(name(&mut ahead)?)),
                tag::ROLLBACK => Some(Mark::Rollback(name(&mut ahead)?)),
                tag::NOOP => None,
                tag::LOG_DATA => {
                    ahead.prefixed("log data in a batch")?;
                    None
                }
                // No change of a later version, but bytes of another record.
                tag if !is_known(tag) && (salvages || u64::from(count) == count_left) => {
                    return Err(Error::corruption(OTHER_COUNT));
                }
                _ => {
                    ahead = pass_change(rest.rest())?;
                    count += 1;
                    None
                }
            };
            *rest = ahead;
            if mark.is_some() {
                return Ok(Part { changes, count, mark });
            }
        }
    }
}

/// What follows the change at the start of `bytes`.
fn pass_change(bytes: &[u8]) -> Result<Reader<'_>> {
    let mut batch = BatchReader::of_changes(SeqNo::ZERO, 1, bytes);
    batch.next().transpose().map_err(|error| match bytes.first() {
        Some(&(tag::BEGIN_WRITE_PREPARED | tag::BEGIN_WRITE_UNPREPARED | tag::COMMIT_WITH_TIMESTAMP))
            if error.kind() == ErrorKind::Unsupported =>
        {
            error.advise("end its prepared transactions with RocksDB, flush, and close it there")
        }
        _ => error,
    })?;
    Ok(Reader::new(batch.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::header;

    const PREPARE: &[u8] = b"\x09\x01\x01a\x011\x04\x03\x01b\x0a\x02t1";

    /// The steps of a record that says it has `count` changes: counts, and names.
    fn steps(count: u32, parts: &[&[u8]]) -> Result<String> {
        let record = [&header(SeqNo(7), count)[..], &parts.concat()].concat();
        let show = |step: RocksdbStep<'_>| match step {
            RocksdbStep::Changes(batch) => format!("changes {}", batch.count()),
            RocksdbStep::Prepare { name, batch } => {
                assert_eq!(batch.declared_count() as usize, batch.clone().count());
                format!("prepare {} {}", name.escape_ascii(), batch.count())
            }
            RocksdbStep::Commit(name) => format!("commit {}", name.escape_ascii()),
            RocksdbStep::Rollback(name) => format!("rollback {}", name.escape_ascii()),
        };
        let steps = steps_of(&BatchReader::new(&record)?, false)?;
        Ok(steps.into_iter().map(show).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn a_record_of_several_writers_is_taken_apart() {
        let put = b"\x0d\x01\x01k\x01v";
        assert_eq!(steps(0, &[]).unwrap(), "");
        assert_eq!(steps(1, &[put]).unwrap(), "changes 1");
        assert_eq!(steps(2, &[PREPARE]).unwrap(), "prepare t1 2");
        assert_eq!(steps(0, &[b"\x09\x0a\x01e"]).unwrap(), "prepare e 0");
        assert_eq!(steps(1, &[put, b"\x03\x03log\x0b\x02t1"]).unwrap(), "changes 1, commit t1");
        let all = [put, PREPARE, put, b"\x0c\x02t1", put, put, b"\x0b\x02t2", b"\x0d"];
        assert_eq!(steps(6, &all).unwrap(), "changes 1, prepare t1 2, changes 1, rollback t1, changes 2, commit t2");
    }

    #[test]
    fn a_prepare_is_written_as_it_is_read() {
        let changes = [&header(SeqNo(7), 2), &PREPARE[1..10]].concat();
        let record = prepare_record(SeqNo(9), b"t1", &BatchReader::new(&changes).unwrap());
        assert_eq!(record, [&header(SeqNo(9), 2), PREPARE].concat());
    }

    #[test]
    fn malformed_records_are_refused() {
        for len in 1..PREPARE.len() {
            steps(2, &[&PREPARE[..len]]).unwrap_err();
        }
        let out_of_order: [&[&[u8]]; 5] = [
            &[b"\x0a\x02t1"],
            &[b"\x09", PREPARE],
            &[b"\x09\x0b\x02t1\x0a\x02t1"],
            &[b"\x09\x0c\x02t1\x0a\x02t1"],
            &[b"\x09"],
        ];
        for parts in out_of_order {
            let count = if parts.len() > 1 { 2 } else { 0 };
            assert!(steps(count, parts).unwrap_err().message().contains("out of order"), "{parts:?}");
        }
        for count in [0, 1, 3] {
            assert!(steps(count, &[PREPARE]).unwrap_err().message().contains("as many records"), "{count}");
        }
        assert_eq!(
            steps(1, &[b"\x01\x01k\x01vv"]).unwrap_err().kind(),
            ErrorKind::Corruption,
            "bytes of another record"
        );
        steps(0, &[b"\x09\x0a\x00"]).unwrap_err();
        steps(0, &[b"\x09\x0a\x81\x04", &[b'n'; 513]]).unwrap_err();
    }

    #[test]
    fn steps_of_other_policies_are_named() {
        for (tag, policy) in [(0x12, "WritePrepared"), (0x13, "WriteUnprepared"), (0x15, "timestamp")] {
            let error = steps(1, &[&[tag], &PREPARE[1..]]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let text = error.to_string();
            assert!(text.contains(policy) && text.contains("with RocksDB, flush"), "{text}");
        }
    }
}
