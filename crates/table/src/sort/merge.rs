//! Merges sorted sequences by a tree of losers: log2(sequences) comparisons per record.

use std::sync::Arc;

use base::Result;

use super::{Buffer, RecordOrder, RunReader, Sequence};

/// A sequence being read.
enum Reader {
    Memory {
        buffer: Arc<Buffer>,
        /// Index of the next record.
        next: usize,
    },
    Spilled(Box<RunReader>),
}

impl Reader {
    fn new(sequence: Sequence, order: &impl RecordOrder, from: Option<&[u8]>) -> Reader {
        match sequence {
            Sequence::Memory(buffer) => {
                let next = from.map_or(0, |from| buffer.lower_bound(order, from));
                Reader::Memory { buffer, next }
            }
            Sequence::Spilled(run) => Reader::Spilled(Box::new(RunReader::new(run, order, from))),
        }
    }

    fn advance(&mut self) -> Result<bool> {
        match self {
            Reader::Memory { buffer, next } => {
                *next += 1;
                Ok(*next <= buffer.len())
            }
            Reader::Spilled(reader) => reader.advance(),
        }
    }

    fn key(&self) -> &[u8] {
        match self {
            Reader::Memory { buffer, next } => {
                next.checked_sub(1).and_then(|at| buffer.get(at)).map_or(&[], |(key, _)| key)
            }
            Reader::Spilled(reader) => reader.key(),
        }
    }

    fn value(&self) -> &[u8] {
        match self {
            Reader::Memory { buffer, next } => {
                next.checked_sub(1).and_then(|at| buffer.get(at)).map_or(&[], |(_, value)| value)
            }
            Reader::Spilled(reader) => reader.value(),
        }
    }
}

/// A sequence in the tree.
struct Player {
    reader: Reader,
    /// Prefix of the current key.
    prefix: u64,
    /// No record is left.
    ended: bool,
}

impl Player {
    fn advance(&mut self, order: &impl RecordOrder) -> Result<()> {
        self.ended = !self.reader.advance()?;
        if !self.ended {
            self.prefix = order.prefix(self.reader.key());
        }
        Ok(())
    }
}

/// Walks the records of sorted sequences, ascending. Of records with equal keys, only the newest is shown.
pub struct Merge<O> {
    order: O,
    /// From old to new.
    players: Vec<Player>,
    /// Place 0: the winner. Place n: the loser of the match between places 2n and 2n + 1. The places from the number of
    /// players on are the players themselves.
    tree: Vec<usize>,
    /// The current record's key.
    key: Vec<u8>,
    /// Whether there is a current record.
    begun: bool,
}

impl<O: RecordOrder> Merge<O> {
    /// Merges sequences given from old to new. Given `from`, starts at the first key at or after `from`.
    ///
    /// # Errors
    /// As of [`advance`](Self::advance).
    pub fn new(sequences: impl IntoIterator<Item = Sequence>, order: O, from: Option<&[u8]>) -> Result<Self> {
        let mut players = Vec::new();
        for sequence in sequences {
            let mut player = Player { reader: Reader::new(sequence, &order, from), prefix: 0, ended: false };
            player.advance(&order)?;
            while let Some(from) = from
                && !player.ended
                && order.compare(player.reader.key(), from).is_lt()
            {
                player.advance(&order)?;
            }
            players.push(player);
        }
        let tree = vec![0; players.len()];
        let mut merge = Merge { order, players, tree, key: Vec::new(), begun: false };
        merge.play_all();
        Ok(merge)
    }

    /// Goes to the next record; false at the end.
    ///
    /// # Errors
    /// `Io`, `Corruption`: a run cannot be read.
    pub fn advance(&mut self) -> Result<bool> {
        // Skips the current record and older ones of its key.
        while self.begun && self.winner_has_key() {
            self.advance_winner()?;
        }
        let mut key = std::mem::take(&mut self.key);
        let Some(winner) = self.winner().filter(|winner| !winner.ended) else { return Ok(false) };
        key.clear();
        key.extend_from_slice(winner.reader.key());
        self.key = key;
        self.begun = true;
        Ok(true)
    }

    /// The current record's key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value under the cursor.
    pub fn value(&self) -> &[u8] {
        self.winner().map_or(&[], |winner| winner.reader.value())
    }

    fn winner(&self) -> Option<&Player> {
        self.tree.first().and_then(|at| self.players.get(*at))
    }

    fn winner_has_key(&self) -> bool {
        self.winner().is_some_and(|winner| !winner.ended && self.order.compare(winner.reader.key(), &self.key).is_eq())
    }

    fn advance_winner(&mut self) -> Result<()> {
        let Some(&at) = self.tree.first() else { return Ok(()) };
        if let Some(player) = self.players.get_mut(at) {
            player.advance(&self.order)?;
        }
        let mut winner = at;
        let mut place = (self.players.len() + at) / 2;
        while place > 0 {
            let loser = self.tree.get(place).copied().unwrap_or(winner);
            if self.beats(loser, winner) {
                self.set(place, winner);
                winner = loser;
            }
            place /= 2;
        }
        self.set(0, winner);
        Ok(())
    }

    fn set(&mut self, place: usize, player: usize) {
        if let Some(entry) = self.tree.get_mut(place) {
            *entry = player;
        }
    }

    fn play_all(&mut self) {
        let count = self.players.len();
        // Winner at each place; the players follow the matches.
        let mut winners: Vec<usize> = (0..count).chain(0..count).collect();
        for place in (1..count).rev() {
            let of = |place: usize| winners.get(place).copied().unwrap_or_default();
            let (left, right) = (of(2 * place), of(2 * place + 1));
            let (winner, loser) = if self.beats(left, right) { (left, right) } else { (right, left) };
            self.set(place, loser);
            if let Some(entry) = winners.get_mut(place) {
                *entry = winner;
            }
        }
        self.set(0, winners.get(1).copied().unwrap_or_default());
    }

    /// Whether the record of `a` comes before the record of `b`. Of equal keys, the newer one does.
    fn beats(&self, a: usize, b: usize) -> bool {
        let (Some(left), Some(right)) = (self.players.get(a), self.players.get(b)) else { return false };
        if left.ended || right.ended {
            return !left.ended;
        }
        let by_key = || self.order.compare(left.reader.key(), right.reader.key());
        left.prefix.cmp(&right.prefix).then_with(by_key).then_with(|| b.cmp(&a)).is_lt()
    }
}
