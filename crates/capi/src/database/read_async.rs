//! Lookups that do not wait for a disk: a function of the caller's takes the results.

use std::ffi::c_char;
use std::sync::Arc;

use spillway::internal::{Env, Error, ErrorKind, Family, ReadOptions, ReadTier};

use super::Database;
use super::read::{Found, PinnedValue, apart, unstamp_found};
use crate::boundary::array::{Array, Count};
use crate::boundary::call::infallible;
use crate::boundary::callback::{State, StatePointer, TakeFound};
use crate::boundary::export;
use crate::family::FamilyHandle;
use crate::read_options::ReadSettings;

/// Most keys tried on the caller. They take some 50 us in memory.
const KEYS_MAX: usize = 64;

/// Where results go.
struct Done {
    state: State,
    take: TakeFound<PinnedValue>,
    is_stamped: bool,
}

impl Done {
    fn call(&self, found: Vec<Found>) {
        let unstamp = |found: Found| if self.is_stamped { unstamp_found(found) } else { found };
        let apart = |found: Found| {
            let (value, error) = apart(unstamp(found));
            (value.map(PinnedValue::new), error)
        };
        let (values, errors) = found.into_iter().map(apart).unzip();
        self.take.call(&self.state, values, errors);
    }
}

impl Database {
    fn multi_get_async(&self, family: &Arc<Family>, keys: &[&[u8]], settings: &ReadSettings, done: Done) {
        let fail = |error: Error| keys.iter().map(|_| Err(error.clone())).collect();
        if let Err(error) = self.honour(settings) {
            return done.call(fail(error));
        }
        let options = settings.options.clone();
        // Merge operators are the caller's code, and may take long.
        let quick = ReadOptions { read_tier: ReadTier::BlockCache, merges: false, ..options.clone() };
        if keys.len() <= KEYS_MAX {
            let found = self.db.multi_get(family, keys, &quick).unwrap_or_else(fail);
            let needs_more = |found: &Found| matches!(found, Err(error) if error.kind() == ErrorKind::Incomplete);
            if !found.iter().any(needs_more) {
                return done.call(found);
            }
        }
        let (db, family) = (self.db.clone(), family.clone());
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
        Env::default().run_read(Box::new(move || {
            infallible("spillway_multi_get_async", || {
                let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                let found = db.multi_get(&family, &keys, &options);
                done.call(found.unwrap_or_else(|error| keys.iter().map(|_| Err(error.clone())).collect()));
            });
        }));
    }
}

export! {
    /// `take` is called once: before the return if memory has all answers, else on a thread of the library.
    fn spillway_multi_get_async(
        database: &Database,
        options: &ReadSettings,
        family: &FamilyHandle,
        count: Count,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        state: StatePointer,
        take: TakeFound<PinnedValue>,
    ) {
        let keys: Vec<&[u8]> = keys.byte_strings(key_lens, count).collect();
        let done = Done { state: State::borrowed(state), take, is_stamped: database.stamps().is_some() };
        database.multi_get_async(&family.0, &keys, options, done);
    }
}
