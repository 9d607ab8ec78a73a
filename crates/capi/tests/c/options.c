/* Options: every setter with its getter, presets, strings, and which of them a database is opened with. */

#include <sys/stat.h>

#include "check.h"

static char* error;
static rocksdb_options_t* options;
static rocksdb_block_based_table_options_t* table;
static rocksdb_universal_compaction_options_t* universal;
static rocksdb_fifo_compaction_options_t* fifo;
static rocksdb_flushoptions_t* flush;
static rocksdb_compactoptions_t* compact;
static rocksdb_compaction_options_t* compaction;
static rocksdb_wait_for_compact_options_t* wait;
static rocksdb_writeoptions_t* write;
static rocksdb_readoptions_t* read;
static rocksdb_ingestexternalfileoptions_t* ingest;
static rocksdb_cuckoo_table_options_t* cuckoo;
static rocksdb_import_column_family_options_t* import;
static rocksdb_transactiondb_options_t* transactiondb;
static rocksdb_transaction_options_t* transaction;
static rocksdb_optimistictransaction_options_t* optimistic;
static rocksdb_optimistictransactiondb_options_t* optimistic_db;
static rocksdb_flushwaloptions_t* flush_wal;

static void create(void) {
    options = rocksdb_options_create();
    table = rocksdb_block_based_options_create();
    universal = rocksdb_universal_compaction_options_create();
    fifo = rocksdb_fifo_compaction_options_create();
    flush = rocksdb_flushoptions_create();
    compact = rocksdb_compactoptions_create();
    compaction = rocksdb_compaction_options_create();
    wait = rocksdb_wait_for_compact_options_create();
    write = rocksdb_writeoptions_create();
    read = rocksdb_readoptions_create();
    ingest = rocksdb_ingestexternalfileoptions_create();
    cuckoo = rocksdb_cuckoo_options_create();
    import = rocksdb_import_column_family_options_create();
    transactiondb = rocksdb_transactiondb_options_create();
    transaction = rocksdb_transaction_options_create();
    optimistic = rocksdb_optimistictransaction_options_create();
    optimistic_db = rocksdb_optimistictransactiondb_options_create();
    flush_wal = rocksdb_flushwaloptions_create();
}

static void destroy(void) {
    rocksdb_options_destroy(options);
    rocksdb_block_based_options_destroy(table);
    rocksdb_universal_compaction_options_destroy(universal);
    rocksdb_fifo_compaction_options_destroy(fifo);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_compactoptions_destroy(compact);
    rocksdb_compaction_options_destroy(compaction);
    rocksdb_wait_for_compact_options_destroy(wait);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
    rocksdb_cuckoo_options_destroy(cuckoo);
    rocksdb_import_column_family_options_destroy(import);
    rocksdb_transactiondb_options_destroy(transactiondb);
    rocksdb_transaction_options_destroy(transaction);
    rocksdb_optimistictransaction_options_destroy(optimistic);
    rocksdb_optimistictransactiondb_options_destroy(optimistic_db);
    rocksdb_flushwaloptions_destroy(flush_wal);
}

