//! Writes the table once all entries are known. One pass over the entries trains codes and dictionary, a second writes
//! groups; then follow index, codes and dictionary, filter, tombstones, checksums, properties and footer.

use base::{Error, Result, key};

use super::builder::ZipTableBuilder;
use super::footer::Footer;
use super::group::{GROUP_ENTRIES, GroupBuilder};
use super::index::{IndexBuilder, separate};
use super::keys::{KeyBounds, KeyCounts, KeyEncoder, RecordSize};
use super::shared;
use super::value::{Trained, ValueDecoder, ValueEncoder, dictionary_bytes_for, train};
use crate::TableSummary;

/// Sampled value bytes per dictionary byte; and the bytes to train codes on, also the least to sample.
const SAMPLES_PER_DICTIONARY_BYTE: usize = 16;
const SAMPLE_BYTES: usize = 1 << 20;
/// Bytes sampled of one value, at most.
const SAMPLE_BYTES_EACH: usize = 64 << 10;

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
    fn add(&mut self, group: &mut GroupBuilder, previous: &[u8], internal_key: &[u8], value: &[u8]) -> Result<()> {
        let record = self.values.encode(value);
        if let (Some(check), Some(record)) = (&self.check, record) {
            check.decode(record, record.len(), &mut self.again)?;
            if self.again != value {
                return Err(Error::corruption("a compressed value does not come back as it was"));
            }
        }
        group.add(&self.keys, previous, internal_key, record.unwrap_or(value), record.is_none());
        Ok(())
    }
}

impl ZipTableBuilder {
    pub(super) fn finish_table(mut self) -> Result<TableSummary> {
        self.draft.check_whole()?;
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
        self.write_rest(&index.finish(), &shared::encode(&trained, &key_codes))
    }

    fn survey(&mut self, bounds: KeyBounds) -> Result<Survey> {
        let wanted = dictionary_bytes_for(self.value_bytes) * SAMPLES_PER_DICTIONARY_BYTE;
        let wanted = wanted.max(SAMPLE_BYTES) as u64;
        let mut sampler = Sampler { samples: Vec::new(), wanted, all: self.value_bytes, taken: 0, seen: 0 };
        let (mut keys, mut index) = (KeyCounts::new(bounds), IndexBuilder::default());
        let (mut nth, mut previous, mut separator) = (0, Vec::new(), Vec::new());
        let order = &self.draft.config.order.user;
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
        let check = self.draft.config.options.verify_compression.then(check).transpose()?;
        Ok(Coders { keys, values, check, again: Vec::new() })
    }

    fn write_groups(&mut self, mut coders: Coders, index: &mut IndexBuilder) -> Result<()> {
        let ZipTableBuilder { spill, output, draft, .. } = self;
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
            coders.add(&mut group, &previous, internal_key, value)?;
            previous.clear();
            previous.extend_from_slice(key::user_key(internal_key));
            in_group += 1;
            Ok(())
        })?;
        if in_group > 0 {
            end_group(&mut group)?;
        }
        draft.properties.data_blocks = sizes.len() as u64;
        index.set_sizes(sizes);
        Ok(())
    }

    /// Writes all parts after the groups.
    fn write_rest(self, index: &[u8], shared: &[u8]) -> Result<TableSummary> {
        let ZipTableBuilder { mut draft, mut output, keys, value_bytes_max, .. } = self;
        let groups_bytes = output.offset();
        let (index, shared) = (shared::store(index)?, shared::store(shared)?);
        let (index_bytes, shared_bytes) = (output.append(&index.bytes)?, output.append(&shared.bytes)?);
        let properties = &mut draft.properties;
        properties.data_bytes = groups_bytes;
        properties.index_bytes = index_bytes + shared_bytes;
        properties.compression = "ByValue".to_owned();
        let entries = properties.entries - properties.range_deletions;
        draft.finish_mapped(output, |meta| Footer {
            groups_bytes,
            index_bytes,
            shared_bytes,
            meta,
            entries,
            group_entries: GROUP_ENTRIES,
            keys: keys.unwrap_or_default(),
            value_bytes_max,
            index_compression: index.compression,
            shared_compression: shared.compression,
        })
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
