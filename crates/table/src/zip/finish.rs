//! Writes the table once all entries are known. One pass over the entries trains codes and dictionary, a second writes
//! groups; then follow index, codes and dictionary, filter, tombstones, checksums, properties and footer.

use base::{Error, Result, SeqNo, key};

use super::builder::ZipTableBuilder;
use super::footer::{EXTENT_BYTES, Footer, check_properties_bytes};
use super::group::{GROUP_ENTRIES, GroupBuilder};
use super::index::{IndexBuilder, separate};
use super::keys::{KeyBounds, KeyCounts, KeyEncoder, RecordSize};
use super::shared;
use super::value::{Trained, ValueDecoder, ValueEncoder, dictionary_bytes_for, train};
use crate::extents::ExtentSums;
use crate::writer::Sink;
use crate::{TableSummary, tombstones};

/// Sampled value bytes per dictionary byte; and the bytes to train codes on, also the least to sample.
const SAMPLES_PER_DICTIONARY_BYTE: usize = 16;
const SAMPLE_BYTES: usize = 1 << 20;
/// Bytes sampled of one value, at most.
const SAMPLE_BYTES_EACH: usize = 64 << 10;

/// The file, and the checksums of its extents.
pub(super) struct Output {
    sink: Sink,
    sums: ExtentSums,
}

impl Output {
    pub(super) fn new(sink: Sink) -> Output {
        Output { sink, sums: ExtentSums::new(EXTENT_BYTES) }
    }

    fn append(&mut self, part: &[u8]) -> Result<u64> {
        self.sums.add(part);
        self.sink.append(part)?;
        Ok(part.len() as u64)
    }
}

/// Result of the first pass.
struct Survey {
    keys: KeyCounts,
    index: IndexBuilder,
    /// Values at even distances.
    samples: Vec<Vec<u8>>,
}

/// Samples values evenly: takes one while `taken / seen` is below `wanted / all`, in bytes.
struct Sampler {
    samples: Vec<Vec<u8>>,
    wanted: u64,
    all: u64,
    taken: u64,
    seen: u64,
}

impl Sampler {
    fn see(&mut self, value: &[u8]) {
        self.seen += value.len() as u64;
        if u128::from(self.taken) * u128::from(self.all) < u128::from(self.wanted) * u128::from(self.seen) {
            let sample = value.get(..SAMPLE_BYTES_EACH).unwrap_or(value);
            self.taken += sample.len() as u64;
            self.samples.push(sample.to_vec());
        }
    }
}

/// Encoders of the second pass.
struct Coders {
    keys: KeyEncoder,
    values: ValueEncoder,
    /// Decodes each record again to compare it; `None` without `verify_compression`.
    check: Option<ValueDecoder>,
    again: Vec<u8>,
}

impl Coders {
    fn add(&mut self, group: &mut GroupBuilder, previous: &[u8], key: (&[u8], u64), value: &[u8]) -> Result<()> {
        let record = self.values.encode(value);
        if let (Some(check), Some(record)) = (&self.check, record) {
            check.decode(record, record.len(), &mut self.again)?;
            if self.again != value {
                return Err(Error::corruption("a compressed value does not come back as it was"));
            }
        }
        group.add(&self.keys, previous, key, record.unwrap_or(value), record.is_none());
        Ok(())
    }
}

impl ZipTableBuilder {
    pub(super) fn finish_table(mut self) -> Result<TableSummary> {
        if self.failed {
            return Err(Error::invalid_argument("a write of this table has failed"));
        }
        let keys = self.keys.unwrap_or_default();
        let Survey { keys: mut key_counts, mut index, samples } = self.survey(keys)?;
        let stride = samples.iter().map(Vec::len).sum::<usize>().div_ceil(SAMPLE_BYTES).max(1);
        let trained = train(&samples, dictionary_bytes_for(self.value_bytes), stride)?;
        let values = ValueEncoder::new(&trained)?;
        let values = count_records(&mut key_counts, values, samples.iter().step_by(stride));
        drop(samples);
        let key_codes = key_counts.code_lengths();
        let coders = self.coders(values, &trained, KeyEncoder::new(keys, &key_codes)?)?;
        self.write_groups(coders, &mut index)?;
        let footer = Footer {
            groups_bytes: self.output.sink.offset(),
            entries: self.properties.entries - self.properties.range_deletions,
            group_entries: GROUP_ENTRIES,
            keys,
            value_bytes_max: self.value_bytes_max,
            ..Footer::default()
        };
        self.write_rest(footer, &index.finish(), &shared::encode(&trained, &key_codes))
    }

