//! Resolves values of a memtable or its converted table, stored in place or in a WAL. Keeps B1: every reference is
//! checked when it is resolved.

use std::path::PathBuf;
use std::sync::Arc;

use base::value_source::{REFERENCE_BYTES_MAX, ReferenceForm, StoredValue, ValueRef, ValueSource};
use base::{Cursor, Error, ErrorKind, Pinned, Result, SeqNo, ValueKind, key};

use crate::{DamageSink, PassedOver, TableValue};

/// Whether an entry of this kind may have its value elsewhere: deletions have none.
#[inline]
pub fn may_lie_elsewhere(kind: ValueKind) -> bool {
    matches!(kind, ValueKind::Value | ValueKind::Merge)
}

/// Upper bound on the stored bytes of an entry's value, if it may be left in the log.
#[inline]
pub fn stored_value_bytes_max(kind: ValueKind, value_bytes: usize) -> usize {
    match may_lie_elsewhere(kind) {
        false => value_bytes,
        // In place in every form.
        true if value_bytes <= ReferenceForm::Short.inline_max_bytes() => value_bytes + 1,
        true => REFERENCE_BYTES_MAX,
    }
}

/// The values referenced by a file; errors name the file.
pub struct ValuesOfFile {
    source: Arc<dyn ValueSource>,
    file: PathBuf,
}

impl ValuesOfFile {
    /// Values of a file's references, read from `source`.
    pub fn new(source: Arc<dyn ValueSource>, file: PathBuf) -> Self {
        ValuesOfFile { source, file }
    }
}

impl ValueSource for ValuesOfFile {
    fn resolve(&self, value: ValueRef) -> Result<Pinned> {
        self.source.resolve(value).map_err(|error| self.named(error))
    }

    fn named(&self, error: Error) -> Error {
        match error.path() {
            None => error.at_path(&self.file),
            Some(_) => error.context(format_args!("a value that {} refers to", self.file.display())),
        }
    }
}

/// Resolves stored values for one lookup. The first failure ends the lookup.
pub struct Following<'a> {
    source: &'a dyn ValueSource,
    failure: Option<Error>,
}

impl<'a> Following<'a> {
    /// Values read from `source`.
    pub fn new(source: &'a dyn ValueSource) -> Self {
        Following { source, failure: None }
    }

