//! `rocksdb_slicetransform_t`: the key prefix for prefix filters and prefix iteration.

use std::sync::Arc;

use spillway::internal::extend::{BuiltinPrefix, PrefixExtractor};

use crate::boundary::callback::{Destructor, InDomain, Name, State, StatePointer, Transform};
use crate::boundary::{export, handles};

/// A prefix extractor, until options take it.
pub struct Prefix(Arc<dyn PrefixExtractor>);

handles!(Prefix);

impl Prefix {
    pub fn extractor(self) -> Arc<dyn PrefixExtractor> {
        self.0
    }
}

struct CallbackPrefix {
    state: State,
    transform: Transform,
    in_domain: InDomain,
    name: String,
}

impl PrefixExtractor for CallbackPrefix {
    fn name(&self) -> String {
        self.name.clone()
    }

    /// A result other than a prefix of the key counts as out of domain.
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let len = self.in_domain.call(&self.state, key).then(|| self.transform.prefix_len(&self.state, key))?;
        key.get(..len?)
    }
}

export! {
    /// RocksDB 11's signature, without `in_range`.
    fn rocksdb_slicetransform_create(
        state: StatePointer,
        destructor: Destructor,
        transform: Transform,
        in_domain: InDomain,
        name: Name,
    ) -> Box<Prefix> {
        let state = State::new(state, destructor);
        let name = name.of(&state);
        Box::new(Prefix(Arc::new(CallbackPrefix { state, transform, in_domain, name })))
    }

    fn rocksdb_slicetransform_create_fixed_prefix(len: usize) -> Box<Prefix> {
        Box::new(Prefix(Arc::new(BuiltinPrefix::Fixed(len))))
    }

    fn rocksdb_slicetransform_create_noop() -> Box<Prefix> {
        Box::new(Prefix(Arc::new(BuiltinPrefix::Noop)))
    }

    fn rocksdb_slicetransform_destroy(transform: Option<Box<Prefix>>) {
        drop(transform);
    }
}
