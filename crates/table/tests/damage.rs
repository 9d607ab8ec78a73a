//! Damaged tables of every format: an error that names the file and the place, or the same content; never a panic, and
//! no memory on a file's word. Without checksums nothing worse than other content comes of it.
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]
#![allow(clippy::disallowed_methods, reason = "it reads of its own process in /proc")]

extern crate spillway_db_table as table;

mod common;

use std::path::Path;
use std::sync::{Arc, Mutex};

use base::tombstone::Fragment;
use base::{Cursor, Error, ErrorKind, InternalOrder, LookupKey, Result, SeqNo, ValueKind};
use common::converted::{Random, context};
use common::fast::{Mapped, fast_config, open_fast, write_fast};
use common::formats::{Known, PATH, Sample, samples};
use common::zip::{open_zip, write_zip, zip_config};
use common::{Entry, key};
use table::{AnyTable, ConvertedTable, DumpPart, Table, TableReadOptions, dump_any};
use vfs::{IoClass, RandomFile};

type Content = (Vec<Entry>, Vec<Fragment>);

/// Steps that no walk over a sample takes.
const STEPS_MAX: usize = 10_000;

fn walk(cursor: &mut dyn Cursor, first: bool, step: fn(&mut dyn Cursor) -> bool) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    let mut valid = first;
    while valid {
        all.push((cursor.key().to_vec(), cursor.value().to_vec()));
        assert!(all.len() < STEPS_MAX, "a walk without end");
        valid = step(cursor);
    }
    cursor.status()?;
    Ok(all)
}

fn seek(cursor: &mut dyn Cursor, target: &[u8]) -> Result<()> {
    cursor.seek(target);
    cursor.status()?;
    cursor.seek_for_prev(target);
    cursor.status()
}

/// Reads a table in every way there is; returns what a scan found.
fn read_all(any: &AnyTable, verify_checksums: bool) -> Result<Content> {
    let table = any.clone().into_table();
    let options = TableReadOptions { verify_checksums, ..TableReadOptions::default() };
    let keys =
        [(&b""[..], SeqNo::MAX), (b"ab", SeqNo::MAX), (b"ab", SeqNo(4)), (b"xy0003", SeqNo(4)), (b"no", SeqNo(1))];
    for (user_key, seq) in keys {
        let mut shown = 0;
        table.get(&LookupKey::new(user_key, seq), &options, &mut |_, _, value| {
            std::hint::black_box(value.pin());
            shown += 1;
            shown < STEPS_MAX
        })?;
    }
    let lookups = [b"ab".as_slice(), b"abc", b"xy0001"].map(|key| LookupKey::new(key, SeqNo(12)));
    let lookups: Vec<&LookupKey> = lookups.iter().collect();
    table.multi_get(&lookups, &options, &mut |_, _, _, _| true)?;
    let mut cursor = table.clone().cursor(&options);
    seek(&mut *cursor, &key("ab", 12, ValueKind::Value))?;
    seek(&mut *cursor, &key("xy0005", 1, ValueKind::Value))?;
    if verify_checksums {
        table.anchors(4)?;
        table.approximate_offset(&key("xy0003", 1, ValueKind::Value))?;
        for part in [DumpPart::Layout, DumpPart::Properties, DumpPart::Index, DumpPart::Entries, DumpPart::Tombstones] {
            dump_any(any, part, &mut |_| true)?;
        }
    }
    let first = cursor.seek_to_last();
    let mut backward = walk(&mut *cursor, first, |cursor| cursor.prev())?;
    backward.reverse();
    let first = cursor.seek_to_first();
    let forward = walk(&mut *cursor, first, |cursor| cursor.next())?;
    assert!(forward == backward || !verify_checksums);
    Ok((forward, table.tombstones().map(|all| all.fragments().to_vec()).unwrap_or_default()))
}

fn read_bytes(sample: &Sample, bytes: &[u8]) -> Result<Content> {
    let table = sample.open(bytes, bytes.len())?;
    let content = read_all(&table, true)?;
    table.table().verify()?;
    Ok(content)
}

