//! A column family: what every thread that reads or writes it shares.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::{ArcSwap, Guard};
use base::options::FamilyOptions;
use base::{Error, FamilyId, InternalOrder, Result};
use memtable::{Memtable, MemtableConfig, MemtableFactory};

use crate::flush::flushable::QueuedMemtable;
use crate::read::ReadContext;
use crate::read::view::ReadView;
use crate::version::table_store::TableStore;

/// An open column family. A handle: cheap to clone as an `Arc`, usable until the family is dropped or the database is
/// closed, and harmless after.
pub struct Family {
    id: FamilyId,
    name: String,
    order: InternalOrder,
    options: ArcSwap<FamilyOptions>,
    factory: Arc<dyn MemtableFactory>,
    tables: Arc<TableStore>,
    read: ReadContext,
    view: ArcSwap<ReadView>,
    /// The id of the view's mutable memtable. Changes under the commit lock only, so that whoever holds it knows which
    /// memtable the numbers it gives out belong to.
    mutable_id: AtomicU64,
    dropped: AtomicBool,
    /// Writes went to a memtable and to no log, at some time since the family was opened.
    unlogged: AtomicBool,
    /// Writers that wait for one of the family's memtables to be flushed.
    waiting_writers: AtomicUsize,
}

/// A writer's wait; ends when it is dropped.
pub(crate) struct WriterWait<'a>(&'a Family);

impl Drop for WriterWait<'_> {
    fn drop(&mut self) {
        self.0.waiting_writers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a family is made of when it is opened or created.
pub(crate) struct FamilyParts {
    pub id: FamilyId,
    pub name: String,
    pub options: FamilyOptions,
    pub factory: Arc<dyn MemtableFactory>,
    pub tables: Arc<TableStore>,
    pub read: ReadContext,
    pub view: ReadView,
}

impl Family {
    pub(crate) fn new(parts: FamilyParts) -> Arc<Family> {
        Arc::new(Family {
            id: parts.id,
            name: parts.name,
            order: InternalOrder::new(parts.options.order.clone()),
            options: ArcSwap::from_pointee(parts.options),
            factory: parts.factory,
            tables: parts.tables,
            read: parts.read,
            mutable_id: AtomicU64::new(parts.view.mutable.id()),
            view: ArcSwap::from_pointee(parts.view),
            dropped: AtomicBool::new(false),
            unlogged: AtomicBool::new(false),
            waiting_writers: AtomicUsize::new(0),
        })
    }

    pub fn id(&self) -> FamilyId {
        self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options as they are now; some can change while the database is open.
    pub fn options(&self) -> Arc<FamilyOptions> {
        self.options.load_full()
    }

    pub(crate) fn set_options(&self, options: FamilyOptions) {
        self.options.store(Arc::new(options));
    }

    pub(crate) fn order(&self) -> &InternalOrder {
        &self.order
    }

    pub(crate) fn tables(&self) -> &Arc<TableStore> {
        &self.tables
    }

    pub(crate) fn read_context(&self) -> &ReadContext {
        &self.read
    }

    /// The family at this instant (V1).
    #[inline]
    pub(crate) fn view(&self) -> Guard<Arc<ReadView>> {
        self.view.load()
    }

    pub(crate) fn view_full(&self) -> Arc<ReadView> {
        self.view.load_full()
    }

    /// Replaces the view; returns the old one, to be dropped off every lock. Called under the state lock.
    #[must_use = "dropping a view can free memtables: do it off the locks"]
    pub(crate) fn swap_view(&self, view: ReadView) -> Arc<ReadView> {
        self.view.swap(Arc::new(view))
    }

    pub(crate) fn mutable_id(&self) -> u64 {
        self.mutable_id.load(Ordering::Acquire)
    }

    /// Called under the commit lock.
    pub(crate) fn set_mutable(&self, memtable: &QueuedMemtable) {
        self.mutable_id.store(memtable.id(), Ordering::Release);
    }

    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// # Errors
    /// `Closed`: the family was dropped.
    pub(crate) fn check_live(&self) -> Result<()> {
        if self.is_dropped() {
            return Err(Error::closed(format!("column family \"{}\" was dropped", self.name)));
        }
        Ok(())
    }

    /// Makes an empty memtable that can take at least `room_bytes` in one batch.
    pub(crate) fn create_memtable(&self, room_bytes: usize) -> Result<Arc<dyn Memtable>> {
        create_memtable(&*self.factory, &self.options.load(), self.id, room_bytes)
    }

    /// Notes that a write went to a memtable and to no log.
    pub(crate) fn note_unlogged(&self) {
        if !self.unlogged.load(Ordering::Relaxed) {
            self.unlogged.store(true, Ordering::Release);
        }
    }

    pub(crate) fn writer_waits(&self) -> WriterWait<'_> {
        self.waiting_writers.fetch_add(1, Ordering::Relaxed);
        WriterWait(self)
    }

    pub(crate) fn has_waiting_writers(&self) -> bool {
        self.waiting_writers.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn has_unlogged_writes(&self) -> bool {
        self.unlogged.load(Ordering::Acquire)
    }
}

/// Makes an empty memtable that can take at least `room_bytes` in one batch.
pub(crate) fn create_memtable(
    factory: &dyn MemtableFactory,
    options: &FamilyOptions,
    family: FamilyId,
    room_bytes: usize,
) -> Result<Arc<dyn Memtable>> {
    let bloom_ratio = if options.memtable_whole_key_filtering { options.memtable_prefix_bloom_size_ratio } else { 0.0 };
    let capacity_bytes = memtable_capacity_bytes(options.write_buffer_size, room_bytes, bloom_ratio);
    let mut config = MemtableConfig::new(InternalOrder::new(options.order.clone()), family, capacity_bytes);
    config.bloom_ratio = bloom_ratio;
    factory.create(&config)
}

/// Arena for a write buffer, or for one batch that is larger. Address space, not memory: pages are taken when they are
/// touched.
fn memtable_capacity_bytes(write_buffer_bytes: usize, room_bytes: usize, bloom_ratio: f64) -> usize {
    /// For what a representation keeps beside its entries.
    const SLACK_BYTES: usize = 64 << 10;
    let beside_filter = (room_bytes as f64 / (1.0 - bloom_ratio)).ceil() as usize;
    write_buffer_bytes.max(beside_filter).saturating_add(SLACK_BYTES)
}
