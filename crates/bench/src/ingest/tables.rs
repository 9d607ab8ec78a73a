//! The tables that are ingested, made before anything is measured, and the keys and values of all that is written. Writers
//! write even numbers and tables hold odd ones, so that what became of each can be told in the end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Result;
use base::options::CompressionKind;
use spillway::{FamilyOptions, TableWriter};
use vfs::Vfs;

use super::flags::{IngestFlags, KeyShape, Tables};
use crate::workload::{KeyBuffer, Rng, Values};

/// Bytes of a key that is a number.
pub const KEY_BYTES: usize = 16;

/// Bytes of an entry in a table's block beside key and value: three lengths, less what keys share.
const ENTRY_OVERHEAD_BYTES: u64 = 4;

/// Keys of a table that are looked for in the end.
const SAMPLED_KEYS: usize = 1000;

/// Code points, the largest plus one.
const CODE_POINTS: u64 = 0x11_0000;

/// A table's file.
#[derive(Clone, Debug)]
pub struct MadeTable {
    pub path: PathBuf,
    pub bytes: u64,
    /// Some of the numbers that are its keys, spread over all of them. None where others made the table.
    pub sample: Vec<u64>,
}

/// The tables of a load, and the numbers among which their keys are.
#[derive(Clone, Debug)]
pub struct TableSet {
    pub tables: Vec<MadeTable>,
    pub range: u64,
}

/// Options of the family in every database and table here.
pub fn family_options(write_buffer_size: usize) -> FamilyOptions {
    FamilyOptions { write_buffer_size, compression: CompressionKind::None, ..FamilyOptions::default() }
}

impl TableSet {
    /// Makes the tables that one run ingests; every run takes the same.
    ///
    /// # Errors
    /// What writing them fails with.
    pub fn make(flags: &IngestFlags, tables: Tables, dir: &Path, vfs: &Arc<dyn Vfs>) -> Result<TableSet> {
        let count = flags.ingests_of_a_run(tables);
        let mut rng = Rng::new(flags.seed ^ 0x7AB1E);
        match tables {
            Tables::Given => {
                let measured = |path: &PathBuf| {
                    let bytes = vfs.metadata(path)?.len;
                    Ok(MadeTable { path: path.clone(), bytes, sample: Vec::new() })
                };
                let made = flags.tables.0.iter().map(measured).collect::<Result<_>>()?;
                Ok(TableSet { tables: made, range: flags.key_range })
            }
            Tables::Small => {
                let half = flags.key_range / 2;
                let table = |nth| {
                    let numbers = spread(half, flags.table_keys, &mut rng);
                    make_table(vfs, &dir.join(format!("small-{nth}.sst")), flags, numbers)
                };
                Ok(TableSet { tables: (0..count).map(table).collect::<Result<_>>()?, range: flags.key_range })
            }
            Tables::Big => {
                let entry_bytes = (KEY_BYTES + flags.value_size) as u64 + ENTRY_OVERHEAD_BYTES;
                let keys = (flags.big_table_mib << 20) / entry_bytes;
                let table = |nth| {
                    let numbers = (nth * keys..(nth + 1) * keys).map(odd);
                    make_table(vfs, &dir.join(format!("big-{nth}.sst")), flags, numbers)
                };
                Ok(TableSet { tables: (0..count).map(table).collect::<Result<_>>()?, range: 2 * keys * count })
            }
        }
    }

    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }

    /// The table whose turn it is.
    pub fn nth(&self, nth: u64) -> Option<&MadeTable> {
        self.tables.iter().cycle().nth((nth % (self.tables.len().max(1) as u64)) as usize)
    }
}

/// `count` odd numbers, ascending, one somewhere in each of as many equal parts of `0..2 * half`.
pub fn spread(half: u64, count: u64, rng: &mut Rng) -> impl Iterator<Item = u64> {
    let bound = move |nth: u64| (u128::from(half) * u128::from(nth) / u128::from(count)) as u64;
    (0..count).map(move |nth| odd(bound(nth) + rng.below((bound(nth + 1) - bound(nth)).max(1))))
}

fn odd(n: u64) -> u64 {
    2 * n + 1
}

/// Writes a table of these keys, which ascend.
///
/// # Errors
/// What writing fails with.
pub fn make_table(
    vfs: &Arc<dyn Vfs>,
    path: &Path,
    flags: &IngestFlags,
    numbers: impl Iterator<Item = u64>,
) -> Result<MadeTable> {
    let mut table = TableWriter::create(vfs.clone(), path, &family_options(flags.write_buffer_size))?;
    let (mut key, mut entries) = (KeyBuffer::new(KEY_BYTES), Entries::new(flags, 0));
    let mut sample = Vec::new();
    let mut stride = 1;
    for (nth, number) in numbers.enumerate() {
        table.put(key.set(number), entries.value(number))?;
        if nth.is_multiple_of(stride) {
            sample.push(number);
        }
        if sample.len() > 2 * SAMPLED_KEYS {
            let mut kept = false;
            sample.retain(|_| {
                kept = !kept;
                kept
            });
            stride *= 2;
        }
    }
    Ok(MadeTable { path: path.to_owned(), bytes: table.finish()?.file_bytes, sample })
}

/// Keys and values of one thread, each written over the one before.
pub struct Entries {
    shape: KeyShape,
    number: KeyBuffer,
    text: Vec<u8>,
    values: Values,
    value: Vec<u8>,
    rng: Rng,
}

