//! Iterators whose answers count: without a total order a library promises only the keys that share the prefix of the last seek.

use crate::library::whole::{Answer, Cursor, Family, Reads, Store};
use crate::step::Move;
use crate::world::{code, shown};

/// An iterator with what is known of its place.
pub struct Placed {
    cursor: Cursor,
    /// Bytes of a prefix; 0 where the order is total.
    prefix: usize,
    /// Whether it ends with the prefix.
    only: bool,
    /// The prefix that positions must share.
    within: Option<Vec<u8>>,
    /// Whether it lies above a batch: without a total order RocksDB's finds nothing below where it turns around.
    above: bool,
    /// Whether it goes forwards since the last seek.
    forwards: bool,
    /// Whether its family may be gone: then ours cannot look anew (docs/compat.md).
    stale: bool,
    /// Whether both libraries stand on the same key: not before the first seek, nor once a prefix was left.
    known: bool,
}

impl Placed {
    pub fn new(cursor: Cursor, total_order: bool, only: bool, above: bool, prefix: usize) -> Placed {
        let prefix = if total_order { 0 } else { prefix };
        Placed { cursor, prefix, only, above, forwards: true, within: None, stale: false, known: false }
    }

    /// Moves it, and tells where it stands.
    pub fn moved(&mut self, a_move: &Move) -> String {
        match a_move {
            // What steps find behind these is nobody's promise, and in RocksDB wrong values too.
            Move::First | Move::Last if self.prefix > 0 => {
                self.known = false;
                return "no prefix".to_owned();
            }
            Move::Next | Move::Prev if self.turns(a_move) => {
                self.known = false;
                return "turned".to_owned();
            }
            Move::First => self.cursor.seek_to_first(),
            Move::Last => self.cursor.seek_to_last(),
            Move::Seek(key) => self.cursor.seek(key),
            Move::SeekBack(key) => self.cursor.seek_back(key),
            Move::Next | Move::Prev if !self.known => return "nowhere".to_owned(),
            Move::Next => self.cursor.next(),
            Move::Prev => self.cursor.prev(),
        }
        if let Move::Seek(key) | Move::SeekBack(key) = a_move {
            self.forwards = matches!(a_move, Move::Seek(_));
            self.within = key.get(..self.prefix).map(<[u8]>::to_vec);
            if self.prefix > 0 && self.within.is_none() {
                self.known = false;
                return "no prefix".to_owned();
            }
        }
        self.place()
    }

    fn turns(&self, a_move: &Move) -> bool {
        self.above && self.prefix > 0 && matches!(a_move, Move::Next) != self.forwards
    }

    fn place(&mut self) -> String {
        if let Err(message) = self.cursor.status() {
            self.known = false;
            return code(&message);
        }
        let at = self.cursor.at();
        self.known = at.is_some();
        match at {
            Some((key, _)) if self.within.as_ref().is_some_and(|prefix| !key.starts_with(prefix)) => {
                self.known = false;
                if self.only { format!("beyond: {}", shown(&key)) } else { "end".to_owned() }
            }
            Some((key, value)) => format!("{}={}", shown(&key), shown(&value)),
            None => "end".to_owned(),
        }
    }

    pub fn forbid_refresh(&mut self) {
        self.stale = true;
    }

    pub fn refresh(&mut self) -> Answer<()> {
        if self.stale {
            return Ok(());
        }
        self.known = false;
        self.cursor.refresh()
    }
}

/// Every entry, forwards, and their number backwards.
pub fn contents(family: &Family, store: &Store) -> Answer<String> {
    let reads = Reads::new(family.setup().library(), None)?.ordered(true, false, false, 0);
    let cursor = Cursor::over(store, &reads, family)?;
    let (mut entries, mut backwards) = (Vec::new(), 0);
    cursor.seek_to_first();
    while let Some((key, value)) = cursor.at() {
        entries.push(format!("{}={}", shown(&key), shown(&value)));
        cursor.next();
    }
    cursor.status()?;
    cursor.seek_to_last();
    while cursor.at().is_some() {
        backwards += 1;
        cursor.prev();
    }
    cursor.status()?;
    Ok(format!("{} {backwards} {}", entries.len(), entries.join(" ")))
}
