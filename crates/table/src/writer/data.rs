//! Compresses and writes blocks. If a dictionary is wanted, the first data blocks are held back as its samples.

use base::options::CompressionKind;
use base::{Error, Result};

use super::TableBuilderConfig;
use super::sink::Sink;
use crate::codec::{self, Dictionary};
use crate::compress::Compressor;
use crate::decompress::decompress;
use crate::handle::BlockHandle;

/// Data bytes held back per dictionary byte, and the upper bound of held bytes.
const HELD_PER_DICTIONARY_BYTE: usize = 16;
const HELD_BYTES_MAX: usize = 64 << 20;

pub(super) struct BlockWriter {
    pub(super) sink: Sink,
    compressor: Compressor,
    /// For data blocks, once a dictionary exists.
    data_compressor: Option<Compressor>,
    dictionary: Option<Dictionary>,
    dictionary_bytes: Vec<u8>,
    held: Option<Held>,
    /// The data blocks written, in order.
    handles: Vec<BlockHandle>,
    verify: bool,
    /// Index blocks are compressed too.
    compress_index: bool,
}

/// Data blocks held back for the dictionary.
#[derive(Default)]
struct Held {
    blocks: Vec<Vec<u8>>,
    bytes: usize,
    limit: usize,
}

impl BlockWriter {
    pub(super) fn new(sink: Sink, config: &TableBuilderConfig) -> Result<BlockWriter> {
        let options = &config.compression_options;
        let wanted = options.max_dict_bytes.max(options.zstd_max_train_bytes) as usize;
        let holds = options.max_dict_bytes > 0 && config.compression == CompressionKind::Zstd;
        let limit = wanted.saturating_mul(HELD_PER_DICTIONARY_BYTE).min(HELD_BYTES_MAX);
        Ok(BlockWriter {
            sink,
            compressor: Compressor::new(config.compression, options)?,
            data_compressor: None,
            dictionary: None,
            dictionary_bytes: Vec::new(),
            held: holds.then(|| Held { limit, ..Held::default() }),
            handles: Vec::new(),
            verify: config.options.verify_compression,
            compress_index: config.options.enable_index_compression,
        })
    }

    /// Bytes written and held back.
    pub(super) fn bytes(&self) -> u64 {
        self.sink.offset() + self.held.as_ref().map_or(0, |held| held.bytes as u64)
    }

    pub(super) fn handles(&self) -> &[BlockHandle] {
        &self.handles
    }

    pub(super) fn dictionary_bytes(&self) -> &[u8] {
        &self.dictionary_bytes
    }

    pub(super) fn write_data(&mut self, raw: &[u8], config: &TableBuilderConfig) -> Result<()> {
        let Some(held) = &mut self.held else {
            return self.write_data_now(raw);
        };
        held.blocks.push(raw.to_vec());
        held.bytes += raw.len();
        if held.bytes >= held.limit { self.end_data(config) } else { Ok(()) }
    }

    /// Writes the held data blocks with a dictionary made from them.
    pub(super) fn end_data(&mut self, config: &TableBuilderConfig) -> Result<()> {
        let Some(held) = self.held.take() else {
            return Ok(());
        };
        let dictionary = held.make_dictionary(config);
        if !dictionary.is_empty() {
            let compressor = Compressor::with_dictionary(config.compression, &config.compression_options, &dictionary)?;
            self.data_compressor = Some(compressor);
            self.dictionary = Some(Dictionary::new(dictionary.clone()));
            self.dictionary_bytes = dictionary;
        }
        held.blocks.iter().try_for_each(|raw| self.write_data_now(raw))
    }

    fn write_data_now(&mut self, raw: &[u8]) -> Result<()> {
        let compressor = self.data_compressor.as_mut().unwrap_or(&mut self.compressor);
        let (stored, kind) = compressor.compress(raw)?;
        if self.verify {
            check_round_trip(raw, stored, kind, self.dictionary.as_ref())?;
        }
        self.handles.push(self.sink.write_block(stored, kind)?);
        Ok(())
    }

    pub(super) fn write_index(&mut self, raw: &[u8]) -> Result<BlockHandle> {
        if !self.compress_index {
            return self.write_raw(raw);
        }
        let (stored, kind) = self.compressor.compress(raw)?;
        if self.verify {
            check_round_trip(raw, stored, kind, None)?;
        }
        self.sink.write_block(stored, kind)
    }

    pub(super) fn write_raw(&mut self, raw: &[u8]) -> Result<BlockHandle> {
        self.sink.write_block(raw, CompressionKind::None)
    }
}

impl Held {
    /// A trained dictionary, or the samples themselves. Empty if the samples are too few to train on.
    fn make_dictionary(&self, config: &TableBuilderConfig) -> Vec<u8> {
        let options = &config.compression_options;
        let dictionary_bytes = options.max_dict_bytes as usize;
        let sample_bytes = match options.zstd_max_train_bytes as usize {
            0 => dictionary_bytes,
            train => train,
        };
        let samples = self.sample(sample_bytes);
        if options.zstd_max_train_bytes == 0 {
            let mut bytes = samples.concat();
            bytes.truncate(dictionary_bytes);
            return bytes;
        }
        codec::train(&samples, dictionary_bytes)
    }

    /// Blocks at even distances, about `bytes` bytes in all.
    fn sample(&self, bytes: usize) -> Vec<&[u8]> {
        let average = (self.bytes / self.blocks.len().max(1)).max(1);
        let wanted = (bytes / average).clamp(1, self.blocks.len().max(1));
        let stride = self.blocks.len().div_ceil(wanted).max(1);
        self.blocks.iter().step_by(stride).map(Vec::as_slice).collect()
    }
}

fn check_round_trip(raw: &[u8], stored: &[u8], kind: CompressionKind, dictionary: Option<&Dictionary>) -> Result<()> {
    let again = decompress(kind.number(), stored, dictionary)?;
    if again.is_some_and(|again| again != raw) {
        return Err(Error::corruption(format!("{} did not give back what it compressed", kind.name())));
    }
    Ok(())
}
