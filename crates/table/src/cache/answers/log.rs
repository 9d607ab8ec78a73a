//! The circular log of answers: words that a reader copies while they may be overwritten.
//!
//! *Invariants*: positions count words and only grow. `claimed` grows over a region before the region is written. So a
//! copy is whole if, after it, nothing a lap above its start is claimed. (Boehm, "Can seqlocks get along with programming
//! language memory models?", MSPC 2012: the two fences.)
//!
//! A record is the content's number, the deciding number, the lengths, the key and the value, each padded to words.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, fence};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, fence};

use super::bucket::POSITION_MAX;
use super::{Answer, Question};

const WORD_BYTES: usize = 8;
const HEADER_WORDS: usize = 3;
/// In place of a value's length.
const NO_VALUE: u32 = u32::MAX;

pub(super) struct Log {
    words: Box<[AtomicU64]>,
    /// The end of the last record, written or being written. One lap at first: no position is 0.
    claimed: AtomicU64,
}

/// Outcome of reading a record.
pub(super) enum Read {
    /// The value; `None`: the key does not exist.
    Answer(Option<Vec<u8>>),
    /// The answer holds for later lookups only.
    Newer,
    /// Another answer, or none.
    Nothing,
}

impl Log {
    pub(super) fn new(bytes: usize) -> Self {
        let len = bytes / WORD_BYTES;
        Log { words: (0..len).map(|_| AtomicU64::new(0)).collect(), claimed: AtomicU64::new(len as u64) }
    }

    /// Reads the record at a position given by [`append`](Self::append), at any time after.
    pub(super) fn read(&self, at: u64, question: &Question<'_>) -> Read {
        let read = self.copy(at, question).unwrap_or(Read::Nothing);
        fence(Acquire);
        if self.claimed.load(Relaxed) > at + self.words.len() as u64 { Read::Nothing } else { read }
    }

    /// The record may be overwritten meanwhile: whatever its words say is in bounds, and maybe wrong.
    fn copy(&self, at: u64, question: &Question<'_>) -> Option<Read> {
        let record = self.words.get(at as usize % self.words.len()..)?;
        let (header, rest) = record.split_first_chunk::<HEADER_WORDS>()?;
        let [content, decided_at, lengths] = header.each_ref().map(|word| word.load(Relaxed));
        let (key_len, value_len) = (lengths as u32, (lengths >> 32) as u32);
        let (stored_key, rest) = rest.split_at_checked((key_len as usize).div_ceil(WORD_BYTES))?;
        let is_same = content == question.content
            && key_len as usize == question.user_key.len()
            && stored_key.iter().zip(words_of(question.user_key)).all(|(stored, word)| stored.load(Relaxed) == word);
        if !is_same {
            return None;
        }
        if decided_at > question.seq.0 {
            return Some(Read::Newer);
        }
        if value_len == NO_VALUE {
            return Some(Read::Answer(None));
        }
        let stored = rest.get(..(value_len as usize).div_ceil(WORD_BYTES))?;
        let mut value = Vec::with_capacity(stored.len() * WORD_BYTES);
        for word in stored {
            value.extend_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        value.truncate(value_len as usize);
        Some(Read::Answer(Some(value)))
    }

    /// Writes a record over the oldest ones and returns its position. `None`: it is too long, or positions have ended.
    /// One call at a time.
    pub(super) fn append(&self, question: &Question<'_>, answer: &Answer<'_>) -> Option<u64> {
        let value = answer.value.unwrap_or_default();
        let value_len = answer.value.map_or(NO_VALUE, |value| value.len() as u32);
        let lengths = question.user_key.len() as u64 | (u64::from(value_len) << 32);
        let need = HEADER_WORDS + words_of(question.user_key).count() + words_of(value).count();
        let (len, before) = (self.words.len(), self.claimed.load(Relaxed));
        let rest = len - before as usize % len;
        // A record is in one piece.
        let at = if need > rest { before + rest as u64 } else { before };
        let end = at + need as u64;
        // Several records fit into the log.
        if need > len / 4 || end > POSITION_MAX {
            return None;
        }
        self.claimed.store(end, Relaxed);
        fence(Release);
        let header = [question.content, answer.decided_at.0, lengths];
        let record = header.into_iter().chain(words_of(question.user_key)).chain(words_of(value));
        let place = self.words.get(at as usize % len..)?;
        place.iter().zip(record).for_each(|(word, new)| word.store(new, Relaxed));
        Some(at)
    }
}

/// The bytes in words, the last one padded with zeros.
#[inline]
fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, rest) = bytes.as_chunks::<WORD_BYTES>();
    let last = (!rest.is_empty()).then(|| {
        let mut word = [0; WORD_BYTES];
        word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(word)
    });
    whole.iter().map(|word| u64::from_le_bytes(*word)).chain(last)
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::Arc;

    use base::SeqNo;

    use super::*;

    const QUESTION: Question<'static> = Question { content: 1, user_key: b"the key ", seq: SeqNo(9) };

    fn append(log: &Log, n: u64) -> Option<u64> {
        log.append(&QUESTION, &Answer { decided_at: SeqNo(n), value: Some(&n.to_le_bytes()) })
    }

    /// The record of one position is overwritten by a record of the same key, while it is read.
    #[test]
    fn loom_a_copy_is_the_answer_asked_for_or_none() {
        loom::model(|| {
            let log = Arc::new(Log::new(32 * WORD_BYTES));
            let at = append(&log, 1).expect("it fits");
            for n in 2..=6 {
                append(&log, n);
            }
            let reader = {
                let log = log.clone();
                loom::thread::spawn(move || match log.read(at, &QUESTION) {
                    Read::Answer(value) => assert_eq!(value.as_deref(), Some(&1u64.to_le_bytes()[..])),
                    Read::Newer => panic!("both are old"),
                    Read::Nothing => {}
                })
            };
            append(&log, 7);
            reader.join().expect("no panic");
        });
    }
}
