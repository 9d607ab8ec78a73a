/* Comparators, merge operators, compaction filters and prefixes by functions of the caller. Included by rocksdb/c.h. */

#ifndef SPILLWAY_ROCKSDB_C_EXTEND_H_
#define SPILLWAY_ROCKSDB_C_EXTEND_H_

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rocksdb_comparator_t. */

ROCKSDB_LIBRARY_API rocksdb_comparator_t* rocksdb_comparator_create(void* state, void (*destructor)(void*),
    int (*compare)(void*, const char*, size_t, const char*, size_t), const char* (*name)(void*));
/* Options with it are refused where a database is opened with them. */
ROCKSDB_LIBRARY_API rocksdb_comparator_t* rocksdb_comparator_with_ts_create(void* state, void (*destructor)(void*),
    int (*compare)(void*, const char*, size_t, const char*, size_t),
    int (*compare_timestamps)(void*, const char*, size_t, const char*, size_t),
    int (*compare_without_timestamps)(void*, const char*, size_t, unsigned char, const char*, size_t, unsigned char),
    const char* (*name)(void*), size_t timestamp_size);
ROCKSDB_LIBRARY_API void rocksdb_comparator_destroy(rocksdb_comparator_t* comparator);

/* rocksdb_mergeoperator_t. */

ROCKSDB_LIBRARY_API rocksdb_mergeoperator_t* rocksdb_mergeoperator_create(void* state, void (*destructor)(void*),
    char* (*full_merge)(void*, const char*, size_t, const char*, size_t, const char* const*, const size_t*, int, unsigned char*, size_t*),
    char* (*partial_merge)(void*, const char*, size_t, const char* const*, const size_t*, int, unsigned char*, size_t*),
    void (*delete_value)(void*, const char*, size_t), const char* (*name)(void*));
ROCKSDB_LIBRARY_API void rocksdb_mergeoperator_destroy(rocksdb_mergeoperator_t* merge_operator);

/* rocksdb_compactionfilter_t and rocksdb_compactionfilterfactory_t. */

ROCKSDB_LIBRARY_API rocksdb_compactionfilter_t* rocksdb_compactionfilter_create(void* state,
    void (*destructor)(void*),
    unsigned char (*filter)(void*, int, const char*, size_t, const char*, size_t, char**, size_t*, unsigned char*),
    const char* (*name)(void*));
/* Filters never see what a snapshot sees, here as in RocksDB since version 6: the flag changes nothing. */
ROCKSDB_LIBRARY_API void rocksdb_compactionfilter_set_ignore_snapshots(rocksdb_compactionfilter_t* filter,
    unsigned char ignore);
ROCKSDB_LIBRARY_API void rocksdb_compactionfilter_destroy(rocksdb_compactionfilter_t* filter);
ROCKSDB_LIBRARY_API rocksdb_compactionfilterfactory_t* rocksdb_compactionfilterfactory_create(void* state,
    void (*destructor)(void*), rocksdb_compactionfilter_t* (*create)(void*, rocksdb_compactionfiltercontext_t*),
    const char* (*name)(void*));
ROCKSDB_LIBRARY_API void rocksdb_compactionfilterfactory_destroy(rocksdb_compactionfilterfactory_t* factory);
ROCKSDB_LIBRARY_API unsigned char rocksdb_compactionfiltercontext_is_full_compaction(
    rocksdb_compactionfiltercontext_t* context);
ROCKSDB_LIBRARY_API unsigned char rocksdb_compactionfiltercontext_is_manual_compaction(
    rocksdb_compactionfiltercontext_t* context);

/* rocksdb_sst_partitioner_factory_t: where compactions end tables besides at their size. Options take a copy. */

ROCKSDB_LIBRARY_API rocksdb_sst_partitioner_factory_t* rocksdb_sst_partitioner_fixed_prefix_factory_create(
    size_t prefix_len);
ROCKSDB_LIBRARY_API void rocksdb_sst_partitioner_factory_destroy(rocksdb_sst_partitioner_factory_t* factory);

/* rocksdb_slicetransform_t: the part of a key that prefix filters and prefix iteration go by. */

/* RocksDB 11's signature, which has no in_range. */
ROCKSDB_LIBRARY_API rocksdb_slicetransform_t* rocksdb_slicetransform_create(void* state, void (*destructor)(void*),
    char* (*transform)(void*, const char*, size_t, size_t*), unsigned char (*in_domain)(void*, const char*, size_t),
    const char* (*name)(void*));
ROCKSDB_LIBRARY_API rocksdb_slicetransform_t* rocksdb_slicetransform_create_fixed_prefix(size_t len);
ROCKSDB_LIBRARY_API rocksdb_slicetransform_t* rocksdb_slicetransform_create_noop(void);
ROCKSDB_LIBRARY_API void rocksdb_slicetransform_destroy(rocksdb_slicetransform_t* transform);

#ifdef __cplusplus
}
#endif

#endif
