//! Compares reads with the model: lookups, whole scans, and iterators that live on while the database changes.

use std::ops::Bound;
use std::sync::Arc;

use spillway::{Db, DbIterator, Family, ReadOptions, Snapshot};

use crate::model::Contents;
use crate::ops::{Key, Range, Step};
use crate::run::{Failure, differ};

/// Looks keys up one by one and all at once.
pub(crate) fn compare_gets(
    db: &Db,
    family: &Family,
    contents: &Contents,
    keys: &[Key],
    snapshot: Option<&Snapshot>,
) -> Result<(), Failure> {
    let options = ReadOptions { snapshot: snapshot.cloned(), ..ReadOptions::default() };
    let borrowed: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let many = db.multi_get(family, &borrowed, &options)?;
    if many.len() != keys.len() {
        return differ(format!("multi-get of {} keys gave {} answers", keys.len(), many.len()));
    }
    for (key, of_many) in keys.iter().zip(many) {
        let expected = contents.get(key).map(|entry| &*entry.value);
        let single = db.get(family, key, &options)?;
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
pub(crate) fn compare_scan(
    db: &Db,
    family: &Family,
    contents: &Contents,
    options: &ReadOptions,
    reverse: bool,
) -> Result<(), Failure> {
    let mut iterator = db.iter(family, options)?;
    let way = if reverse { "backward" } else { "forward" };
    let expected = contents.range::<Key, _>(bounds(&options.iterate_lower_bound, &options.iterate_upper_bound));
    let mut expected: Vec<_> = expected.collect();
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

/// Both scans, and lookups of every key and of its neighbours that are not there.
pub(crate) fn compare_all(
    db: &Db,
    family: &Family,
    contents: &Contents,
    snapshot: Option<&Snapshot>,
) -> Result<(), Failure> {
    let options = ReadOptions { snapshot: snapshot.cloned(), ..ReadOptions::default() };
    compare_scan(db, family, contents, &options, false)?;
    compare_scan(db, family, contents, &options, true)?;
    let absent = contents.keys().step_by(3).map(|key| [key, &b"\0"[..]].concat());
    let keys: Vec<Key> = contents.keys().cloned().chain(absent).collect();
    compare_gets(db, family, contents, &keys, snapshot)
}

/// An iterator, what it must go on showing, and where it should stand.
pub(crate) struct HeldIterator {
    iterator: DbIterator,
    /// The pairs within the bounds.
    contents: Arc<Contents>,
    position: Option<Key>,
}

impl HeldIterator {
    pub(crate) fn new(iterator: DbIterator, contents: &Contents, range: &Range) -> Self {
        let within = contents.range::<Key, _>(bounds(&range.from, &range.to));
        let contents = Arc::new(within.map(|(key, entry)| (key.clone(), entry.clone())).collect());
        HeldIterator { iterator, contents, position: None }
    }

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
        let shown = found.then(|| self.iterator.key());
        if shown != self.position.as_deref() {
            return differ(format!(
                "`{step}` went to {:?}, not {:?}",
                shown.map(show),
                self.position.as_deref().map(show)
            ));
        }
        let value = self.position.as_ref().and_then(|key| self.contents.get(key)).map(|entry| &*entry.value);
        if found && Some(self.iterator.value()) != value {
            return differ(format!("`{step}`: {}", versus(Some(self.iterator.value()), value)));
        }
        Ok(())
    }

    fn expected(&self, step: &Step) -> Option<Key> {
        let range = |from, to| self.contents.range::<[u8], _>((from, to)).map(|(key, _)| key.clone());
        let from_start = |to| range(Bound::Unbounded, to).next_back();
        let to_end = |from| range(from, Bound::Unbounded).next();
        match step {
            Step::First => to_end(Bound::Unbounded),
            Step::Last => from_start(Bound::Unbounded),
            Step::Seek(key) => to_end(Bound::Included(key)),
            Step::SeekForPrev(key) => from_start(Bound::Included(key)),
            Step::Next => self.position.as_ref().and_then(|key| to_end(Bound::Excluded(key))),
            Step::Prev => self.position.as_ref().and_then(|key| from_start(Bound::Excluded(key))),
        }
    }
}

/// A range that is empty, not wrong, where its ends cross.
fn bounds(from: &Option<Key>, to: &Option<Key>) -> (Bound<Key>, Bound<Key>) {
    let lower = from.clone().map_or(Bound::Unbounded, Bound::Included);
    match (from, to) {
        (Some(from), Some(to)) if from >= to => (Bound::Excluded(from.clone()), Bound::Included(from.clone())),
        (_, Some(to)) => (lower, Bound::Excluded(to.clone())),
        (_, None) => (lower, Bound::Unbounded),
    }
}

/// Bytes for a message, a long run cut.
pub(crate) fn show(bytes: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 40;
    let text = String::from_utf8_lossy(bytes.get(..SHOWN_BYTES_MAX).unwrap_or(bytes)).into_owned();
    if bytes.len() > SHOWN_BYTES_MAX { format!("{text:?}... ({} bytes)", bytes.len()) } else { format!("{text:?}") }
}

fn versus(found: Option<&[u8]>, expected: Option<&[u8]>) -> String {
    let show = |value: Option<&[u8]>| value.map_or_else(|| "nothing".to_owned(), show);
    format!("found {}, expected {}", show(found), show(expected))
}
