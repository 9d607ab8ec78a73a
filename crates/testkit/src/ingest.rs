//! Ingests in the language of operations.
//!
//! ```text
//! ingest direct; file users; put a 1; delete-range c e; file users; merge a 2
//! ingest flushable linked verified; excise users a k; excise sums a b; file sums; merge n u64:3; batch; put users q 1
//! prepare p blocking; file users; put a 1      done up to the commit
//! commit p
//! abandon p
//! ingest behind; file users; put a 1           under everything there is
//! ingest direct numberless bottommost; file users; put a 1
//! ```
//!
//! Any of the [`Demands`] can cause a refusal; a refused ingest changes nothing.
//!
//! Excises come first, then the files in order, then the batch. A file has each key once, and its range deletions do
//! not cover its own entries. Parts with a missing family are left out.

use std::fmt;

use base::{Error, ErrorKind, UserOrder};

use crate::ops::{Action, Change, Key};
use crate::order::arrange;

/// Engine path of an ingest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    #[default]
    Flushable,
    Blocking,
    FlushFirst,
    Direct,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::Flushable, Way::Blocking, Way::FlushFirst, Way::Direct];

    pub fn word(self) -> &'static str {
        match self {
            Way::Flushable => "flushable",
            Way::Blocking => "blocking",
            Way::FlushFirst => "flush-first",
            Way::Direct => "direct",
        }
    }
}

/// Transfer of the files into the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    #[default]
    Copied,
    /// Copied, with the sequence number written into the copies.
    Numbered,
    Linked,
    Moved,
}

impl Source {
    pub const ALL: [Source; 4] = [Source::Copied, Source::Numbered, Source::Linked, Source::Moved];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Source::Copied => "copied",
            Source::Numbered => "numbered",
            Source::Linked => "linked",
            Source::Moved => "moved",
        }
    }
}

/// Requirements besides the way. The engine refuses an ingest it cannot satisfy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// Under everything there is, without numbers (`ingest_behind`).
    pub behind: bool,
    /// Into the last level (`fail_if_not_bottommost_level`).
    pub bottommost: bool,
    /// Without a need for numbers (`allow_global_seqno` off).
    pub numberless: bool,
    /// Without stopping writers for a flush (`allow_blocking_flush` off).
    pub unblocking: bool,
    /// Without waiting (`no_slowdown`).
    pub hasty: bool,
}

/// Selects a demand's field.
type DemandField = fn(&mut Demands) -> &mut bool;

impl Demands {
    /// All demands, by word.
    pub const ALL: [(&str, DemandField); 5] = [
        ("behind", |demands| &mut demands.behind),
        ("bottommost", |demands| &mut demands.bottommost),
        ("numberless", |demands| &mut demands.numberless),
        ("unblocking", |demands| &mut demands.unblocking),
        ("hasty", |demands| &mut demands.hasty),
    ];

    pub(crate) fn words(mut self) -> impl Iterator<Item = &'static str> {
        Demands::ALL.into_iter().filter(move |(_, field)| *field(&mut self)).map(|(word, _)| word)
    }

    /// Whether the documentation allows the error for these demands.
    pub fn explain(&self, error: &Error) -> bool {
        let reasons = [
            (self.behind, "behind"),
            (self.bottommost, "fail_if_not_bottommost_level"),
            (self.numberless, "allow_global_seqno"),
            (self.unblocking, "allow_blocking_flush"),
        ];
        match error.kind() {
            ErrorKind::InvalidArgument => reasons.iter().any(|(asked, name)| *asked && error.message().contains(name)),
            ErrorKind::Busy => self.hasty && error.message().contains("no_slowdown"),
            _ => false,
        }
    }
}

/// A table to make and ingest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub family: String,
    pub entries: Vec<Action>,
}

