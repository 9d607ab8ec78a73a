//! WAL record of an ingest: its tables, excised spans and sequence numbers.
//! Format: docs/format/log.md.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::coding::{Reader, put_prefixed, put_u64, put_varint32, put_varint64};
use base::key;
use base::{Error, FamilyId, FileNumber, Result, SeqNo, ValueKind};

use crate::version::table_file::FileMeta;

/// A whole ingest, over all its families. The batch of the same commit follows the record.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct IngestRecord {
    /// Number of the excises, if any. Layers take the numbers after it, one each, shared by all families.
    pub first: SeqNo,
    /// When the ingest was committed, in microseconds since 1970 by the wall clock; 0 if unknown.
    pub arrived_us: u64,
    pub families: Vec<Arc<FamilyIngest>>,
}

/// Layout of an ingest's sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IngestShape {
    /// Some family's share has an excise: excises take the first number.
    pub has_excise: bool,
    /// Count of numbers: one for the excises, one for each layer, shared by all families.
    pub numbers: u64,
}

impl IngestShape {
    /// Number of a layer's tables, in an ingest numbered from `first`.
    pub fn number_of_layer(&self, first: SeqNo, layer: usize) -> SeqNo {
        SeqNo(first.0 + u64::from(self.has_excise) + layer as u64)
    }
}

/// An ingest's share in one family.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FamilyIngest {
    pub family: FamilyId,
    /// Range removed before the tables are added, `[start, end)` in user keys.
    pub excise: Option<(Vec<u8>, Vec<u8>)>,
    /// Tables of one layer do not overlap and ascend; later layers are newer.
    pub layers: Vec<Vec<IngestTable>>,
}

/// An ingested table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct IngestTable {
    /// Sequence numbers are zero if every entry takes the ingest's number.
    pub meta: FileMeta,
    pub has_range_deletions: bool,
    /// Bytes of keys and values by the table's properties. Not in the record: 0 after decoding.
    pub raw_bytes: u64,
}

impl IngestTable {
    /// Bytes of the file, or of its uncompressed entries if they are more and known.
    pub fn bytes(&self) -> u64 {
        self.meta.file_bytes.max(self.raw_bytes)
    }
}

/// The table has sequence numbers of its own.
const FLAG_OWN_NUMBERS: u32 = 1;
const FLAG_RANGE_DELETIONS: u32 = 2;
/// The checksum of the whole file is known.
const FLAG_FILE_CHECKSUM: u32 = 4;
/// The table's unique id follows.
const FLAG_UNIQUE_ID: u32 = 8;
/// The family's share begins with an excise.
const FLAG_EXCISE: u32 = 1;
/// The time of arrival follows. Of the first family only: the time is the whole ingest's.
const FLAG_ARRIVED: u32 = 2;

impl IngestRecord {
    pub fn shape(&self) -> IngestShape {
        let has_excise = self.families.iter().any(|share| share.excise.is_some());
        let layers = self.families.iter().map(|share| share.layers.len()).max().unwrap_or(0);
        IngestShape { has_excise, numbers: u64::from(has_excise) + layers as u64 }
    }

    /// The ingest's last number.
    pub fn last(&self) -> SeqNo {
        SeqNo(self.first.0 + self.shape().numbers.saturating_sub(1))
    }

