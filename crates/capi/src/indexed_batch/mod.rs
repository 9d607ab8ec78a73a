//! `rocksdb_writebatch_wi_t`: a batch readable before it is written, alone and over a database.

pub mod calls;

use std::ops::Deref;

use spillway::internal::indexed::{self, Operator, OverBase, SharedBatch, merged, operator_of};
use spillway::internal::{Error, FamilyId, Pinned, UserOrder, ValueKind};

use crate::boundary::array::Parts;
use crate::boundary::handles;
use crate::database::Database;
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::iterator::Iterator;
use crate::lent::Lender;
use crate::options::Options;
use crate::read_options::ReadSettings;

/// A batch, and its net change of each key.
pub struct IndexedBatch {
    batch: Held,
    /// Order of keys of families not yet passed to a call by handle.
    order: UserOrder,
}

handles!(IndexedBatch);

enum Held {
    Own(SharedBatch),
    /// A transaction's, by its number in [`LENT`].
    Lent(u64),
}

pub static LENT: Lender<SharedBatch> = Lender::new();

/// A batch during a call.
enum Borrowed<'a> {
    Own(&'a SharedBatch),
    Lent(SharedBatch),
}

impl Deref for Borrowed<'_> {
    type Target = SharedBatch;

    fn deref(&self) -> &SharedBatch {
        match self {
            Borrowed::Own(batch) => batch,
            Borrowed::Lent(batch) => batch,
        }
    }
}

/// The walk over a batch and an iterator of C.
pub type BatchOverBase = OverBase<Below>;

/// The iterator below a batch.
pub struct Below(pub Box<Iterator>);

impl Below {
    pub fn refresh(&mut self) {
        self.0.refresh();
    }
}

impl indexed::Below for Below {
    fn valid(&self) -> bool {
        self.0.valid()
    }

    fn key(&self) -> &[u8] {
        self.0.key()
    }

    fn value(&self) -> &[u8] {
        self.0.value()
    }

    fn go(&mut self, to: indexed::Move<'_>) {
        self.0.go(to);
    }

    fn status(&self) -> Result<(), Error> {
        self.0.engine_status()
    }
}

impl IndexedBatch {
    pub fn new(order: UserOrder) -> Box<IndexedBatch> {
        Box::new(IndexedBatch { batch: Held::Own(SharedBatch::default()), order })
    }

    /// The handle of a batch in [`LENT`].
    pub fn lent(number: u64) -> Box<IndexedBatch> {
        Box::new(IndexedBatch { batch: Held::Lent(number), order: UserOrder::Bytewise })
    }

    pub fn shared(&self) -> impl Deref<Target = SharedBatch> {
        match &self.batch {
            Held::Own(batch) => Borrowed::Own(batch),
            Held::Lent(number) => Borrowed::Lent(LENT.get(*number, "the batch")),
        }
    }

    /// Adds a change to the batch and to the index; for a range deletion, `value` is the end.
    pub fn change(&self, family: Option<&FamilyHandle>, kind: ValueKind, key: &[u8], value: &[u8]) {
        let id = family.map_or(FamilyId::DEFAULT, |family| family.0.id());
        let order = || family.map_or_else(|| self.order.clone(), |family| family.0.options().order.clone());
        self.shared().write().add(id, order, kind, key, value);
    }

    /// As [`change`](Self::change), with key and value in parts.
    fn change_parts(&self, family: Option<&FamilyHandle>, kind: ValueKind, key: Parts, value: Parts) {
        self.change(family, kind, &key.joined(), &value.joined());
    }

    /// The value by the batch alone.
    ///
    /// # Errors
    /// The value depends on the database; or neither family nor options have an operator; or it cannot apply the
    /// operands.
    pub fn get(&self, family: Option<&FamilyHandle>, key: &[u8], options: &Options) -> Result<Option<Pinned>, Failure> {
        let id = family.map_or(FamilyId::DEFAULT, |family| family.0.id());
        let shared = self.shared();
        let batch = shared.read();
        let Some(said) = batch.get(id, key) else { return Ok(None) };
        if said.needs_below() {
            return Err(Failure::merge_in_progress("the operands need a value to go on"));
        }
        let operator: Operator = family.and_then(|family| operator_of(&family.0.options()));
        let operator = operator.as_ref().or(options.family.merge_operator.as_ref());
        let mut value = Vec::new();
        let has_value = merged(operator, key, &said, None, &mut value)?;
        Ok(has_value.then(|| Pinned::from(value)))
    }

    /// The value after the batch is written.
    pub fn get_over(
        &self,
        database: &Database,
        family: Option<&FamilyHandle>,
        key: &[u8],
        options: &ReadSettings,
    ) -> Result<Option<Pinned>, Failure> {
        let of = family.map_or_else(|| database.default_family(), |family| &family.0);
        let below = || database.look_up(of, key, options);
        Ok(self.shared().read().get_over(of.id(), key, &operator_of(&of.options()), below)?)
    }

    /// An iterator over the batch's entries and the entries of `below`, which it takes. `bounds` apply to the batch's
    /// entries; `None` for the bounds of `below`.
    pub fn over(
        &self,
        below: Box<Iterator>,
        family: Option<&FamilyHandle>,
        bounds: Option<&ReadSettings>,
    ) -> Box<Iterator> {
        let source = family.map_or_else(|| below.family(), |family| &family.0).clone();
        let id = family.map_or(FamilyId::DEFAULT, |_| source.id());
        Iterator::over_batch(below, |below, own| {
            let bounds = bounds.map_or(own, |bounds| &bounds.options);
            OverBase::new(
                Below(below),
                &self.shared(),
                id,
                &source.options().order,
                operator_of(&source.options()),
                bounds,
            )
        })
    }

    pub fn roll_back(&self) -> Result<(), Failure> {
        let rolled_back = self.shared().write().rollback_to_savepoint();
        if rolled_back { Ok(()) } else { Err(Failure::not_found("the batch has no save point")) }
    }
}
