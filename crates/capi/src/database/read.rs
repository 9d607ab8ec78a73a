//! Point lookups: copied, pinned, and many at once.

use spillway::internal::name;
use std::ffi::c_char;
use std::mem::MaybeUninit;

use spillway::internal::{Error, Family, Pinned, ReadOptions};

use super::Database;
use crate::boundary::argument::Out;
use crate::boundary::array::{Array, CSlice, Count, OutArray};
use crate::boundary::reply::{Given, Lent};
use crate::boundary::{export, fallible, handles};
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::read_options::ReadSettings;
use spillway::internal::ttl::unstamp;

/// `rocksdb_pinnableslice_t` and `rocksdb_pinnable_handle_t`: a value and a pin on its block.
pub struct PinnedValue(Pinned);

handles!(PinnedValue);

impl PinnedValue {
    pub fn new(value: Pinned) -> Box<PinnedValue> {
        Box::new(PinnedValue(value))
    }
}

pub type Found = Result<Option<Pinned>, Error>;

pub fn unstamp_found(found: Found) -> Found {
    found?.map(unstamp).transpose()
}

/// A value for C to free. An unshared value is handed over, any other is copied.
fn given(value: Pinned) -> Given<c_char> {
    match value.as_shared() {
        Some(_) => Given::bytes(&value),
        None => Given::vector(value.into_vec()),
    }
}

/// The same for a lookup, with the length: NULL and 0 for an absent key or an error.
#[inline]
pub fn given_found(
    found: Result<Option<Pinned>, impl Into<Failure>>,
    len: Out<usize>,
) -> Result<Given<c_char>, Failure> {
    len.set(found.as_ref().map_or(0, |value| value.as_ref().map_or(0, |value| value.len())));
    found.map(|value| value.map_or(Given::NONE, given)).map_err(Into::into)
}

impl Database {
    /// The value of a key, without its stamp if it has one.
    #[inline]
    pub fn look_up(&self, family: &Family, key: &[u8], options: &ReadSettings) -> Found {
        if self.stamps.is_some() || !options.is_plain() {
            return self.look_up_rarely(family, key, options);
        }
        self.db.get(family, key, &options.options)
    }

    #[cold]
    fn look_up_rarely(&self, family: &Family, key: &[u8], options: &ReadSettings) -> Found {
        self.honour(options)?;
        let found = self.db.get(family, key, &options.options);
        if self.stamps.is_some() { unstamp_found(found) } else { found }
    }

    #[inline]
    fn get(
        &self,
        family: &Family,
        key: &[u8],
        options: &ReadSettings,
        len: Out<usize>,
    ) -> Result<Given<c_char>, Failure> {
        given_found(self.look_up(family, key, options), len)
    }

    fn pinned(&self, family: &Family, key: &[u8], options: &ReadSettings) -> Result<Option<Box<PinnedValue>>, Failure> {
        Ok(self.look_up(family, key, options)?.map(PinnedValue::new))
    }

    fn copy_to(
        &self,
        family: &Family,
        key: &[u8],
        options: &ReadSettings,
        buffer: Buffer<'_>,
    ) -> Result<bool, Failure> {
        let found = self.look_up(family, key, options);
        let value = found.as_ref().ok().and_then(Option::as_ref);
        buffer.found.set(u8::from(value.is_some()));
        buffer.len.set(value.map_or(0, |value| value.len()));
        let Some(value) = found? else { return Ok(false) };
        let Some(room) = buffer.room.get_mut(..value.len()) else { return Ok(false) };
        room.write_copy_of_slice(&value);
        Ok(true)
    }

    /// Looks up several keys of a family together.
    fn multi_get(&self, family: &Family, keys: &[&[u8]], options: &ReadSettings) -> Vec<Found> {
        self.together(keys.len(), options, |options| self.db.multi_get(family, keys, options))
    }