    /// The length does not depend on the first number.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_u64(&mut out, self.first.0);
        put_varint32(&mut out, self.families.len() as u32);
        for (i, share) in self.families.iter().enumerate() {
            put_varint32(&mut out, share.family.0);
            let tells_arrival = i == 0 && self.arrived_us > 0;
            let arrived = if tells_arrival { FLAG_ARRIVED } else { 0 };
            put_varint32(&mut out, arrived | if share.excise.is_some() { FLAG_EXCISE } else { 0 });
            if tells_arrival {
                put_varint64(&mut out, self.arrived_us);
            }
            if let Some((start, end)) = &share.excise {
                put_prefixed(&mut out, start);
                put_prefixed(&mut out, end);
            }
            put_varint32(&mut out, share.layers.len() as u32);
            for layer in &share.layers {
                put_varint32(&mut out, layer.len() as u32);
                layer.iter().for_each(|table| encode_table(&mut out, table));
            }
        }
        out
    }

    /// Decodes a record. Also returns the remaining bytes: the batch committed with the ingest.
    ///
    /// # Errors
    /// `Corruption`: malformed record.
    pub fn decode(payload: &[u8]) -> Result<(IngestRecord, &[u8])> {
        let mut reader = Reader::new(payload);
        let first = SeqNo(reader.u64("an ingest's first number")?);
        let mut record = IngestRecord { first, ..IngestRecord::default() };
        let mut seen = BTreeSet::new();
        for _ in 0..reader.varint32("an ingest's families")? {
            let arrived_us = record.families.is_empty().then_some(&mut record.arrived_us);
            let share = decode_share(&mut reader, arrived_us)?;
            if !seen.insert(share.family) {
                return Err(malformed("a family is in it twice"));
            }
            record.families.push(Arc::new(share));
        }
        let numbers = record.shape().numbers;
        if numbers == 0 || record.first == SeqNo::ZERO || record.first.checked_add(numbers - 1).is_none() {
            return Err(malformed("its numbers"));
        }
        Ok((record, reader.rest()))
    }
}

/// `arrived_us` is given for the first family.
fn decode_share(reader: &mut Reader<'_>, arrived_us: Option<&mut u64>) -> Result<FamilyIngest> {
    let family = FamilyId(reader.varint32("an ingest's family")?);
    let flags = reader.varint32("an ingest's flags")?;
    if flags & !(FLAG_EXCISE | FLAG_ARRIVED) != 0 {
        return Err(malformed("its flags"));
    }
    match arrived_us {
        Some(arrived_us) if flags & FLAG_ARRIVED != 0 => {
            *arrived_us = reader.varint64("an ingest's time of arrival")?
        }
        None if flags & FLAG_ARRIVED != 0 => return Err(malformed("its flags")),
        _ => {}
    }
    let mut share = FamilyIngest { family, ..FamilyIngest::default() };
    if flags & FLAG_EXCISE != 0 {
        let start = reader.prefixed("an excise's start")?.to_vec();
        share.excise = Some((start, reader.prefixed("an excise's end")?.to_vec()));
    }
    for _ in 0..reader.varint32("an ingest's layers")? {
        // Grown table by table: a count is not trusted before its tables are read (B2).
        let mut layer = Vec::new();
        for _ in 0..reader.varint32("a layer's tables")? {
            layer.push(decode_table(reader)?);
        }
        if layer.is_empty() {
            return Err(malformed("a layer without tables"));
        }
        share.layers.push(layer);
    }
    if share.excise.is_none() && share.layers.is_empty() {
        return Err(malformed("a family of which it changes nothing"));
    }
    Ok(share)
}

fn encode_table(out: &mut Vec<u8>, IngestTable { meta: table, has_range_deletions, .. }: &IngestTable) {
    let own_numbers = table.largest_seq > SeqNo::ZERO;
    let flag = |set: bool, flag: u32| if set { flag } else { 0 };
    let has_checksum = !table.file_checksum_func.is_empty();
    let flags = flag(own_numbers, FLAG_OWN_NUMBERS)
        | flag(*has_range_deletions, FLAG_RANGE_DELETIONS)
        | flag(has_checksum, FLAG_FILE_CHECKSUM)
        | flag(table.unique_id.is_some(), FLAG_UNIQUE_ID);
    put_varint64(out, table.number.0);
    put_varint32(out, table.path_id);
    put_varint64(out, table.file_bytes);
    put_varint64(out, table.file_creation_time);
    put_varint64(out, table.oldest_ancestor_time);
    put_varint32(out, flags);
    if own_numbers {
        put_varint64(out, table.smallest_seq.0);
        put_varint64(out, table.largest_seq.0);
    }
    if has_checksum {
        put_prefixed(out, table.file_checksum_func.as_bytes());
        put_prefixed(out, &table.file_checksum);
    }
    if let Some((first, second)) = table.unique_id {
        put_u64(out, first);
        put_u64(out, second);
    }
    put_prefixed(out, &table.smallest);
    put_prefixed(out, &table.largest);
}

