//! The trie's factory. For families with a custom key order it makes skiplists.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::note;
use base::{FamilyId, Result, UserOrder};
use parking_lot::Mutex;

use super::layout::{FAR_SHIFT, NEAR_BYTES_MAX, NEAR_SHIFT};
use super::params::Params;
use super::{NAME, Trie};
use crate::arena::{Arena, ArenaConfig, IMAGE_HEADER_BYTES};
use crate::order::{Bytewise, KeyOrder, ReverseBytewise};
use crate::registry::Arguments;
use crate::{Conversion, Memtable, MemtableConfig, MemtableFactory, MemtableSizes, skiplist};

pub(crate) struct Factory {
    params: Params,
    /// Families whose use of a skiplist was logged.
    told: Mutex<BTreeSet<FamilyId>>,
}

impl Factory {
    pub(crate) fn from_arguments(arguments: &Arguments) -> Result<Arc<dyn MemtableFactory>> {
        Ok(Arc::new(Factory { params: Params::from_arguments(arguments)?, told: Mutex::default() }))
    }

    fn tell_of_skiplist(&self, config: &MemtableConfig) {
        if self.told.lock().insert(config.family) {
            note::warn!(
                family = config.family.0,
                order = config.order.user.name(),
                "the trie orders keys by their bytes, and this family's order is another: its memtables are skiplists"
            );
        }
    }
}

/// A trie in an arena of this configuration, with the link shift for its capacity.
fn make<O: KeyOrder>(config: &MemtableConfig, arena: &ArenaConfig<'_>) -> Result<Arc<dyn Memtable>> {
    let bytes = arena.capacity as u64 + IMAGE_HEADER_BYTES as u64;
    let arena = Arena::with(arena)?;
    Ok(if bytes <= NEAR_BYTES_MAX {
        Arc::new(Trie::<O, NEAR_SHIFT>::new(config, arena)?)
    } else {
        Arc::new(Trie::<O, FAR_SHIFT>::new(config, arena)?)
    })
}

impl MemtableFactory for Factory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn option_string(&self) -> String {
        self.params.option_string(NAME)
    }

    fn create(&self, config: &MemtableConfig) -> Result<Arc<dyn Memtable>> {
        match &config.order.user {
            UserOrder::Bytewise => make::<Bytewise>(config, &self.params.arena(config)?),
            UserOrder::ReverseBytewise => make::<ReverseBytewise>(config, &self.params.arena(config)?),
            UserOrder::Custom(_) => {
                self.tell_of_skiplist(config);
                skiplist::Factory::converting(self.params.conversion()).create(config)
            }
        }
    }

    fn conversion(&self) -> Conversion {
        self.params.conversion()
    }

    fn can_convert(&self) -> bool {
        true
    }

    fn without_effect(&self, sizes: &MemtableSizes) -> Vec<String> {
        self.params.without_effect(sizes.write_buffer_bytes).into_iter().collect()
    }
}
