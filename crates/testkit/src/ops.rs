//! Operations on a database, as data and as text. One language, an operation per line, serves model tests, crash and
//! fault simulations, and golden tests.
//!
//! ```text
//! profile tiny
//! create users
//! put users ann 1
//! put users bob x*500 sync          a value of 500 times x; survives power loss
//! put users eve 1 flushed           is in a table, and survives power loss
//! batch put users a 1; merge sums n u64:3; delete-range users b c; sync
//! snapshot s
//! iterate i users @s from=a to=c
//! move i seek-for-prev b
//! scan users @s reverse
//! put users zoe 1 hasty             does not wait: may be refused
//! read-only                         opens the directory read-only and compares
//! ingest flushable; excise users a c; file users; put a 1; delete-range b d; batch; put users e 1
//! reopen
//! import users users-2               exports a family, and imports the export as a new one
//! begin t put users a 1; merge sums n u64:3     prepares a transaction; it survives reopens and kills
//! end t
//! undo t
//! ```
//!
//! An operation with a missing family, snapshot or iterator does nothing. So any operation can be removed from a
//! script, as [`crate::shrink`] does.

use std::fmt;

use base::UserOrder;

use crate::ingest::{Ingest, Way, without};
use crate::order::arrange;
use crate::random::Random;

/// Bytes of a key. Text bytes print as they are, others as `\xNN`.
pub type Key = Vec<u8>;

/// A value in short notation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `text*3` is `texttexttext`.
    Repeated { text: Vec<u8>, times: u32 },
    /// `noise:7:5000`: 5000 incompressible bytes from seed 7.
    Noise { seed: u64, len: u32 },
    /// `u64:7`: eight bytes, little-endian, for the operator uint64add.
    Number(u64),
}

impl Value {
    pub fn text(text: impl Into<Vec<u8>>) -> Self {
        Value::Repeated { text: text.into(), times: 1 }
    }

    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Value::Repeated { text, times } => text.repeat(*times as usize),
            Value::Noise { seed, len } => {
                let mut random = Random::new(*seed);
                let words = (0..len.div_ceil(8)).flat_map(|_| random.draw().to_le_bytes());
                words.take(*len as usize).collect()
            }
            Value::Number(number) => number.to_le_bytes().to_vec(),
        }
    }
}

/// A change of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Put(Key, Value),
    Delete(Key),
    /// Applied only if puts and single-deletes alternated on the key so far; otherwise it is undefined.
    SingleDelete(Key),
    Merge(Key, Value),
    DeleteRange(Key, Key),
}

impl Action {
    /// The key, or the start of the range.
    pub fn key(&self) -> &Key {
        match self {
            Action::Put(key, _) | Action::Merge(key, _) => key,
            Action::Delete(key) | Action::SingleDelete(key) | Action::DeleteRange(key, _) => key,
        }
    }

    pub(crate) fn arrange(&mut self, order: &UserOrder) {
        if let Action::DeleteRange(start, end) = self {
            arrange(order, start, end);
        }
    }

    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Action::Put(..) => "put",
            Action::Delete(_) => "delete",
            Action::SingleDelete(_) => "single-delete",
            Action::Merge(..) => "merge",
            Action::DeleteRange(..) => "delete-range",
        }
    }

    /// Text after the verb, without the family.
    pub(crate) fn operands(&self) -> String {
        match self {
            Action::Put(key, value) | Action::Merge(key, value) => format!("{} {value}", Word(key)),
            Action::Delete(key) | Action::SingleDelete(key) => Word(key).to_string(),
            Action::DeleteRange(start, end) => format!("{} {}", Word(start), Word(end)),
        }
    }
}

/// One entry of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub family: String,
    pub action: Action,
}

/// Durability and waiting of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durability {
    pub sync: bool,
    pub disable_wal: bool,
    /// Flushes the touched families at the end.
    pub flush: bool,
    /// Fails without effect instead of waiting.
    pub hasty: bool,
}

/// Selection of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Name of a snapshot; `None` reads the present.
    pub snapshot: Option<String>,
    pub from: Option<Key>,
    pub to: Option<Key>,
    /// Ends iteration with the prefix of the sought key.
    pub prefix: bool,
}

