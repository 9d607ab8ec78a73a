//! A column family: state shared by all threads reading or writing it.

use base::name;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwap, Guard};
use base::extend::Listeners;
use base::options::FamilyOptions;
use base::{Error, FamilyId, InternalOrder, Result};
use memtable::{Conversion, ConvertToSst, Memtable, MemtableConfig, MemtableFactory, MemtableSizes};
use parking_lot::Mutex;

use crate::background::throttle::Awaited;
use crate::core::FAMILY_DROPPED;
use crate::core::context::Context;
use crate::core::kept_views::KeptViews;
use crate::cursor::ReadContext;
use crate::cursor::gaps::Gaps;
use crate::queue::flushable::{HeldMemtable, MemtableMaking, QueuedMemtable};
use crate::queue::view::ReadView;
use crate::version::table_store::TableStore;
use crate::version::version::Version;
use crate::version::work::FamilyWork;

/// An open column family. A handle: cheap to clone as an `Arc`, usable until the family is dropped or the database
/// closed, and harmless afterwards.
pub struct Family {
    id: FamilyId,
    name: String,
    /// The database of the family.
    home: Weak<Context>,
    order: InternalOrder,
    options: ArcSwap<FamilyOptions>,
    /// Serializes changes of the options. A leaf lock.
    changing: Mutex<()>,
    maker: MemtableMaker,
    tables: Arc<TableStore>,
    read: ReadContext,
    view: ArcSwap<ReadView>,
    /// Id of the mutable memtable. Changes only under the commit lock, so numbers allocated under the lock belong to
    /// this memtable. The view containing it may be installed slightly later.
    mutable_id: AtomicU64,
    /// Copy of the option, cheap to load on every write.
    eager_flush: AtomicBool,
    /// The MANIFEST notes that values end with times. A copy of the option, cheap to load on every write.
    value_times: AtomicBool,
    dropped: AtomicBool,
    /// Some write since the family was opened went to a memtable without WAL.
    unlogged: AtomicBool,
    /// Writers waiting for a flush of one of the family's memtables.
    waiting_writers: AtomicUsize,
    /// Work done by jobs.
    work: FamilyWork,
    /// Views created so far.
    views_made: AtomicU64,
    /// Versions still held, and some already dropped. A leaf lock.
    versions: Mutex<Vec<Weak<Version>>>,
    kept_views: KeptViews,
}

/// Parts of a family being opened or created.
pub(crate) struct FamilyParts {
    pub home: Weak<Context>,
    pub id: FamilyId,
    pub name: String,
    pub options: FamilyOptions,
    pub maker: MemtableMaker,
    pub tables: Arc<TableStore>,
    pub read: ReadContext,
    pub view: ReadView,
}

/// # Errors
/// `InvalidArgument`: the name is empty, which RocksDB rejects, too; or another text stands for the same bytes.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid_argument("the name of a column family cannot be empty"));
    }
    if !name::is_exact(name) {
        let what =
            format!("column family {name:?}: U+10FE80 to U+10FEFF stand for bytes that are no UTF-8, and these are");
        return Err(Error::invalid_argument(what));
    }
    Ok(())
}

impl Family {
    pub(crate) fn new(parts: FamilyParts) -> Arc<Family> {
        let versions = Mutex::new(vec![Arc::downgrade(&parts.view.version)]);
        parts.tables.hot_reads().set_threshold(parts.options.read_triggered_compaction_threshold);
        Arc::new(Family {
            id: parts.id,
            name: parts.name,
            home: parts.home,
            order: InternalOrder::new(parts.options.order.clone()),
            eager_flush: AtomicBool::new(parts.options.eager_flush),
            value_times: AtomicBool::new(*parts.options.value_times),
            options: ArcSwap::from_pointee(parts.options),
            changing: Mutex::new(()),
            maker: parts.maker,
            tables: parts.tables,
            read: parts.read,
            mutable_id: AtomicU64::new(parts.view.mutable.id()),
            view: ArcSwap::from_pointee(parts.view),
            dropped: AtomicBool::new(false),
            unlogged: AtomicBool::new(false),
            waiting_writers: AtomicUsize::new(0),
            work: FamilyWork::default(),
            views_made: AtomicU64::new(1),
            versions,
            kept_views: KeptViews::default(),
        })
    }

    /// The family's number.
    pub fn id(&self) -> FamilyId {
        self.id
    }

    /// The family's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options as they are now; some can change while the database is open.
    pub fn options(&self) -> Arc<FamilyOptions> {
        self.options.load_full()
    }

