//! A memtable as the engine holds it: charged as long as it lives, and freed by a background thread. Giving tens of
//! megabytes back to the system takes milliseconds, and whoever lets go of the last handle may be a writer or a reader.

use std::sync::Arc;

use memtable::{Background, Memtable};

use crate::write::memory::{Charge, MemtableMemory};

/// What memtables are made with.
#[derive(Clone)]
pub struct MemtableMaking {
    pub background: Background,
    pub memory: Arc<MemtableMemory>,
}

impl MemtableMaking {
    /// Without a limit or a thread.
    pub fn inline() -> Self {
        MemtableMaking { background: Background::inline(), memory: MemtableMemory::new(0) }
    }
}

/// The owner of a memtable.
pub struct HeldMemtable {
    /// `None` only while it is dropped.
    memtable: Option<Arc<dyn Memtable>>,
    charge: Arc<Charge>,
    capacity_bytes: usize,
    background: Background,
}

impl HeldMemtable {
    /// `capacity_bytes` is what the memtable was made for.
    pub fn new(memtable: Arc<dyn Memtable>, capacity_bytes: usize, making: &MemtableMaking) -> Self {
        let charge = Charge::new(&making.memory, memtable.memory_bytes());
        HeldMemtable { memtable: Some(memtable), charge, capacity_bytes, background: making.background.clone() }
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
            let charge = self.charge.clone();
            // The charge after the memory: it is what a writer waits for.
            self.background.run(Box::new(move || {
                drop(memtable);
                drop(charge);
            }));
        }
    }
}
