//! Tailing iterators: each step shows the current database, so a reader can follow a writer.
//!
//! A step forward needs no seek before it. RocksDB leaves `next` at the end undefined; here it goes on behind the last
//! shown entry. A step forward takes a new view only after a write since the last one: a new view costs a seek.

use spillway::internal::SeqNo;

use super::{Iterator, Move, Source};

/// Progress of a tailing iterator.
pub(super) struct Tail {
    /// The view includes every write up to this number.
    seen_through: SeqNo,
    place: Place,
}

/// Start of the next step forward. The key is `Tail`'s own copy.
pub(super) enum Place {
    First,
    At(Vec<u8>),
    Behind(Vec<u8>),
}

impl Tail {
    pub(super) fn new(source: &Source) -> Tail {
        Tail { seen_through: source.db.latest_sequence_number(), place: Place::First }
    }
}

impl Iterator {
    /// Moves a tailing iterator.
    #[cold]
    pub(super) fn go_tailing(&mut self, to: Move<'_>) {
        match to {
            Move::Next => self.follow(),
            Move::Prev => self.go_within(to),
            Move::First => self.look_and_go(Place::First, to),
            Move::To(key) => self.look_and_go(Place::At(key.to_vec()), to),
            Move::Last | Move::ToOrBefore(_) => self.look_and_go(Place::First, to),
        }
    }

    fn look_and_go(&mut self, place: Place, to: Move<'_>) {
        self.look_again(place);
        self.go_within(to);
    }

    /// Takes a new view, without a position.
    pub(super) fn look_again(&mut self, place: Place) {
        // Read before the view, so the view includes at least these writes.
        let seen_through = self.source.db.latest_sequence_number();
        self.shown = self.source.look();
        self.tail = Some(Tail { seen_through, place });
    }

    /// A step forward, from the current entry or, behind the last one, from the end of the walk.
    fn follow(&mut self) {
        let Some(tail) = self.tail.take() else { return };
        let was_shown = self.valid();
        let place = if was_shown { Place::Behind(self.key().to_vec()) } else { tail.place };
        if self.source.db.latest_sequence_number() == tail.seen_through {
            if was_shown {
                self.go_within(Move::Next);
            }
            self.tail = Some(Tail { place, ..tail });
            return;
        }
        self.look_again(Place::First);
        match &place {
            Place::First => self.go_within(Move::First),
            Place::At(key) => self.go_within(Move::To(key)),
            Place::Behind(key) => {
                self.go_within(Move::To(key));
                let order = &self.source.family.options().order;
                if self.valid() && order.compare(self.key(), key).is_eq() {
                    self.go_within(Move::Next);
                }
            }
        }
        if let Some(tail) = &mut self.tail {
            tail.place = place;
        }
    }
}
