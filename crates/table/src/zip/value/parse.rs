//! Optimal parsing: cuts a value into tokens by the cheapest path in bits through its bytes. Each literal, and each
//! copy found, is a step.

use super::super::classes;
use super::super::huffman::Encoder;
use super::matches::Matches;
use super::{After, COPY_MIN, FIRST_REGION, LITERALS, NEAR, NEAR_BIAS, Source, region_bits};

/// Bytes parsed at once, to bound memory; no copy crosses the end of a span.
const SPAN_BYTES: usize = 32 << 10;
/// Copies are also tried at each shorter length down from this one.
const SHORTER_MAX: usize = 24;
/// Within copies of this length or more, no copies are searched.
const SEARCHED_WITHIN_MAX: usize = 64;

/// One literal, or one copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    Literal(u8),
    Copy { source: Source, len: u32 },
}

/// The codes of all alphabets.
pub struct Codes {
    pub after_literal: Encoder,
    pub after_copy: Encoder,
    pub sources: Encoder,
    pub region_bits: u32,
    /// Bits of a copy's length token, by length: after a literal, and after a copy.
    copy_bits: [[u32; SHORTER_MAX + 1]; 2],
}

impl Codes {
    /// # Errors
    /// `Corruption`: the lengths fit no code.
    pub fn new(lengths: &[u8], dictionary_bytes: usize) -> base::Result<Codes> {
        let (after_literal, rest) = lengths.split_at(super::TOKENS);
        let (after_copy, sources) = rest.split_at(super::TOKENS);
        let (after_literal, after_copy) = (Encoder::new(after_literal)?, Encoder::new(after_copy)?);
        let copy_bits = [&after_literal, &after_copy].map(|tokens| {
            std::array::from_fn(|len| classes::cost(tokens, LITERALS, len.saturating_sub(COPY_MIN) as u32))
        });
        let sources = Encoder::new(sources)?;
        Ok(Codes { after_literal, after_copy, sources, region_bits: region_bits(dictionary_bytes), copy_bits })
    }

    #[inline]
    pub fn tokens(&self, after: After) -> &Encoder {
        match after {
            After::Literal => &self.after_literal,
            After::Copy => &self.after_copy,
        }
    }

    #[inline]
    fn copy_bits(&self, after: After) -> &[u32; SHORTER_MAX + 1] {
        let [after_literal, after_copy] = &self.copy_bits;
        match after {
            After::Literal => after_literal,
            After::Copy => after_copy,
        }
    }

    #[inline]
    fn source_bits(&self, source: Source, near: u32) -> u32 {
        match source {
            Source::Back(back) => classes::cost(&self.sources, NEAR, back - 1),
            Source::Dictionary(from) => {
                let region = self.sources.bits(FIRST_REGION + (from >> self.region_bits) as usize) + self.region_bits;
                near_symbol(from, near).map_or(region, |symbol| region.min(self.sources.bits(symbol)))
            }
        }
    }

    /// The symbol for a copy from `from` by its distance from `near`; `None` if the region takes fewer bits.
    pub fn says_near(&self, from: u32, near: u32) -> Option<usize> {
        let region = self.sources.bits(FIRST_REGION + (from >> self.region_bits) as usize) + self.region_bits;
        near_symbol(from, near).filter(|symbol| self.sources.bits(*symbol) <= region)
    }
}

/// The symbol for a place near `near`.
fn near_symbol(from: u32, near: u32) -> Option<usize> {
    let symbol = from.wrapping_sub(near).wrapping_add(NEAR_BIAS) as usize;
    (symbol < NEAR).then_some(symbol)
}

/// The cheapest path to a byte so far.
#[derive(Clone, Copy, Debug)]
struct Step {
    bits: u32,
    /// Bytes of the path's last token; 1 for a literal.
    len: u32,
    source: Source,
    /// End of the last copy from the dictionary.
    near: u32,
}

const UNREACHED: Step = Step { bits: u32::MAX, len: 0, source: Source::Back(0), near: 0 };

/// A source, and the bits to encode it.
#[derive(Clone, Copy, Debug)]
struct Found {
    bits: u32,
    source: Source,
}

const NOT_FOUND: Found = Found { bits: u32::MAX, source: Source::Back(0) };

impl Step {
    fn after(&self) -> After {
        if self.len > 1 { After::Copy } else { After::Literal }
    }

