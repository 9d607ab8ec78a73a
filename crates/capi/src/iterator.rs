//! `rocksdb_iterator_t`.

mod tail;

use std::sync::Arc;

use spillway::internal::{Database as Db, DbIterator, Error, ErrorKind, Family, ReadOptions, Snapshot};

use self::tail::{Place, Tail};
use crate::boundary::argument::Out;
use crate::boundary::array::{Array, CSlice, Count, OutArray};
use crate::boundary::reply::Lent;
use crate::boundary::{export, fallible, handles};
use crate::database::Database;
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::indexed_batch::{BatchOverBase, Below};
use crate::read_options::ReadSettings;
use spillway::internal::indexed::Move;
use spillway::internal::ttl::unstamped;

/// An iterator. It stays usable at its number, even if the database is closed; a tailing one shows new writes.
pub struct Iterator {
    shown: Shown,
    /// The arguments of a new view.
    source: Source,
    /// `None` unless tailing.
    tail: Option<Tail>,
    /// Values end with a hidden stamp.
    is_stamped: bool,
}

enum Shown {
    Entries(Box<DbIterator>),
    WithBatch(Box<BatchOverBase>),
    /// The iterator could not be made: it is empty, and its status is the error.
    Nothing(Error),
}

#[derive(Clone)]
struct Source {
    db: Arc<Db>,
    family: Arc<Family>,
    options: ReadOptions,
    /// An unsupported read option.
    refused: Option<Error>,
}

handles!(Iterator);

impl Source {
    fn look(&self) -> Shown {
        if let Some(error) = &self.refused {
            return Shown::Nothing(error.clone());
        }
        match self.db.iter(&self.family, &self.options) {
            Ok(entries) => Shown::Entries(Box::new(entries)),
            Err(error) => Shown::Nothing(error),
        }
    }
}

impl Iterator {
    pub fn new(database: &Database, family: &Arc<Family>, settings: &ReadSettings) -> Box<Iterator> {
        let mut source = Source {
            db: database.db.clone(),
            family: family.clone(),
            options: settings.options.clone(),
            refused: database.honour(settings).err(),
        };
        if settings.tailing {
            source.options.snapshot = None;
        }
        let tail = settings.tailing.then(|| Tail::new(&source));
        Box::new(Iterator { shown: source.look(), source, tail, is_stamped: database.stamps().is_some() })
    }

    /// Wraps `below` in the walk made by `make`, with the options of `below`.
    pub fn over_batch(
        below: Box<Iterator>,
        make: impl FnOnce(Box<Iterator>, &ReadOptions) -> BatchOverBase,
    ) -> Box<Iterator> {
        let source = below.source.clone();
        let shown = Shown::WithBatch(Box::new(make(below, &source.options)));
        Box::new(Iterator { shown, source, tail: None, is_stamped: false })
    }

    pub fn family(&self) -> &Arc<Family> {
        &self.source.family
    }

    #[inline]
    pub fn valid(&self) -> bool {
        match &self.shown {
            Shown::Entries(entries) => entries.valid(),
            Shown::WithBatch(both) => both.valid(),
            Shown::Nothing(_) => false,
        }
    }

    /// Inlined into each exported function: there `to` is constant.
    #[inline(always)]
    pub fn go(&mut self, to: Move<'_>) {
        if self.tail.is_some() {
            return self.go_tailing(to);
        }
        self.go_within(to);
    }

    /// Moves within the last view.
    #[inline(always)]
    fn go_within(&mut self, to: Move<'_>) {
        let entries = match &mut self.shown {
            Shown::Entries(entries) => entries,
            Shown::WithBatch(both) => return both.go(to),
            Shown::Nothing(_) => return,
        };
        match to {
            Move::First => entries.seek_to_first(),
            Move::Last => entries.seek_to_last(),
            Move::To(key) => entries.seek(key),
            Move::ToOrBefore(key) => entries.seek_for_prev(key),
            Move::Next => entries.next(),
            Move::Prev => entries.prev(),
        };
    }

    #[inline]
    pub fn key(&self) -> &[u8] {
        match &self.shown {
            Shown::Entries(entries) => entries.key(),
            Shown::WithBatch(both) => both.key(),
            Shown::Nothing(_) => &[],
        }
    }

