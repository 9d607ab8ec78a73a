//! Builders as lists of changes: applied over stored options, only the options that were given change.

use std::sync::Arc;

use base::Result;

/// A change of a group of options. Returns warnings: options without effect.
type Change<G> = Arc<dyn Fn(&mut G) -> Result<Vec<String>> + Send + Sync>;

/// Changes of a group of options, in the order given.
#[derive(Clone)]
pub(super) struct Changes<G>(Vec<Change<G>>);

impl<G> Default for Changes<G> {
    fn default() -> Self {
        Changes(Vec::new())
    }
}

impl<G: 'static> Changes<G> {
    /// Adds the change that sets a value.
    pub fn set<T: Clone + Send + Sync + 'static>(&mut self, value: T, put: fn(&mut G, T)) {
        self.add(move |group| {
            put(group, value.clone());
            Ok(Vec::new())
        });
    }

    pub fn add(&mut self, change: impl Fn(&mut G) -> Result<Vec<String>> + Send + Sync + 'static) {
        self.0.push(Arc::new(change));
    }

    /// Applies all changes, and adds their warnings to `warnings`.
    ///
    /// # Errors
    /// `InvalidArgument`, `Unsupported`: an option given as text.
    pub fn apply(&self, group: &mut G, warnings: &mut Vec<String>) -> Result<()> {
        self.0.iter().try_for_each(|change| {
            warnings.extend(change(group)?);
            Ok(())
        })
    }
}

/// Defines a builder's setters from the rows of an options table. `Handle` changes these options at run time. The rows
/// listed first in `setter` get none: their setters are written by hand.
macro_rules! setters {
    ({ $Builder:ident $changes:ident $Group:ty, $Handle:tt } $( { [$($doc:literal)+] [$change:ident $default:expr] $field:ident $type:ty } )+) => {
        /// Options by RocksDB's names, and ours.
        impl $Builder {
            $( $crate::api::options::changes::setter! { $changes $Group, [$($doc)+] [$change $Handle $default] $field $type } )+
        }
    };
}

macro_rules! setter {
    // Objects, texts and nested groups: by hand.
    ($changes:ident $Group:ty, $about:tt $row:tt order $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt merge_operator $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt prefix_extractor $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt memtable_factory $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt table_factory $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt table $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt compression_per_level $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt compression_opts $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt compaction_options_universal $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt compaction_options_fifo $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt table_properties_collectors $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt filter_policy $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt wal_dir $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt db_log_dir $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt file_mode $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt value_ttl_s $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt value_times $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt max_bytes_for_level_base $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt block_cache $type:ty) => {};
    // Every open has its own: see `Options`.
    ($changes:ident $Group:ty, $about:tt $row:tt create_missing_column_families $type:ty) => {};
    ($changes:ident $Group:ty, $about:tt $row:tt create_if_missing $type:ty) => {};
    ($changes:ident $Group:ty, [$($doc:literal)+] [$change:ident $Handle:tt $default:expr] $field:ident $type:ty) => {
        $(#[doc = $doc])+
        #[doc = concat!("\n\nDefault: `", stringify!($default), "`.", $crate::api::options::changes::when!($change $Handle))]
        pub fn $field(mut self, value: $type) -> Self {
            self.$changes.set(value, |group: &mut $Group, value| group.$field = value);
            self
        }
    };
}

/// When an option can change, for its documentation.
macro_rules! when {
    (Fixed $Handle:tt) => {
        ""
    };
    (Mutable $Handle:tt) => {
        concat!(
            " Can change while the database is open ([`",
            stringify!($Handle),
            "::set_options`](crate::",
            stringify!($Handle),
            "::set_options))."
        )
    };
}

pub(super) use {setter, setters, when};
