//! Model of a database: ordered maps. It keeps the state after each write, so that a crashed image can be compared with
//! every prefix of the history.
//!
//! An ingest behind is a point of the history too, although older snapshots show it: see [`Model::put_behind`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::UserOrder;

use self::state::Rules;
pub use self::state::{Contents, Entry, State};
pub use self::verdict::{Circumstances, Verdict, is_contradictory};
use crate::ingest::{File, Ingest};
use crate::ops::{Action, Change, Durability};

mod state;
mod touched;
mod verdict;

/// Lifetime of a family: a name dropped and created again has two incarnations.
pub type Incarnation = u32;

/// Incarnation of the default family.
pub const DEFAULT: Incarnation = 0;

/// One point of the history.
#[derive(Clone, Debug)]
pub struct Point {
    pub state: State,
    /// Families changed by the write that led to this point.
    pub touched: BTreeSet<Incarnation>,
}

/// Expected contents of a database.
#[derive(Clone, Debug)]
pub struct Model {
    order: UserOrder,
    names: BTreeMap<String, Incarnation>,
    next: Incarnation,
    /// Point 0 is the empty database; point n is the state after the nth acknowledged write.
    history: Vec<Point>,
    /// The last point known to survive power loss.
    durable: usize,
}

impl Default for Model {
    fn default() -> Self {
        Model {
            order: UserOrder::Bytewise,
            names: BTreeMap::from([("default".to_owned(), DEFAULT)]),
            next: 1,
            history: vec![Point { state: State::default(), touched: BTreeSet::new() }],
            durable: 0,
        }
    }
}

impl Model {
    /// Sets the key order. Existing contents must not depend on it.
    #[must_use]
    pub fn ordered(self, order: UserOrder) -> Model {
        Model { order, ..self }
    }

    pub fn order(&self) -> &UserOrder {
        &self.order
    }

    pub fn names(&self) -> &BTreeMap<String, Incarnation> {
        &self.names
    }

    pub fn family(&self, name: &str) -> Option<Incarnation> {
        self.names.get(name).copied()
    }

    pub fn create(&mut self, name: &str) {
        self.names.insert(name.to_owned(), self.next);
        self.next += 1;
    }

    pub fn drop(&mut self, name: &str) {
        self.names.remove(name);
    }

    /// Records an import of a family's exported tables as a new family.
    pub fn import(&mut self, from: &str, name: &str) {
        let Some(source) = self.family(from) else { return };
        self.create(name);
        let (Some(copy), mut state) = (self.family(name), self.state().clone()) else { return };
        state.copy(source, copy);
        self.history.push(Point { state, touched: BTreeSet::from([copy]) });
    }

    /// Index of the last point.
    pub fn now(&self) -> usize {
        self.history.len() - 1
    }

    pub fn state(&self) -> &State {
        &self.history.last().expect("point 0 is always there").state
    }

    pub fn history(&self) -> &[Point] {
        &self.history
    }

    pub fn durable(&self) -> usize {
        self.durable
    }

    pub fn contents(&self, name: &str) -> Arc<Contents> {
        self.family(name).map(|family| self.state().contents(family)).unwrap_or_default()
    }

    /// Changes that apply: their family exists, and single-deletes are defined.
    pub fn applicable(&self, changes: &[Change]) -> Vec<Change> {
        self.apply_to(&mut self.state().clone(), changes)
    }

    /// Applicable part of an ingest, without files left empty.
    pub fn applicable_ingest(&self, ingest: &Ingest) -> Ingest {
        let mut state = self.state().clone();
        let mut kept = Ingest { excises: Vec::new(), files: Vec::new(), batch: Vec::new(), ..ingest.clone() };
        for (family, start, end) in &ingest.excises {
            let action = Action::DeleteRange(start.clone(), end.clone());
            let twice = kept.excises.iter().any(|(other, ..)| other == family);
            if self.order.compare(start, end).is_lt()
                && !twice
                && !self.apply_to(&mut state, &[Change { family: family.clone(), action }]).is_empty()
            {
                kept.excises.push((family.clone(), start.clone(), end.clone()));
            }
        }
        for file in &ingest.files {
            let changes = match ingest.demands.behind {
                true => self.applicable_behind(file),
                false => self.apply_to(&mut state, &file.changes(&self.order)),
            };
            if !changes.is_empty() {
                let entries = changes.into_iter().map(|change| change.action).collect();
                kept.files.push(File { family: file.family.clone(), entries });
            }
        }
        kept.batch = self.apply_to(&mut state, &ingest.batch);
        kept
    }

