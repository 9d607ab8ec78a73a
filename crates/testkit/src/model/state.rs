//! Pairs of all families at one point of the history, and the effect of changes on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::extend::MergeOperator;
use base::{UserOrder, merge};

use super::Incarnation;
use super::touched::{Touched, is_within};
use crate::ingest::File;
use crate::ops::{Action, Key};
use crate::profile;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub value: Arc<[u8]>,
}

/// Pairs of one family, in bytewise order whatever the family's order is.
pub type Contents = BTreeMap<Key, Entry>;

/// Pairs of all families at one point of the history. Clones share unchanged families.
#[derive(Clone, Debug, Default)]
pub struct State {
    families: BTreeMap<Incarnation, Arc<Contents>>,
    /// Keys with possibly more than one version: overwritten, merged, or deleted by anything but a single-delete. A
    /// single-delete of such a key is undefined: it may uncover an older version.
    rewritten: BTreeMap<Incarnation, Arc<BTreeSet<Key>>>,
    touched: BTreeMap<Incarnation, Arc<Touched>>,
}

/// Semantics of changes: key order and the family's merge operator.
pub(super) struct Rules<'a> {
    order: &'a UserOrder,
    operator: Arc<dyn MergeOperator>,
}

impl<'a> Rules<'a> {
    pub fn of(family: &str, order: &'a UserOrder) -> Self {
        let operator = merge::by_name(profile::merge_operator(family)).expect("the operator is built in");
        Rules { order, operator }
    }

    fn merge(&self, key: &Key, base: Option<&[u8]>, operands: &[&[u8]]) -> Arc<[u8]> {
        self.operator.full_merge(key, base, operands).expect("built-in operators merge anything").into()
    }
}

impl State {
    pub(super) fn can_be_deleted_singly(&self, family: Incarnation, key: &Key) -> bool {
        let rewritten = self.rewritten.get(&family).is_some_and(|keys| keys.contains(key));
        !rewritten && self.contents(family).contains_key(key)
    }

    /// Empty if the family did not exist yet.
    pub fn contents(&self, family: Incarnation) -> Arc<Contents> {
        self.families.get(&family).cloned().unwrap_or_default()
    }

    /// Replaces a family's contents.
    pub(super) fn replace(&mut self, family: Incarnation, contents: Arc<Contents>) {
        self.families.insert(family, contents);
    }

    /// Gives a new family the contents and the past of another.
    pub(super) fn copy(&mut self, from: Incarnation, to: Incarnation) {
        self.families.insert(to, self.contents(from));
        self.rewritten.insert(to, self.rewritten.get(&from).cloned().unwrap_or_default());
        self.touched.insert(to, self.touched(from));
    }

    pub(super) fn touched(&self, family: Incarnation) -> Arc<Touched> {
        self.touched.get(&family).cloned().unwrap_or_default()
    }

    pub(super) fn apply(&mut self, family: Incarnation, action: &Action, rules: &Rules<'_>) {
        let touched = self.touched.entry(family).or_default();
        if !touched.knows(action) {
            Arc::make_mut(touched).note(action, rules.order);
        }
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
                let value = rules.merge(key, before, &[&operand.bytes()]);
                contents.insert(key.clone(), Entry { value });
                rewritten.push(key.clone());
            }
            Action::DeleteRange(start, end) => {
                let covered = |key: &&Key| is_within(key, start, end, rules.order);
                rewritten.extend(contents.keys().filter(covered).cloned());
                rewritten.iter().for_each(|key| drop(contents.remove(key)));
            }
        }
        if !rewritten.is_empty() {
            Arc::make_mut(self.rewritten.entry(family).or_default()).extend(rewritten);
        }
    }

    /// Puts a table under all existing entries. The table has no sequence number, so older snapshots see it too;
    /// callers update the states of snapshots as well.
    pub(super) fn put_behind(&mut self, family: Incarnation, file: &File, rules: &Rules<'_>) {
        let touched = Arc::make_mut(self.touched.entry(family).or_default());
        let contents = Arc::make_mut(self.families.entry(family).or_default());
        let rewritten = Arc::make_mut(self.rewritten.entry(family).or_default());
        for action in &file.entries {
            let (base, mut operands) = match action {
                Action::Put(_, value) => (Some(value.bytes()), Vec::new()),
                Action::Merge(_, operand) => (None, vec![operand.bytes()]),
                Action::Delete(_) | Action::SingleDelete(_) | Action::DeleteRange(..) => continue, // nothing is under it
            };
            let key = action.key();
            rewritten.insert(key.clone()); // two versions may exist from now on
            if touched.hides(key, rules.order) {
                continue;
            }
            operands.extend_from_slice(touched.operands(key));
            let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
            let value = match base {
                Some(value) if operands.is_empty() => value.into(),
                base => rules.merge(key, base.as_deref(), &operands),
            };
            contents.insert(key.clone(), Entry { value });
        }
        touched.record_behind(file, rules.order);
    }
}
