//! `rocksdb_compactionfilter_t` and `rocksdb_compactionfilterfactory_t`.

use std::sync::Arc;

use spillway::internal::extend::{CompactionFilter, CompactionFilterContext, CompactionFilterFactory, FilterDecision};

use crate::boundary::callback::{CreateFilter, Destructor, Filter, Filtered, Name, State, StatePointer};
use crate::boundary::{export, handles};

/// A compaction filter by a function of C. Databases keep it when the handle is destroyed.
pub struct CallbackFilter(Arc<FilterOfC>);

struct FilterOfC {
    state: State,
    filter: Filter,
    name: String,
}

/// Makes a filter for each compaction.
pub struct CallbackFilterFactory {
    state: State,
    create: CreateFilter<FilterContext, CallbackFilter>,
    name: String,
}

/// `rocksdb_compactionfiltercontext_t`: lives as long as the call of the factory.
pub struct FilterContext(pub CompactionFilterContext);

handles!(CallbackFilter, CallbackFilterFactory, FilterContext);

impl CallbackFilter {
    pub fn shared(&self) -> Arc<dyn CompactionFilter> {
        self.0.clone()
    }
}

impl CompactionFilter for FilterOfC {
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, level: usize, key: &[u8], value: &[u8]) -> FilterDecision {
        match self.filter.call(&self.state, level, key, value) {
            Filtered::Keep => FilterDecision::Keep,
            Filtered::Remove => FilterDecision::Remove,
            Filtered::Change(value) => FilterDecision::ChangeValue(value),
        }
    }
}

impl CompactionFilterFactory for CallbackFilterFactory {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self, context: CompactionFilterContext) -> Option<Arc<dyn CompactionFilter>> {
        let filter = self.create.call(&self.state, &mut FilterContext(context))?;
        Some(filter.0 as Arc<dyn CompactionFilter>)
    }
}

export! {
    fn rocksdb_compactionfilter_create(
        state: StatePointer,
        destructor: Destructor,
        filter: Filter,
        name: Name,
    ) -> Box<CallbackFilter> {
        let state = State::new(state, destructor);
        let name = name.of(&state);
        Box::new(CallbackFilter(Arc::new(FilterOfC { state, filter, name })))
    }

    /// Filters never see entries visible to a snapshot, as in RocksDB since version 6: the flag changes nothing.
    fn rocksdb_compactionfilter_set_ignore_snapshots(_filter: &mut CallbackFilter, _ignore: bool) {}

    fn rocksdb_compactionfilter_destroy(filter: Option<Box<CallbackFilter>>) {
        drop(filter);
    }

    fn rocksdb_compactionfilterfactory_create(
        state: StatePointer,
        destructor: Destructor,
        create: CreateFilter<FilterContext, CallbackFilter>,
        name: Name,
    ) -> Box<CallbackFilterFactory> {
        let state = State::new(state, destructor);
        let name = name.of(&state);
        Box::new(CallbackFilterFactory { state, create, name })
    }

    fn rocksdb_compactionfilterfactory_destroy(factory: Option<Box<CallbackFilterFactory>>) {
        drop(factory);
    }

    fn rocksdb_compactionfiltercontext_is_full_compaction(context: &FilterContext) -> bool {
        context.0.is_full
    }

    fn rocksdb_compactionfiltercontext_is_manual_compaction(context: &FilterContext) -> bool {
        context.0.is_manual
    }
}
