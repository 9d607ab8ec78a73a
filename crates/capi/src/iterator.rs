//! `rocksdb_iterator_t`.

use std::sync::Arc;

use spillway::{Db, DbIterator, Error, ErrorKind, Family, ReadOptions};

use crate::boundary::argument::Out;
use crate::boundary::array::{Array, CSlice, Count, OutArray};
use crate::boundary::reply::Lent;
use crate::boundary::{export, fallible, handles};
use crate::database::{Database, FamilyHandle};
use crate::failure::Failure;
use crate::read_options::ReadSettings;

/// An iterator. It stays usable, as of its number, whatever happens to the database.
pub struct Iterator {
    shown: Shown,
    /// What a fresh look at the database takes.
    source: Source,
    tailing: bool,
}

enum Shown {
    Entries(Box<DbIterator>),
    /// Making the iterator failed: it shows nothing, and says why when asked.
    Nothing(Error),
}

struct Source {
    db: Arc<Db>,
    family: Arc<Family>,
    options: ReadOptions,
}

handles!(Iterator);

impl Source {
    fn look(&self) -> Shown {
        match self.db.iter(&self.family, &self.options) {
            Ok(entries) => Shown::Entries(Box::new(entries)),
            Err(error) => Shown::Nothing(error),
        }
    }
}

impl Iterator {
    fn new(database: &Database, family: &Arc<Family>, settings: &ReadSettings) -> Box<Iterator> {
        let source = Source { db: database.db.clone(), family: family.clone(), options: settings.options.clone() };
        Box::new(Iterator { shown: source.look(), source, tailing: settings.tailing })
    }

    #[inline]
    fn entries(&self) -> Option<&DbIterator> {
        match &self.shown {
            Shown::Entries(entries) => Some(entries),
            Shown::Nothing(_) => None,
        }
    }

    #[inline]
    fn step(&mut self, step: impl FnOnce(&mut DbIterator) -> bool) {
        if let Shown::Entries(entries) = &mut self.shown {
            step(entries);
        }
    }

    fn seek(&mut self, seek: impl FnOnce(&mut DbIterator) -> bool) {
        if self.tailing {
            self.shown = self.source.look();
        }
        self.step(seek);
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.entries().map_or(&[], DbIterator::key)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.entries().map_or(&[], DbIterator::value)
    }

    fn status(&self) -> Result<(), Failure> {
        let status = match &self.shown {
            Shown::Entries(entries) => entries.status(),
            Shown::Nothing(error) => Err(error.clone()),
        };
        status.map_err(|error| match error.kind() {
            // The limit of entries that one step may pass.
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
        iterator.entries().is_some_and(DbIterator::valid)
    }

    fn rocksdb_iter_seek_to_first(iterator: &mut Iterator) {
        iterator.seek(DbIterator::seek_to_first);
    }

    fn rocksdb_iter_seek_to_last(iterator: &mut Iterator) {
        iterator.seek(DbIterator::seek_to_last);
    }

    fn rocksdb_iter_seek(iterator: &mut Iterator, key[key_len]: &[u8]) {
        iterator.seek(|entries| entries.seek(key));
    }

    fn rocksdb_iter_seek_for_prev(iterator: &mut Iterator, key[key_len]: &[u8]) {
        iterator.seek(|entries| entries.seek_for_prev(key));
    }

    fn rocksdb_iter_next(iterator: &mut Iterator) {
        iterator.step(DbIterator::next);
    }

    fn rocksdb_iter_prev(iterator: &mut Iterator) {
        iterator.step(DbIterator::prev);
    }

    /// Valid until the iterator moves.
    fn rocksdb_iter_key(iterator: &Iterator, len: Out<usize>) -> Lent {
        len.set(iterator.key().len());
        Lent::of(iterator.key())
    }

    fn rocksdb_iter_value(iterator: &Iterator, len: Out<usize>) -> Lent {
        len.set(iterator.value().len());
        Lent::of(iterator.value())
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

    /// Shows the database as it is now, or as the iterator's snapshot saw it; stands on nothing.
    fn rocksdb_iter_refresh(iterator: &mut Iterator) {
        iterator.shown = iterator.source.look();
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