/* What is set is what is got, also where nobody heeds it. */
static void test_round_trips(void) {
#define ROW(handle, prefix, name, set_type, get_type, sample)        \
    {                                                                \
        get_type before = prefix##get_##name(handle);                \
        prefix##set_##name(handle, (set_type)(sample));              \
        CHECK(prefix##get_##name(handle) == (get_type)(sample));     \
        prefix##set_##name(handle, (set_type)before);                \
        CHECK(prefix##get_##name(handle) == before);                 \
    }
#include "rows.inc"
#undef ROW
}

static void test_copies(void) {
    rocksdb_options_t* copy;
    rocksdb_options_set_max_open_files(options, 321);
    rocksdb_options_set_use_fsync(options, 1);
    copy = rocksdb_options_create_copy(options);
    rocksdb_options_set_max_open_files(options, -1);
    rocksdb_options_set_use_fsync(options, 0);
    CHECK(rocksdb_options_get_max_open_files(copy) == 321 && rocksdb_options_get_use_fsync(copy) == 1);
    rocksdb_options_destroy(copy);
}

static void test_presets(void) {
    rocksdb_options_t* preset = rocksdb_options_create();
    rocksdb_options_increase_parallelism(preset, 9);
    CHECK(rocksdb_options_get_max_background_jobs(preset) == 9);
    rocksdb_options_optimize_level_style_compaction(preset, 512 << 20);
    CHECK(rocksdb_options_get_write_buffer_size(preset) == 128 << 20);
    CHECK(rocksdb_options_get_max_write_buffer_number(preset) == 6);
    CHECK(rocksdb_options_get_target_file_size_base(preset) == 64 << 20);
    rocksdb_options_optimize_universal_style_compaction(preset, 256 << 20);
    CHECK(rocksdb_options_get_compaction_style(preset) == rocksdb_universal_compaction);
    rocksdb_options_optimize_for_point_lookup(preset, 8);
    CHECK(rocksdb_options_get_memtable_prefix_bloom_size_ratio(preset) == 0.02);
    rocksdb_options_prepare_for_bulk_load(preset);
    CHECK(rocksdb_options_get_disable_auto_compactions(preset) == 1 && rocksdb_options_get_num_levels(preset) == 2);
    rocksdb_options_destroy(preset);
}

static void test_strings(void) {
    rocksdb_options_t* made = rocksdb_options_create();
    rocksdb_get_options_from_string(options, "max_open_files=77;write_buffer_size=1M;memtable_factory=trie", made, &error);
    CHECK_OK(error);
    CHECK(rocksdb_options_get_max_open_files(made) == 77 && rocksdb_options_get_write_buffer_size(made) == 1 << 20);
    rocksdb_get_options_from_string(made, "block_based_table_factory={block_size=8K;filter_policy=bloomfilter:10:false};"
                                    "memtable_as_log_index=true", made, &error);
    CHECK_OK(error);
    CHECK(rocksdb_options_get_max_open_files(made) == 77);
    rocksdb_get_options_from_string(made, "max_open_filez=1", made, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_get_options_from_string(made, "\xff", made, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    CHECK(rocksdb_options_get_max_open_files(made) == 77);
    rocksdb_options_destroy(made);
}

static void test_without_getters(void) {
    const int levels[3] = {rocksdb_no_compression, rocksdb_xpress_compression, rocksdb_zstd_compression};
    int factors[2] = {1, 2};
    rocksdb_options_set_compression_per_level(options, levels, 3);
    rocksdb_options_set_min_level_to_compress(options, 2);
    rocksdb_options_set_min_level_to_compress(options, -1);
    rocksdb_options_set_compression_options(options, -14, 3, 0, 0);
    rocksdb_options_set_bottommost_compression_options(options, -14, 3, 0, 0, 1);
    rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(options, 100, 1);
    rocksdb_options_set_max_bytes_for_level_multiplier_additional(options, factors, 2);
    rocksdb_options_set_hash_skip_list_rep(options, 1000, 4, 4);
    rocksdb_options_set_hash_link_list_rep(options, 1000);
    rocksdb_options_set_hash_spdb_rep(options, 1000);
    rocksdb_options_set_memtable_vector_rep(options);
    rocksdb_options_set_plain_table_factory(options, 0, 10, 0.75, 16, 0, 0, 0, 0);
    rocksdb_cuckoo_options_set_hash_ratio(cuckoo, 0.5);
    CHECK(rocksdb_cuckoo_options_get_hash_table_ratio(cuckoo) == 0.5);
    rocksdb_options_set_cuckoo_table_factory(options, cuckoo);
    rocksdb_sst_partitioner_factory_t* partitioner = rocksdb_sst_partitioner_fixed_prefix_factory_create(4);
    rocksdb_options_set_sst_partitioner_factory(options, partitioner);
    rocksdb_sst_partitioner_factory_destroy(partitioner);
    rocksdb_options_add_compact_on_deletion_collector_factory(options, 100, 50);
    rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(options, 100, 50, 0.5);
    rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(options, 100, 50, 0.5, 1000);
    rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer(options, 0, 1);
    CHECK(rocksdb_options_get_bottommost_compression_options_use_zstd_dict_trainer(options) == 1);
    rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(options, 100, 1);
    rocksdb_options_set_db_log_dir(options, "");
    rocksdb_options_set_universal_compaction_options(options, universal);
    rocksdb_options_set_fifo_compaction_options(options, fifo);
    rocksdb_options_compaction_readahead_size(options, 123);
    CHECK(rocksdb_options_get_compaction_readahead_size(options) == 123);
    rocksdb_block_based_options_set_data_block_hash_ratio(table, 0.5);
    CHECK(rocksdb_block_based_options_get_data_block_hash_table_util_ratio(table) == 0.5);
    rocksdb_block_based_options_set_top_level_index_pinning_tier(table, rocksdb_block_based_k_all_pinning_tier);
    rocksdb_block_based_options_set_partition_pinning_tier(table, rocksdb_block_based_k_all_pinning_tier);
    rocksdb_block_based_options_set_unpartitioned_pinning_tier(table, rocksdb_block_based_k_all_pinning_tier);
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10));
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(0.1));
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_ribbon_hybrid(10, 1));
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_ribbon(10));
    rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_create_bloom(1000));
    rocksdb_options_set_block_based_table_factory(options, table);
}