fn decode_table(reader: &mut Reader<'_>) -> Result<IngestTable> {
    let mut table = FileMeta {
        number: FileNumber(reader.varint64("a table's number")?),
        path_id: reader.varint32("a table's path")?,
        file_bytes: reader.varint64("a table's size")?,
        file_creation_time: reader.varint64("a table's creation time")?,
        oldest_ancestor_time: reader.varint64("a table's oldest time")?,
        ..FileMeta::default()
    };
    let flags = reader.varint32("a table's flags")?;
    if flags & FLAG_OWN_NUMBERS != 0 {
        table.smallest_seq = SeqNo(reader.varint64("a table's smallest number")?);
        table.largest_seq = SeqNo(reader.varint64("a table's largest number")?);
    }
    if flags & FLAG_FILE_CHECKSUM != 0 {
        let function = reader.prefixed("the name of a file's checksum")?.to_vec();
        table.file_checksum_func = String::from_utf8(function).map_err(|_| malformed("the name of a checksum"))?;
        table.file_checksum = reader.prefixed("a file's checksum")?.to_vec();
    }
    if flags & FLAG_UNIQUE_ID != 0 {
        table.unique_id = Some((reader.u64("a table's id")?, reader.u64("a table's id")?));
    }
    table.smallest = reader.prefixed("a table's smallest key")?.to_vec();
    table.largest = reader.prefixed("a table's largest key")?.to_vec();
    let whole = key::split(&table.smallest).is_some() && key::split(&table.largest).is_some();
    let known = FLAG_OWN_NUMBERS | FLAG_RANGE_DELETIONS | FLAG_FILE_CHECKSUM | FLAG_UNIQUE_ID;
    if !whole || flags & !known != 0 || table.smallest_seq > table.largest_seq || table.largest_seq > SeqNo::MAX {
        return Err(malformed("a table"));
    }
    Ok(IngestTable { meta: table, has_range_deletions: flags & FLAG_RANGE_DELETIONS != 0, raw_bytes: 0 })
}

fn malformed(what: &str) -> Error {
    Error::corruption(format!("an ingest's record in the log is malformed: {what}"))
}

