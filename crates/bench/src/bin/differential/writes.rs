//! Steps that write.

use crate::library::whole::{Answer, Batch, Begin, Change, Indexed, Kind, Transaction};
use crate::step::{Fill, Target, filled_key};
use crate::world::{Gathered, NOTHING, World, is_single, told};

impl World {
    /// Range deletions beside transactions are left out: the libraries refuse them in different ways (docs/compat.md).
    fn takes(&self, family: usize, change: &Change) -> bool {
        match change {
            Change::DeleteRange(..) => !self.has_transactions(),
            Change::Put(key, _) if is_single(change).is_some() => !self.single.contains(&(family, key.clone())),
            Change::SingleDelete(key) => self.single.contains(&(family, key.clone())),
            _ => true,
        }
    }

    pub fn change(&mut self, to: Target, family: usize, change: &Change, unlogged: bool) -> Answer<String> {
        let Some(handle) = self.family(family).cloned() else { return Ok(NOTHING.to_owned()) };
        if !self.takes(family, change) {
            return Ok(NOTHING.to_owned());
        }
        let is_range = matches!(change, Change::DeleteRange(..));
        match to {
            Target::Database => {
                let answer = self.store()?.change(&handle, change, unlogged);
                if let (true, Some(key)) = (answer.is_ok(), is_single(change)) {
                    match change {
                        Change::Put(..) => self.single.insert((family, key.clone())),
                        _ => self.single.remove(&(family, key.clone())),
                    };
                }
                Ok(told(answer))
            }
            Target::Batch(slot) => {
                // RocksDB refuses range deletions in batches of such databases.
                if is_range && self.shape.kind != Kind::Plain {
                    return Ok(NOTHING.to_owned());
                }
                let library = self.library;
                let place = self.batches.get_mut(slot).ok_or("no slot")?;
                if place.is_none() {
                    *place = Some(Gathered { batch: Batch::new(library)?, ranges: false });
                }
                let gathered = place.as_mut().ok_or("no batch")?;
                gathered.ranges |= is_range;
                let answer = gathered.batch.change(&handle, change);
                Ok(format!("{} {}", told(answer), gathered.batch.count()))
            }
            Target::Indexed(_) | Target::Transaction(_) if is_range => Ok(NOTHING.to_owned()),
            Target::Indexed(slot) => {
                let place = self.indexed.get(slot).ok_or("no slot")?;
                if place.is_none() {
                    self.new_indexed(slot, slot.is_multiple_of(2))?;
                }
                match self.indexed.get(slot) {
                    Some(Some(batch)) => Ok(format!("{} {}", told(batch.change(&handle, change)), batch.count())),
                    _ => Ok(NOTHING.to_owned()),
                }
            }
            Target::Transaction(slot) => {
                self.ensure_begun(slot)?;
                match self.transactions.get(slot) {
                    Some(Some(transaction)) => Ok(told(transaction.change(&handle, change))),
                    _ => Ok(NOTHING.to_owned()),
                }
            }
        }
    }

    /// Begins a transaction in a slot that has none.
    pub fn ensure_begun(&mut self, slot: usize) -> Answer<()> {
        match self.transactions.get(slot) {
            Some(None) => {
                let how = Begin { snapshot: slot.is_multiple_of(2), deadlock_detect: false, lock_timeout_ms: 0 };
                self.begin(slot, how).map(drop)
            }
            _ => Ok(()),
        }
    }

    pub fn fill(&mut self, family: usize, fill: Fill) -> Answer<String> {
        let Some(handle) = self.family(family) else { return Ok(NOTHING.to_owned()) };
        let batch = Batch::new(self.library)?;
        for nth in 0..fill.count {
            let key = filled_key(fill.first + nth * fill.stride);
            let value = || [&key, &vec![b'f'; fill.value_bytes][..]].concat();
            let change = if fill.deletes { Change::Delete(key.clone()) } else { Change::Put(key.clone(), value()) };
            batch.change(handle, &change)?;
        }
        Ok(told(self.store()?.write(&batch, false)))
    }

    pub fn save(&self, target: Target) -> String {
        match target {
            Target::Batch(slot) => {
                if let Some(Some(gathered)) = self.batches.get(slot) {
                    gathered.batch.save();
                }
            }
            Target::Indexed(slot) => {
                if let Some(Some(batch)) = self.indexed.get(slot) {
                    batch.save();
                }
            }
            Target::Transaction(slot) => {
                if let Some(Some(transaction)) = self.transactions.get(slot) {
                    transaction.save();
                }
            }
            Target::Database => {}
        }
        String::new()
    }

