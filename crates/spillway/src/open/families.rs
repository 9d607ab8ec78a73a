//! Builds the families of a database, at open and later.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use base::note;
use base::options::{FamilyOptions, kept};
use base::{Error, FamilyId, InternalOrder, Result, SeqNo, UserOrder};
use table::BlockCache;
use vfs::Vfs;

use crate::core::Core;
use crate::core::context::Context;
use crate::core::family::{Family, FamilyParts, MemtableMaker, check_name};
use crate::core::settled::settle;
use crate::core::tables::Opener;
use crate::cursor::gaps::Gaps;
use crate::cursor::{ReadContext, answers};
use crate::database::handle::{DEFAULT_FAMILY, OpenOptions, OtherFamilies};
use crate::open::options_file;
use crate::queue::view::ReadView;
use crate::ttl::{MergeName, Stamps};
use crate::version::purge::PurgeQueue;
use crate::version::replay::RecoveredFamily;
use crate::version::table_store::{OpenSlots, TableStore};
use crate::version::version::Version;

/// Shared by the families of a database.
#[derive(Clone)]
pub(crate) struct Shared {
    pub slots: Arc<OpenSlots>,
    pub purge: Arc<PurgeQueue>,
    pub block_cache: Arc<BlockCache>,
    /// For answers of hot keys alone; `None`: they share the block cache.
    pub row_cache: Option<Arc<BlockCache>>,
}

impl Shared {
    pub fn table_store(&self, context: &Arc<Context>, options: &FamilyOptions) -> Arc<TableStore> {
        let opener = Opener::new(context.clone(), self.block_cache.clone(), options);
        TableStore::new(Box::new(opener), self.slots.clone(), context.logs.clone())
    }

    /// The cache with answers of a family with these options.
    fn answers(&self, options: &FamilyOptions) -> Option<Arc<BlockCache>> {
        let shares_blocks = options.table.cache_answers && !options.table.no_block_cache;
        let blocks = Some(self.block_cache.clone()).filter(|_| shares_blocks);
        answers::cache_of(self.row_cache.clone(), blocks, &options.order)
    }
}

/// Options for a family not named at open: the options for all such families, with the stored order.
pub(super) fn adapted(options: &FamilyOptions, comparator: &str) -> FamilyOptions {
    let mut options = options.clone();
    if let Some(order) = UserOrder::by_name(comparator) {
        options.order = order;
    }
    options
}

/// Options by the families' names. The first mention of a name counts.
type Named<'a> = HashMap<&'a str, &'a FamilyOptions>;

fn by_name(families: &[(String, FamilyOptions)]) -> Named<'_> {
    families.iter().rev().map(|(name, options)| (name.as_str(), options)).collect()
}

/// The options for opening stored families: those that are named at the open, and others.
pub(super) struct Given<'a> {
    options: &'a OpenOptions,
    named: Named<'a>,
    others: Named<'a>,
    /// `None`: what is not named is not opened.
    rest: Option<&'a FamilyOptions>,
}

impl<'a> Given<'a> {
    pub fn new(options: &'a OpenOptions) -> Self {
        let (others, rest) = match &options.other_families {
            OtherFamilies::Refuse => (Named::new(), None),
            OtherFamilies::OpenWith(rest) => (Named::new(), Some(&**rest)),
            OtherFamilies::OpenBy { named, rest } => (by_name(named), Some(&**rest)),
        };
        Given { options, named: by_name(&options.families), others, rest }
    }
}

/// The options for opening a stored family; `None` if the family is not opened (reading only).
///
/// # Errors
/// `InvalidArgument`: another order of keys.
pub(super) fn options_of(given: &Given<'_>, stored: &RecoveredFamily) -> Result<Option<FamilyOptions>> {
    let RecoveredFamily { name, comparator, .. } = stored;
    let is_raw = given.options.raw_values;
    let other = given.others.get(&**name).copied().or(given.rest);
    let mut options = match (given.named.get(&**name), other) {
        (Some(&options), _) => options.clone(),
        (None, Some(options)) => adapted(options, comparator),
        (None, None) if name == DEFAULT_FAMILY => FamilyOptions::default(),
        (None, None) => return Ok(None),
    };
    if stored.value_times && !options.value_times {
        if is_raw {
            note::warn!(family = name, "the family's values end with times, and this open shows and takes them so");
        }
        options.value_times = true;
    }
    if comparator.is_empty() || comparator == options.order.name() {
        return Ok(Some(options));
    }
    if let (UserOrder::Bytewise, Some(order)) = (&options.order, UserOrder::by_name(comparator)) {
        options.order = order; // no order was set, and the stored one is built in
        return Ok(Some(options));
    }
    // All of RocksDB's text, and no more: programs compare it.
    Err(Error::invalid_argument(format!("{}: does not match existing comparator {comparator}", options.order.name())))
}

/// # Errors
/// `InvalidArgument`: a ttl is given to a family that is there, and nothing says that its values carry times.
pub(super) fn check_times(dir: &Path, vfs: &dyn Vfs, options: &FamilyOptions, name: &str) -> Result<()> {
    // In databases of before the note of the MANIFEST, stored options tell. A document's take their place.
    let stored = || options_file::families_in(&options_file::newest(vfs, dir).ok()??.1).ok()?;
    let is_stored = || stored()?.into_iter().find(|(known, options)| known == name && options.value_times);
    if options.value_ttl_s == 0 || options.value_times || is_stored().is_some() {
        return Ok(());
    }
    let what = format!(
        "column family \"{name}\": a ttl (value_ttl_s) is given when a family is created: values that are there carry no time"
    );
    let remedy = "if they do (RocksDB's DBWithTTL), say value_times=true";
    Err(Error::invalid_argument(what).advise(remedy).at_path(dir))
}