/// A step of an iterator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    First,
    Last,
    Seek(Key),
    SeekForPrev(Key),
    Next,
    Prev,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// One change through its own call (`put`, `delete`, ...), without a batch.
    Single(Change, Durability),
    Batch(Vec<Change>, Durability),
    Ingest(Ingest),
    /// Prepares an ingest without single-deletes and without a batch, and keeps it under a name.
    Prepare(String, Ingest),
    Commit(String),
    /// Drops a prepared ingest.
    Abandon(String),
    /// Makes all acknowledged writes survive power loss.
    Sync,
    Snapshot(String),
    Release(String),
    Flush(Vec<String>),
    /// Compacts a range; `force` includes the tables at its bottom.
    Compact {
        family: String,
        from: Option<Key>,
        to: Option<Key>,
        force: bool,
    },
    /// Makes a checkpoint, opens it, compares it, and deletes it.
    Checkpoint,
    Create(String),
    Drop(String),
    /// Exports a family, and imports the export as a new family. Does nothing while there are snapshots: the import has
    /// no history.
    Import {
        family: String,
        name: String,
    },
    /// Prepares a transaction of puts, deletes and merges under a name. Does nothing if a key is locked.
    Begin(String, Vec<Change>),
    /// Commits a prepared transaction; rolls it back if one of its families was dropped.
    End(String),
    /// Rolls a prepared transaction back.
    Undo(String),
    Reopen,
    /// Opens the directory read-only and compares, beside the open database or while it is closed.
    ReadOnly {
        closed: bool,
    },
    Get(String, Key),
    MultiGet(String, Vec<Key>),
    Scan {
        family: String,
        range: Range,
        reverse: bool,
    },
    Iterate {
        name: String,
        family: String,
        range: Range,
    },
    Move(String, Step),
    Close(String),
    /// Compares everything: every family, at every snapshot, forward, backward and key by key.
    Check,
}

/// A whole test: a profile and its operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub profile: String,
    pub ops: Vec<Op>,
}

/// Prints bytes as a word of the language.
struct Word<'a>(&'a [u8]);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("\"\"");
        }
        for &byte in self.0 {
            match byte {
                b'\\' | b'"' | b';' | b'*' | b'#' | b'@' | b'=' | b':' => write!(f, "\\x{byte:02x}")?,
                b'!'..=b'~' => write!(f, "{}", char::from(byte))?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Repeated { text, times: 1 } => Word(text).fmt(f),
            Value::Repeated { text, times } => write!(f, "{}*{times}", Word(text)),
            Value::Noise { seed, len } => write!(f, "noise:{seed}:{len}"),
            Value::Number(number) => write!(f, "u64:{number}"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.action.verb(), self.family, self.action.operands())
    }
}

