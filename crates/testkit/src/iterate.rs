//! Compares reads with the model: lookups, whole scans, and long-lived iterators over a changing database.

use std::sync::Arc;

use crate::engine::{Db, DbIterator, Family, ReadOptions, Snapshot};
use base::UserOrder;
use base::extend::PrefixExtractor;

use crate::model::{Contents, Entry};
use crate::ops::{Key, Range, Step};
use crate::run::{Failure, differ};

/// A family and its expected contents.
pub(crate) struct Expected<'a> {
    pub db: &'a Db,
    pub family: &'a Family,
    pub order: &'a UserOrder,
    pub contents: &'a Contents,
}

impl Expected<'_> {
    /// Pairs within bounds, in order.
    fn pairs(&self, from: Option<&Key>, to: Option<&Key>) -> Vec<(&Key, &Entry)> {
        let is_before = |key: &Key, bound: &Key| self.order.compare(key, bound).is_lt();
        let within =
            |key: &Key| from.is_none_or(|from| !is_before(key, from)) && to.is_none_or(|to| is_before(key, to));
        let mut pairs: Vec<_> = self.contents.iter().filter(|(key, _)| within(key)).collect();
        pairs.sort_by(|(a, _), (b, _)| self.order.compare(a, b));
        pairs
    }

    /// Looks up keys one by one and all at once.
    pub fn compare_gets(&self, keys: &[Key], snapshot: Option<&Snapshot>) -> Result<(), Failure> {
        let options = ReadOptions { snapshot: snapshot.cloned(), ..ReadOptions::default() };
        let borrowed: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let many = self.db.multi_get(self.family, &borrowed, &options)?;
        if many.len() != keys.len() {
            return differ(format!("multi-get of {} keys gave {} answers", keys.len(), many.len()));
        }
        for (key, of_many) in keys.iter().zip(many) {
            let expected = self.contents.get(key).map(|entry| &*entry.value);
            let single = self.db.get(self.family, key, &options)?;
            if single.as_deref() != expected {
                return differ(format!("get {}: {}", show(key), versus(single.as_deref(), expected)));
            }
            let of_many = of_many?;
            if of_many.as_deref() != expected {
                return differ(format!("multi-get {}: {}", show(key), versus(of_many.as_deref(), expected)));
            }
        }
        Ok(())
    }

    /// Scans from end to end.
    pub fn compare_scan(&self, options: &ReadOptions, reverse: bool) -> Result<(), Failure> {
        let mut iterator = self.db.iter(self.family, options)?;
        let way = if reverse { "backward" } else { "forward" };
        let mut expected = self.pairs(options.iterate_lower_bound.as_ref(), options.iterate_upper_bound.as_ref());
        if reverse {
            expected.reverse();
        }
        let mut valid = if reverse { iterator.seek_to_last() } else { iterator.seek_to_first() };
        for (key, entry) in expected {
            if !valid {
                iterator.status()?;
                return differ(format!("the scan {way} ended before {}", show(key)));
            }
            if iterator.key() != key.as_slice() {
                return differ(format!("the scan {way} shows {} instead of {}", show(iterator.key()), show(key)));
            }
            if iterator.value() != &*entry.value {
                let what = versus(Some(iterator.value()), Some(&entry.value));
                return differ(format!("the scan {way}, {}: {what}", show(key)));
            }
            valid = if reverse { iterator.prev() } else { iterator.next() };
        }
        if valid {
            return differ(format!("the scan {way} shows {} beyond the end", show(iterator.key())));
        }
        iterator.status()?;
        Ok(())
    }

    /// Both scans, lookups of every key, and lookups of absent neighbours.
    pub fn compare_all(&self, snapshot: Option<&Snapshot>) -> Result<(), Failure> {
        let options = ReadOptions { snapshot: snapshot.cloned(), ..ReadOptions::default() };
        self.compare_scan(&options, false)?;
        self.compare_scan(&options, true)?;
        let absent = self.contents.keys().step_by(3).map(|key| [key, &b"\0"[..]].concat());
        let keys: Vec<Key> = self.contents.keys().cloned().chain(absent).collect();
        self.compare_gets(&keys, snapshot)
    }

    /// Holds an iterator with the pairs it must keep showing.
    pub fn hold(
        &self,
        iterator: DbIterator,
        range: &Range,
        prefixes: Option<Arc<dyn PrefixExtractor>>,
    ) -> HeldIterator {
        let pairs = self.pairs(range.from.as_ref(), range.to.as_ref());
        let pairs = pairs.into_iter().map(|(key, entry)| (key.clone(), entry.clone())).collect();
        HeldIterator { iterator, order: self.order.clone(), pairs, position: None, prefixes, prefix: None }
    }
}

