//! What a database should hold: ordered maps, with the state after each write kept, so that what a crash left can be
//! compared with every prefix of the history.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use base::extend::MergeOperator;
use base::merge;

use crate::ingest::{File, Ingest};
use crate::ops::{Action, Change, Durability, Key};
use crate::profile;

/// A family's life: one name that is dropped and created again has two.
pub type Incarnation = u32;

/// The default family's.
pub const DEFAULT: Incarnation = 0;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub value: Arc<[u8]>,
}

/// The pairs of one family.
pub type Contents = BTreeMap<Key, Entry>;

/// The pairs of all families at one point of the history. Clones share what did not change.
#[derive(Clone, Debug, Default)]
pub struct State {
    families: BTreeMap<Incarnation, Arc<Contents>>,
    /// Keys that were overwritten, merged, or deleted other than by a single-delete. A single-delete of one of these is
    /// not defined: what it takes away may uncover an older version.
    rewritten: BTreeMap<Incarnation, Arc<BTreeSet<Key>>>,
}

impl State {
    fn can_be_deleted_singly(&self, family: Incarnation, key: &Key) -> bool {
        let rewritten = self.rewritten.get(&family).is_some_and(|keys| keys.contains(key));
        !rewritten && self.contents(family).contains_key(key)
    }

    /// Empty for a family that did not exist yet.
    pub fn contents(&self, family: Incarnation) -> Arc<Contents> {
        self.families.get(&family).cloned().unwrap_or_default()
    }

    fn apply(&mut self, family: Incarnation, action: &Action, operator: &dyn MergeOperator) {
        let contents = Arc::make_mut(self.families.entry(family).or_default());
        let mut rewritten = Vec::new();
        match action {
            Action::Put(key, value) => {
                let before = contents.insert(key.clone(), Entry { value: value.bytes().into() });
                rewritten.extend(before.map(|_| key.clone()));
            }
            Action::Delete(key) => rewritten.extend(contents.remove(key).map(|_| key.clone())),
            Action::SingleDelete(key) => drop(contents.remove(key)),
            Action::Merge(key, operand) => {
                let before = contents.get(key).map(|entry| &*entry.value);
                let merged = operator.full_merge(key, before, &[&operand.bytes()]);
                let value = merged.expect("built-in operators merge anything").into();
                contents.insert(key.clone(), Entry { value });
                rewritten.push(key.clone());
            }
            Action::DeleteRange(start, end) => {
                let covered = (Bound::Included(start.clone()), Bound::Excluded(end.clone()));
                if start < end {
                    rewritten.extend(contents.range(covered).map(|(key, _)| key.clone()));
                    rewritten.iter().for_each(|key| drop(contents.remove(key)));
                }
            }
        }
        if !rewritten.is_empty() {
            Arc::make_mut(self.rewritten.entry(family).or_default()).extend(rewritten);
        }
    }
}

/// A point of the history.
#[derive(Clone, Debug)]
pub struct Point {
    pub state: State,
    /// The families that the write before it changed.
    pub touched: BTreeSet<Incarnation>,
}

/// The database as it should be.
#[derive(Clone, Debug)]
pub struct Model {
    names: BTreeMap<String, Incarnation>,
    next: Incarnation,
    /// Point 0 is the empty database; point n is the state after the nth write that was acknowledged.
    history: Vec<Point>,
    /// The last point known to survive power loss.
    durable: usize,
}

impl Default for Model {
    fn default() -> Self {
        Model {
            names: BTreeMap::from([("default".to_owned(), DEFAULT)]),
            next: 1,
            history: vec![Point { state: State::default(), touched: BTreeSet::new() }],
            durable: 0,
        }
    }
}

impl Model {
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

    /// The point reached.
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

    /// The changes that apply: to families that are there, single-deletes only where they are defined.
    pub fn applicable(&self, changes: &[Change]) -> Vec<Change> {
        self.apply_to(&mut self.state().clone(), changes)
    }