fn assert_refused(error: &Error) {
    let known = [ErrorKind::Corruption, ErrorKind::Unsupported, ErrorKind::InvalidArgument];
    assert!(known.contains(&error.kind()), "{error:?}");
    assert_eq!(error.path(), Some(Path::new(PATH)), "{error:?}");
}

fn assert_placed(error: &Error, what: &str) {
    assert_refused(error);
    assert!(error.offset().is_some(), "{what}: {error:?}");
}

/// One bit of each byte, and all bits of the footer.
fn flips(sample: &Sample) -> impl Iterator<Item = (usize, u8)> + use<> {
    let (footer, len) = (sample.footer_at(), sample.bytes.len());
    let body = (0..footer).map(|at| (at, 1 << (at % 8)));
    body.chain((footer..len).flat_map(|at| (0..8).map(move |bit| (at, 1 << bit))))
}

#[test]
fn every_flip_is_refused_or_harmless() {
    for sample in samples().iter().filter(|sample| !sample.is_large) {
        let whole = read_bytes(sample, &sample.bytes).expect("whole");
        assert_eq!(whole.0, sample.entries, "{}", sample.name);
        let mut damaged = sample.bytes.clone();
        for (at, bit) in flips(sample) {
            let what = format!("{} byte {at} bit {bit:#x}", sample.name);
            damaged[at] ^= bit;
            if let Ok(table) = sample.open(&damaged, damaged.len()).inspect_err(|e| assert_placed(e, &what)) {
                let _ = read_all(&table, false).inspect_err(assert_refused);
                match read_all(&table, true) {
                    Ok(content) => {
                        assert!(content == whole, "{what}");
                        let may_go_unseen = sample.format.sums.is_none() || sample.padding().contains(&at);
                        assert!(may_go_unseen, "{what}: no read saw it");
                    }
                    Err(error) => {
                        assert_placed(&error, &what);
                        assert_refused(&table.table().verify().expect_err("damaged"));
                    }
                }
            }
            damaged[at] ^= bit;
        }
    }
}

#[test]
fn every_length_but_its_own_is_refused() {
    for sample in samples().iter().filter(|sample| !sample.is_large) {
        let len = sample.bytes.len();
        let refused = |bytes: &[u8], said: usize| {
            let error = sample.open(bytes, said).map(|_| ()).expect_err("another length");
            assert_refused(&error);
            error
        };
        for cut in 0..len {
            refused(&sample.bytes[..cut], cut);
        }
        let longer = [&sample.bytes[..], &[0; 8]].concat();
        refused(&longer, longer.len());
        for (bytes, said) in [(&longer[..], len), (&sample.bytes[..len - 1], len)] {
            let error = refused(bytes, said);
            assert!(error.to_string().contains("bytes instead of"), "{error}");
        }
    }
}

/// Numbers a field of `bytes` bytes could have instead of `own`.
fn lies(own: u64, bytes: usize) -> impl Iterator<Item = u64> {
    let most = u64::MAX >> (64 - 8 * bytes);
    let some = [0, 1, 2, own.wrapping_sub(1), own + 1, own ^ (1 << (8 * bytes - 1)), 1 << 33, 1 << 60, most / 2, most];
    let mut all = Vec::from(some.map(|lie| lie & most));
    all.sort_unstable();
    all.dedup();
    all.into_iter().filter(move |lie| *lie != own)
}

/// The most address space used so far, in bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Every number of the footer, with checksums made right again: a reader has nothing but the other numbers against it.
#[test]
fn no_number_of_a_footer_is_believed() {
    let before = peak_bytes();
    for sample in &samples() {
        let whole = read_bytes(sample, &sample.bytes).expect("whole");
        for field in sample.format.fields {
            let place = sample.footer_at() + field.at..sample.footer_at() + field.at + field.bytes;
            let mut own = [0; 8];
            own[..field.bytes].copy_from_slice(&sample.bytes[place.clone()]);
            for lie in lies(u64::from_le_bytes(own), field.bytes) {
                let what = format!("{}: {} of {lie:#x}", sample.name, field.name);
                let mut bytes = sample.bytes.clone();
                bytes[place.clone()].copy_from_slice(&lie.to_le_bytes()[..field.bytes]);
                if field.name != "checksum" {
                    sample.mend(&mut bytes);
                }
                let read = || read_bytes(sample, &bytes).inspect_err(|e| assert_placed(e, &what));
                match field.known {
                    Known::ByFooter => {
                        let error = read().expect_err(&what);
                        assert_eq!(error.offset(), Some(sample.footer_at() as u64), "{what}: {error}");
                    }
                    Known::ByRest => assert!(read().map_or(true, |content| content == whole), "{what}"),
                    Known::Nowhere => drop(fate_of(sample, &bytes)),
                }
            }
        }
    }
    // The lies reach from 2 GiB up. Threads of other tests take some, too.
    let taken = peak_bytes() - before;
    assert!(taken < 1 << 31, "{taken} bytes of memory for small files");
}

