//! Predicts whether an ingest must succeed, must fail, or may do either. The model does not know where the engine keeps
//! entries.

use std::collections::BTreeMap;

use super::touched::{Span, Touched};
use super::{Incarnation, Model};
use crate::ingest::{Ingest, Source, Way};

/// Expected outcome of an ingest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Done,
    /// Depends on the placement of entries.
    Either,
    Refused,
}

/// Circumstances outside the model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// Families reserve a level for ingests behind.
    pub allows_behind: bool,
    /// Snapshots are held.
    pub snapshots: bool,
    /// Iterators are held; they may hold snapshots.
    pub iterators: bool,
}

/// Whether the demands contradict each other or the ingest, so that the engine refuses before looking at any data.
pub fn is_contradictory(ingest: &Ingest, allows_behind: bool) -> bool {
    let demands = ingest.demands;
    let tables = !ingest.files.is_empty() || !ingest.excises.is_empty();
    let numbered = ingest.source == Source::Numbered;
    let excises = !ingest.excises.is_empty();
    (demands.behind && (numbered || (tables && !allows_behind)))
        || (demands.numberless && numbered)
        || (excises && (demands.behind || demands.bottommost || demands.numberless))
}

impl Model {
    /// Expected outcome of an ingest, all of it applicable.
    pub fn verdict(&self, ingest: &Ingest, around: Circumstances) -> Verdict {
        let batch_behind = ingest.demands.behind && !ingest.batch.is_empty();
        if batch_behind || is_contradictory(ingest, around.allows_behind) {
            return Verdict::Refused;
        }
        let mut spans: BTreeMap<Incarnation, Vec<Span>> = BTreeMap::new();
        for file in &ingest.files {
            let Some(family) = self.family(&file.family) else { continue };
            spans.entry(family).or_default().extend(Span::of_file(file, &self.order));
        }
        let of_family = |(&family, spans): (&Incarnation, &Vec<Span>)| {
            let touched = self.state().touched(family);
            if ingest.demands.behind {
                self.verdict_behind(spans, &touched)
            } else {
                self.verdict_of_family(ingest, family, spans, &touched, around)
            }
        };
        let verdicts: Vec<Verdict> = spans.iter().map(of_family).collect();
        // An ingest behind waits for no memtable.
        let may_wait = ingest.demands.hasty && !ingest.demands.behind;
        let may_be_stopped = ingest.demands.unblocking && ingest.way == Way::Blocking && !ingest.demands.behind;
        if verdicts.contains(&Verdict::Refused) {
            Verdict::Refused
        } else if verdicts.contains(&Verdict::Either) || may_wait || may_be_stopped {
            Verdict::Either
        } else {
            Verdict::Done
        }
    }

    fn overlap_each_other(&self, spans: &[Span]) -> bool {
        let mut rest = spans;
        while let Some((first, others)) = rest.split_first() {
            if others.iter().any(|other| first.overlaps(other, &self.order)) {
                return true;
            }
            rest = others;
        }
        false
    }

    fn verdict_behind(&self, spans: &[Span], touched: &Touched) -> Verdict {
        let taken = spans.iter().any(|span| touched.meets_behind(span, &self.order));
        if taken || self.overlap_each_other(spans) { Verdict::Refused } else { Verdict::Done }
    }

    fn verdict_of_family(
        &self,
        ingest: &Ingest,
        family: Incarnation,
        spans: &[Span],
        touched: &Touched,
        around: Circumstances,
    ) -> Verdict {
        let demands = ingest.demands;
        if !demands.numberless && !demands.bottommost {
            return Verdict::Done;
        }
        if self.overlap_each_other(spans) || (demands.numberless && around.snapshots) {
            return Verdict::Refused;
        }
        let contents = self.state().contents(family);
        let holds_any = |span: &Span| contents.keys().any(|key| span.holds(key, &self.order));
        // Entries in the level for ingests behind do not block `bottommost`: its target is the level above.
        let shows = spans.iter().any(holds_any);
        if shows && (demands.numberless || !touched.has_behind()) {
            return Verdict::Refused;
        }
        let may_be_in_the_way = match demands.bottommost {
            true => !touched.is_empty(), // a table spanning the file, even without keys in it, is in the way
            false => spans.iter().any(|span| touched.meets(span, &self.order)),
        };
        let may_be_held = demands.numberless && around.iterators;
        if may_be_in_the_way || may_be_held { Verdict::Either } else { Verdict::Done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Durability, Op};
    use crate::parse;

    const ALLOWED: Circumstances = Circumstances { allows_behind: true, snapshots: false, iterators: false };

    fn model(writes: &[&str]) -> Model {
        let mut model = Model::default();
        for line in writes {
            match parse::op(line).unwrap() {
                Op::Single(change, durability) => model.write(&[change], durability),
                Op::Ingest(ingest) => model.ingest(&ingest, Durability::default()),
                other => panic!("no write: {other}"),
            }
        }
        model
    }

    fn verdict(model: &Model, line: &str, around: Circumstances) -> Verdict {
        match parse::op(line).unwrap() {
            Op::Ingest(ingest) => model.verdict(&ingest, around),
            other => panic!("no ingest: {other}"),
        }
    }

    #[test]
    fn what_is_known_beforehand() {
        use Verdict::{Done, Either, Refused};
        let model = model(&["put default b 1", "put default d 1", "delete default d", "delete-range default f h"]);
        for (line, expected) in [
            ("ingest direct; file default; put b 1", Done),
            ("ingest direct numberless; file default; put a 1", Done),
            ("ingest direct numberless; file default; put a 1; put c 1", Refused),
            ("ingest direct numberless; file default; put d 1", Either),
            ("ingest direct numberless; file default; put e 1; put f 1", Either),
            ("ingest direct numberless; file default; put h 1", Done),
            ("ingest direct numberless; file default; put k 1; file default; put k 2", Refused),
            ("ingest direct numberless; excise default k l", Refused),
            ("ingest direct bottommost; file default; put b 1", Refused),
            ("ingest direct bottommost; file default; put k 1", Either),
            ("ingest direct hasty; file default; put k 1", Either),
            ("ingest blocking unblocking; file default; put b 1", Either),
            ("ingest direct behind; file default; put b 1", Done),
            ("ingest direct behind numbered; file default; put b 1", Refused),
            ("ingest direct behind; file default; put b 1; batch; put default c 1", Refused),
        ] {
            assert_eq!(verdict(&model, line, ALLOWED), expected, "{line}");
        }
        let held = Circumstances { snapshots: true, ..Circumstances::default() };
        assert_eq!(verdict(&model, "ingest direct numberless; file default; put a 1", held), Refused);
        assert_eq!(verdict(&model, "ingest direct behind; file default; put a 1", held), Refused);
        let fresh = Model::default();
        assert_eq!(verdict(&fresh, "ingest direct bottommost; file default; put k 1", ALLOWED), Done);
    }

    #[test]
    fn tables_from_behind_keep_their_places() {
        let model = model(&["ingest direct behind; file default; put b 1; delete-range d f"]);
        let of = |line| verdict(&model, line, ALLOWED);
        assert_eq!(of("ingest direct behind; file default; put e 1"), Verdict::Refused);
        assert_eq!(of("ingest direct behind; file default; put f 1"), Verdict::Done);
        assert_eq!(of("ingest direct bottommost; file default; put b 1"), Verdict::Either);
    }
}
