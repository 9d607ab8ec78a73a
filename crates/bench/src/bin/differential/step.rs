//! The steps of a history. Slots hold objects that live over several steps; a step whose slot is empty does nothing, so that any
//! part of a history is one too.

use crate::library::whole::{Begin, Change, Compaction, How, Ingest, Kind};

/// Families, and slots of each kind of object.
pub const SLOTS: usize = 4;

/// What a change goes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    Database,
    /// By slot, as the next two.
    Batch(usize),
    Indexed(usize),
    Transaction(usize),
}

/// The state that a read sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seen {
    Latest,
    /// Of a slot.
    Snapshot(usize),
    /// The one that the transaction took when it began.
    Own,
}

/// One of the two libraries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Side {
    Ours,
    Theirs,
}

/// An iterator's bounds and habits.
#[derive(Clone, Debug)]
pub struct View {
    pub lower: Option<Vec<u8>>,
    pub upper: Option<Vec<u8>>,
    pub total_order: bool,
    pub same_prefix: bool,
    pub pinned: bool,
    pub readahead: usize,
}

/// A move of an iterator.
#[derive(Clone)]
pub enum Move {
    First,
    Last,
    Seek(Vec<u8>),
    SeekBack(Vec<u8>),
    Next,
    Prev,
}

/// Many changes in one batch, of keys with following numbers.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    pub first: usize,
    pub count: usize,
    /// From one number to the next.
    pub stride: usize,
    pub deletes: bool,
    pub value_bytes: usize,
}

/// Numbers of keys that are filled.
pub const FILLED: usize = 4000;

/// The key of a number.
pub fn filled_key(number: usize) -> Vec<u8> {
    format!("b{:04}", number % FILLED).into_bytes()
}

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Shape {
    pub kind: Kind,
    /// The option string for both.
    pub options: String,
    /// Ours in addition.
    pub own: String,
    /// Bytes of the fixed prefix; 0 without an extractor.
    pub prefix: usize,
    pub backwards: bool,
}

#[derive(Clone, Debug)]
pub enum Step {
    Change {
        to: Target,
        family: usize,
        change: Change,
        unlogged: bool,
    },
    Save(Target),
    RollBackToSave(Target),
    ForgetSave(usize),
    Clear(Target),
    WriteBatch {
        slot: usize,
        unlogged: bool,
        copied: bool,
    },
    NewIndexed {
        slot: usize,
        overwrite: bool,
    },
    WriteIndexed(usize),
    Begin(usize, Begin),
    Commit(usize),
    RollBack(usize),
    Get {
        from: Target,
        seen: Seen,
        family: usize,
        keys: Vec<Vec<u8>>,
        how: How,
    },
    GetFromBatch {
        slot: usize,
        family: usize,
        key: Vec<u8>,
    },
    GetForUpdate {
        slot: usize,
        family: usize,
        key: Vec<u8>,
        exclusive: bool,
    },
    Snapshot(usize),
    Release(usize),
    Walk {
        from: Target,
        seen: Seen,
        family: usize,
        view: View,
        moves: Vec<Move>,
    },
    OpenCursor {
        slot: usize,
        family: usize,
        seen: Seen,
        view: View,
    },
    Move(usize, Move),
    Refresh(usize),
    CloseCursor(usize),
    Fill {
        family: usize,
        fill: Fill,
    },
    Flush(usize),
    Compact(usize, Compaction),
    CreateFamily(usize),
    DropFamily(usize),
    Ingest {
        family: usize,
        by: Side,
        tables: Vec<Vec<Change>>,
        how: Ingest,
    },
    /// Without a flush if the log is shorter than so many bytes.
    Checkpoint {
        log_bytes: u64,
    },
    Reopen(Box<Shape>),
    LookReadOnly,
    /// Each goes on with a checkpoint of the other.
    Exchange {
        log_bytes: u64,
    },
    Scan,
}

impl std::fmt::Debug for Move {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Move::First => write!(to, "first"),
            Move::Last => write!(to, "last"),
            Move::Seek(key) => write!(to, "seek \"{}\"", key.escape_ascii()),
            Move::SeekBack(key) => write!(to, "seek_back \"{}\"", key.escape_ascii()),
            Move::Next => write!(to, "next"),
            Move::Prev => write!(to, "prev"),
        }
    }
}