    /// Replaces the options by the result of `change`. Changes are serialized, so none is lost.
    ///
    /// # Errors
    /// Errors of `change`; the options are unchanged.
    pub(crate) fn change_options(&self, change: impl FnOnce(&mut FamilyOptions) -> Result<()>) -> Result<()> {
        let _changing = self.changing.lock();
        let mut options = (*self.options()).clone();
        change(&mut options)?;
        self.eager_flush.store(options.eager_flush, Ordering::Relaxed);
        self.value_times.store(*options.value_times, Ordering::Relaxed);
        self.tables.hot_reads().set_threshold(options.read_triggered_compaction_threshold);
        self.options.store(Arc::new(options));
        Ok(())
    }

    /// Whether each write to the family ends with a flush of its data.
    #[inline]
    pub(crate) fn flushes_eagerly(&self) -> bool {
        self.eager_flush.load(Ordering::Relaxed)
    }

    /// Whether the MANIFEST notes that values end with times.
    #[inline]
    pub(crate) fn has_value_times(&self) -> bool {
        self.value_times.load(Ordering::Relaxed)
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

    #[inline]
    pub(crate) fn gaps(&self) -> &Gaps {
        &self.read.gaps
    }

    /// The family at this instant (V1).
    #[inline]
    pub(crate) fn view(&self) -> Guard<Arc<ReadView>> {
        let view = self.view.load();
        if view.successor().is_none() { view } else { self.newest_from(view) }
    }

    /// Follows successors to the newest view.
    #[cold]
    fn newest_from(&self, mut view: Guard<Arc<ReadView>>) -> Guard<Arc<ReadView>> {
        while let Some(next) = view.successor() {
            view = match next.upgrade() {
                Some(next) => Guard::from_inner(next),
                None => {
                    let now = self.view.load();
                    if Arc::ptr_eq(&now, &view) {
                        return now; // the family was dropped before the exchange
                    }
                    now
                }
            };
        }
        view
    }

    pub(crate) fn view_full(&self) -> Arc<ReadView> {
        Guard::into_inner(self.view())
    }

    /// Exchanges the view. Returns the old one, to be dropped off every lock. Called under the state lock. Takes some
    /// microseconds, as it checks the readers of all threads.
    #[must_use = "dropping a view can free memtables: do it off the locks"]
    pub(crate) fn swap_view(&self, view: Arc<ReadView>) -> Arc<ReadView> {
        self.views_made.fetch_add(1, Ordering::Relaxed);
        self.record_version(&view.version);
        let before = self.view.swap(view);
        self.record_replaced(&before);
        before
    }

    /// Notes a view that readers may keep.
    pub(crate) fn record_replaced(&self, view: &Arc<ReadView>) {
        if let Some(home) = self.home.upgrade() {
            home.kept_look.note(self.kept_views.note(view, home.vfs.now()));
        }
    }

    pub(crate) fn kept_views(&self) -> &KeptViews {
        &self.kept_views
    }

    fn record_version(&self, version: &Arc<Version>) {
        let mut versions = self.versions.lock();
        if versions.last().is_none_or(|last| !ptr::addr_eq(last.as_ptr(), Arc::as_ptr(version))) {
            versions.retain(|version| version.strong_count() > 0);
            versions.push(Arc::downgrade(version));
        }
    }

    /// Versions held by a reader, a job or the family itself.
    pub(crate) fn live_versions(&self) -> usize {
        self.versions.lock().iter().filter(|version| version.strong_count() > 0).count()
    }

    pub(crate) fn views_made(&self) -> u64 {
        self.views_made.load(Ordering::Relaxed)
    }

    pub(crate) fn work(&self) -> &FamilyWork {
        &self.work
    }

    pub(crate) fn mutable_id(&self) -> u64 {
        self.mutable_id.load(Ordering::Acquire)
    }

    /// Called under the commit lock.
    pub(crate) fn set_mutable(&self, memtable: &QueuedMemtable) {
        self.mutable_id.store(memtable.id(), Ordering::Release);
    }

    /// True once it was dropped.
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// The listeners of the family's database; none once it is closed.
    pub fn listeners(&self) -> Listeners {
        self.home.upgrade().map(|home| home.listeners.clone()).unwrap_or_default()
    }

    /// # Errors
    /// `InvalidArgument`: the family belongs to a database other than `home`.
    #[inline]
    pub(crate) fn check_home(&self, home: &Arc<Context>) -> Result<()> {
        // The family's `Weak` keeps the allocation of its database, so no other database can have the same address.
        if ptr::eq(self.home.as_ptr(), Arc::as_ptr(home)) { Ok(()) } else { Err(self.of_another(home)) }
    }

    #[cold]
    fn of_another(&self, home: &Context) -> Error {
        let here = home.dir.display();
        let what = match self.home.upgrade() {
            Some(of) => format!("is of the database in {}, not of the one in {here}", of.dir.display()),
            None => format!("is of a database that was closed, not of the one in {here}: take its handle from there"),
        };
        Error::invalid_argument(format!("column family \"{}\" {what}", self.name))
    }

    /// # Errors
    /// `Closed`: the family was dropped.
    pub(crate) fn check_live(&self) -> Result<()> {
        if self.is_dropped() {
            return Err(Error::closed(format!("{FAMILY_DROPPED}\"{}\"", self.name)));
        }
        Ok(())
    }

    /// Creates an empty memtable for writes, with room for a batch of at least `room_bytes`.
    pub(crate) fn create_memtable(&self, room_bytes: usize) -> Result<HeldMemtable> {
        let options = self.options.load();
        self.maker.make(&options, room_bytes, self.maker.conversion(&options))
    }

    /// As [`create_memtable`](Self::create_memtable), for one large batch: the memtable is never converted to a table.
    pub(crate) fn create_batch_memtable(&self, room_bytes: usize) -> Result<HeldMemtable> {
        self.maker.make(&self.options.load(), room_bytes, None)
    }

    /// Notes a memtable converted to a table: its memory is the table's from now on.
    pub(crate) fn record_converted(&self, memtable: &Arc<dyn Memtable>) {
        let other = |made: &Weak<dyn Memtable>| !ptr::addr_eq(made.as_ptr(), Arc::as_ptr(memtable));
        self.maker.made.lock().retain(other);
    }

    /// Bytes held by the family's memtables: mutable, queued, spare, and flushed ones still held by readers.
    pub(crate) fn memtable_bytes(&self) -> usize {
        self.maker.living().iter().map(|memtable| memtable.memory_bytes()).sum()
    }

    /// Notes a write to a memtable without WAL.
    pub(crate) fn record_unlogged(&self) {
        if !self.unlogged.load(Ordering::Relaxed) {
            self.unlogged.store(true, Ordering::Release);
        }
    }

    pub(crate) fn writer_waits(&self) -> Awaited<'_> {
        Awaited::new(&self.waiting_writers)
    }