    /// The step of a copy of `len` bytes from here; `len_bits` encode its length.
    #[inline]
    fn copied(&self, found: Found, len: usize, len_bits: u32) -> Step {
        let near = match found.source {
            Source::Back(_) => self.near,
            Source::Dictionary(place) => place + len as u32,
        };
        let bits = found.bits.saturating_add(self.bits + len_bits);
        Step { bits, len: len as u32, source: found.source, near }
    }
}

/// Parses values one after another, reusing memory.
#[derive(Default)]
pub struct Parser {
    steps: Vec<Step>,
    tokens: Vec<Token>,
    /// Copies are searched from this byte on.
    search_at: usize,
}

impl Parser {
    /// Cuts `value` into tokens.
    pub fn parse(&mut self, value: &[u8], codes: &Codes, matches: &mut Matches) -> &[Token] {
        self.tokens.clear();
        self.search_at = 0;
        let (mut start, mut first) = (0, Step { bits: 0, len: 1, ..UNREACHED });
        while start < value.len() {
            let end = value.len().min(start + SPAN_BYTES);
            self.steps.clear();
            self.steps.push(Step { bits: 0, ..first });
            self.steps.resize(end - start + 1, UNREACHED);
            for at in start..end {
                self.step_from(value.get(..end).unwrap_or_default(), start, at, codes, matches);
                matches.push(value, at);
            }
            first = self.steps.last().copied().unwrap_or(first);
            self.trace_back(value.get(start..end).unwrap_or_default());
            start = end;
        }
        matches.forget(value);
        &self.tokens
    }

    /// Tries every step from byte `at` of `value`.
    #[inline]
    fn step_from(&mut self, value: &[u8], start: usize, at: usize, codes: &Codes, matches: &Matches) {
        let Some(&from) = self.steps.get(at - start).filter(|step| step.bits != u32::MAX) else { return };
        let Some(&byte) = value.get(at) else { return };
        let tokens = codes.tokens(from.after());
        let literal = Step { bits: from.bits + tokens.bits(usize::from(byte)), len: 1, ..from };
        self.offer(at - start + 1, literal);
        if at < self.search_at {
            return;
        }
        // The cheapest source of each length; the last slot stands for all longer ones.
        let mut cheapest = [NOT_FOUND; SHORTER_MAX + 1];
        let mut longest = 0;
        matches.find(value, at, |source, len| {
            let found = Found { bits: codes.source_bits(source, from.near), source };
            longest = longest.max(len);
            if len > SHORTER_MAX {
                let len_bits = classes::cost(tokens, LITERALS, (len - COPY_MIN) as u32);
                self.offer(at - start + len, from.copied(found, len, len_bits));
            }
            if let Some(best) = cheapest.get_mut(len.min(SHORTER_MAX)).filter(|best| found.bits < best.bits) {
                *best = found;
            }
        });
        if longest >= SEARCHED_WITHIN_MAX {
            self.search_at = at + longest - COPY_MIN;
        }
        if longest > 0 {
            let copy_bits = codes.copy_bits(from.after());
            let ahead = self.steps.get_mut(at - start..).unwrap_or_default();
            let each = ahead.iter_mut().zip(copy_bits).zip(&cheapest).take(longest + 1).enumerate();
            // A source of some length also serves every shorter one.
            let mut best = NOT_FOUND;
            for (len, ((step, len_bits), found)) in each.skip(COPY_MIN).rev() {
                if found.bits < best.bits {
                    best = *found;
                }
                let copied = from.copied(best, len, *len_bits);
                if copied.bits < step.bits {
                    *step = copied;
                }
            }
        }
    }

    #[inline]
    fn offer(&mut self, at: usize, step: Step) {
        if let Some(best) = self.steps.get_mut(at)
            && step.bits < best.bits
        {
            *best = step;
        }
    }

    /// Appends the tokens of the cheapest path through `span`.
    fn trace_back(&mut self, span: &[u8]) {
        let (first, mut at) = (self.tokens.len(), span.len());
        while let Some(step) = self.steps.get(at).filter(|_| at > 0) {
            at = at.saturating_sub(step.len.max(1) as usize);
            self.tokens.push(match step.len {
                0 | 1 => Token::Literal(span.get(at).copied().unwrap_or_default()),
                len => Token::Copy { source: step.source, len },
            });
        }
        if let Some(added) = self.tokens.get_mut(first..) {
            added.reverse();
        }
    }
}