    /// What applies of an ingest; files in which nothing is left are not among it.
    pub fn applicable_ingest(&self, ingest: &Ingest) -> Ingest {
        let mut state = self.state().clone();
        let mut kept = Ingest { excises: Vec::new(), files: Vec::new(), batch: Vec::new(), ..ingest.clone() };
        for (family, start, end) in &ingest.excises {
            let action = Action::DeleteRange(start.clone(), end.clone());
            let twice = kept.excises.iter().any(|(other, ..)| other == family);
            if start < end
                && !twice
                && !self.apply_to(&mut state, &[Change { family: family.clone(), action }]).is_empty()
            {
                kept.excises.push((family.clone(), start.clone(), end.clone()));
            }
        }
        for file in &ingest.files {
            let changes = self.apply_to(&mut state, &file.changes());
            if !changes.is_empty() {
                let entries = changes.into_iter().map(|change| change.action).collect();
                kept.files.push(File { family: file.family.clone(), entries });
            }
        }
        kept.batch = self.apply_to(&mut state, &ingest.batch);
        kept
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
            state.apply(family, &change.action, &*operator_of(&change.family));
            kept.push(change.clone());
        }
        kept
    }

    /// The point that a write would lead to.
    pub fn after(&self, changes: &[Change]) -> Point {
        let mut point = Point { state: self.state().clone(), touched: BTreeSet::new() };
        for change in changes {
            let Some(family) = self.family(&change.family) else { continue };
            point.state.apply(family, &change.action, &*operator_of(&change.family));
            point.touched.insert(family);
        }
        point
    }

    /// Notes a write that was acknowledged.
    pub fn write(&mut self, changes: &[Change], durability: Durability) {
        let point = self.after(changes);
        self.history.push(point);
        if durability.sync || durability.flush {
            self.sync(); // what is flushed is in a table, and no table is durable ahead of its log (F1)
        }
    }

    /// Notes that the history reached this point, though nobody was told so.
    pub fn push(&mut self, point: Point) {
        self.history.push(point);
    }

    /// Everything up to here survives power loss.
    pub fn sync(&mut self) {
        self.durable = self.now();
    }

    /// A family was flushed: the last write to it is in a table, and no table is durable ahead of its log (F1).
    pub fn flushed(&mut self, name: &str) {
        let Some(family) = self.family(name) else { return };
        let last = self.history.iter().rposition(|point| point.touched.contains(&family));
        self.durable = self.durable.max(last.unwrap_or(0));
    }

    /// Goes back to what was found after a crash: nothing later ever happened. What is there now was recovered, and
    /// whether it survives power loss is known only as far as it was before.
    pub fn rewind(&mut self, point: usize) {
        self.history.truncate(point + 1);
        self.durable = self.durable.min(point);
    }

    /// The model at the end of a history, nothing of which is known to survive power loss.
    pub fn at(history: &[Point], names: BTreeMap<String, Incarnation>) -> Model {
        let next = names.values().max().map_or(1, |last| last + 1);
        Model { names, next, history: history.to_vec(), durable: 0 }
    }

    /// Takes over what was found in a family whose writes are not in the log, and so in no order with the others.
    pub fn adopt(&mut self, family: Incarnation, contents: Arc<Contents>) {
        let point = self.history.last_mut().expect("point 0 is always there");
        point.state.families.insert(family, contents);
    }
}

fn operator_of(family: &str) -> Arc<dyn MergeOperator> {
    merge::by_name(profile::merge_operator(family)).expect("the operator is built in")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Op;
    use crate::parse;

    fn written(model: &mut Model, line: &str) -> usize {
        let (changes, durability) = match parse::op(line).unwrap() {
            Op::Single(change, durability) => (vec![change], durability),
            Op::Batch(changes, durability) => (changes, durability),
            other => panic!("no write: {other}"),
        };
        let changes = model.applicable(&changes);
        model.write(&changes, durability);
        changes.len()
    }

    fn shown(model: &Model, family: &str) -> String {
        let contents = model.contents(family);
        let pairs = contents
            .iter()
            .map(|(key, entry)| format!("{}={}", String::from_utf8_lossy(key), String::from_utf8_lossy(&entry.value)));
        pairs.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn writes_make_points_of_the_history() {
        let mut model = Model::default();
        written(&mut model, "put default a 1 sync");
        written(&mut model, "batch merge default a 2; put default b 1; put default c 1");
        written(&mut model, "delete-range default b c");
        assert_eq!(shown(&model, "default"), "a=1,2 c=1");
        assert_eq!((model.now(), model.durable()), (3, 1));
        model.flushed("default");
        assert_eq!(model.durable(), 3);
        model.rewind(1);
        assert_eq!(shown(&model, "default"), "a=1");
    }

    #[test]
    fn single_deletes_are_taken_only_where_they_are_defined() {
        let mut model = Model::default();
        written(&mut model, "batch put default once 1; put default twice 1; put default twice 2");
        assert_eq!(written(&mut model, "single-delete default once"), 1);
        assert_eq!(written(&mut model, "single-delete default once"), 0);
        assert_eq!(written(&mut model, "single-delete default twice"), 0);
        assert_eq!(shown(&model, "default"), "twice=2");
        written(&mut model, "batch put default once 2; delete default once; put default once 3");
        assert_eq!(written(&mut model, "single-delete default once"), 0, "a version may be left below the deletion");
    }

    #[test]
    fn a_family_created_again_is_another() {
        let mut model = Model::default();
        model.create("f");
        written(&mut model, "put f a 1");
        let before = model.family("f");
        model.drop("f");
        model.create("f");
        assert_ne!(model.family("f"), before);
        assert_eq!(shown(&model, "f"), "");
    }
}
