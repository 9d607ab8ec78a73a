//! Compression of one value.

use base::Result;

use super::super::bits::BitWriter;
use super::super::classes;
use super::matches::Matches;
use super::parse::{Codes, Parser, Token};
use super::train::Trained;
use super::{After, COPY_MIN, FIRST_REGION, LITERALS, NEAR, Source};

pub struct ValueEncoder {
    codes: Codes,
    matches: Matches,
    parser: Parser,
    out: BitWriter,
}

impl ValueEncoder {
    /// # Errors
    /// `Corruption`: the lengths fit no code.
    pub fn new(trained: &Trained) -> Result<ValueEncoder> {
        let codes = Codes::new(&trained.code_lengths, trained.dictionary.len())?;
        let matches = Matches::new(trained.dictionary.clone());
        Ok(ValueEncoder { codes, matches, parser: Parser::default(), out: BitWriter::default() })
    }

    /// The record of `value`; `None` if it is not shorter than `value`.
    pub fn encode(&mut self, value: &[u8]) -> Option<&[u8]> {
        let ValueEncoder { codes, matches, parser, out } = self;
        out.clear();
        let (mut after, mut near) = (After::Literal, 0);
        for token in parser.parse(value, codes, matches) {
            let tokens = codes.tokens(after);
            match *token {
                Token::Literal(byte) => {
                    tokens.put(out, usize::from(byte));
                    after = After::Literal;
                }
                Token::Copy { source, len } => {
                    classes::put(out, tokens, LITERALS, len - COPY_MIN as u32);
                    put_source(codes, out, source, near);
                    if let Source::Dictionary(from) = source {
                        near = from + len;
                    }
                    after = After::Copy;
                }
            }
        }
        let record = out.marked();
        (record.len() < value.len()).then_some(record)
    }
}

fn put_source(codes: &Codes, out: &mut BitWriter, source: Source, near: u32) {
    match source {
        Source::Back(back) => classes::put(out, &codes.sources, NEAR, back - 1),
        Source::Dictionary(from) => match codes.says_near(from, near) {
            Some(symbol) => codes.sources.put(out, symbol),
            None => {
                codes.sources.put(out, FIRST_REGION + (from >> codes.region_bits) as usize);
                let place = from & ((1 << codes.region_bits) - 1);
                out.put(u64::from(place), codes.region_bits);
            }
        },
    }
}
