//! Steps that read.

use crate::library::whole::{Answer, Cursor, How, Kind, Reads};
use crate::step::{Move, Seen, Target, View};
use crate::view::Placed;
use crate::world::{NOTHING, World, found, told};

impl World {
    pub fn get(&self, from: Target, seen: Seen, family: usize, keys: &[Vec<u8>], how: How) -> Answer<String> {
        let (Some(family), Some(reads)) = (self.family(family), self.reads(from, seen)?) else {
            return Ok(NOTHING.to_owned());
        };
        let store = self.store()?;
        let values = match from {
            Target::Database | Target::Batch(_) => store.get(&reads, family, keys, how),
            Target::Indexed(slot) => match self.indexed.get(slot) {
                Some(Some(batch)) => keys.iter().map(|key| batch.get(store, &reads, family, key)).collect(),
                _ => return Ok(NOTHING.to_owned()),
            },
            Target::Transaction(slot) => match self.transactions.get(slot) {
                Some(Some(transaction)) => transaction.get(&reads, family, keys, how),
                _ => return Ok(NOTHING.to_owned()),
            },
        };
        let values: Vec<String> = values.into_iter().map(found).collect();
        Ok(values.join(" "))
    }

    pub fn get_from_batch(&self, slot: usize, family: usize, key: &[u8]) -> String {
        match (self.indexed.get(slot), self.family(family)) {
            (Some(Some(batch)), Some(family)) => found(batch.get_own(family, key)),
            _ => NOTHING.to_owned(),
        }
    }

    pub fn get_for_update(&mut self, slot: usize, family: usize, key: &[u8], exclusive: bool) -> Answer<String> {
        self.ensure_begun(slot)?;
        match (self.transactions.get(slot), self.family(family)) {
            (Some(Some(transaction)), Some(family)) => {
                let reads = Reads::new(self.library, None)?;
                Ok(found(transaction.get_for_update(&reads, family, key, exclusive)))
            }
            _ => Ok(NOTHING.to_owned()),
        }
    }

    pub fn take_snapshot(&mut self, slot: usize) -> Answer<String> {
        let snapshot = self.store()?.snapshot();
        *self.snapshots.get_mut(slot).ok_or("no slot")? = Some(snapshot);
        Ok(String::new())
    }

    pub fn release(&mut self, slot: usize) -> String {
        if let Some(place) = self.snapshots.get_mut(slot) {
            *place = None;
        }
        String::new()
    }

    fn placed(&self, from: Target, seen: Seen, family: usize, view: &View) -> Answer<Option<Placed>> {
        let (Some(family), Some(reads)) = (self.family(family), self.reads(from, seen)?) else { return Ok(None) };
        let above = matches!(from, Target::Indexed(_) | Target::Transaction(_));
        // RocksDB's iterators above a batch end too early or too late by it.
        let only = view.same_prefix && !above;
        let reads = reads.between(view.lower.clone(), view.upper.clone()).ordered(
            view.total_order,
            only,
            view.pinned,
            view.readahead,
        );
        let store = self.store()?;
        let cursor = match from {
            Target::Database | Target::Batch(_) => Cursor::over(store, &reads, family)?,
            Target::Indexed(slot) => match self.indexed.get(slot) {
                Some(Some(batch)) => Cursor::over_batch(store, batch, &reads, family)?,
                _ => return Ok(None),
            },
            Target::Transaction(slot) => match self.transactions.get(slot) {
                Some(Some(transaction)) => Cursor::over_transaction(transaction, &reads, family)?,
                _ => return Ok(None),
            },
        };
        Ok(Some(Placed::new(cursor, view.total_order, only, above, self.shape.prefix)))
    }

    /// An iterator for this step only: under transactions and batches with an index it must not outlive a change of them.
    pub fn walk(&self, from: Target, seen: Seen, family: usize, view: &View, moves: &[Move]) -> Answer<String> {
        let Some(mut placed) = self.placed(from, seen, family, view)? else { return Ok(NOTHING.to_owned()) };
        let steps: Vec<String> = moves.iter().map(|a_move| placed.moved(a_move)).collect();
        Ok(steps.join(", "))
    }

    pub fn open_cursor(&mut self, slot: usize, family: usize, seen: Seen, view: &View) -> Answer<String> {
        let placed = self.placed(Target::Database, seen, family, view)?;
        let told = if placed.is_some() { "opened" } else { NOTHING };
        *self.cursors.get_mut(slot).ok_or("no slot")? = placed;
        Ok(told.to_owned())
    }

    pub fn move_cursor(&mut self, slot: usize, a_move: &Move) -> String {
        match self.cursors.get_mut(slot) {
            Some(Some(placed)) => placed.moved(a_move),
            _ => NOTHING.to_owned(),
        }
    }

    pub fn refresh(&mut self, slot: usize) -> String {
        match self.cursors.get_mut(slot) {
            Some(Some(placed)) => told(placed.refresh()),
            _ => NOTHING.to_owned(),
        }
    }

    pub fn close_cursor(&mut self, slot: usize) -> String {
        if let Some(place) = self.cursors.get_mut(slot) {
            *place = None;
        }
        String::new()
    }

    /// Properties whose values are the same in both. Transactions hold snapshots of their own.
    fn properties(&self) -> Answer<String> {
        let always = ["rocksdb.background-errors", "rocksdb.is-write-stopped"];
        let plain = (self.shape.kind == Kind::Plain).then_some("rocksdb.num-snapshots");
        let store = self.store()?;
        let values = always.into_iter().chain(plain).map(|name| format!("{name}={:?}", store.property(name)));
        Ok(values.collect::<Vec<_>>().join(" "))
    }

    /// Every entry of every family, forwards and backwards.
    pub fn scan(&self) -> Answer<String> {
        let mut told = self.properties()?;
        for at in self.present() {
            let Some(family) = self.family(at) else { continue };
            told.push_str(&format!("\n  family {at}: {}", crate::view::contents(family, self.store()?)?));
        }
        Ok(told)
    }
}