/* Other values out of bounds do not keep a database from being opened, as in RocksDB. */
static void test_opening(char** argv) {
    size_t len;
    rocksdb_t* db;
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, 1);
    rocksdb_options_set_max_manifest_file_size(options, 1);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_options_set_wal_dir(options, path_in(argv, "logs"));
    rocksdb_block_based_options_set_format_version(table, 7);
    rocksdb_options_set_block_based_table_factory(options, table);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    rocksdb_put(db, write, LIT("k"), LIT("v"), &error);
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("k"), &len, &error), 1, "v");
    rocksdb_close(db);
    rocksdb_destroy_db(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    rocksdb_options_set_hash_skip_list_rep(options, 1 << 20, 4, 4);
    db = rocksdb_open(options, path_in(argv, "hashed"), &error);
    CHECK_OK(error);
    rocksdb_close(db);
    rocksdb_options_set_hash_spdb_rep(options, 1000);
    db = rocksdb_open(options, path_in(argv, "sorted"), &error);
    CHECK_OK(error);
    char* stats = rocksdb_property_value(db, "rocksdb.stats");
    CHECK(strstr(stats, "sorted_hash") != NULL);
    rocksdb_free(stats);
    rocksdb_close(db);
}

/* A version of the table format that is not written: refused by an open for writing. A new family takes it. */
static void test_format_versions(char** argv) {
    static const char refusal[] = "Invalid argument: Unsupported BlockBasedTable format_version. "
                                  "Please check include/rocksdb/table.h for more info";
    const char* names[2] = {"default", "newer"};
    const rocksdb_options_t* of[2];
    rocksdb_column_family_handle_t *family, *families[2];
    rocksdb_options_t *known = rocksdb_options_create(), *newer = rocksdb_options_create();
    rocksdb_block_based_table_options_t* tables = rocksdb_block_based_options_create();
    rocksdb_t* db;
    rocksdb_options_set_create_if_missing(known, 1);
    rocksdb_options_set_create_if_missing(newer, 1);
    rocksdb_block_based_options_set_format_version(tables, 8);
    rocksdb_options_set_block_based_table_factory(newer, tables);
    CHECK(rocksdb_open(newer, path_in(argv, "versions"), &error) == NULL);
    CHECK_ERROR(error, refusal);
    db = rocksdb_open(known, path_in(argv, "versions"), &error);
    CHECK_OK(error);
    family = rocksdb_create_column_family(db, newer, "newer", &error);
    CHECK_OK(error);
    rocksdb_put_cf(db, write, family, LIT("k"), LIT("v"), &error);
    rocksdb_flush_cf(db, flush, family, &error);
    CHECK_OK(error);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    of[0] = known;
    of[1] = newer;
    CHECK(rocksdb_open_column_families(known, path_in(argv, "versions"), 2, names, of, families, &error) == NULL);
    CHECK_ERROR(error, refusal);
    db = rocksdb_open_for_read_only_column_families(known, path_in(argv, "versions"), 2, names, of, families, 0, &error);
    CHECK_OK(error);
    {
        size_t len;
        CHECK_GIVEN(rocksdb_get_cf(db, read, families[1], LIT("k"), &len, &error), 1, "v");
    }
    rocksdb_column_family_handle_destroy(families[0]);
    rocksdb_column_family_handle_destroy(families[1]);
    rocksdb_close(db);
    rocksdb_block_based_options_destroy(tables);
    rocksdb_options_destroy(newer);
    rocksdb_options_destroy(known);
}

