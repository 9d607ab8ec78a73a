//! `rocksdb_mergeoperator_t`.

use spillway::internal::extend::MergeOperator;

use crate::boundary::callback::{DeleteValue, Destructor, FullMerge, Name, PartialMerge, State, StatePointer};
use crate::boundary::{export, handles};

/// A merge operator by functions of C, until options take it.
pub struct CallbackMerge {
    state: State,
    full: FullMerge,
    partial: PartialMerge,
    delete: DeleteValue,
    name: String,
}

handles!(CallbackMerge);

impl MergeOperator for CallbackMerge {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full.call(&self.state, self.delete, key, existing, operands)
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        self.partial.call(&self.state, self.delete, key, &[older, newer])
    }
}

export! {
    fn rocksdb_mergeoperator_create(
        state: StatePointer,
        destructor: Destructor,
        full_merge: FullMerge,
        partial_merge: PartialMerge,
        delete_value: DeleteValue,
        name: Name,
    ) -> Box<CallbackMerge> {
        let state = State::new(state, destructor);
        let name = name.of(&state);
        Box::new(CallbackMerge { state, full: full_merge, partial: partial_merge, delete: delete_value, name })
    }

    fn rocksdb_mergeoperator_destroy(operator: Option<Box<CallbackMerge>>) {
        drop(operator);
    }
}
