//! `rocksdb_comparator_t`.

use std::cmp::Ordering;
use std::sync::Arc;

use spillway::{Comparator, UserOrder};

use crate::boundary::callback::{Compare, Destructor, Name, State, StatePointer, Uncalled};
use crate::boundary::{export, handles};

/// An order of keys by a function of C. Databases keep it when the handle is destroyed.
pub struct CallbackOrder(Arc<Order>);

struct Order {
    /// Bytes of the timestamp that every key ends with.
    timestamp_bytes: usize,
    state: State,
    compare: Compare,
    name: String,
}

handles!(CallbackOrder);

impl CallbackOrder {
    /// Databases with such an order are refused.
    pub fn has_timestamps(&self) -> bool {
        self.0.timestamp_bytes > 0
    }

    pub fn order(&self) -> UserOrder {
        UserOrder::Custom(self.0.clone())
    }
}

impl Comparator for Order {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.compare.call(&self.state, a, b)
    }

    /// Nothing is known of the function.
    fn equal_keys_can_differ(&self) -> bool {
        true
    }
}

export! {
    fn rocksdb_comparator_create(
        state: StatePointer,
        destructor: Destructor,
        compare: Compare,
        name: Name,
    ) -> Box<CallbackOrder> {
        let state = State::new(state, destructor);
        let name = name.of(&state);
        Box::new(CallbackOrder(Arc::new(Order { timestamp_bytes: 0, state, compare, name })))
    }

    /// Options with it are refused where a database is opened with them.
    fn rocksdb_comparator_with_ts_create(
        state: StatePointer,
        destructor: Destructor,
        compare: Compare,
        _compare_timestamps: Uncalled,
        _compare_without_timestamps: Uncalled,
        name: Name,
        timestamp_size: usize,
    ) -> Box<CallbackOrder> {
        let state = State::new(state, destructor);
        let name = name.of(&state);
        Box::new(CallbackOrder(Arc::new(Order { timestamp_bytes: timestamp_size, state, compare, name })))
    }

    fn rocksdb_comparator_destroy(comparator: Option<Box<CallbackOrder>>) {
        drop(comparator);
    }
}
