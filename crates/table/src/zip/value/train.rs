//! Trains dictionary and codes on samples of a table's values.

use base::Result;

use super::super::classes::class_of;
use super::super::huffman::Histogram;
use super::matches::Matches;
use super::parse::{Codes, Parser, Token};
use super::{After, COPY_MIN, DICTIONARY_BYTES_MAX, FIRST_REGION, LITERALS, NEAR, SOURCES, Source, TOKENS};
use crate::codec;

/// Value bytes per dictionary byte: the dictionary stays a small part of the table even if values shrink to a tenth.
const VALUE_BYTES_PER_DICTIONARY_BYTE: u64 = 64;
/// A smaller dictionary is not worth its codes.
const DICTIONARY_BYTES_MIN: usize = 1 << 10;

/// Rounds of cutting the samples with the codes of the previous round; little changes after two.
const ROUNDS: usize = 3;

/// The result of training, shared by all values of a table.
#[derive(Clone, Debug, Default)]
pub struct Trained {
    pub dictionary: Vec<u8>,
    /// [`CODE_LENGTHS`](super::CODE_LENGTHS) bytes.
    pub code_lengths: Vec<u8>,
}

/// Dictionary bytes for a table with `value_bytes`; 0 for no dictionary.
pub fn dictionary_bytes_for(value_bytes: u64) -> usize {
    let bytes = (value_bytes / VALUE_BYTES_PER_DICTIONARY_BYTE).min(DICTIONARY_BYTES_MAX as u64) as usize;
    if bytes < DICTIONARY_BYTES_MIN { 0 } else { bytes }
}

/// Trains the dictionary on `samples`, and the codes on every `stride`-th of them.
///
/// # Errors
/// `Corruption`: never, as the codes are made here.
pub fn train(samples: &[Vec<u8>], dictionary_bytes: usize, stride: usize) -> Result<Trained> {
    let dictionary = match dictionary_bytes {
        0 => Vec::new(),
        // Training fails on too few or too short samples: then there is no dictionary.
        bytes => codec::train(samples, bytes),
    };
    let mut matches = Matches::new(dictionary.clone());
    let mut parser = Parser::default();
    // At first uniform within each alphabet.
    let mut code_lengths = Counts::new().lengths();
    for _ in 0..ROUNDS {
        let codes = Codes::new(&code_lengths, dictionary.len())?;
        let mut counts = Counts::new();
        for value in samples.iter().step_by(stride.max(1)) {
            counts.add(parser.parse(value, &codes, &mut matches), &codes);
        }
        code_lengths = counts.lengths();
    }
    Ok(Trained { dictionary, code_lengths })
}

struct Counts {
    after_literal: Histogram,
    after_copy: Histogram,
    sources: Histogram,
}

impl Counts {
    fn new() -> Counts {
        let tokens = Histogram::new(TOKENS);
        Counts { after_literal: tokens.clone(), after_copy: tokens, sources: Histogram::new(SOURCES) }
    }

    fn add(&mut self, tokens: &[Token], codes: &Codes) {
        let (mut after, mut near) = (After::Literal, 0);
        for token in tokens {
            let counts = match after {
                After::Literal => &mut self.after_literal,
                After::Copy => &mut self.after_copy,
            };
            match *token {
                Token::Literal(byte) => {
                    counts.count(usize::from(byte));
                    after = After::Literal;
                }
                Token::Copy { source, len } => {
                    counts.count(LITERALS + class_of(len - COPY_MIN as u32).0);
                    self.sources.count(source_symbol(source, near, codes));
                    if let Source::Dictionary(from) = source {
                        near = from + len;
                    }
                    after = After::Copy;
                }
            }
        }
    }

    fn lengths(&self) -> Vec<u8> {
        [&self.after_literal, &self.after_copy, &self.sources].iter().flat_map(|h| h.smoothed().lengths()).collect()
    }
}

fn source_symbol(source: Source, near: u32, codes: &Codes) -> usize {
    match source {
        Source::Back(back) => NEAR + class_of(back - 1).0,
        Source::Dictionary(from) => {
            codes.says_near(from, near).unwrap_or(FIRST_REGION + (from >> codes.region_bits) as usize)
        }
    }
}