    /// Applicable part of a table ingested behind. Single-deletes are defined for one version only: they are left out,
    /// and so are entries of single-deleted keys. For `unlogged` families nothing applies: the ingest would survive
    /// their writes.
    fn applicable_behind(&self, file: &File) -> Vec<Change> {
        let Some(family) = self.family(&file.family).filter(|_| !file.family.starts_with("unlogged")) else {
            return Vec::new();
        };
        let touched = self.state().touched(family);
        let mut changes = file.changes(&self.order);
        changes.retain(|Change { action, .. }| match action {
            Action::SingleDelete(_) => false,
            Action::DeleteRange(..) => true,
            point => !touched.was_deleted_singly(point.key()),
        });
        changes
    }

    fn apply_to(&self, state: &mut State, changes: &[Change]) -> Vec<Change> {
        let mut kept = Vec::new();
        for change in changes {
            let Some(family) = self.family(&change.family) else { continue };
            if let Action::SingleDelete(key) = &change.action
                && !state.can_be_deleted_singly(family, key)
            {
                continue;
            }
            state.apply(family, &change.action, &Rules::of(&change.family, &self.order));
            kept.push(change.clone());
        }
        kept
    }

    /// Point after a write.
    pub fn after(&self, changes: &[Change]) -> Point {
        let mut point = Point { state: self.state().clone(), touched: BTreeSet::new() };
        for change in changes {
            let Some(family) = self.family(&change.family) else { continue };
            point.state.apply(family, &change.action, &Rules::of(&change.family, &self.order));
            point.touched.insert(family);
        }
        point
    }

    /// Point after an ingest.
    pub fn after_ingest(&self, ingest: &Ingest) -> Point {
        if !ingest.demands.behind {
            return self.after(&ingest.changes(&self.order));
        }
        let touched = ingest.files.iter().filter_map(|file| self.family(&file.family)).collect();
        let mut state = self.state().clone();
        self.put_behind(ingest, &mut state);
        Point { state, touched }
    }

    /// Applies an ingest behind to `state`.
    pub fn put_behind(&self, ingest: &Ingest, state: &mut State) {
        for file in &ingest.files {
            let Some(family) = self.family(&file.family) else { continue };
            state.put_behind(family, file, &Rules::of(&file.family, &self.order));
        }
    }

    /// Records a successful ingest.
    pub fn ingest(&mut self, ingest: &Ingest, durability: Durability) {
        let point = self.after_ingest(ingest);
        self.push_acknowledged(point, durability);
    }

    /// Records an acknowledged write.
    pub fn write(&mut self, changes: &[Change], durability: Durability) {
        let point = self.after(changes);
        self.push_acknowledged(point, durability);
    }

    fn push_acknowledged(&mut self, point: Point, durability: Durability) {
        self.history.push(point);
        if durability.sync || durability.flush {
            self.sync(); // flushed entries are in a table, and no table is durable ahead of its WAL (F1)
        }
    }

    /// Adds a point without an acknowledgement.
    pub fn push(&mut self, point: Point) {
        self.history.push(point);
    }

    /// Marks every point so far as surviving power loss.
    pub fn sync(&mut self) {
        self.durable = self.now();
    }

    /// Records a flush of a family. Its last write is in a table, and no table is durable ahead of its WAL (F1).
    pub fn flushed(&mut self, name: &str) {
        let Some(family) = self.family(name) else { return };
        let last = self.history.iter().rposition(|point| point.touched.contains(&family));
        self.durable = self.durable.max(last.unwrap_or(0));
    }

    /// Rewinds to the point recovered after a crash; later points never happened. The durable point does not advance:
    /// recovered writes may still be lost in a power loss.
    pub fn rewind(&mut self, point: usize) {
        self.history.truncate(point + 1);
        self.durable = self.durable.min(point);
    }

    /// Model at the end of `history`, with no point known to survive power loss.
    pub fn at(history: &[Point], names: BTreeMap<String, Incarnation>) -> Model {
        let next = names.values().max().map_or(1, |last| last + 1);
        Model { order: UserOrder::Bytewise, names, next, history: history.to_vec(), durable: 0 }
    }

    /// Sets the recovered contents of an unlogged family, whose writes have no order relative to other families.
    pub fn adopt(&mut self, family: Incarnation, contents: Arc<Contents>) {
        let point = self.history.last_mut().expect("point 0 is always there");
        point.state.replace(family, contents);
    }
}

#[cfg(test)]
mod tests;