    /// The same of several families, as of one instant.
    pub fn multi_get_of<'f>(
        &self,
        families: impl std::iter::Iterator<Item = &'f Family>,
        keys: &[&[u8]],
        options: &ReadSettings,
    ) -> Vec<Found> {
        let asked: Vec<(&Family, &[u8])> = families.zip(keys.iter().copied()).collect();
        self.together(keys.len(), options, |options| self.db.multi_get_across(&asked, options))
    }

    /// Runs lookups of `count` keys. An error of all is each one's.
    fn together(
        &self,
        count: usize,
        options: &ReadSettings,
        look_up: impl FnOnce(&ReadOptions) -> Result<Vec<Found>, Error>,
    ) -> Vec<Found> {
        match self.honour(options).and_then(|()| look_up(&options.options)) {
            Ok(found) if self.stamps.is_some() => found.into_iter().map(unstamp_found).collect(),
            Ok(found) => found,
            Err(error) => vec![Err(error); count],
        }
    }

    /// Whether a key exists. As in RocksDB, `found` means a sure answer, and only then is there a value: an empty one
    /// for an absent key. Callers without `found` get none, and so have none to free.
    fn may_exist(&self, family: &Family, key: &[u8], options: &ReadSettings, wanted: Wanted) -> bool {
        let looked_up = self.look_up(family, key, options);
        wanted.found.set(u8::from(looked_up.is_ok()));
        let Ok(value) = looked_up else { return true }; // nothing is known: it may
        let exists = value.is_some();
        if wanted.found.is_given() && wanted.value.is_given() {
            wanted.len.set(value.as_ref().map_or(0, |value| value.len()));
            wanted.value.set(value.map_or_else(|| Given::bytes(&[]), given).into_raw());
        }
        exists
    }
}

/// Destination of a value of unknown length.
struct Buffer<'a> {
    room: &'a mut [MaybeUninit<u8>],
    len: Out<usize>,
    found: Out<u8>,
}

/// The parts of the value wanted by a caller of `key_may_exist`.
struct Wanted {
    value: Out<*mut c_char>,
    len: Out<usize>,
    found: Out<u8>,
}

/// Destinations of a multi-get's results.
pub struct Results {
    pub values: OutArray<*mut c_char>,
    pub lens: OutArray<usize>,
    pub errors: OutArray<*mut c_char>,
}

impl Results {
    /// Fills one place for each result.
    pub fn fill(self, count: Count, found: impl IntoIterator<Item = Found>) {
        let places = self.values.room(count).iter_mut().zip(self.lens.room(count)).zip(self.errors.room(count));
        for (((value, len), error), found) in places.zip(found) {
            let (found, message) = apart(found);
            len.write(found.as_ref().map_or(0, |value| value.len()));
            value.write(found.map_or(Given::NONE, given).into_raw());
            error.write(message.into_raw());
        }
    }
}

/// A key's value and its error, at most one of them set.
pub fn apart(found: Found) -> (Option<Pinned>, Given<c_char>) {
    match found {
        Ok(value) => (value, Given::NONE),
        Err(error) => (None, Given::text(name::bytes(&Failure::from(error).to_string()))),
    }
}

/// The same for pinned values.
fn fill_pinned(count: Count, values: OutArray<*mut PinnedValue>, errors: OutArray<*mut c_char>, found: Vec<Found>) {
    for ((value, error), found) in values.room(count).iter_mut().zip(errors.room(count)).zip(found) {
        let (found, message) = apart(found);
        value.write(found.map_or(std::ptr::null_mut(), |value| Box::into_raw(PinnedValue::new(value))));
        error.write(message.into_raw());
    }
}

fallible! {
    fn rocksdb_get(database: &Database, options: &ReadSettings, key[key_len]: &[u8], len: Out<usize>) -> Given<c_char> {
        database.get(database.default_family(), key, options, len)
    }

    fn rocksdb_get_cf(
        database: &Database,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        len: Out<usize>,
    ) -> Given<c_char> {
        database.get(&family.0, key, options, len)
    }

    fn rocksdb_get_pinned(
        database: &Database,
        options: &ReadSettings,
        key[key_len]: &[u8],
    ) -> Option<Box<PinnedValue>> {
        database.pinned(database.default_family(), key, options)
    }

    fn rocksdb_get_pinned_cf(
        database: &Database,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
    ) -> Option<Box<PinnedValue>> {
        database.pinned(&family.0, key, options)
    }

    fn rocksdb_get_pinned_v2(
        database: &Database,
        options: &ReadSettings,
        key[key_len]: &[u8],
    ) -> Option<Box<PinnedValue>> {
        database.pinned(database.default_family(), key, options)
    }

    fn rocksdb_get_pinned_cf_v2(
        database: &Database,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
    ) -> Option<Box<PinnedValue>> {
        database.pinned(&family.0, key, options)
    }

    /// 1 if the value was copied; else `found` tells whether it exists, and `len` its length.
    fn rocksdb_get_into_buffer(
        database: &Database,
        options: &ReadSettings,
        key[key_len]: &[u8],
        buffer: OutArray<u8>,
        buffer_size: Count,
        len: Out<usize>,
        found: Out<u8>,
    ) -> bool {
        let buffer = Buffer { room: buffer.room(buffer_size), len, found };
        database.copy_to(database.default_family(), key, options, buffer)
    }

    fn rocksdb_get_into_buffer_cf(
        database: &Database,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        buffer: OutArray<u8>,
        buffer_size: Count,
        len: Out<usize>,
        found: Out<u8>,
    ) -> bool {
        database.copy_to(&family.0, key, options, Buffer { room: buffer.room(buffer_size), len, found })
    }
}