/// What became of a damaged table.
#[derive(Clone, Copy)]
enum Fate {
    NotOpened,
    NotVerified,
    Verified,
}

/// Reads end, and what `verify` accepts is in order and reads the same in both directions.
fn fate_of(sample: &Sample, bytes: &[u8]) -> Fate {
    let refused = |error: &Error| match error.kind() {
        ErrorKind::Corruption => assert_placed(error, &sample.name),
        _ => assert_refused(error),
    };
    let Ok(table) = sample.open(bytes, bytes.len()).inspect_err(refused) else { return Fate::NotOpened };
    let read = read_all(&table, false).inspect_err(assert_refused);
    if table.table().verify().inspect_err(assert_refused).is_err() {
        return Fate::NotVerified;
    }
    let (entries, _) = read.expect("verified");
    // An image can repeat an entry.
    let repeats = sample.format.name == "converted";
    let in_order = |a: &Entry, b: &Entry| match sample.order.compare(&a.0, &b.0) {
        std::cmp::Ordering::Equal => repeats,
        ordering => ordering.is_lt(),
    };
    assert!(entries.is_sorted_by(in_order));
    assert_eq!(read_all(&table, true).expect("verified").0, entries);
    Fate::Verified
}

/// With right checksums damage reaches the code that follows references.
#[test]
fn damage_under_right_checksums_is_refused_or_read() {
    for sample in &samples() {
        let Some(sums) = &sample.format.sums else { continue };
        let (covered, tail) = sample.tail_of(&sample.bytes, sums);
        let (first, footer) = (sample.first_section_bytes(), sample.footer_at());
        // Most of an image's first page stays zero.
        let regions = match sample.format.name {
            "converted" => [(tail, footer - 16), (0, covered), (4096, covered), (4096, covered)],
            _ => [(footer, sample.bytes.len() - 16), (tail, footer), (first.min(covered - 1), covered), (0, first)],
        };
        let mut random = Random(sample.bytes.len() as u64);
        let rounds = if sample.is_large { 200 } else { 3000 };
        let mut counts = [0; 3];
        for _ in 0..rounds {
            let mut damaged = sample.bytes.clone();
            for _ in 0..=random.below(3) {
                let (from, end) = regions[[0, 1, 2, 2, 3, 3, 3, 3][random.below(8) as usize]];
                let mut place = || from + random.below((end - from) as u64) as usize;
                let (at, other) = (place(), place());
                damaged[at] = match random.below(3) {
                    0 => sample.bytes[other],
                    1 => random.below(256) as u8,
                    _ => damaged[at] ^ (1 << random.below(8)),
                };
            }
            sample.mend(&mut damaged);
            counts[fate_of(sample, &damaged) as usize] += 1;
        }
        // An image is checked whole when it is opened.
        let [not_opened, not_verified, verified] = counts;
        let both = not_opened.min(verified) > rounds / 200;
        assert!(
            both && (not_verified > rounds / 200 || sample.format.name == "converted"),
            "{}: {counts:?}",
            sample.name
        );
    }
}

