//! Tables to ingest, made before the measurement, and the keys and values of writers. Writers write even numbers and tables hold
//! odd ones, so that the final check finds both.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Result;
use base::options::CompressionKind;
use spillway::internal::{FamilyOptions, TableWriter};
use vfs::Vfs;

use super::flags::{IngestFlags, KeyShape};
use crate::workload::{KeyBuffer, Rng, Values};

/// Bytes of the key of a number.
const KEY_BYTES: usize = 16;

/// The largest code point of Unicode plus one.
const CODE_POINTS: u64 = 0x11_0000;

/// A table's file.
#[derive(Clone, Debug)]
pub struct Table {
    pub path: PathBuf,
    /// The numbers of its keys; none for a table from `--tables`.
    pub numbers: Vec<u64>,
}

/// Options of the family in every database and table here.
pub fn family_options(write_buffer_size: usize) -> FamilyOptions {
    FamilyOptions { write_buffer_size, compression: CompressionKind::None, ..FamilyOptions::default() }
}

impl Table {
    /// The tables of `--tables`, or else a new one for each ingest of a run.
    pub fn all(flags: &IngestFlags, dir: &Path, vfs: &Arc<dyn Vfs>) -> Result<Vec<Table>> {
        if !flags.tables.is_empty() {
            return Ok(flags.tables.iter().map(|path| Table { path: path.clone(), numbers: Vec::new() }).collect());
        }
        let mut rng = Rng::new(flags.seed);
        (0..flags.plan().ingests())
            .map(|nth| Table::make(flags, &dir.join(format!("{nth}.sst")), vfs, &mut rng))
            .collect()
    }

    fn make(flags: &IngestFlags, path: &Path, vfs: &Arc<dyn Vfs>, rng: &mut Rng) -> Result<Table> {
        let numbers = spread(flags.key_range / 2, flags.table_keys, rng);
        let mut table = TableWriter::create(vfs.clone(), path, &family_options(flags.write_buffer_size))?;
        let mut entries = Entries::of_tables(flags);
        for number in &numbers {
            let (key, value) = entries.entry(*number);
            table.put(key, value)?;
        }
        table.finish()?;
        Ok(Table { path: path.to_owned(), numbers })
    }
}

/// `count` odd numbers, ascending, one somewhere in each of as many equal parts of `0..2 * half`.
fn spread(half: u64, count: u64, rng: &mut Rng) -> Vec<u64> {
    let bound = |nth: u64| (u128::from(half) * u128::from(nth) / u128::from(count)) as u64;
    (0..count).map(|nth| 2 * (bound(nth) + rng.below((bound(nth + 1) - bound(nth)).max(1))) + 1).collect()
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

    /// Of generated tables: the keys are numbers, whatever the keys of the writers.
    pub fn of_tables(flags: &IngestFlags) -> Entries {
        Entries::new(&IngestFlags { keys: KeyShape::Numbers, ..flags.clone() }, 0)
    }

    /// A number for the `nth` write: even and below `range`, or a number for [`KeyShape::CodePoints`].
    #[inline]
    pub fn draw(&mut self, nth: u64, range: u64) -> u64 {
        match self.shape {
            KeyShape::Numbers => 2 * self.rng.below((range / 2).max(1)),
            KeyShape::CodePoints => nth * CODE_POINTS + self.rng.below(CODE_POINTS),
        }
    }

    /// The key of a number, and its value. The value begins with the number if it is long enough.
    #[inline]
    pub fn entry(&mut self, number: u64) -> (&[u8], &[u8]) {
        self.value.clear();
        self.value.extend_from_slice(self.values.next());
        if let Some(head) = self.value.first_chunk_mut() {
            *head = head_of(number);
        }
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
}

/// Digits of the number at the start of a value.
const HEAD_BYTES: usize = 16;

/// The number in hexadecimal digits: values stay text.
fn head_of(number: u64) -> [u8; HEAD_BYTES] {
    let digit = |nibble: u8| nibble + if nibble < 10 { b'0' } else { b'a' - 10 };
    std::array::from_fn(|at| digit((number >> (60 - 4 * at)) as u8 & 15))
}

/// Whether a value was written under the key of this number.
pub fn is_value_of(value: &[u8], number: u64) -> bool {
    value.first_chunk().is_none_or(|head| *head == head_of(number))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn keys_of_a_table_ascend_over_the_whole_range() {
        let numbers = spread(500, 100, &mut Rng::new(3));
        assert_eq!(numbers.len(), 100);
        assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.iter().all(|n| n % 2 == 1 && *n < 1000), "{numbers:?}");
        assert!(numbers[0] < 10 && numbers[99] >= 990);
        assert_eq!(spread(3, 3, &mut Rng::new(3)), [1, 3, 5]);
    }

    #[test]
    fn keys_for_the_character_database_never_come_again() {
        let flags = IngestFlags::parse_from(["--db=/x", "--keys=codepoints"]);
        let mut entries = Entries::new(&flags, 0);
        for nth in 0..100 {
            let number = entries.draw(nth, 7);
            let key = entries.entry(number).0;
            assert!(key.ends_with(format!("/{nth:010}").as_bytes()) && (4..=6).contains(&(key.len() - 11)), "{key:?}");
        }
    }

    #[test]
    fn a_value_tells_its_key() {
        let mut entries = Entries::new(&IngestFlags::parse_from(["--db=/x"]), 1);
        let number = entries.draw(0, 1000);
        assert!(number.is_multiple_of(2) && number < 1000);
        let (key, value) = entries.entry(number);
        assert_eq!((key.len(), value.len()), (16, 100));
        assert!(value.starts_with(format!("{number:016x}").as_bytes()));
        assert!(is_value_of(value, number) && !is_value_of(value, number + 2) && is_value_of(b"short", 1));
    }
}