/// A table of a numbered ingest: every entry takes `number`, unless the table has numbers of its own.
pub(crate) fn numbered(mut table: FileMeta, number: SeqNo) -> FileMeta {
    if table.largest_seq > SeqNo::ZERO {
        return table;
    }
    (table.smallest_seq, table.largest_seq) = (number, number);
    for bound in [&mut table.smallest, &mut table.largest] {
        if let Some((user_key, trailer)) = key::split(bound) {
            // The exclusive end of a range tombstone is already above every number.
            if trailer != key::pack_trailer(SeqNo::MAX, ValueKind::RangeDeletion as u8) {
                let user_key_bytes = user_key.len();
                bound.truncate(user_key_bytes);
                key::append(bound, b"", number, trailer as u8);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(number: u64, smallest: &str, largest: &str) -> IngestTable {
        let bound = |user_key: &str| key::encode(user_key.as_bytes(), SeqNo::ZERO, ValueKind::Value);
        let meta = FileMeta {
            number: FileNumber(number),
            file_bytes: 1_000,
            smallest: bound(smallest),
            largest: bound(largest),
            ..FileMeta::default()
        };
        IngestTable { meta, ..IngestTable::default() }
    }

    fn record() -> IngestRecord {
        let mut own = table(12, "x", "z");
        (own.meta.smallest_seq, own.meta.largest_seq) = (SeqNo(3), SeqNo(9));
        own.has_range_deletions = true;
        (own.meta.file_checksum_func, own.meta.file_checksum) = ("FileChecksumCrc32c".to_owned(), vec![1, 2, 3, 4]);
        own.meta.unique_id = Some((1, u64::MAX));
        let plain = FamilyIngest {
            family: FamilyId(0),
            excise: None,
            layers: vec![vec![table(10, "a", "c"), table(11, "d", "f")], vec![own]],
        };
        let excised = FamilyIngest {
            family: FamilyId(300),
            excise: Some((b"k".to_vec(), b"p".to_vec())),
            layers: vec![vec![table(13, "l", "m")]],
        };
        IngestRecord {
            first: SeqNo(40),
            arrived_us: 1_795_613_334_123_456,
            families: vec![Arc::new(plain), Arc::new(excised)],
        }
    }

    #[test]
    fn a_record_round_trips_with_what_follows_it() {
        let record = record();
        let mut bytes = record.encode();
        let alone = bytes.len();
        bytes.extend_from_slice(b"a batch");
        let (decoded, rest) = IngestRecord::decode(&bytes).expect("valid");
        assert_eq!((decoded, rest), (record.clone(), &b"a batch"[..]));
        let mut late = record.encode();
        let renumbered = IngestRecord { first: SeqNo::MAX, ..record };
        assert_eq!(renumbered.encode().len(), alone, "as long whatever the number is");
        *late.first_chunk_mut().expect("it begins with its first number") = SeqNo::MAX.0.to_le_bytes();
        assert_eq!(late, renumbered.encode());
    }

    #[test]
    fn numbers_are_one_for_the_excises_and_one_for_each_layer() {
        let record = record();
        let shape = record.shape();
        assert_eq!((shape.numbers, record.last()), (3, SeqNo(42)));
        assert_eq!([0, 1].map(|layer| shape.number_of_layer(record.first, layer)), [SeqNo(41), SeqNo(42)]);
    }

    #[test]
    fn nothing_else_passes() {
        let bytes = record().encode();
        for len in 0..bytes.len() {
            IngestRecord::decode(&bytes[..len]).expect_err("cut");
        }
        let nothing = IngestRecord { first: SeqNo(1), ..IngestRecord::default() };
        IngestRecord::decode(&nothing.encode()).expect_err("no number at all");
        let past_the_end = IngestRecord { first: SeqNo::MAX, ..record() };
        IngestRecord::decode(&past_the_end.encode()).expect_err("numbers end at 56 bits");
    }

    /// Where the encodings of two shares that differ in a flag first differ: in the flags.
    fn flags_at(without: &[u8], with: &[u8]) -> usize {
        without.iter().zip(with).position(|(without, with)| without != with).expect("they differ")
    }

    fn of(share: FamilyIngest) -> Vec<u8> {
        IngestRecord { first: SeqNo(1), families: vec![Arc::new(share)], ..IngestRecord::default() }.encode()
    }

    fn of_table(table: IngestTable) -> Vec<u8> {
        of(FamilyIngest { layers: vec![vec![table]], ..FamilyIngest::default() })
    }

    fn refused(bytes: &[u8]) -> String {
        IngestRecord::decode(bytes).expect_err("malformed").message().to_owned()
    }

    #[test]
    fn flags_that_nobody_knows_are_refused() {
        let plain = of_table(table(1, "a", "b"));
        let excised = of(FamilyIngest { excise: Some((b"a".to_vec(), b"b".to_vec())), ..FamilyIngest::default() });
        let ranged = of_table(IngestTable { has_range_deletions: true, ..table(1, "a", "b") });
        let places = [(flags_at(&plain, &excised), 2, "its flags"), (flags_at(&plain, &ranged), 4, "a table")];
        for (at, known_bits, what) in places {
            // A flag in the eighth bit would make a longer number.
            for bit in known_bits..7 {
                let mut bytes = plain.clone();
                bytes[at] |= 1 << bit;
                assert_eq!(refused(&bytes), format!("an ingest's record in the log is malformed: {what}"), "bit {bit}");
            }
        }
    }

    #[test]
    fn a_record_without_a_time_is_as_it_was_and_only_the_first_family_tells_one() {
        let untimed = IngestRecord { arrived_us: 0, ..record() };
        let (old, new) = (untimed.encode(), record().encode());
        assert_eq!(IngestRecord::decode(&old).expect("valid").0, untimed);
        assert_eq!(new.len(), old.len() + 8, "eight bytes of time");
        let second = flags_at(&of_two(None), &of_two(Some((b"k".to_vec(), b"p".to_vec()))));
        let mut bytes = of_two(None);
        bytes[second] |= FLAG_ARRIVED as u8;
        assert_eq!(refused(&bytes), "an ingest's record in the log is malformed: its flags");
    }

    /// Two families, the second with this excise.
    fn of_two(excise: Option<(Vec<u8>, Vec<u8>)>) -> Vec<u8> {
        let of = |family: u32| FamilyIngest {
            family: FamilyId(family),
            layers: vec![vec![table(1, "a", "b")]],
            ..FamilyIngest::default()
        };
        let families = vec![Arc::new(of(0)), Arc::new(FamilyIngest { excise, ..of(1) })];
        IngestRecord { first: SeqNo(1), families, ..IngestRecord::default() }.encode()
    }

    /// The example of docs/format/log.md.
    #[test]
    fn the_example_of_the_format_is_what_the_code_writes() {
        let share = FamilyIngest { layers: vec![vec![table(12, "a", "c")]], ..FamilyIngest::default() };
        let (first, arrived_us) = (SeqNo(40), 1_795_613_334_123_456);
        let bytes = IngestRecord { first, arrived_us, families: vec![Arc::new(share)] }.encode();
        let line = |(i, line): (usize, &[u8])| {
            let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{:06x}  {}\n", i * 16, hex.join(" "))
        };
        let dump: String = bytes.chunks(16).enumerate().map(line).collect();
        let page = include_str!("../../../../docs/format/log.md");
        assert!(page.contains(&dump), "docs/format/log.md lacks:\n{dump}");
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        let changed = |change: &dyn Fn(&mut FileMeta)| {
            let mut table = table(1, "a", "b");
            change(&mut table.meta);
            refused(&of_table(table))
        };
        let numbers = |smallest: u64, largest: u64| {
            changed(&|meta| (meta.smallest_seq, meta.largest_seq) = (SeqNo(smallest), SeqNo(largest)))
        };
        let messages = [
            numbers(9, 3),
            numbers(3, SeqNo::MAX.0 + 1),
            changed(&|meta| meta.smallest = b"a".to_vec()),
            changed(&|meta| meta.largest.clear()),
        ];
        for (nth, message) in messages.iter().enumerate() {
            assert_eq!(message, "an ingest's record in the log is malformed: a table", "{nth}");
        }
        let nothing = FamilyIngest { layers: vec![vec![table(1, "a", "b")], Vec::new()], ..FamilyIngest::default() };
        assert_eq!(refused(&of(nothing)), "an ingest's record in the log is malformed: a layer without tables");
    }

    #[test]
    fn families_that_cannot_be_are_refused() {
        let share = Arc::new(FamilyIngest { layers: vec![vec![table(1, "a", "b")]], ..FamilyIngest::default() });
        let empty = Arc::new(FamilyIngest { family: FamilyId(7), ..FamilyIngest::default() });
        for (second, what) in [(&share, "a family is in it twice"), (&empty, "a family of which it changes nothing")] {
            let families = vec![share.clone(), second.clone()];
            let record = IngestRecord { first: SeqNo(1), families, ..IngestRecord::default() };
            assert_eq!(refused(&record.encode()), format!("an ingest's record in the log is malformed: {what}"));
        }
    }

    #[test]
    fn a_number_goes_into_bounds_but_not_into_exclusive_ends() {
        let mut ranged = table(1, "a", "c").meta;
        ranged.largest = key::encode(b"q", SeqNo::MAX, ValueKind::RangeDeletion);
        let numbered_table = numbered(ranged.clone(), SeqNo(7));
        assert_eq!(numbered_table.smallest, key::encode(b"a", SeqNo(7), ValueKind::Value));
        assert_eq!(numbered_table.largest, ranged.largest);
        assert_eq!((numbered_table.smallest_seq, numbered_table.largest_seq), (SeqNo(7), SeqNo(7)));
    }
}