    pub(crate) fn has_waiting_writers(&self) -> bool {
        self.waiting_writers.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn has_unlogged_writes(&self) -> bool {
        self.unlogged.load(Ordering::Acquire)
    }
}

/// The live families, by id. Replaced as a whole when one is created or dropped: see [`Core::change_families`].
///
/// [`Core::change_families`]: crate::core::Core::change_families
#[derive(Clone, Default)]
pub(crate) struct FamilySet {
    /// In order of their ids.
    families: Vec<Arc<Family>>,
    /// In order of their names.
    named: Vec<Arc<Family>>,
}

impl FamilySet {
    pub fn new(mut families: Vec<Arc<Family>>) -> Self {
        families.sort_by_key(|family| family.id());
        let mut named = families.clone();
        named.sort_by(|a, b| a.name().cmp(b.name()));
        FamilySet { families, named }
    }

    /// Adds a family of a new name and of the largest id.
    pub fn insert(&mut self, family: &Arc<Family>) {
        self.families.push(family.clone());
        self.named.insert(self.place_of(family.name()).unwrap_or_else(|place| place), family.clone());
    }

    pub fn remove(&mut self, family: &Family) {
        if let Ok(place) = self.families.binary_search_by_key(&family.id(), |other| other.id()) {
            self.families.remove(place);
        }
        if let Ok(place) = self.place_of(family.name()) {
            self.named.remove(place);
        }
    }

    fn place_of(&self, name: &str) -> Result<usize, usize> {
        self.named.binary_search_by(|family| family.name().cmp(name))
    }

    #[inline]
    pub fn get(&self, id: FamilyId) -> Option<&Arc<Family>> {
        // Ids are mostly dense, so the index is usually the id.
        match self.families.get(id.0 as usize) {
            Some(family) if family.id() == id => Some(family),
            _ => {
                self.families.binary_search_by_key(&id, |family| family.id()).ok().and_then(|at| self.families.get(at))
            }
        }
    }

    pub fn by_name(&self, name: &str) -> Option<&Arc<Family>> {
        self.place_of(name).ok().and_then(|place| self.named.get(place))
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Family>> {
        self.families.iter()
    }
}

/// Creates a family's memtables and tracks the live ones.
pub(crate) struct MemtableMaker {
    family: FamilyId,
    factory: Arc<dyn MemtableFactory>,
    making: MemtableMaking,
    /// A leaf lock.
    made: Mutex<Vec<Weak<dyn Memtable>>>,
}

impl MemtableMaker {
    pub fn new(family: FamilyId, factory: Arc<dyn MemtableFactory>, making: MemtableMaking) -> Self {
        MemtableMaker { family, factory, making, made: Mutex::default() }
    }

