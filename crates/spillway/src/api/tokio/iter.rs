//! Iteration in chunks, each fetched on the pool.

use std::collections::VecDeque;
use std::fmt;
use std::mem::take;
use std::sync::Arc;

use base::{Error, Pinned, Result};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::api::iter::Iter;
use crate::api::tokio::Inner;
use crate::api::tokio::pool::{Lane, Place, not_run, spawn};

/// Entries that [`AsyncIter::next`] fetches at a time.
const CHUNK_ENTRIES: usize = 256;
/// A chunk ends once keys and values reach this size.
const CHUNK_BYTES: usize = 1 << 20;

/// Entries of a family in key order, as of the call that made the iterator: [`AsyncFamily::range`] and its like.
///
/// Entries are fetched in chunks on a blocking thread, when they are asked for and not before: a slow reader holds one
/// chunk in memory, of 256 entries at most, fewer when they reach 1 MiB. An error ends the iteration: `Corruption` or
/// `Io` of a table, `Closed` after [`AsyncDb::close`].
///
/// While it lives it keeps the memory and the files of its state, and the database open: do not keep one for hours.
///
/// # Cancellation
/// A dropped future of [`next`](Self::next) or [`next_chunk`](Self::next_chunk) loses no entry: the next call gives the
/// entries that it was fetching.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> spillway::Result<()> {
/// # let db = spillway::AsyncDb::builder().options(spillway::Options::in_memory()).open("/db").await?;
/// for n in 0u8..10 {
///     db.put([n], "").await?;
/// }
/// let mut entries = db.range([3]..);
/// while let Some((key, _value)) = entries.next().await.transpose()? {
///     assert!(key[0] >= 3);
/// }
/// let last = db.iter().rev().next_chunk(2).await?;
/// assert_eq!(last.len(), 2);
/// # db.close().await
/// # }
/// ```
///
/// [`AsyncFamily::range`]: crate::AsyncFamily::range
/// [`AsyncDb::close`]: crate::AsyncDb::close
#[must_use = "iterators do nothing until they are asked for entries"]
pub struct AsyncIter {
    state: State,
    /// Fetched entries, the next one first.
    entries: VecDeque<(Pinned, Pinned)>,
    /// Ends the iteration behind `entries`.
    error: Option<Error>,
    is_reversed: bool,
    /// Last: dropping it may close the database.
    inner: Arc<Inner>,
}

enum State {
    Idle(Iter),
    Fetching(JoinHandle<Option<Chunk>>),
    Ended,
}

struct Chunk {
    entries: VecDeque<(Pinned, Pinned)>,
    error: Option<Error>,
    /// `None` at the end.
    rest: Option<Iter>,
}

impl AsyncIter {
    pub(super) fn new(inner: &Arc<Inner>, iter: Iter) -> AsyncIter {
        AsyncIter {
            state: State::Idle(iter),
            entries: VecDeque::new(),
            error: None,
            is_reversed: false,
            inner: inner.clone(),
        }
    }

    /// Goes the other way: from the last entry to the first. Entries fetched before this call still come first.
    pub fn rev(mut self) -> AsyncIter {
        self.is_reversed = !self.is_reversed;
        self
    }

    /// The next entry, or the error that ends the iteration. `None` behind the last one, and after an error.
    pub async fn next(&mut self) -> Option<Result<(Pinned, Pinned)>> {
        self.fetch(CHUNK_ENTRIES).await;
        self.entries.pop_front().map(Ok).or_else(|| self.error.take().map(Err))
    }

    /// The next entries: `entries_max` of them, fewer where they reach 1 MiB, or were fetched already; none at the end
    /// only, or if `entries_max` is 0. One hop to a blocking thread for all of them.
    ///
    /// # Errors
    /// As of [`AsyncIter`]; entries in front of the error have been given before.
    pub async fn next_chunk(&mut self, entries_max: usize) -> Result<Vec<(Pinned, Pinned)>> {
        if entries_max == 0 {
            return Ok(Vec::new());
        }
        self.fetch(entries_max).await;
        if self.entries.len() > entries_max {
            return Ok(self.entries.drain(..entries_max).collect());
        }
        match self.error.take_if(|_| self.entries.is_empty()) {
            Some(error) => Err(error),
            None => Ok(take(&mut self.entries).into()),
        }
    }

    /// Fetches entries, unless some are there, or an error.
    async fn fetch(&mut self, entries_max: usize) {
        while self.entries.is_empty() && self.error.is_none() {
            match &mut self.state {
                State::Ended => return,
                // The iterator stays here until there is a place, and the chunk's handle until it was taken over.
                State::Idle(_) => {
                    let place = self.inner.pool.place(Lane::Read).await;
                    self.begin(place, entries_max);
                }
                State::Fetching(chunk) => {
                    let fetched = chunk.await;
                    self.state = State::Ended;
                    match fetched {
                        Ok(chunk) => chunk.into_iter().for_each(|chunk| self.take_over(chunk)),
                        Err(error) => self.error = Some(not_run(error)),
                    }
                }
            }
        }
    }

    fn begin(&mut self, place: Place, entries_max: usize) {
        if let State::Idle(iter) = std::mem::replace(&mut self.state, State::Ended) {
            let is_reversed = self.is_reversed;
            self.state = State::Fetching(spawn(&Handle::current(), move || {
                let _place = place;
                Chunk::read(iter, is_reversed, entries_max)
            }));
        }
    }

    fn take_over(&mut self, chunk: Chunk) {
        self.entries = chunk.entries;
        self.error = chunk.error;
        if let Some(rest) = chunk.rest {
            self.state = State::Idle(rest);
        }
    }
}

impl Chunk {
    fn read(mut iter: Iter, is_reversed: bool, entries_max: usize) -> Chunk {
        let (mut entries, mut bytes) = (VecDeque::new(), 0);
        while entries.len() < entries_max && bytes < CHUNK_BYTES {
            match if is_reversed { iter.next_back() } else { iter.next() } {
                Some(Ok((key, value))) => {
                    bytes += key.len() + value.len();
                    entries.push_back((key, value));
                }
                ended => return Chunk { entries, error: ended.and_then(Result::err), rest: None },
            }
        }
        Chunk { entries, error: None, rest: Some(iter) }
    }
}

impl fmt::Debug for AsyncIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_at_end = matches!(self.state, State::Ended);
        f.debug_struct("AsyncIter").field("fetched", &self.entries.len()).field("is_at_end", &is_at_end).finish()
    }
}