impl Durability {
    fn words(self) -> impl Iterator<Item = &'static str> {
        let words =
            [(self.sync, "sync"), (self.disable_wal, "unlogged"), (self.flush, "flushed"), (self.hasty, "hasty")];
        words.into_iter().filter(|(set, _)| *set).map(|(_, word)| word)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(snapshot) = &self.snapshot {
            write!(f, " @{snapshot}")?;
        }
        if let Some(from) = &self.from {
            write!(f, " from={}", Word(from))?;
        }
        if let Some(to) = &self.to {
            write!(f, " to={}", Word(to))?;
        }
        if self.prefix { f.write_str(" prefix") } else { Ok(()) }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::First => f.write_str("first"),
            Step::Last => f.write_str("last"),
            Step::Seek(key) => write!(f, "seek {}", Word(key)),
            Step::SeekForPrev(key) => write!(f, "seek-for-prev {}", Word(key)),
            Step::Next => f.write_str("next"),
            Step::Prev => f.write_str("prev"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Single(change, durability) => {
                change.fmt(f)?;
                durability.words().try_for_each(|word| write!(f, " {word}"))
            }
            Op::Batch(changes, durability) => {
                let parts = changes.iter().map(Change::to_string).chain(durability.words().map(str::to_owned));
                write!(f, "batch {}", parts.collect::<Vec<_>>().join("; "))
            }
            Op::Ingest(ingest) => write!(f, "ingest {ingest}"),
            Op::Prepare(name, ingest) => write!(f, "prepare {name} {ingest}"),
            Op::Commit(name) => write!(f, "commit {name}"),
            Op::Abandon(name) => write!(f, "abandon {name}"),
            Op::Sync => f.write_str("sync"),
            Op::Snapshot(name) => write!(f, "snapshot {name}"),
            Op::Release(name) => write!(f, "release {name}"),
            Op::Flush(families) => write!(f, "flush {}", families.join(" ")),
            Op::Compact { family, from, to, force } => {
                let range = Range { from: from.clone(), to: to.clone(), ..Range::default() };
                write!(f, "compact {family}{range}{}", if *force { " force" } else { "" })
            }
            Op::Checkpoint => f.write_str("checkpoint"),
            Op::Create(family) => write!(f, "create {family}"),
            Op::Drop(family) => write!(f, "drop {family}"),
            Op::Import { family, name } => write!(f, "import {family} {name}"),
            Op::Begin(name, changes) => {
                let parts: Vec<String> = changes.iter().map(Change::to_string).collect();
                write!(f, "begin {name} {}", parts.join("; "))
            }
            Op::End(name) => write!(f, "end {name}"),
            Op::Undo(name) => write!(f, "undo {name}"),
            Op::Reopen => f.write_str("reopen"),
            Op::ReadOnly { closed } => write!(f, "read-only{}", if *closed { " closed" } else { "" }),
            Op::Get(family, key) => write!(f, "get {family} {}", Word(key)),
            Op::MultiGet(family, keys) => {
                write!(f, "multi-get {family}")?;
                keys.iter().try_for_each(|key| write!(f, " {}", Word(key)))
            }
            Op::Scan { family, range, reverse } => {
                write!(f, "scan {family}{range}{}", if *reverse { " reverse" } else { "" })
            }
            Op::Iterate { name, family, range } => write!(f, "iterate {name} {family}{range}"),
            Op::Move(name, step) => write!(f, "move {name} {step}"),
            Op::Close(name) => write!(f, "close {name}"),
            Op::Check => f.write_str("check"),
        }
    }
}

impl Script {
    /// Sets the way of all ingests.
    pub fn ingest_by(&mut self, way: Way) {
        for op in &mut self.ops {
            if let Op::Ingest(ingest) | Op::Prepare(_, ingest) = op {
                ingest.way = way;
            }
        }
    }

    /// Orders the ends of all ranges, so that a script is meaningful in any key order.
    #[must_use]
    pub fn arranged(mut self, order: &UserOrder) -> Script {
        for op in &mut self.ops {
            match op {
                Op::Single(change, _) => change.action.arrange(order),
                Op::Batch(changes, _) | Op::Begin(_, changes) => {
                    changes.iter_mut().for_each(|change| change.action.arrange(order))
                }
                Op::Ingest(ingest) | Op::Prepare(_, ingest) => ingest.arrange(order),
                Op::Compact { from: Some(from), to: Some(to), .. } => arrange(order, from, to),
                Op::Scan { range: Range { from: Some(from), to: Some(to), .. }, .. }
                | Op::Iterate { range: Range { from: Some(from), to: Some(to), .. }, .. } => arrange(order, from, to),
                _ => {}
            }
        }
        self
    }
}

impl Op {
    /// All variants of the operation with one part removed.
    pub(crate) fn lesser(&self) -> Vec<Op> {
        match self {
            Op::Batch(changes, durability) if changes.len() > 1 => {
                (0..changes.len()).map(|at| Op::Batch(without(changes, at), *durability)).collect()
            }
            Op::Begin(name, changes) if changes.len() > 1 => {
                (0..changes.len()).map(|at| Op::Begin(name.clone(), without(changes, at))).collect()
            }
            Op::Ingest(ingest) => ingest.lesser().into_iter().map(Op::Ingest).collect(),
            Op::Prepare(name, ingest) => {
                ingest.lesser().into_iter().map(|lesser| Op::Prepare(name.clone(), lesser)).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "profile {}", self.profile)?;
        self.ops.iter().try_for_each(|op| writeln!(f, "{op}"))
    }
}
