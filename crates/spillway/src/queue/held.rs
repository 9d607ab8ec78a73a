//! Owner of a memtable: it is charged as long as it lives, and freed by a background thread. Freeing tens of megabytes
//! takes milliseconds, and a writer or a reader may drop the last handle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memtable::{Background, Conversion, Memtable};

use crate::queue::images::ImageNames;
use crate::queue::memory::{Charge, MemoryBudget};

/// Resources for making memtables.
#[derive(Clone)]
pub struct MemtableMaking {
    pub background: Background,
    pub memory: Arc<MemoryBudget>,
    /// `None` if no memtable is converted into a table.
    pub images: Option<Arc<ImageNames>>,
}

impl MemtableMaking {
    /// No memory limit, no background thread.
    pub fn inline() -> Self {
        MemtableMaking { background: Background::inline(), memory: MemoryBudget::new(0), images: None }
    }
}

/// The owner of a memtable.
pub struct HeldMemtable {
    /// `None` only during drop.
    memtable: Option<Arc<dyn Memtable>>,
    charge: Arc<Charge>,
    capacity_bytes: usize,
    background: Background,
    conversion: Option<Conversion>,
    /// The conversion failed; the file may have failed to sync (D4).
    is_given_up: AtomicBool,
}

impl HeldMemtable {
    /// `capacity_bytes` is the limit on the memtable's reserved bytes.
    pub fn new(memtable: Arc<dyn Memtable>, capacity_bytes: usize, making: &MemtableMaking) -> Self {
        let charge = Charge::new(&making.memory, memtable.memory_bytes());
        let background = making.background.clone();
        HeldMemtable {
            memtable: Some(memtable),
            charge,
            capacity_bytes,
            background,
            conversion: None,
            is_given_up: AtomicBool::new(false),
        }
    }

    /// Sets the conversion into a table.
    pub fn to_be_converted(mut self, conversion: Option<Conversion>) -> Self {
        self.conversion = conversion;
        self
    }

    /// How the memtable is converted into a table; `None` if a flush writes its entries into one.
    pub fn conversion(&self) -> Option<Conversion> {
        self.conversion.filter(|_| !self.is_given_up.load(Ordering::Acquire))
    }

    /// From now on flushes write the entries into a table.
    pub fn give_up_conversion(&self) {
        self.is_given_up.store(true, Ordering::Release);
    }

    #[inline]
    pub fn memtable(&self) -> &Arc<dyn Memtable> {
        self.memtable.as_ref().expect("it is taken only by drop")
    }

    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    #[inline]
    pub fn charge(&self) -> &Arc<Charge> {
        &self.charge
    }
}

impl Drop for HeldMemtable {
    fn drop(&mut self) {
        self.charge.owner_goes();
        if let Some(memtable) = self.memtable.take() {
            let freed = Freed { memtable: Some(memtable), charge: self.charge.clone() };
            self.background.run(Box::new(move || drop(freed)));
        }
    }
}

/// Frees a memtable and then its charge, whether its task runs or is dropped.
struct Freed {
    memtable: Option<Arc<dyn Memtable>>,
    charge: Arc<Charge>,
}

impl Drop for Freed {
    fn drop(&mut self) {
        self.memtable = None;
        // After the memory: writers wait for it. Explicit, because the charge may have more owners.
        self.charge.release();
    }
}

#[cfg(test)]
mod tests {
    use base::{FamilyId, InternalOrder};
    use memtable::MemtableConfig;

    use super::*;

    #[test]
    fn the_charge_goes_with_the_memtable_though_a_waiting_writer_knows_it() {
        let making = MemtableMaking { memory: MemoryBudget::new(1 << 20), ..MemtableMaking::inline() };
        let factory = memtable::factory_from_option_string("skip_list").expect("known");
        let config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, 1 << 16);
        let held = HeldMemtable::new(factory.create(&config).expect("memory"), 1 << 16, &making);
        let known = held.charge().clone();
        assert!(making.memory.charged_bytes() > 0);
        drop(held);
        assert_eq!(making.memory.charged_bytes(), 0);
        drop(known);
        assert_eq!(making.memory.charged_bytes(), 0);
    }
}
