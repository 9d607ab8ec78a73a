//! A checker of transaction histories, after Elle's idea (Kingsbury, Alvaro: *Elle: Inferring Isolation Anomalies from
//! Experimental Observations*, VLDB 2020).
//!
//! Every value is the list of its writers, oldest first: a write reads the list and appends its own number. So each
//! read tells the order of all writes before it. The dependencies follow, without any clock:
//! - *wr*: from the last writer in a list to its reader;
//! - *ww*: from a writer to the next writer of the same list;
//! - *rw*: from a reader to the next writer of the list read.
//!
//! A history is serializable if the dependencies have no cycle. Under snapshot isolation every cycle has two neighbouring
//! *rw* edges.

use std::collections::{BTreeMap, BTreeSet};

/// A transaction's number, unique in its history.
pub type Number = u64;

/// The value of a key: the transactions that wrote it.
pub type List = Vec<Number>;

/// Reads and appends of a transaction.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub number: Number,
    /// The lists read, before the transaction's own appends.
    pub reads: BTreeMap<String, List>,
    /// The keys appended to.
    pub appends: BTreeSet<String>,
    pub end: End,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    #[default]
    Committed,
    /// It conflicted: nothing of it may be seen.
    Aborted,
    /// A kill or an error came between: it counts if anything of it is seen.
    Unknown,
}

/// The level of isolation to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    Serializable,
    Snapshot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Wr,
    Ww,
    Rw,
}

/// A node of the walk: a transaction, and whether the last edge was an *rw* one.
type Node = (Number, bool);

type Edges = BTreeMap<Number, BTreeSet<(Number, Edge)>>;

/// Checks a history; `last` is the state after it.
///
/// # Errors
/// The first anomaly: a read that the last list does not begin with, a lost or aborted append, half a transaction, or a
/// cycle.
pub fn check(history: &[Record], last: &BTreeMap<String, List>, isolation: Isolation) -> Result<(), String> {
    check_appends(history, last)?;
    let seen: BTreeSet<Number> = last.values().flatten().copied().collect();
    let counts = |record: &&Record| record.end == End::Committed || seen.contains(&record.number);
    let mut edges = Edges::new();
    for record in history.iter().filter(counts) {
        for (key, read) in &record.reads {
            add_edges_of_read(&mut edges, record.number, read, last.get(key))
                .map_err(|what| format!("transaction {} read {read:?} of {key}: {what}", record.number))?;
        }
    }
    for list in last.values() {
        for (one, next) in list.iter().zip(list.iter().skip(1)) {
            edges.entry(*one).or_default().insert((*next, Edge::Ww));
        }
    }
    match find_cycle(&edges, isolation) {
        None => Ok(()),
        Some(cycle) => Err(format!("not {isolation:?}: the cycle {cycle:?}")),
    }
}

/// Every committed append is in its list, once. Of an unknown transaction all appends are there, or none.
fn check_appends(history: &[Record], last: &BTreeMap<String, List>) -> Result<(), String> {
    for (key, list) in last {
        let unique: BTreeSet<&Number> = list.iter().collect();
        if unique.len() != list.len() {
            return Err(format!("{key} has an append twice: {list:?}"));
        }
    }
    for Record { number, appends, end, .. } in history {
        let kept = appends.iter().filter(|&key| last.get(key).is_some_and(|list| list.contains(number))).count();
        let is_right = match end {
            End::Committed => kept == appends.len(),
            End::Aborted => kept == 0,
            End::Unknown => kept == 0 || kept == appends.len(),
        };
        if !is_right {
            return Err(format!("transaction {number} ({end:?}): {kept} of its {} appends are there", appends.len()));
        }
    }
    Ok(())
}

fn add_edges_of_read(edges: &mut Edges, reader: Number, read: &List, last: Option<&List>) -> Result<(), String> {
    let last = last.map_or(&[][..], Vec::as_slice);
    let Some(rest) = last.strip_prefix(read.as_slice()) else {
        return Err(format!("the last list {last:?} does not begin so"));
    };
    if let Some(&writer) = read.last() {
        edges.entry(writer).or_default().insert((reader, Edge::Wr));
    }
    if let Some(&next) = rest.first().filter(|&&next| next != reader) {
        edges.entry(reader).or_default().insert((next, Edge::Rw));
    }
    Ok(())
}

