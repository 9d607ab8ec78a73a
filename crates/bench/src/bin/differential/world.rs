//! One side of the comparison: a library, its database, and the objects in their slots. Does steps and tells what came of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs::Vfs;

use crate::library::whole::{
    Answer, Batch, Change, Family, Indexed, Kind, Library, Merging, Reads, Setup, Snapshot, Store, Transaction,
};
use crate::step::{SLOTS, Seen, Shape, Side, Step, Target};
use crate::view::Placed;

/// What a step answers where it does nothing.
pub const NOTHING: &str = "nothing to do";

/// The merge operator of a family.
pub fn merging(family: usize) -> Merging {
    if family.is_multiple_of(2) { Merging::Append } else { Merging::Count }
}

/// The name of a family.
pub fn family_name(family: usize) -> String {
    if family == 0 { "default".to_owned() } else { format!("family{family}") }
}

/// A slot of each kind.
pub type Slots<T> = [Option<T>; SLOTS];

/// A batch, and whether it has range deletions.
pub struct Gathered {
    pub batch: Batch,
    pub ranges: bool,
}

/// A library with its database.
pub struct World {
    pub vfs: Arc<dyn Vfs>,
    pub library: Library,
    pub side: Side,
    pub shape: Shape,
    pub dir: PathBuf,
    /// Checkpoints and tables made, by number.
    pub made: usize,
    pub cursors: Slots<Placed>,
    pub transactions: Slots<Transaction>,
    pub snapshots: Slots<Snapshot>,
    pub batches: Slots<Gathered>,
    pub indexed: Slots<Indexed>,
    pub families: Slots<Family>,
    pub store: Option<Store>,
    /// Keys put since their last single deletion, by family.
    pub single: BTreeSet<(usize, Vec<u8>)>,
}

pub fn told(answer: Answer<()>) -> String {
    match answer {
        Ok(()) => "ok".to_owned(),
        Err(message) => code(&message),
    }
}

/// Stands around what each library words in its own way.
const ASIDE: [char; 2] = ['\u{1}', '\u{2}'];

/// An error: its code, before the first colon of the message, and the rest aside.
pub fn code(message: &str) -> String {
    let (code, rest) = message.split_once(':').unwrap_or((message, ""));
    let [open, close] = ASIDE;
    format!("error: {code}{open}:{rest}{close}")
}

/// Whether two answers are the same but for words aside.
pub fn agree(one: &str, other: &str) -> bool {
    let parts = |text: &str| -> String {
        let [open, close] = ASIDE;
        let pieces = text.split(open).enumerate().map(|(at, piece)| match at {
            0 => piece,
            _ => piece.split_once(close).map_or("", |(_, after)| after),
        });
        pieces.collect()
    };
    one == other || parts(one) == parts(other)
}

