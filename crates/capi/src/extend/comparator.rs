//! `rocksdb_comparator_t`.

use std::cmp::Ordering;
use std::sync::Arc;

use spillway::{Comparator, UserOrder};

use crate::boundary::callback::{Compare, Destructor, Name, State, StatePointer};
use crate::boundary::{export, handles};

/// An order of keys by a function of C. Databases keep it when the handle is destroyed.
pub struct CallbackOrder(Arc<Order>);

struct Order {
    state: State,
    compare: Compare,
    name: String,
}

handles!(CallbackOrder);

impl CallbackOrder {
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
        Box::new(CallbackOrder(Arc::new(Order { state, compare, name })))
    }

    fn rocksdb_comparator_destroy(comparator: Option<Box<CallbackOrder>>) {
        drop(comparator);
    }
}
