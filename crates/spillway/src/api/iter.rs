//! Iteration over a family, from both ends.

use std::iter::FusedIterator;
use std::ops::Bound;

use base::{Error, Pinned, Result, UserOrder};

use crate::api::family::Family;
use crate::api::range::{KeyRange, behind_prefix};
use crate::api::walk::{Start, Walk};
use crate::cursor::options::ReadOptions;
use crate::transaction::indexed::SharedBatch;

/// Entries of a family in key order, as of the call that made the iterator; backwards with `rev` and `next_back`.
///
/// An item is a key with its value, or the error that ends the iteration: `Corruption` or `Io` of a table, `Closed`
/// after [`Db::close`](crate::Db::close). The iterator owns what it needs, and can be sent to another thread. While it
/// lives it keeps the memory and the files of its state, and the database open: do not keep one for hours.
///
/// Keys and values are copied; [`Cursor`](crate::Cursor) lends them instead. The first step from an end makes that
/// end's cursor, which costs as much as some lookups.
///
/// ```
/// # fn main() -> spillway::Result<()> {
/// # let db = spillway::Db::open_with("/db", &spillway::Options::in_memory())?;
/// for n in 0u8..10 {
///     db.put([n], "")?;
/// }
/// let (key, _) = db.range([3]..).next().expect("there are some")?;
/// assert_eq!(key.as_ref(), [3]);
/// let last: spillway::Result<Vec<_>> = db.iter().rev().take(2).collect();
/// assert_eq!(last?.len(), 2);
/// # Ok(())
/// # }
/// ```
#[must_use = "iterators do nothing until they are asked for items"]
pub struct Iter(State);

enum State {
    Running(Box<Ends>),
    /// Could not begin.
    Failed(Error),
    Ended,
}

/// The walks from both ends. Both stand on the last entry that they gave.
struct Ends {
    front: Option<Walk>,
    back: Option<Walk>,
    start: Start,
}

#[derive(Clone, Copy)]
enum End {
    Front,
    Back,
}

impl Iter {
    pub(super) fn new(family: &Family, range: impl KeyRange, options: ReadOptions) -> Iter {
        Iter(match Start::new(family, range, options) {
            Ok(start) => State::Running(Box::new(Ends { front: None, back: None, start })),
            Err(error) => State::Failed(error),
        })
    }

    /// An iterator over a state with a transaction's changes.
    pub(super) fn over(start: Result<Start>, changes: &SharedBatch) -> Iter {
        Iter(match start {
            Ok(start) => State::Running(Box::new(Ends { front: None, back: None, start: start.with(changes) })),
            Err(error) => State::Failed(error),
        })
    }

    /// An iterator over the keys that begin with `prefix`.
    pub(super) fn over_prefix(family: &Family, prefix: &[u8], options: ReadOptions) -> Iter {
        let first = Bound::Included(prefix.to_vec());
        let behind = behind_prefix(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        match family.order() {
            UserOrder::Bytewise => Iter::new(family, (first, behind), options),
            UserOrder::ReverseBytewise => Iter::new(family, (behind, first), options),
            UserOrder::Custom(order) => Iter(State::Failed(Error::unsupported(format!(
                "keys with one prefix need not be neighbours in the order {} of column family \"{}\": use a range",
                order.name(),
                family.name()
            )))),
        }
    }

    fn step(&mut self, end: End) -> Option<Result<(Pinned, Pinned)>> {
        let item = match &mut self.0 {
            State::Running(ends) => ends.step(end).transpose(),
            State::Failed(error) => Some(Err(error.clone())),
            State::Ended => None,
        };
        if !matches!(item, Some(Ok(_))) {
            self.0 = State::Ended;
        }
        item
    }
}

impl Ends {
    fn step(&mut self, end: End) -> Result<Option<(Pinned, Pinned)>> {
        let (own, other) = match end {
            End::Front => (&mut self.front, &self.back),
            End::Back => (&mut self.back, &self.front),
        };
        let moved = match (own.as_mut(), end) {
            (Some(walk), End::Front) => walk.next()?,
            (Some(walk), End::Back) => walk.prev()?,
            (None, End::Front) => own.insert(self.start.walk()?).first()?,
            (None, End::Back) => own.insert(self.start.walk()?).last()?,
        };
        let Some(walk) = own.as_ref().filter(|_| moved) else { return Ok(None) };
        if let Some(other) = other {
            let beside = self.start.order().compare(walk.key(), other.key());
            let is_met = match end {
                End::Front => beside.is_ge(),
                End::Back => beside.is_le(),
            };
            if is_met {
                return Ok(None);
            }
        }
        Ok(Some((Pinned::from(walk.key().to_vec()), Pinned::from(walk.value().to_vec()))))
    }
}

impl Iterator for Iter {
    type Item = Result<(Pinned, Pinned)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(End::Front)
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(End::Back)
    }
}

impl FusedIterator for Iter {}