export! {
    /// Absent keys have neither value nor error.
    fn rocksdb_multi_get(
        database: &Database,
        options: &ReadSettings,
        count: Count,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        values: OutArray<*mut c_char>,
        lens: OutArray<usize>,
        errors: OutArray<*mut c_char>,
    ) {
        let keys: Vec<&[u8]> = keys.byte_strings(key_lens, count).collect();
        let found = database.multi_get(database.default_family(), &keys, options);
        Results { values, lens, errors }.fill(count, found);
    }

    fn rocksdb_multi_get_cf(
        database: &Database,
        options: &ReadSettings,
        families: Array<*const FamilyHandle>,
        count: Count,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        values: OutArray<*mut c_char>,
        lens: OutArray<usize>,
        errors: OutArray<*mut c_char>,
    ) {
        let keys: Vec<&[u8]> = keys.byte_strings(key_lens, count).collect();
        let families = families.handles(count).map(|family| &*family.0);
        let found = database.multi_get_of(families, &keys, options);
        Results { values, lens, errors }.fill(count, found);
    }

    fn rocksdb_batched_multi_get_cf(
        database: &Database,
        options: &ReadSettings,
        family: &FamilyHandle,
        count: Count,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        values: OutArray<*mut PinnedValue>,
        errors: OutArray<*mut c_char>,
        _sorted_input: bool,
    ) {
        let keys: Vec<&[u8]> = keys.byte_strings(key_lens, count).collect();
        fill_pinned(count, values, errors, database.multi_get(&family.0, &keys, options));
    }

    fn rocksdb_batched_multi_get_cf_slice(
        database: &Database,
        options: &ReadSettings,
        family: &FamilyHandle,
        count: Count,
        keys: Array<CSlice>,
        values: OutArray<*mut PinnedValue>,
        errors: OutArray<*mut c_char>,
        _sorted_input: bool,
    ) {
        let keys: Vec<&[u8]> = keys.slices(count).collect();
        fill_pinned(count, values, errors, database.multi_get(&family.0, &keys, options));
    }

    /// False if the key does not exist. The answer is exact here; RocksDB has false positives.
    fn rocksdb_key_may_exist(
        database: &Database,
        options: &ReadSettings,
        key[key_len]: &[u8],
        value: Out<*mut c_char>,
        value_len: Out<usize>,
        timestamp[timestamp_len]: Option<&[u8]>,
        value_found: Out<u8>,
    ) -> bool {
        let _no_timestamps_here = timestamp;
        let wanted = Wanted { value, len: value_len, found: value_found };
        database.may_exist(database.default_family(), key, options, wanted)
    }

    fn rocksdb_key_may_exist_cf(
        database: &Database,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        value: Out<*mut c_char>,
        value_len: Out<usize>,
        timestamp[timestamp_len]: Option<&[u8]>,
        value_found: Out<u8>,
    ) -> bool {
        let _no_timestamps_here = timestamp;
        database.may_exist(&family.0, key, options, Wanted { value, len: value_len, found: value_found })
    }

    fn rocksdb_pinnableslice_destroy(value: Option<Box<PinnedValue>>) {
        drop(value);
    }

    /// NULL if there is no value.
    fn rocksdb_pinnableslice_value(value: Option<&PinnedValue>, len: Out<usize>) -> Lent {
        len.set(value.map_or(0, |value| value.0.len()));
        value.map_or(Lent::NONE, |value| Lent::of(&value.0))
    }

    fn rocksdb_pinnable_handle_destroy(value: Option<Box<PinnedValue>>) {
        drop(value);
    }

    fn rocksdb_pinnable_handle_get_value(value: Option<&PinnedValue>, len: Out<usize>) -> Lent {
        len.set(value.map_or(0, |value| value.0.len()));
        value.map_or(Lent::NONE, |value| Lent::of(&value.0))
    }
}