impl Entries {
    pub fn new(flags: &IngestFlags, thread: u64) -> Entries {
        let mut rng = Rng::new(flags.seed ^ (thread + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let values = Values::new(&mut rng, flags.value_size, 0.5);
        let (number, text, value) = (KeyBuffer::new(KEY_BYTES), Vec::new(), Vec::new());
        Entries { shape: flags.keys, number, text, values, value, rng }
    }

    /// A number for the `nth` write: an even one below `range`, or what [`KeyShape::CodePoints`] makes a key of.
    #[inline]
    pub fn draw(&mut self, nth: u64, range: u64) -> u64 {
        match self.shape {
            KeyShape::Numbers => 2 * self.rng.below((range / 2).max(1)),
            KeyShape::CodePoints => nth * CODE_POINTS + self.rng.below(CODE_POINTS),
        }
    }

    /// The key that stands for a number, and its value, which begins with the number where it is long enough.
    #[inline]
    pub fn entry(&mut self, number: u64) -> (&[u8], &[u8]) {
        fill_value(&mut self.value, number, self.values.next());
        let key = match self.shape {
            KeyShape::Numbers => self.number.set(number),
            KeyShape::CodePoints => {
                self.text.clear();
                // Writing to memory does not fail.
                let _ = write!(self.text, "{:04X}/{:010}", number % CODE_POINTS, number / CODE_POINTS);
                &self.text
            }
        };
        (key, &self.value)
    }

    fn value(&mut self, number: u64) -> &[u8] {
        fill_value(&mut self.value, number, self.values.next());
        &self.value
    }
}

/// Digits of the number that a value begins with.
const HEAD_BYTES: usize = 16;

fn fill_value(value: &mut Vec<u8>, number: u64, filler: &[u8]) {
    value.clear();
    value.extend_from_slice(filler);
    if let Some(head) = value.first_chunk_mut() {
        *head = head_of(number);
    }
}

/// In hexadecimal digits: values stay text.
fn head_of(number: u64) -> [u8; HEAD_BYTES] {
    let digit = |nibble: u8| nibble + if nibble < 10 { b'0' } else { b'a' - 10 };
    std::array::from_fn(|at| digit((number >> (60 - 4 * at)) as u8 & 15))
}

/// Whether a value is one that was written under this number's key.
pub fn is_value_of(value: &[u8], number: u64) -> bool {
    value.first_chunk().is_none_or(|head| *head == head_of(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_table_ascend_over_the_whole_range() {
        let mut rng = Rng::new(3);
        let numbers: Vec<u64> = spread(500, 100, &mut rng).collect();
        assert_eq!(numbers.len(), 100);
        assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.iter().all(|n| n % 2 == 1 && *n < 1000), "{numbers:?}");
        assert!(numbers[0] < 10 && numbers[99] >= 990);
        assert_eq!(spread(3, 3, &mut rng).collect::<Vec<_>>(), [1, 3, 5]);
    }

    #[test]
    fn keys_for_the_character_database_never_come_again() {
        let flags = IngestFlags { keys: KeyShape::CodePoints, ..IngestFlags::default() };
        let mut entries = Entries::new(&flags, 0);
        let keys: Vec<Vec<u8>> = (0..100)
            .map(|nth| {
                let number = entries.draw(nth, 7);
                entries.entry(number).0.to_vec()
            })
            .collect();
        assert!(keys.iter().enumerate().all(|(nth, key)| key.ends_with(format!("/{nth:010}").as_bytes())), "{keys:?}");
        assert!(keys.iter().all(|key| (4..=6).contains(&(key.len() - 11)) && key[0].is_ascii_hexdigit()));
    }

    #[test]
    fn a_value_tells_its_key() {
        let mut entries = Entries::new(&IngestFlags::default(), 1);
        let number = entries.draw(0, 1000);
        assert!(number.is_multiple_of(2) && number < 1000);
        let (key, value) = entries.entry(number);
        assert_eq!((key.len(), value.len()), (16, 100));
        assert!(value.starts_with(format!("{number:016x}").as_bytes()));
        assert!(is_value_of(value, number) && !is_value_of(value, number + 2) && is_value_of(b"short", 1));
        assert_eq!(head_of(0x0123_4567_89ab_cdef), *b"0123456789abcdef");
    }

    #[test]
    fn tables_are_made_with_a_sample_of_their_keys() -> Result<()> {
        let dir = tempfile::tempdir().unwrap();
        let flags = IngestFlags { seconds: 2.0, interval_ms: 500, ..IngestFlags::default() };
        let vfs: Arc<dyn Vfs> = vfs::RealVfs::new();
        let small = TableSet::make(&flags, Tables::Small, dir.path(), &vfs)?;
        assert_eq!((small.tables.len(), small.range), (4, 1_000_000));
        assert!(small.tables.iter().all(|table| (500..=2001).contains(&table.sample.len())), "{small:?}");
        let flags = IngestFlags { big_table_mib: 1, ..flags };
        let big = TableSet::make(&flags, Tables::Big, dir.path(), &vfs)?;
        assert_eq!(big.tables.len(), 2);
        let about_a_mib = |table: &MadeTable| (900 << 10..1200 << 10).contains(&table.bytes);
        assert!(big.tables.iter().all(about_a_mib), "{:?}", big.bytes());
        assert!(big.tables[0].sample.last() < big.tables[1].sample.first());
        assert_eq!(big.nth(3).unwrap().path, big.tables[1].path);
        Ok(())
    }
}
