//! `rocksdb_sst_partitioner_factory_t`: where compactions end tables besides at their size.

use spillway::internal::options::SstPartitioner;

use crate::boundary::{export, handles};

/// A partitioner; options take a copy.
pub struct PartitionerFactory(pub SstPartitioner);

handles!(PartitionerFactory);

export! {
    fn rocksdb_sst_partitioner_fixed_prefix_factory_create(prefix_len: usize) -> Box<PartitionerFactory> {
        Box::new(PartitionerFactory(SstPartitioner::FixedPrefix(prefix_len)))
    }

    fn rocksdb_sst_partitioner_factory_destroy(factory: Option<Box<PartitionerFactory>>) {
        drop(factory);
    }
}
