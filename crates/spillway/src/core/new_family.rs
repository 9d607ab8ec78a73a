//! Makes a family's handle: as stored, or new.

use std::sync::Arc;

use base::options::{FamilyOptions, ValueTimes, kept};
use base::{FamilyId, InternalOrder, Result, SeqNo, note};
use table::BlockCache;

use crate::core::Core;
use crate::core::context::Context;
use crate::core::family::{Family, FamilyParts, MemtableMaker};
use crate::core::settled::{self, settle};
use crate::core::tables::Opener;
use crate::cursor::gaps::Gaps;
use crate::cursor::{ReadContext, answers};
use crate::queue::view::ReadView;
use crate::ttl::{MergeName, Stamps};
use crate::version::purge::PurgeQueue;
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
    pub fn answers(&self, options: &FamilyOptions) -> Option<Arc<BlockCache>> {
        let shares_blocks = options.table.cache_answers && !options.table.no_block_cache;
        let blocks = Some(self.block_cache.clone()).filter(|_| shares_blocks);
        answers::cache_of(self.row_cache.clone(), blocks, &options.order)
    }
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

/// A family at its start: as stored, or new.
pub(crate) struct FamilyStart<'a> {
    pub id: FamilyId,
    pub name: &'a str,
    pub options: FamilyOptions,
    pub version: Arc<Version>,
    /// The tables hold everything up to this number.
    pub through: SeqNo,
}

pub(crate) fn build_family(
    context: &Arc<Context>,
    shared: &Shared,
    tables: Arc<TableStore>,
    start: FamilyStart<'_>,
) -> Result<Arc<Family>> {
    let FamilyStart { id, name, mut options, version, through } = start;
    options.cf_allow_ingest_behind |= context.options.allow_ingest_behind;
    options.validate()?;
    options.value_times = ValueTimes::AUTO.beside_note(*options.value_times || options.value_ttl_s > 0)?;
    if *options.value_times && !context.raw_values {
        let ttl_s = i32::try_from(options.value_ttl_s).unwrap_or(i32::MAX);
        Stamps::new(context.vfs.clone()).wrap(&mut options, ttl_s, MergeName::Inner);
    }
    let remarks = kept::review(&options, context.options.ignore_unsupported_options)?;
    let remarked = settle(&context.options, &mut options)?;
    for remark in remarks.into_iter().chain(remarked) {
        settled::remark(&format!("column family \"{name}\": {remark}"));
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