    /// How memtables created now are to be converted to tables. `None` if they are to be rewritten, as when several
    /// are merged into one table.
    pub fn conversion(&self, options: &FamilyOptions) -> Option<Conversion> {
        let conversion = self.factory.conversion();
        let may_be_private = self.making.images.as_ref().is_some_and(|images| images.is_fenced());
        let alone = options.min_write_buffer_number_to_merge <= 1;
        Some(conversion).filter(|conversion| conversion.is_wanted() && may_be_private && alone)
    }

    /// Creates an empty memtable with room for a batch of at least `room_bytes`. Without `conversion` it is rewritten into
    /// a table.
    pub fn make(
        &self,
        options: &FamilyOptions,
        room_bytes: usize,
        conversion: Option<Conversion>,
    ) -> Result<HeldMemtable> {
        let MemtableSizes { capacity_bytes, bloom_ratio, .. } = memtable_sizes(options, room_bytes);
        let mut config = MemtableConfig::new(InternalOrder::new(options.order.clone()), self.family, capacity_bytes);
        config.room_bytes = room_bytes;
        config.bloom_ratio = bloom_ratio;
        config.background = self.making.background.clone();
        if let Some(mapped) = conversion.filter(|conversion| conversion.to_sst == ConvertToSst::FileMmap) {
            config.image = self.making.images.as_ref().map(|images| images.next(self.family, mapped));
        }
        let memtable = self.factory.create(&config)?;
        let mut made = self.made.lock();
        made.retain(|memtable| memtable.strong_count() > 0);
        made.push(Arc::downgrade(&memtable));
        drop(made);
        let capacity_bytes = memtable.capacity_bytes(); // the representation may have a lower limit
        Ok(HeldMemtable::new(memtable, capacity_bytes, &self.making).with_conversion(conversion))
    }

    /// Name of the configured representation. Memtables report their actual one: a factory falls back if its
    /// representation cannot serve a comparator.
    pub fn asked_for(&self) -> &'static str {
        self.factory.name()
    }

    fn living(&self) -> Vec<Arc<dyn Memtable>> {
        self.made.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

/// The sizes of a family's memtables, with room for a batch of at least `room_bytes`.
pub(crate) fn memtable_sizes(options: &FamilyOptions, room_bytes: usize) -> MemtableSizes {
    let whole_keys = options.memtable_whole_key_filtering;
    let bloom_ratio = if whole_keys { options.memtable_prefix_bloom_size_ratio } else { 0.0 };
    let write_buffer_bytes = options.write_buffer_size;
    let capacity_bytes = memtable_capacity_bytes(write_buffer_bytes, room_bytes, bloom_ratio);
    MemtableSizes { write_buffer_bytes, capacity_bytes, bloom_ratio }
}

/// Arena size for a write buffer, or for one larger batch. Address space, not memory: pages are allocated on first
/// touch.
fn memtable_capacity_bytes(write_buffer_bytes: usize, room_bytes: usize, bloom_ratio: f64) -> usize {
    /// For a representation's data beside its entries.
    const SLACK_BYTES: usize = 64 << 10;
    let beside_filter = (room_bytes as f64 / (1.0 - bloom_ratio)).ceil() as usize;
    write_buffer_bytes.max(beside_filter).saturating_add(SLACK_BYTES)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use vfs::MemoryVfs;

    use crate::internal::{Database, FamilyOptions, OpenOptions};

    #[test]
    fn sets_of_families_take_turns_without_copies() {
        let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).expect("a new database");
        let place = || db.core().families.load().families.as_ptr().addr();
        let mut places = BTreeSet::new();
        for i in 0..20 {
            let family = db.create_family(&format!("family {i}"), FamilyOptions::default()).expect("made");
            places.insert(place());
            if i % 3 == 2 {
                db.drop_family(&family).expect("dropped");
                assert!(db.family(family.name()).is_none() && db.family_by_id(family.id()).is_err());
                places.insert(place());
            }
        }
        assert!(places.len() <= 8, "two sets grow to 4, 8, 16 and 32 places: {places:?}");
        let names: BTreeSet<_> = db.families().iter().map(|family| family.name().to_owned()).collect();
        assert_eq!(names.len(), 1 + 20 - 6);
        assert!(names.iter().all(|name| db.family(name).is_some_and(|family| family.name() == name)));
    }
}