pub fn shown(bytes: &[u8]) -> String {
    match bytes.get(..40) {
        Some(start) if bytes.len() > 60 => format!("\"{}...\" ({} bytes)", start.escape_ascii(), bytes.len()),
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}

pub fn found(answer: Answer<Option<Vec<u8>>>) -> String {
    match answer {
        Ok(Some(value)) => shown(&value),
        Ok(None) => "none".to_owned(),
        Err(message) => code(&message),
    }
}

impl World {
    /// Opens a database in an empty folder.
    pub fn new(vfs: Arc<dyn Vfs>, library: Library, side: Side, shape: &Shape, dir: &Path) -> Answer<World> {
        let mut world = World {
            vfs,
            library,
            side,
            shape: shape.clone(),
            dir: dir.to_owned(),
            made: 0,
            cursors: [const { None }; SLOTS],
            transactions: [const { None }; SLOTS],
            snapshots: [const { None }; SLOTS],
            batches: [const { None }; SLOTS],
            indexed: [const { None }; SLOTS],
            families: [const { None }; SLOTS],
            store: None,
            single: BTreeSet::new(),
        };
        world.open(&[0])?;
        Ok(world)
    }

    pub fn setup(&self, family: usize) -> Answer<Setup> {
        let mut options = self.shape.options.clone();
        if self.side == Side::Ours {
            options = format!("{options};{}", self.shape.own);
        }
        Setup::new(self.library, &options, merging(family), self.shape.backwards)
    }

    /// Opens the database with these families.
    pub fn open(&mut self, families: &[usize]) -> Answer<()> {
        let (store, handles) = self.opened(self.shape.kind, &self.dir, families)?;
        for (&at, handle) in families.iter().zip(handles) {
            *self.families.get_mut(at).expect("a family") = Some(handle);
        }
        self.store = Some(store);
        Ok(())
    }

    pub fn opened(&self, kind: Kind, dir: &Path, families: &[usize]) -> Answer<(Store, Vec<Family>)> {
        let named = families.iter().map(|&at| Ok((family_name(at), self.setup(at)?))).collect::<Answer<Vec<_>>>()?;
        Store::open(kind, dir, &named)
    }

    /// The families that are there.
    pub fn present(&self) -> Vec<usize> {
        (0..SLOTS).filter(|&at| self.family(at).is_some()).collect()
    }

    /// Ends everything, in the order in which a program would.
    pub fn close(&mut self) -> Vec<usize> {
        let present = self.present();
        self.cursors = [const { None }; SLOTS];
        self.transactions = [const { None }; SLOTS];
        self.snapshots = [const { None }; SLOTS];
        self.batches = [const { None }; SLOTS];
        self.indexed = [const { None }; SLOTS];
        self.families = [const { None }; SLOTS];
        self.store = None;
        present
    }

    pub fn family(&self, at: usize) -> Option<&Family> {
        self.families.get(at).and_then(Option::as_ref)
    }

    pub fn store(&self) -> Answer<&Store> {
        self.store.as_ref().ok_or_else(|| "closed".to_owned())
    }

    pub fn has_transactions(&self) -> bool {
        self.transactions.iter().any(Option::is_some)
    }

    pub fn end_transactions(&mut self) {
        self.transactions = [const { None }; SLOTS];
    }

    /// What reads see; `None` where the slot is empty.
    pub fn reads(&self, from: Target, seen: Seen) -> Answer<Option<Reads>> {
        let snapshot = match (seen, from) {
            (Seen::Latest, _) => None,
            (Seen::Snapshot(slot), _) => match self.snapshots.get(slot) {
                Some(Some(snapshot)) => Some(snapshot.clone()),
                _ => return Ok(None),
            },
            (Seen::Own, Target::Transaction(slot)) => match self.transactions.get(slot) {
                Some(Some(transaction)) => transaction.snapshot(),
                _ => return Ok(None),
            },
            (Seen::Own, _) => None,
        };
        Reads::new(self.library, snapshot).map(Some)
    }

    /// Does a step that needs one side only, and tells what came of it.
    pub fn step(&mut self, step: &Step) -> String {
        match self.done(step) {
            Ok(told) => told,
            Err(message) => code(&message),
        }
    }

    fn done(&mut self, step: &Step) -> Answer<String> {
        match step {
            Step::Change { to, family, change, unlogged } => self.change(*to, *family, change, *unlogged),
            Step::Save(target) => Ok(self.save(*target)),
            Step::RollBackToSave(target) => Ok(self.roll_back_to_save(*target)),
            Step::ForgetSave(slot) => Ok(self.forget_save(*slot)),
            Step::Clear(target) => Ok(self.clear(*target)),
            Step::WriteBatch { slot, unlogged, copied } => self.write_batch(*slot, *unlogged, *copied),
            Step::NewIndexed { slot, overwrite } => self.new_indexed(*slot, *overwrite),
            Step::WriteIndexed(slot) => self.write_indexed(*slot),
            Step::Begin(slot, how) => self.begin(*slot, *how),
            Step::Commit(slot) => Ok(self.commit(*slot)),
            Step::RollBack(slot) => Ok(self.roll_back(*slot)),
            Step::Get { from, seen, family, keys, how } => self.get(*from, *seen, *family, keys, *how),
            Step::GetFromBatch { slot, family, key } => Ok(self.get_from_batch(*slot, *family, key)),
            Step::GetForUpdate { slot, family, key, exclusive } => self.get_for_update(*slot, *family, key, *exclusive),
            Step::Snapshot(slot) => self.take_snapshot(*slot),
            Step::Release(slot) => Ok(self.release(*slot)),
            Step::Walk { from, seen, family, view, moves } => self.walk(*from, *seen, *family, view, moves),
            Step::OpenCursor { slot, family, seen, view } => self.open_cursor(*slot, *family, *seen, view),
            Step::Move(slot, a_move) => Ok(self.move_cursor(*slot, a_move)),
            Step::Refresh(slot) => Ok(self.refresh(*slot)),
            Step::CloseCursor(slot) => Ok(self.close_cursor(*slot)),
            Step::Fill { family, fill } => self.fill(*family, *fill),
            Step::Flush(family) => self.flush(*family),
            Step::Compact(family, how) => self.compact(*family, how),
            Step::CreateFamily(family) => self.create_family(*family),
            Step::DropFamily(family) => self.drop_family(*family),
            Step::Checkpoint { log_bytes } => self.checkpoint(*log_bytes),
            Step::Reopen(shape) => self.reopen(shape),
            Step::LookReadOnly => self.look_read_only(),
            Step::Scan => self.scan(),
            Step::Ingest { .. } | Step::Exchange { .. } => Err("a step of both sides".to_owned()),
        }
    }
}

/// The keys that are only put and deleted singly.
pub fn is_single(change: &Change) -> Option<&Vec<u8>> {
    match change {
        Change::Put(key, _) | Change::SingleDelete(key) if key.first() == Some(&b'~') => Some(key),
        _ => None,
    }
}