    #[inline]
    pub fn value(&self) -> &[u8] {
        let value = match &self.shown {
            Shown::Entries(entries) => entries.value(),
            Shown::WithBatch(both) => both.value(),
            Shown::Nothing(_) => &[],
        };
        if self.is_stamped { unstamped(value) } else { value }
    }

    /// Shows the latest state from now on, whatever its snapshot; has no position.
    pub fn refresh(&mut self) {
        self.refresh_at(None);
    }

    /// Shows a snapshot's state from now on; has no position.
    pub fn refresh_at(&mut self, snapshot: Option<Snapshot>) {
        self.source.options.snapshot = snapshot;
        match &mut self.shown {
            Shown::WithBatch(both) => both.renew(Below::refresh),
            _ if self.tail.is_some() => self.look_again(Place::First),
            shown => *shown = self.source.look(),
        }
    }

    /// # Errors
    /// The engine's, of the last move.
    pub fn engine_status(&self) -> Result<(), Error> {
        match &self.shown {
            Shown::Entries(entries) => entries.status(),
            Shown::WithBatch(both) => both.status(),
            Shown::Nothing(error) => Err(error.clone()),
        }
    }

    pub fn status(&self) -> Result<(), Failure> {
        self.engine_status().map_err(|error| match error.kind() {
            // The limit of entries passed by one step.
            ErrorKind::Busy => Failure::incomplete(error.to_string()),
            _ => error.into(),
        })
    }
}

export! {
    fn rocksdb_create_iterator(database: &Database, options: &ReadSettings) -> Box<Iterator> {
        Iterator::new(database, database.default_family(), options)
    }

    fn rocksdb_create_iterator_cf(
        database: &Database,
        options: &ReadSettings,
        family: &FamilyHandle,
    ) -> Box<Iterator> {
        Iterator::new(database, &family.0, options)
    }

    fn rocksdb_iter_destroy(iterator: Option<Box<Iterator>>) {
        drop(iterator);
    }

    fn rocksdb_iter_valid(iterator: &Iterator) -> bool {
        iterator.valid()
    }

    fn rocksdb_iter_seek_to_first(iterator: &mut Iterator) {
        iterator.go(Move::First);
    }

    fn rocksdb_iter_seek_to_last(iterator: &mut Iterator) {
        iterator.go(Move::Last);
    }

    fn rocksdb_iter_seek(iterator: &mut Iterator, key[key_len]: &[u8]) {
        iterator.go(Move::To(key));
    }

    fn rocksdb_iter_seek_for_prev(iterator: &mut Iterator, key[key_len]: &[u8]) {
        iterator.go(Move::ToOrBefore(key));
    }

    fn rocksdb_iter_next(iterator: &mut Iterator) {
        iterator.go(Move::Next);
    }

    fn rocksdb_iter_prev(iterator: &mut Iterator) {
        iterator.go(Move::Prev);
    }

    /// Valid until the iterator moves.
    fn rocksdb_iter_key(iterator: &Iterator, len: Out<usize>) -> Lent {
        let key = iterator.key();
        len.set(key.len());
        Lent::of(key)
    }

    fn rocksdb_iter_value(iterator: &Iterator, len: Out<usize>) -> Lent {
        let value = iterator.value();
        len.set(value.len());
        Lent::of(value)
    }

    fn rocksdb_iter_key_slice(iterator: &Iterator) -> CSlice {
        CSlice::of(iterator.key())
    }

    fn rocksdb_iter_value_slice(iterator: &Iterator) -> CSlice {
        CSlice::of(iterator.value())
    }
}

fallible! {
    fn rocksdb_iter_get_error(iterator: &Iterator) {
        iterator.status()
    }

    /// Shows the current database, whatever its snapshot; has no position.
    fn rocksdb_iter_refresh(iterator: &mut Iterator) {
        iterator.refresh();
        iterator.status()
    }

    fn rocksdb_create_iterators(
        database: &Database,
        options: &ReadSettings,
        families: Array<*const FamilyHandle>,
        iterators: OutArray<*mut Iterator>,
        count: Count,
    ) {
        let made: Vec<Box<Iterator>> =
            families.handles(count).map(|family| Iterator::new(database, &family.0, options)).collect();
        made.iter().try_for_each(|iterator| iterator.status())?;
        for (room, iterator) in iterators.room(count).iter_mut().zip(made) {
            room.write(Box::into_raw(iterator));
        }
        Ok(())
    }
}
