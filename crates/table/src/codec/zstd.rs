//! ZSTD, with and without a dictionary.

use std::cell::RefCell;
use std::io;

use base::options::{CompressionKind, CompressionOptions};
use base::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use zstd::bulk::{Compressor, Decompressor};

use super::Dictionary;

const LEVEL_DEFAULT: i32 = 3;

/// Contexts kept for reuse by a table with a dictionary. Further concurrent readers make their own.
const CONTEXTS_MAX: usize = 16;

/// Contexts with a table's dictionary loaded. The lock is held only to take or return one.
#[derive(Default)]
pub(super) struct Contexts(Mutex<Vec<Decompressor<'static>>>);

thread_local! {
    static WITHOUT_DICTIONARY: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

pub(super) fn encoder(options: &CompressionOptions, dictionary: &[u8]) -> Result<Compressor<'static>> {
    let level = options.level().unwrap_or(LEVEL_DEFAULT);
    Compressor::with_dictionary(level, dictionary).map_err(|error| {
        let message = format!("cannot compress a block with {}", CompressionKind::Zstd.name());
        Error::new(ErrorKind::Io, message).with_source(error)
    })
}

impl super::Encoder for Compressor<'static> {
    fn append(&mut self, block: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let mut compressed = self.compress(block)?;
        out.append(&mut compressed);
        Ok(())
    }
}

pub(super) fn decode(body: &[u8], size: usize, dictionary: Option<&Dictionary>) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(size);
    match dictionary {
        None => WITHOUT_DICTIONARY.with_borrow_mut(|context| {
            let context = match context {
                Some(context) => context,
                none => none.insert(Decompressor::new()?),
            };
            context.decompress_to_buffer(body, &mut out)
        })?,
        Some(dictionary) => {
            let idle = dictionary.zstd.0.lock().pop();
            let mut context = match idle {
                Some(context) => context,
                None => Decompressor::with_dictionary(&dictionary.bytes)?,
            };
            let result = context.decompress_to_buffer(body, &mut out);
            let mut idle = dictionary.zstd.0.lock();
            if idle.len() < CONTEXTS_MAX {
                idle.push(context);
            }
            result?
        }
    };
    Ok(out)
}

pub(super) fn train(samples: &[impl AsRef<[u8]>], dictionary_bytes: usize) -> Vec<u8> {
    ::zstd::dict::from_samples(samples, dictionary_bytes).unwrap_or_default()
}