/// An iterator, the pairs it must keep showing, and its expected position.
pub(crate) struct HeldIterator {
    iterator: DbIterator,
    order: UserOrder,
    /// Pairs within the bounds, in order.
    pairs: Vec<(Key, Entry)>,
    /// Index into `pairs`.
    position: Option<usize>,
    /// Set if iteration ends with the prefix of the sought key.
    prefixes: Option<Arc<dyn PrefixExtractor>>,
    prefix: Option<Key>,
}

impl HeldIterator {
    pub(crate) fn step(&mut self, step: &Step) -> Result<(), Failure> {
        let found = match step {
            Step::First => self.iterator.seek_to_first(),
            Step::Last => self.iterator.seek_to_last(),
            Step::Seek(key) => self.iterator.seek(key),
            Step::SeekForPrev(key) => self.iterator.seek_for_prev(key),
            Step::Next => self.iterator.next(),
            Step::Prev => self.iterator.prev(),
        };
        self.position = self.expected(step);
        self.iterator.status()?;
        if found != self.iterator.valid() {
            return differ(format!("`{step}` returned {found}, and the iterator says {}", !found));
        }
        let expected = self.position.and_then(|at| self.pairs.get(at));
        let (shown, expected_key) = (found.then(|| self.iterator.key()), expected.map(|(key, _)| key.as_slice()));
        if shown != expected_key {
            return differ(format!("`{step}` went to {:?}, not {:?}", shown.map(show), expected_key.map(show)));
        }
        let value = expected.map(|(_, entry)| &*entry.value);
        if found && Some(self.iterator.value()) != value {
            return differ(format!("`{step}`: {}", versus(Some(self.iterator.value()), value)));
        }
        Ok(())
    }

    /// Expected position after a step; records the prefix of a seek.
    fn expected(&mut self, step: &Step) -> Option<usize> {
        let place = match step {
            Step::First => 0,
            Step::Last => self.pairs.len().checked_sub(1)?,
            Step::Seek(target) => self.count(|order, key| order.compare(key, target).is_lt()),
            Step::SeekForPrev(target) => self.count(|order, key| order.compare(key, target).is_le()).checked_sub(1)?,
            Step::Next => self.position? + 1,
            Step::Prev => self.position?.checked_sub(1)?,
        };
        let found = self.pairs.get(place).map(|(key, _)| key);
        match step {
            Step::First | Step::Last => self.prefix = found.and_then(|key| self.prefix_of(key)),
            Step::Seek(target) | Step::SeekForPrev(target) => self.prefix = self.prefix_of(target),
            Step::Next | Step::Prev => {}
        }
        let goes_on = |key: &Key| self.prefix.is_none() || self.prefix_of(key) == self.prefix;
        found.is_some_and(goes_on).then_some(place)
    }

    /// Number of leading pairs with a key `before`.
    fn count(&self, before: impl Fn(&UserOrder, &Key) -> bool) -> usize {
        self.pairs.partition_point(|(key, _)| before(&self.order, key))
    }

    fn prefix_of(&self, key: &Key) -> Option<Key> {
        self.prefixes.as_ref()?.prefix(key).map(<[u8]>::to_vec)
    }
}

/// Bytes for a message; long ones are cut.
pub(crate) fn show(bytes: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 40;
    let text = String::from_utf8_lossy(bytes.get(..SHOWN_BYTES_MAX).unwrap_or(bytes)).into_owned();
    if bytes.len() > SHOWN_BYTES_MAX { format!("{text:?}... ({} bytes)", bytes.len()) } else { format!("{text:?}") }
}

fn versus(found: Option<&[u8]>, expected: Option<&[u8]>) -> String {
    let show = |value: Option<&[u8]>| value.map_or_else(|| "nothing".to_owned(), show);
    format!("found {}, expected {}", show(found), show(expected))
}