    /// Passes the value of `stored` to `visit`. `here` wraps a value stored in place.
    pub fn show<'v>(
        &mut self,
        seq: SeqNo,
        kind: ValueKind,
        stored: &'v [u8],
        here: impl FnOnce(&'v [u8]) -> TableValue<'v>,
        visit: &mut dyn FnMut(SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> bool {
        if !may_lie_elsewhere(kind) {
            return visit(seq, kind, here(stored));
        }
        match StoredValue::decode(stored) {
            Ok(StoredValue::Here(bytes)) => visit(seq, kind, here(bytes)),
            Ok(StoredValue::InLog(value)) => match self.source.resolve(value) {
                Ok(value) => visit(seq, kind, TableValue::of(&value)),
                Err(error) => self.fail(error),
            },
            Err(error) => self.fail(self.source.named(error)),
        }
    }

    fn fail(&mut self, error: Error) -> bool {
        self.failure.get_or_insert(error);
        false
    }

    /// # Errors
    /// The first failure of the lookup.
    pub fn end(self) -> Result<()> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// A cursor over entries with values possibly elsewhere; shows the resolved values.
pub struct FollowingCursor {
    inner: Box<dyn Cursor>,
    source: Arc<dyn ValueSource>,
    /// The current entry's value, if stored elsewhere.
    elsewhere: Option<Pinned>,
    /// Bytes in front of a value stored in place.
    skipped: usize,
    /// Receives unreadable values; the cursor skips their entries.
    damage: Option<Arc<dyn DamageSink>>,
    failure: Option<Error>,
}

impl FollowingCursor {
    /// A cursor with values read from `source`.
    pub fn new(inner: Box<dyn Cursor>, source: Arc<dyn ValueSource>) -> Box<Self> {
        Box::new(FollowingCursor { inner, source, elsewhere: None, skipped: 0, damage: None, failure: None })
    }

    /// Skips entries with damaged or missing values, and reports each to `damage`.
    #[must_use]
    pub fn passing_over(mut self: Box<Self>, damage: Option<&Arc<dyn DamageSink>>) -> Box<Self> {
        self.damage = damage.cloned();
        self
    }

    /// Resolves the current entry of the inner cursor, if `found`. Skips damaged entries in the walk's direction.
    fn arrive(&mut self, found: bool, forward: bool) -> bool {
        (self.elsewhere, self.skipped) = (None, 0);
        if !found {
            return false;
        }
        match self.follow() {
            Ok(()) => true,
            Err(error) => self.pass_over(error, forward),
        }
    }

    /// Skips the current entry, and those that follow with damage of theirs. Neighbours with the same damage are one part: a
    /// lost log of a million values is a line.
    #[cold]
    fn pass_over(&mut self, mut error: Error, forward: bool) -> bool {
        let Some(damage) = self.damage.clone() else {
            self.failure = Some(error);
            return false;
        };
        let mut part: Option<PassedOver> = None;
        let found = loop {
            if !(error.kind() == ErrorKind::Corruption || error.is_not_found() || error.is_read_failure()) {
                self.failure = Some(error);
                break false;
            }
            let key = key::user_key(self.inner.key());
            match &mut part {
                Some(part) if part.is_of(&error) => part.extend(key, forward),
                _ => {
                    let next = PassedOver::new(error, Some(key.to_vec()), Some(key.to_vec()));
                    part.replace(next).into_iter().for_each(|part| damage.passed_over(part));
                }
            }
            if !(if forward { self.inner.next() } else { self.inner.prev() }) {
                break false;
            }
            match self.follow() {
                Ok(()) => break true,
                Err(next) => error = next,
            }
        };
        part.into_iter().for_each(|part| damage.passed_over(part));
        found
    }

    fn follow(&mut self) -> Result<()> {
        let kind = key::split(self.inner.key()).and_then(|(_, trailer)| ValueKind::from_u8(trailer as u8));
        if !kind.is_some_and(may_lie_elsewhere) {
            return Ok(());
        }
        let stored = StoredValue::decode(self.inner.value()).map_err(|error| self.source.named(error))?;
        match stored {
            StoredValue::Here(value) => self.skipped = self.inner.value().len() - value.len(),
            StoredValue::InLog(value) => self.elsewhere = Some(self.source.resolve(value)?),
        }
        Ok(())
    }
}

impl Cursor for FollowingCursor {
    fn valid(&self) -> bool {
        self.failure.is_none() && self.inner.valid()
    }

    fn seek_to_first(&mut self) -> bool {
        self.failure = None;
        let found = self.inner.seek_to_first();
        self.arrive(found, true)
    }

    fn seek_to_last(&mut self) -> bool {
        self.failure = None;
        let found = self.inner.seek_to_last();
        self.arrive(found, false)
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        self.failure = None;
        let found = self.inner.seek(target);
        self.arrive(found, true)
    }

    fn seek_in_prefix(&mut self, target: &[u8]) -> bool {
        self.failure = None;
        let found = self.inner.seek_in_prefix(target);
        self.arrive(found, true)
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        self.failure = None;
        let found = self.inner.seek_for_prev(target);
        self.arrive(found, false)
    }

    fn next(&mut self) -> bool {
        let found = self.inner.next();
        self.arrive(found, true)
    }

    fn prev(&mut self) -> bool {
        let found = self.inner.prev();
        self.arrive(found, false)
    }

    fn key(&self) -> &[u8] {
        if self.failure.is_some() { &[] } else { self.inner.key() }
    }

    fn value(&self) -> &[u8] {
        match &self.elsewhere {
            _ if self.failure.is_some() => &[],
            Some(value) => value,
            None => self.inner.value().get(self.skipped..).unwrap_or_default(),
        }
    }

    fn status(&self) -> Result<()> {
        self.failure.clone().map_or_else(|| self.inner.status(), Err)
    }
}