static void test_latest(char** argv) {
    const char* names[2] = {"default", "small"};
    const rocksdb_options_t* of[2];
    rocksdb_column_family_handle_t* families[2];
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
    rocksdb_options_t *first = rocksdb_options_create(), *loaded, **loaded_families;
    size_t count, i;
    char** loaded_names;
    rocksdb_t* db;
    rocksdb_options_set_create_if_missing(first, 1);
    rocksdb_options_set_create_missing_column_families(first, 1);
    rocksdb_options_set_max_open_files(first, 99);
    rocksdb_options_set_write_buffer_size(first, 1 << 20);
    of[0] = of[1] = first;
    db = rocksdb_open_column_families(first, path_in(argv, "latest"), 2, names, of, families, &error);
    CHECK_OK(error);
    for (i = 0; i < 2; ++i) rocksdb_column_family_handle_destroy(families[i]);
    rocksdb_close(db);
    rocksdb_load_latest_options(path_in(argv, "latest"), env, 0, cache, &loaded, &count, &loaded_names,
                                &loaded_families, &error);
    CHECK_OK(error);
    CHECK(count == 2 && strcmp(loaded_names[0], "default") == 0 && strcmp(loaded_names[1], "small") == 0);
    CHECK(rocksdb_options_get_max_open_files(loaded) == 99);
    CHECK(rocksdb_options_get_write_buffer_size(loaded_families[1]) == 1 << 20);
    for (i = 0; i < 2; ++i) of[i] = loaded_families[i];
    db = rocksdb_open_column_families(loaded, path_in(argv, "latest"), 2, (const char* const*)loaded_names, of,
                                      families, &error);
    CHECK_OK(error);
    for (i = 0; i < 2; ++i) rocksdb_column_family_handle_destroy(families[i]);
    rocksdb_close(db);
    rocksdb_load_latest_options_destroy(loaded, loaded_names, loaded_families, count);
    rocksdb_load_latest_options_destroy(NULL, NULL, NULL, 0);
    CHECK(mkdir(path_in(argv, "empty"), 0700) == 0);
    rocksdb_load_latest_options(path_in(argv, "empty"), env, 0, NULL, &loaded, &count, &loaded_names,
                                &loaded_families, &error);
    CHECK_ERROR(error, "NotFound: ");
    CHECK(loaded == NULL && count == 0 && loaded_names == NULL && loaded_families == NULL);
    rocksdb_options_destroy(first);
    rocksdb_cache_destroy(cache);
    rocksdb_env_destroy(env);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    create();
    test_round_trips();
    test_copies();
    test_presets();
    test_strings();
    test_without_getters();
    test_opening(argv);
    test_format_versions(argv);
    test_latest(argv);
    destroy();
    return outcome("options");
}