    fn survey(&mut self, bounds: KeyBounds) -> Result<Survey> {
        let wanted = dictionary_bytes_for(self.value_bytes) * SAMPLES_PER_DICTIONARY_BYTE;
        let wanted = wanted.max(SAMPLE_BYTES) as u64;
        let mut sampler = Sampler { samples: Vec::new(), wanted, all: self.value_bytes, taken: 0, seen: 0 };
        let (mut keys, mut index) = (KeyCounts::new(bounds), IndexBuilder::default());
        let (mut nth, mut previous, mut separator) = (0, Vec::new(), Vec::new());
        let order = &self.config.order.user;
        self.spill.for_each(|internal_key, value| {
            let (user_key, trailer) = key::split(internal_key).unwrap_or_default();
            if nth % GROUP_ENTRIES == 0 {
                if nth > 0 {
                    separate(&mut separator, &previous, user_key, order);
                }
                index.push(&separator);
                keys.add_key(&separator, user_key, trailer);
            } else {
                keys.add_key(&previous, user_key, trailer);
            }
            sampler.see(value);
            previous.clear();
            previous.extend_from_slice(user_key);
            nth += 1;
            Ok(())
        })?;
        Ok(Survey { keys, index, samples: sampler.samples })
    }

    fn coders(&self, values: ValueEncoder, trained: &Trained, keys: KeyEncoder) -> Result<Coders> {
        let check =
            || ValueDecoder::new(trained.dictionary.clone(), &trained.code_lengths, self.value_bytes_max as usize);
        let check = self.config.options.verify_compression.then(check).transpose()?;
        Ok(Coders { keys, values, check, again: Vec::new() })
    }

    fn write_groups(&mut self, mut coders: Coders, index: &mut IndexBuilder) -> Result<()> {
        let ZipTableBuilder { spill, output, properties, .. } = self;
        let mut separators = index.separators();
        let (mut group, mut in_group, mut previous, mut sizes) = (GroupBuilder::default(), 0, Vec::new(), Vec::new());
        let mut end_group = |group: &mut GroupBuilder| -> Result<()> {
            sizes.push(group.finish(|part| output.append(part).map(drop))?);
            Ok(())
        };
        spill.for_each(|internal_key, value| {
            if in_group == GROUP_ENTRIES {
                end_group(&mut group)?;
                in_group = 0;
            }
            if in_group == 0 {
                separators.next(&mut previous)?;
            }
            let entry = key::split(internal_key).unwrap_or_default();
            coders.add(&mut group, &previous, entry, value)?;
            previous.clear();
            previous.extend_from_slice(entry.0);
            in_group += 1;
            Ok(())
        })?;
        if in_group > 0 {
            end_group(&mut group)?;
        }
        properties.data_blocks = sizes.len() as u64;
        index.set_sizes(sizes);
        Ok(())
    }

    /// Writes all parts after the groups.
    fn write_rest(mut self, mut footer: Footer, index: &[u8], shared: &[u8]) -> Result<TableSummary> {
        let output = &mut self.output;
        let stored = shared::store(index)?;
        (footer.index_bytes, footer.index_compression) = (output.append(&stored.bytes)?, stored.compression);
        let stored = shared::store(shared)?;
        (footer.shared_bytes, footer.shared_compression) = (output.append(&stored.bytes)?, stored.compression);
        if let Some(filter) = self.filter.take() {
            let (parts, entries) = filter.finish(&[]);
            self.properties.filter_entries = entries;
            footer.filter_bytes = parts.first().map_or(Ok(0), |whole| output.append(&whole.contents))?;
        }
        if !self.tombstones.is_empty() {
            let block = tombstones::encode(&self.config.order.user, &mut self.tombstones);
            footer.tombstones_bytes = output.append(&block)?;
        }
        let properties = &mut self.properties;
        properties.data_bytes = footer.groups_bytes;
        properties.index_bytes = footer.index_bytes + footer.shared_bytes;
        properties.filter_bytes = footer.filter_bytes;
        properties.compression = "ByValue".to_owned();
        self.config.describe(properties);
        let encoded = properties.encode();
        footer.properties_bytes = check_properties_bytes(encoded.len())?;
        let Output { sink, sums } = self.output;
        let mut tail = sums.finish();
        tail.extend_from_slice(&encoded);
        let encoded = footer.encode(&tail);
        tail.extend_from_slice(&encoded);
        let file_bytes = sink.finish(&tail)?;
        let point_bounds = (!self.last_key.is_empty()).then_some((self.first_key, self.last_key));
        let (smallest_seq, largest_seq) = self.seqs.unwrap_or((SeqNo::ZERO, SeqNo::ZERO));
        Ok(TableSummary { file_bytes, point_bounds, smallest_seq, largest_seq, properties: self.properties })
    }
}

/// Counts the record sizes of `samples`.
fn count_records<'a>(
    counts: &mut KeyCounts,
    mut encoder: ValueEncoder,
    samples: impl Iterator<Item = &'a Vec<u8>>,
) -> ValueEncoder {
    for value in samples {
        let record = encoder.encode(value);
        let bytes = record.map_or(value.len(), <[u8]>::len) as u32;
        counts.add_record(RecordSize { bytes, is_plain: record.is_none() });
    }
    encoder
}