/// Families named at open but not stored. The first mention of a name counts, as with stored families.
pub(super) fn missing(options: &OpenOptions, stored: &[RecoveredFamily]) -> Vec<(String, FamilyOptions)> {
    let mut known: HashSet<&str> = stored.iter().map(|family| &*family.name).collect();
    options.families.iter().filter(|(name, _)| known.insert(name)).cloned().collect()
}

/// Checks that an open names the stored families as it has to.
///
/// # Errors
/// `InvalidArgument`: one is not named, or is not stored and may not be made, or has another order of keys.
pub(super) fn check_named(dir: &Path, options: &OpenOptions, stored: &[RecoveredFamily]) -> Result<()> {
    let given = Given::new(options);
    let is_named = |name: &str| name == DEFAULT_FAMILY || given.named.contains_key(name);
    let unnamed: Vec<_> = stored.iter().map(|family| family.name.as_str()).filter(|name| !is_named(name)).collect();
    if matches!(options.other_families, OtherFamilies::Refuse) && !unnamed.is_empty() && !options.read_only {
        let what = format!("Column families not opened: {}; every family has to be named", unnamed.join(", "));
        return Err(Error::invalid_argument(what).at_path(dir));
    }
    for family in stored {
        options_of(&given, family)?;
    }
    let missing = missing(options, stored);
    match missing.first() {
        Some((name, _)) if !options.db.create_missing_column_families || options.read_only => {
            let what = format!("Column family not found: {name}; set create_missing_column_families to make it");
            Err(Error::invalid_argument(what).at_path(dir))
        }
        _ => missing.iter().try_for_each(|(name, _)| check_name(name)),
    }
}

/// A family at its start: as stored, or new.
pub(super) struct FamilyStart<'a> {
    pub id: FamilyId,
    pub name: &'a str,
    pub options: FamilyOptions,
    pub version: Arc<Version>,
    /// The tables hold everything up to this number.
    pub through: SeqNo,
}

pub(super) fn build_family(
    context: &Arc<Context>,
    shared: &Shared,
    tables: Arc<TableStore>,
    start: FamilyStart<'_>,
) -> Result<Arc<Family>> {
    let FamilyStart { id, name, mut options, version, through } = start;
    options.cf_allow_ingest_behind |= context.options.allow_ingest_behind;
    options.validate()?;
    options.value_times |= options.value_ttl_s > 0;
    if options.value_times && !context.raw_values {
        let ttl_s = i32::try_from(options.value_ttl_s).unwrap_or(i32::MAX);
        Stamps::new(context.vfs.clone()).wrap(&mut options, ttl_s, MergeName::Inner);
    }
    let remarks = kept::review(&options, context.options.ignore_unsupported_options)?;
    let settled = settle(&context.options, &mut options)?;
    for remark in remarks.into_iter().chain(settled) {
        super::remark(&format!("column family \"{name}\": {remark}"));
    }
    let factory = memtable::factory_from_option_string(&options.memtable_factory)?;
    let maker = MemtableMaker::new(id, factory, context.memtables.clone());
    let read = ReadContext {
        order: InternalOrder::new(options.order.clone()),
        merge_operator: options.merge_operator.clone(),
        prefix_extractor: options.prefix_extractor(),
        max_sequential_skip: options.max_sequential_skip_in_iterations,
        gaps: Gaps::new(options.order.clone()),
        meter: context.meter(),
        sample: context.sample.clone(),
        answers: shared.answers(&options),
    };
    let memtable = maker.make(&options, 0, maker.conversion(&options))?;
    let (asked_for, made) = (maker.asked_for(), memtable.memtable().name());
    if made != asked_for {
        note::warn!(asked_for, made, family = name, "the memtable cannot serve the comparator; another is used");
    }
    let mutable = context.queue_memtable(memtable);
    mutable.begin_after(through);
    let view = ReadView::new(mutable, Vec::new(), version);
    let (home, name) = (Arc::downgrade(context), name.to_owned());
    Ok(Family::new(FamilyParts { home, id, name, options, maker, tables, read, view }))
}

impl Shared {
    /// The shared parts of an open database.
    pub fn of(core: &Core) -> Self {
        Shared {
            slots: core.slots.clone(),
            purge: core.purge.clone(),
            block_cache: core.block_cache.clone(),
            row_cache: core.row_cache.clone(),
        }
    }

    /// Makes a family for an open database. Nothing above `last_seq` was written to it.
    pub fn make_family(
        &self,
        context: &Arc<Context>,
        last_seq: SeqNo,
        id: FamilyId,
        name: &str,
        options: FamilyOptions,
    ) -> Result<Arc<Family>> {
        options.validate()?;
        let version = Arc::new(Version::empty(InternalOrder::new(options.order.clone()), options.num_levels));
        let tables = self.table_store(context, &options);
        build_family(context, self, tables, FamilyStart { id, name, options, version, through: last_seq })
    }
}
