//! `rocksdb_comparator_t`.

use std::cmp::Ordering;
use std::sync::Arc;

use spillway::internal::{Comparator, UserOrder};

use crate::boundary::callback::{Compare, Destructor, Name, State, StatePointer, Uncalled};
use crate::boundary::{export, handles};

/// A key order by a function of C. Databases keep it when the handle is destroyed.
pub struct CallbackOrder(Arc<Order>);

struct Order {
    /// Bytes of the timestamp at the end of every key.
    timestamp_bytes: usize,
    state: State,
    compare: Compare,
    name: String,
}

handles!(CallbackOrder);

impl CallbackOrder {
    /// Databases with such an order are refused at the open.
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

    /// The function's behaviour is unknown.
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

    /// The open refuses options with it.
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