    pub fn roll_back_to_save(&self, target: Target) -> String {
        match target {
            Target::Batch(slot) => match self.batches.get(slot) {
                Some(Some(gathered)) => {
                    let batch = &gathered.batch;
                    format!("{} {} {}", told(batch.roll_back()), batch.count(), batch.bytes().escape_ascii())
                }
                _ => NOTHING.to_owned(),
            },
            Target::Indexed(slot) => match self.indexed.get(slot) {
                Some(Some(batch)) => format!("{} {}", told(batch.roll_back()), batch.count()),
                _ => NOTHING.to_owned(),
            },
            Target::Transaction(slot) => match self.transactions.get(slot) {
                Some(Some(transaction)) => told(transaction.roll_back_to_save()),
                _ => NOTHING.to_owned(),
            },
            Target::Database => NOTHING.to_owned(),
        }
    }

    pub fn forget_save(&self, slot: usize) -> String {
        match self.batches.get(slot) {
            Some(Some(gathered)) => told(gathered.batch.forget_save()),
            _ => NOTHING.to_owned(),
        }
    }

    pub fn clear(&mut self, target: Target) -> String {
        match target {
            Target::Batch(slot) => {
                if let Some(Some(gathered)) = self.batches.get_mut(slot) {
                    gathered.batch.clear();
                    gathered.ranges = false;
                }
            }
            Target::Indexed(slot) => {
                if let Some(Some(batch)) = self.indexed.get(slot) {
                    batch.clear();
                }
            }
            Target::Transaction(_) | Target::Database => {}
        }
        String::new()
    }

    /// The batch stays in its slot where it could not be written.
    pub fn write_batch(&mut self, slot: usize, unlogged: bool, copied: bool) -> Answer<String> {
        let Some(Some(gathered)) = self.batches.get(slot) else { return Ok(NOTHING.to_owned()) };
        if gathered.ranges && self.has_transactions() {
            return Ok(NOTHING.to_owned());
        }
        let bytes = gathered.batch.bytes().escape_ascii().to_string();
        let answer = match copied {
            true => self.store()?.write(&gathered.batch.copied()?, unlogged),
            false => self.store()?.write(&gathered.batch, unlogged),
        };
        if answer.is_ok() {
            *self.batches.get_mut(slot).ok_or("no slot")? = None;
        }
        Ok(format!("{} {bytes}", told(answer)))
    }

    pub fn new_indexed(&mut self, slot: usize, overwrite: bool) -> Answer<String> {
        let setup = self.setup(0)?;
        *self.indexed.get_mut(slot).ok_or("no slot")? = Some(Indexed::new(&setup, overwrite)?);
        Ok(String::new())
    }

    /// It passes by locks. Where a transaction holds one, ours finds the conflict at the key's next use and RocksDB does not look.
    pub fn write_indexed(&mut self, slot: usize) -> Answer<String> {
        if self.shape.kind == Kind::Pessimistic {
            self.end_transactions();
        }
        let Some(Some(batch)) = self.indexed.get(slot) else { return Ok(NOTHING.to_owned()) };
        let bytes = batch.bytes().escape_ascii().to_string();
        let answer = self.store()?.write_indexed(batch);
        if answer.is_ok() {
            *self.indexed.get_mut(slot).ok_or("no slot")? = None;
        }
        Ok(format!("{} {bytes}", told(answer)))
    }

    pub fn begin(&mut self, slot: usize, how: Begin) -> Answer<String> {
        // The one before in the slot ends first, and gives back its locks.
        *self.transactions.get_mut(slot).ok_or("no slot")? = None;
        let begun = Transaction::begin(self.store()?, how)?;
        *self.transactions.get_mut(slot).ok_or("no slot")? = Some(begun);
        Ok(String::new())
    }

    /// The transaction stays in its slot where it could not be committed.
    pub fn commit(&mut self, slot: usize) -> String {
        let Some(place) = self.transactions.get_mut(slot) else { return NOTHING.to_owned() };
        let Some(transaction) = place else { return NOTHING.to_owned() };
        let answer = transaction.commit();
        if answer.is_ok() {
            *place = None;
        }
        told(answer)
    }

    pub fn roll_back(&mut self, slot: usize) -> String {
        match self.transactions.get_mut(slot).and_then(Option::take) {
            Some(transaction) => told(transaction.roll_back()),
            None => NOTHING.to_owned(),
        }
    }
}