/// A depth-first search. Under snapshot isolation no step follows an *rw* edge by another, and a cycle that closes so does
/// not count.
fn find_cycle(edges: &Edges, isolation: Isolation) -> Option<Vec<Node>> {
    let next_of = |(number, after_rw): Node| -> Vec<Node> {
        let is_allowed = |edge: &Edge| isolation == Isolation::Serializable || !after_rw || *edge != Edge::Rw;
        let target = |&(to, edge): &(Number, Edge)| (to, isolation == Isolation::Snapshot && edge == Edge::Rw);
        let of = edges.get(&number).into_iter().flatten();
        of.filter(|(to, edge)| *to != number && is_allowed(edge)).map(target).collect()
    };
    let mut done: BTreeSet<Node> = BTreeSet::new();
    for start in edges.keys().map(|&number| (number, false)) {
        // The path, each node with its edges not walked yet.
        let mut path: Vec<(Node, Vec<Node>)> = Vec::new();
        if done.insert(start) {
            path.push((start, next_of(start)));
        }
        while let Some((_, rest)) = path.last_mut() {
            let Some(next) = rest.pop() else {
                path.pop();
                continue;
            };
            if let Some(at) = path.iter().position(|(node, _)| *node == next) {
                return Some(path.iter().skip(at).map(|(node, _)| *node).collect());
            }
            if done.insert(next) {
                path.push((next, next_of(next)));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: Number, reads: &[(&str, &[Number])], appends: &[&str]) -> Record {
        let reads = reads.iter().map(|(key, list)| ((*key).to_owned(), list.to_vec())).collect();
        Record { number, reads, appends: appends.iter().map(|&key| key.to_owned()).collect(), end: End::Committed }
    }

    fn last(lists: &[(&str, &[Number])]) -> BTreeMap<String, List> {
        lists.iter().map(|(key, list)| ((*key).to_owned(), list.to_vec())).collect()
    }

    /// The errors under both levels.
    fn both(history: &[Record], last: &BTreeMap<String, List>) -> [bool; 2] {
        [Isolation::Serializable, Isolation::Snapshot].map(|isolation| check(history, last, isolation).is_err())
    }

    #[test]
    fn good_histories_pass() {
        let history = [
            record(1, &[("x", &[]), ("y", &[])], &["x", "y"]),
            record(2, &[("x", &[1])], &["x"]),
            record(3, &[("x", &[1, 2]), ("y", &[1])], &[]),
        ];
        assert_eq!(both(&history, &last(&[("x", &[1, 2]), ("y", &[1])])), [false, false]);
    }

    #[test]
    fn write_skew_is_snapshot_isolation_only() {
        let skew = [record(1, &[("x", &[]), ("y", &[])], &["x"]), record(2, &[("x", &[]), ("y", &[])], &["y"])];
        assert_eq!(both(&skew, &last(&[("x", &[1]), ("y", &[2])])), [true, false]);
    }

    #[test]
    fn a_torn_read_is_neither() {
        // Transaction 2 saw the one append of transaction 1, and not the other.
        let torn = [record(1, &[], &["x", "y"]), record(2, &[("x", &[1]), ("y", &[])], &[])];
        assert_eq!(both(&torn, &last(&[("x", &[1]), ("y", &[1])])), [true, true]);
    }

    #[test]
    fn lost_aborted_and_half_appends_are_told() {
        let lost = [record(1, &[("x", &[])], &["x"]), record(2, &[("x", &[])], &["x"])];
        assert_eq!(both(&lost, &last(&[("x", &[2])])), [true, true], "lost");
        assert_eq!(both(&lost, &last(&[("x", &[1, 2])])), [true, true], "2 read nothing, and stands behind 1");
        let mut aborted = record(1, &[], &["x"]);
        aborted.end = End::Aborted;
        assert_eq!(both(&[aborted.clone()], &last(&[("x", &[1])])), [true, true]);
        assert_eq!(both(&[aborted], &last(&[])), [false, false]);
        let mut unknown = record(1, &[], &["x", "y"]);
        unknown.end = End::Unknown;
        assert_eq!(both(&[unknown.clone()], &last(&[("x", &[1])])), [true, true], "half");
        assert_eq!(both(&[unknown], &last(&[("x", &[1]), ("y", &[1])])), [false, false]);
    }

    #[test]
    fn a_long_cycle_is_found() {
        let history =
            [record(1, &[("a", &[])], &["b"]), record(2, &[("b", &[])], &["c"]), record(3, &[("c", &[])], &["a"])];
        assert_eq!(both(&history, &last(&[("a", &[3]), ("b", &[1]), ("c", &[2])])), [true, false]);
    }
}
