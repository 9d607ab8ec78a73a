//! Verifies a whole fast table: checksums, structure, key order, heads, separators, filter, and the counts of the
//! properties.

use base::{Error, Result, key};

use super::FastTable;
use super::group::Group;
use super::node::Node;
use super::reading::Reading;
use crate::verify::EntryCheck;

/// A subtree without a parent so far.
#[derive(Clone, Copy)]
struct Subtree {
    at: u64,
    first_group: usize,
    last_group: usize,
}

/// One pass over nodes and groups.
struct Pass<'a> {
    reading: Reading<'a>,
    entries: EntryCheck<'a>,
    /// End of the groups checked so far.
    end: usize,
    previous_bytes: usize,
    /// By level, groups first: the children the next node above must have.
    orphans: Vec<Vec<Subtree>>,
}

impl FastTable {
    pub(super) fn verify_file(&self) -> Result<()> {
        // All checksums were just compared.
        let (entries, reading) = (self.file.verify()?, self.reading(false));
        let mut pass = Pass { reading, entries, end: 0, previous_bytes: 0, orphans: vec![Vec::new()] };
        pass.run()?;
        pass.entries.end(&self.file.properties, false)
    }
}

impl<'a> Reading<'a> {
    fn first_key(&self, group_at: usize) -> Option<&'a [u8]> {
        Some(self.group(group_at).ok()?.entry(0)?.key)
    }

    fn last_key(&self, group_at: usize) -> Option<&'a [u8]> {
        let group = self.group(group_at).ok()?;
        Some(group.entry(group.len() - 1)?.key)
    }
}

impl<'a> Pass<'a> {
    fn run(&mut self) -> Result<()> {
        let (reading, footer) = (self.reading, &self.reading.table.file.footer);
        reading.for_each_node(|at, node| {
            let checked = self.check_node(at, node);
            checked.map_err(|e| e.at_offset(footer.data_bytes + at as u64))
        })?;
        if footer.levels == 0 && !reading.is_empty() {
            self.check_group()?;
        }
        if self.end != reading.data.len() {
            return Err(Error::corruption("groups that no node leads to").at_offset(self.end as u64));
        }
        let root = self.orphans.pop().unwrap_or_default();
        let is_root = match *root.as_slice() {
            [root] => root.at == footer.root && self.orphans.len() == footer.levels as usize,
            [] => reading.is_empty(),
            _ => false,
        };
        if !is_root || self.orphans.iter().any(|level| !level.is_empty()) {
            return Err(Error::corruption("nodes that the topmost does not lead to"));
        }
        Ok(())
    }

    fn check_node(&mut self, at: usize, node: &Node<'_>) -> Result<()> {
        let (reading, table) = (self.reading, self.reading.table);
        let level = usize::from(node.level());
        if level == 1 {
            (0..node.children()).try_for_each(|_| self.check_group())?;
        }
        let below = level.checked_sub(1).and_then(|below| self.orphans.get_mut(below)).map(std::mem::take);
        let below = below.unwrap_or_default();
        let named = (0..node.children()).map_while(|nth| node.child(nth));
        let (Some(first), Some(last)) = (below.first(), below.last()) else {
            return Err(Error::corruption("a node without anything below it"));
        };
        if !below.iter().map(|child| child.at).eq(named) {
            return Err(Error::corruption("a node's children are not those before it"));
        }
        for (nth, pair) in below.windows(2).enumerate() {
            let [left, right] = pair else { continue };
            let (last, first) = (reading.last_key(left.last_group), reading.first_key(right.first_group));
            let fits = node.separator(nth).zip(last.zip(first)).is_some_and(|(separator, (last, first))| {
                table.file.order.compare(last, separator).is_lt() && table.file.order.compare(separator, first).is_le()
            });
            if !fits || !node.has_head(nth, table.heads) {
                return Err(Error::corruption(format!("separator {nth} does not part the node's children")));
            }
        }
        let ends = [reading.first_key(first.first_group), reading.last_key(last.last_group)];
        if ends.iter().any(|end| !end.is_some_and(|end| key::user_key(end).starts_with(node.prefix()))) {
            return Err(Error::corruption("keys below a node do not begin as it says"));
        }
        if self.orphans.len() <= level {
            self.orphans.push(Vec::new());
        }
        let subtree = Subtree { at: at as u64, first_group: first.first_group, last_group: last.last_group };
        self.orphans
            .get_mut(level)
            .map(|level| level.push(subtree))
            .ok_or_else(|| Error::corruption("a level is missing"))
    }

    /// Checks the next group.
    fn check_group(&mut self) -> Result<()> {
        let at = self.end;
        let group = self.reading.group(at)?;
        self.check_entries(&group).map_err(|e| e.at_offset(at as u64))?;
        if group.previous_bytes() as usize != self.previous_bytes {
            return Err(Error::corruption("a group that does not lead to the one before").at_offset(at as u64));
        }
        self.entries.end_block();
        (self.end, self.previous_bytes) = (at + group.bytes(), group.bytes());
        if let Some(groups) = self.orphans.first_mut() {
            groups.push(Subtree { at: at as u64, first_group: at, last_group: at });
        }
        Ok(())
    }

    fn check_entries(&mut self, group: &Group<'a>) -> Result<()> {
        let table = self.reading.table;
        let malformed = || Error::corruption("an entry is malformed");
        let prefix = group.prefix().ok_or_else(malformed)?;
        let mut end = group.directory_bytes();
        for nth in 0..group.len() {
            let entry = group.entry(nth).ok_or_else(malformed)?;
            if group.start(nth) != Some(end) {
                return Err(Error::corruption("entries do not lie back to back"));
            }
            end = entry.value_range.1;
            let parsed = self.entries.add(entry.key)?;
            let rest = parsed.user_key.strip_prefix(prefix);
            let rest = rest.ok_or_else(|| Error::corruption("a key does not begin as its group's do"))?;
            let head = table.heads.head(rest);
            if group.heads().get(nth).is_some_and(|stored| u32::from_le_bytes(*stored) != head) {
                return Err(Error::corruption("a head is not its key's"));
            }
        }
        if group.bytes() != end {
            return Err(Error::corruption("a group is longer than its entries"));
        }
        Ok(())
    }
}