impl File {
    /// Changes of the file in an equivalent order: range deletions, then keys in ascending order, each once.
    pub fn changes(&self, order: &UserOrder) -> Vec<Change> {
        let is_range = |action: &&Action| matches!(action, Action::DeleteRange(..));
        let ranges = self.entries.iter().filter(is_range);
        let mut points: Vec<&Action> = self.entries.iter().filter(|action| !is_range(action)).collect();
        points.sort_by(|a, b| order.compare(a.key(), b.key()));
        points.dedup_by(|a, b| a.key() == b.key());
        let ranges = ranges
            .filter(|action| matches!(action, Action::DeleteRange(start, end) if order.compare(start, end).is_lt()));
        ranges.chain(points).map(|action| Change { family: self.family.clone(), action: action.clone() }).collect()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ingest {
    pub way: Way,
    pub source: Source,
    /// Verifies every block before the ingest.
    pub verified: bool,
    pub demands: Demands,
    /// At most one per family.
    pub excises: Vec<(String, Key, Key)>,
    pub files: Vec<File>,
    /// Committed together with the files.
    pub batch: Vec<Change>,
}

impl Ingest {
    pub fn is_empty(&self) -> bool {
        self.excises.is_empty() && self.files.is_empty() && self.batch.is_empty()
    }

    /// The whole ingest as consecutive writes.
    pub fn changes(&self, order: &UserOrder) -> Vec<Change> {
        let excise = |(family, start, end): &(String, Key, Key)| Change {
            family: family.clone(),
            action: Action::DeleteRange(start.clone(), end.clone()),
        };
        let files = self.files.iter().flat_map(|file| file.changes(order));
        self.excises.iter().map(excise).chain(files).chain(self.batch.iter().cloned()).collect()
    }

    /// Orders the ends of all ranges.
    pub(crate) fn arrange(&mut self, order: &UserOrder) {
        self.excises.iter_mut().for_each(|(_, start, end)| arrange(order, start, end));
        let actions = self.files.iter_mut().flat_map(|file| &mut file.entries);
        actions.chain(self.batch.iter_mut().map(|change| &mut change.action)).for_each(|action| action.arrange(order));
    }

    /// All variants of the ingest with one part removed.
    pub fn lesser(&self) -> Vec<Ingest> {
        let mut all = Vec::new();
        for at in 0..self.excises.len() {
            all.push(Ingest { excises: without(&self.excises, at), ..self.clone() });
        }
        for (at, file) in self.files.iter().enumerate() {
            all.push(Ingest { files: without(&self.files, at), ..self.clone() });
            for entry in 0..file.entries.len() {
                let mut lesser = self.clone();
                let entries = without(&file.entries, entry);
                lesser.files.splice(at..=at, [File { entries, ..file.clone() }]);
                all.push(lesser);
            }
        }
        for at in 0..self.batch.len() {
            all.push(Ingest { batch: without(&self.batch, at), ..self.clone() });
        }
        if self.source != Source::Copied || self.verified {
            all.push(Ingest { source: Source::Copied, verified: false, ..self.clone() });
        }
        for (_, field) in Demands::ALL {
            let mut lesser = self.clone();
            if std::mem::take(field(&mut lesser.demands)) {
                all.push(lesser);
            }
        }
        if self.way != Way::Flushable {
            all.push(Ingest { way: Way::Flushable, ..self.clone() });
        }
        all
    }
}

/// The list without the element at `at`.
pub(crate) fn without<T: Clone>(all: &[T], at: usize) -> Vec<T> {
    let kept = all.iter().enumerate().filter(|(index, _)| *index != at);
    kept.map(|(_, one)| one.clone()).collect()
}

impl fmt::Display for Ingest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.way.word())?;
        if self.source != Source::Copied {
            write!(f, " {}", self.source.word())?;
        }
        if self.verified {
            f.write_str(" verified")?;
        }
        for word in self.demands.words() {
            write!(f, " {word}")?;
        }
        for (family, start, end) in &self.excises {
            let range = Action::DeleteRange(start.clone(), end.clone());
            write!(f, "; excise {family} {}", range.operands())?;
        }
        for File { family, entries } in &self.files {
            write!(f, "; file {family}")?;
            entries.iter().try_for_each(|action| write!(f, "; {} {}", action.verb(), action.operands()))?;
        }
        if !self.batch.is_empty() {
            f.write_str("; batch")?;
            self.batch.iter().try_for_each(|change| write!(f, "; {change}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Op;
    use crate::parse;

    fn ingest(line: &str) -> Ingest {
        match parse::op(line).unwrap() {
            Op::Ingest(ingest) => ingest,
            other => panic!("no ingest: {other}"),
        }
    }

    #[test]
    fn a_file_is_its_ranges_then_its_keys_each_once() {
        let ingest =
            ingest("ingest flushable; file f; put b 1; delete-range a c; put a 2; merge b 3; delete-range d d");
        let shown: Vec<String> = ingest.changes(&UserOrder::Bytewise).iter().map(Change::to_string).collect();
        assert_eq!(shown, ["delete-range f a c", "put f a 2", "put f b 1"]);
    }

    #[test]
    fn what_is_less_lacks_one_thing() {
        let whole = ingest("ingest direct moved hasty; excise f a b; file f; put a 1; put b 2; batch; put f c 1");
        let lesser: Vec<String> = whole.lesser().iter().map(Ingest::to_string).collect();
        let expected = [
            "direct moved hasty; file f; put a 1; put b 2; batch; put f c 1",
            "direct moved hasty; excise f a b; batch; put f c 1",
            "direct moved hasty; excise f a b; file f; put b 2; batch; put f c 1",
            "direct moved hasty; excise f a b; file f; put a 1; batch; put f c 1",
            "direct moved hasty; excise f a b; file f; put a 1; put b 2",
            "direct hasty; excise f a b; file f; put a 1; put b 2; batch; put f c 1",
            "direct moved; excise f a b; file f; put a 1; put b 2; batch; put f c 1",
            "flushable moved hasty; excise f a b; file f; put a 1; put b 2; batch; put f c 1",
        ];
        assert_eq!(lesser, expected);
    }
}