/// What checksums cannot show, `verify` or opening finds: a count of the properties that is not the entries', and a
/// filter without its keys.
#[test]
fn counts_and_filters_are_compared_with_the_entries() {
    for sample in samples().iter().filter(|sample| !sample.is_large) {
        let Some(sums) = &sample.format.sums else { continue };
        let refusal = |mut bytes: Vec<u8>| {
            sample.mend(&mut bytes);
            let verified = sample.open(&bytes, bytes.len()).and_then(|table| table.table().verify());
            let error = verified.expect_err(&sample.name);
            assert_refused(&error);
            error.to_string()
        };
        let name = b"rocksdb.num.entries";
        let at = sample.bytes.windows(name.len()).rposition(|bytes| bytes == name).expect("there") + name.len();
        let mut bytes = sample.bytes.clone();
        bytes[at] ^= 1;
        assert!(refusal(bytes).contains("its properties say"), "{}", sample.name);
        if sums.sections > 1 && !sample.order.user.equal_keys_can_differ() {
            let mut bytes = sample.bytes.clone();
            bytes[sample.filter_bits(sums)].fill(0);
            assert!(refusal(bytes).contains("the filter denies"), "{}", sample.name);
        }
    }
}

/// An extent is checked once, by the first read that asks for it; the others by the reads that touch them.
#[test]
fn damage_is_found_where_it_is_read() {
    let order = InternalOrder::default();
    let mut random = Random(1);
    let mut noise = || (0..100).map(|_| random.below(256) as u8).collect();
    let entries: Vec<Entry> = (0..2000).map(|i| (key(&format!("{i:05}"), 9, ValueKind::Value), noise())).collect();
    let damaged = |mut bytes: Vec<u8>| {
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        bytes
    };
    let fast = damaged(write_fast(fast_config(&order), &entries, &[]).expect("written").bytes);
    let zip = damaged(write_zip(zip_config(&order), &entries, &[]).expect("written").bytes);
    let context = context(&order);
    let tables: [Arc<dyn Table>; 2] =
        [open_fast(&fast, &context).expect("its tail is whole"), open_zip(&zip, &context).expect("its tail is whole")];
    for table in tables {
        let is_found = |(key, _): &Entry| {
            let lookup = LookupKey::new(base::key::user_key(key), SeqNo::MAX);
            let got = table.get(&lookup, &TableReadOptions::default(), &mut |_, _, _| true);
            got.inspect_err(|error| assert_placed(error, "a lookup")).is_ok()
        };
        let found: Vec<bool> = entries.iter().map(is_found).collect();
        let lost = found.iter().filter(|found| !**found).count();
        assert!(found[0] && found[1999] && (100..400).contains(&lost), "{lost}");
        let walked = |verify_checksums| {
            let options = TableReadOptions { verify_checksums, ..TableReadOptions::default() };
            let mut cursor = table.clone().cursor(&options);
            let first = cursor.seek_to_first();
            walk(&mut *cursor, first, |cursor| cursor.next())
        };
        assert_placed(&walked(true).expect_err("walks into it"), "a walk");
        assert_eq!(walked(false).expect("read as it is").len(), 2000);
        assert_placed(&table.verify().expect_err("damaged"), "verify");
    }
}

/// A file that changes.
struct Changing(Mutex<Vec<u8>>);

impl RandomFile for Changing {
    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize> {
        common::Bytes(self.0.lock().expect("unpoisoned").clone()).read_at(offset, buf, class)
    }

    fn len(&self) -> Result<u64> {
        Ok(self.0.lock().expect("unpoisoned").len() as u64)
    }
}

/// Changes of the file while a converted table is open are found by `verify`, which reads the file, not memory.
#[test]
fn verify_looks_at_the_file_of_an_image() {
    let samples = samples();
    let sample = samples.iter().find(|sample| sample.format.name == "converted").expect("one");
    let (bytes, len) = (&sample.bytes, sample.bytes.len());
    let file = Arc::new(Changing(Mutex::new(bytes.clone())));
    let mapping = Arc::new(Mapped(bytes.clone()));
    let context = context(&sample.order);
    let table = ConvertedTable::open(file.clone(), mapping, Path::new(PATH), len as u64, &context).expect("opens");
    table.verify().expect("whole");
    for at in [4200, sample.padding().end, len - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        *file.0.lock().expect("unpoisoned") = damaged;
        assert_refused(&table.verify().expect_err("damaged"));
    }
    *file.0.lock().expect("unpoisoned") = bytes[1..].to_vec();
    let error = table.verify().expect_err("shorter");
    assert!(error.to_string().contains("bytes instead of"), "{error}");
    assert_eq!(common::forward(&table).expect("in memory still"), sample.entries);
}
