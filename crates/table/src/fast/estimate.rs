//! Estimates from the nodes: offsets of keys, and cut points of the table.

use base::Result;
use base::key::user_key;

use super::node::Node;
use super::reading::Reading;
use crate::cut_points::CutPoints;

impl<'a> Reading<'a> {
    /// Offset of the group for `internal_key`; the end of the groups if the key is past the last one.
    pub(super) fn offset_of(&self, internal_key: &[u8]) -> Result<u64> {
        if self.is_empty() {
            return Ok(0);
        }
        let at = self.group_for(internal_key)?;
        let group = self.group(at)?;
        let last = group.len().checked_sub(1).and_then(|last| group.entry(last));
        let last = last.ok_or_else(|| self.damaged("an entry", at))?;
        let is_past_all = at + group.bytes() == self.data.len()
            && self.table.file.global.compare(&self.table.file.order, last.key, internal_key).is_lt();
        Ok(if is_past_all { self.data.len() } else { at } as u64)
    }

    /// At most `max` separators of groups at even distances in the file, each with the end of the groups before it.
    pub(super) fn cut_points(&self, max: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        let mut points = CutPoints::new(&self.table.file.order.user, self.data.len() as u64, max);
        self.for_each_node(|_, node| {
            for nth in (1..node.children()).filter(|_| node.level() == 1) {
                if let (Some(separator), Some(end)) = (node.separator(nth - 1), node.child(nth)) {
                    points.offer(user_key(separator), end);
                }
            }
            Ok(())
        })?;
        Ok(points.finish())
    }

    /// Passes all nodes to `visit` with their offsets among the nodes, children before parents.
    pub(super) fn for_each_node(&self, mut visit: impl FnMut(usize, &Node<'a>) -> Result<()>) -> Result<()> {
        let mut at = 0;
        while let Some(&[_, level, ..]) = self.nodes.get(at..) {
            let node = self.node(at, u32::from(level))?;
            visit(at, &node)?;
            at += node.bytes();
        }
        if at == self.nodes.len() { Ok(()) } else { Err(self.damaged("a node", self.data.len() + at)) }
    }
}
