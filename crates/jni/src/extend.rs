//! Extensions of the engine that are native: merge operators, partitioners, collectors.

use std::sync::Arc;

use spillway::internal::extend::MergeOperator;
use spillway::internal::merge::{StringAppendOperator, UInt64AddOperator};
use spillway::internal::options::{CompactOnDeletion, SstPartitioner};

use crate::boundary::argument::Closed;
use crate::boundary::natives;

/// A merge operator.
pub struct Merge(pub Arc<dyn MergeOperator>);

/// Where compactions end tables.
pub struct Partitioner(pub SstPartitioner);

/// Marks tables for compaction as they are written.
pub struct Collector(pub CompactOnDeletion);

pub mod string_append {
    use super::*;

    natives! { "StringAppendOperator";
        /// C++ keeps the low byte of the character.
        "newSharedStringAppendOperator__C" => fn(_env, delimiter: u16) -> Box<Merge> {
            let delimiter = char::from((delimiter & 0xff) as u8);
            Ok(Box::new(Merge(Arc::new(StringAppendOperator::new(delimiter)))))
        }

        "newSharedStringAppendOperator__Ljava_lang_String_2" => fn(_env, delimiter: String) -> Box<Merge> {
            Ok(Box::new(Merge(Arc::new(StringAppendOperator::new(delimiter)))))
        }
    }
}

pub mod uint64_add {
    use super::*;

    natives! { "UInt64AddOperator";
        "newSharedUInt64AddOperator" => fn(_env) -> Box<Merge> {
            Ok(Box::new(Merge(Arc::new(UInt64AddOperator))))
        }
    }
}

pub mod partitioner {
    use super::*;

    natives! { "SstPartitionerFixedPrefixFactory";
        "newSstPartitionerFixedPrefixFactory0" => fn(_env, prefix_len: i64) -> Box<Partitioner> {
            Ok(Box::new(Partitioner(SstPartitioner::FixedPrefix(usize::try_from(prefix_len).unwrap_or(0)))))
        }
    }
}

pub mod collector {
    use super::*;

    natives! { "TablePropertiesCollectorFactory";
        "newCompactOnDeletionCollectorFactory" =>
        fn(_env, window_size: i64, deletion_trigger: i64, deletion_ratio: f64) -> Box<Collector> {
            let size = |number: i64| usize::try_from(number).unwrap_or(0);
            Ok(Box::new(Collector(CompactOnDeletion {
                window_size: size(window_size),
                deletion_trigger: size(deletion_trigger),
                deletion_ratio,
                min_file_size: 0,
            })))
        }

        "deleteCompactOnDeletionCollectorFactory" => fn(_env, _factory: Closed<Collector>) -> () {
            Ok(())
        }
    }
}
