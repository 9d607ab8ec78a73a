/* Caches, envs, rate limiters, memory limits and statistics. */

#define _POSIX_C_SOURCE 199309L

#include <time.h>

#include "check.h"

static char* error;
static rocksdb_readoptions_t* read;
static rocksdb_writeoptions_t* write;

/* Memory of caches, with their tables. */
static uint64_t total_of(rocksdb_cache_t* cache, int times, rocksdb_cache_t* other) {
    rocksdb_memory_consumers_t* consumers = rocksdb_memory_consumers_create();
    rocksdb_memory_usage_t* usage;
    uint64_t total;
    int i;
    for (i = 0; i < times; i++) {
        rocksdb_memory_consumers_add_cache(consumers, cache);
        if (i == 0) rocksdb_memory_consumers_add_cache(consumers, other);
    }
    usage = rocksdb_approximate_memory_usage_create(consumers, &error);
    CHECK_OK(error);
    total = rocksdb_approximate_memory_usage_get_cache_total(usage);
    rocksdb_approximate_memory_usage_destroy(usage);
    rocksdb_memory_consumers_destroy(consumers);
    return total;
}

/* However often a cache is named, and whatever is named between. */
static void check_counted_once(rocksdb_cache_t* cache) {
    rocksdb_cache_t* other = rocksdb_cache_create_lru(0);
    uint64_t total = total_of(cache, 1, other);
    CHECK(total > rocksdb_cache_get_usage(cache));
    CHECK(total_of(cache, 2, other) == total);
    rocksdb_cache_destroy(other);
}

static void test_caches(char** argv) {
    size_t len;
    int i;
    rocksdb_lru_cache_options_t* lru = rocksdb_lru_cache_options_create();
    rocksdb_hyper_clock_cache_options_t* clock = rocksdb_hyper_clock_cache_options_create(1 << 20, 4096);
    rocksdb_cache_t *cache, *other;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_t* db;
    rocksdb_lru_cache_options_set_capacity(lru, 8 << 20);
    rocksdb_lru_cache_options_set_num_shard_bits(lru, 2);
    rocksdb_lru_cache_options_set_memory_allocator(lru, NULL);
    cache = rocksdb_cache_create_lru_opts(lru);
    CHECK(rocksdb_cache_get_capacity(cache) == 8 << 20);
    rocksdb_cache_set_capacity(cache, 4 << 20);
    CHECK(rocksdb_cache_get_capacity(cache) == 4 << 20);
    rocksdb_hyper_clock_cache_options_set_capacity(clock, 2 << 20);
    rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(clock, 100);
    rocksdb_hyper_clock_cache_options_set_num_shard_bits(clock, 1);
    rocksdb_hyper_clock_cache_options_set_memory_allocator(clock, NULL);
    other = rocksdb_cache_create_hyper_clock_opts(clock);
    CHECK(rocksdb_cache_get_capacity(other) == 2 << 20);
    rocksdb_cache_destroy(other);
    rocksdb_cache_destroy(rocksdb_cache_create_hyper_clock(1 << 20, 0));
    rocksdb_cache_destroy(rocksdb_cache_create_lru_with_strict_capacity_limit(1 << 20));
    other = rocksdb_cache_create_lru(0);
    rocksdb_cache_disown_data(other);
    rocksdb_options_set_blob_cache(options, other);
    rocksdb_cache_destroy(other);
    other = rocksdb_cache_create_lru(1 << 20);
    rocksdb_options_set_row_cache(options, other);

    /* A database reads through the cache that it was given, also after the handle is gone. */
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_options_set_block_based_table_factory(options, table);
    db = rocksdb_open(options, path_in(argv, "cached"), &error);
    CHECK_OK(error);
    rocksdb_put(db, write, LIT("k"), LIT("v"), &error);
    rocksdb_flush(db, flush, &error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("k"), &len, &error), 1, "v");
    CHECK(rocksdb_cache_get_usage(cache) > 0);
    CHECK(rocksdb_cache_get_pinned_usage(cache) <= rocksdb_cache_get_usage(cache));
    CHECK(rocksdb_cache_get_occupancy_count(cache) > 0);
    CHECK(rocksdb_cache_get_table_address_count(cache) >= rocksdb_cache_get_occupancy_count(cache));
    check_counted_once(cache);
    rocksdb_cache_destroy(cache);

    /* A key looked up often is kept in the row cache. */
    for (i = 0; i < 8; ++i) {
        CHECK_GIVEN(rocksdb_get(db, read, LIT("k"), &len, &error), 1, "v");
    }
    CHECK(rocksdb_cache_get_usage(other) > 1 << 19 && rocksdb_cache_get_usage(other) <= 1 << 20);
    rocksdb_cache_destroy(other);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("k"), &len, &error), 1, "v");
    rocksdb_close(db);
    rocksdb_lru_cache_options_destroy(lru);
    rocksdb_hyper_clock_cache_options_destroy(clock);
    rocksdb_block_based_options_destroy(table);
    rocksdb_options_destroy(options);
    rocksdb_flushoptions_destroy(flush);
}

static void test_envs(void) {
    size_t len;
    rocksdb_env_t *env = rocksdb_create_default_env(), *memory = rocksdb_create_mem_env();
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_t* db;
    rocksdb_env_set_background_threads(env, 3);
    rocksdb_env_set_low_priority_background_threads(env, 4);
    rocksdb_env_set_high_priority_background_threads(env, 5);
    rocksdb_env_set_bottom_priority_background_threads(env, 6);
    CHECK(rocksdb_env_get_background_threads(env) == 4 && rocksdb_env_get_low_priority_background_threads(env) == 4);
    CHECK(rocksdb_env_get_high_priority_background_threads(env) == 5);
    CHECK(rocksdb_env_get_bottom_priority_background_threads(env) == 6);
    rocksdb_env_t* same = rocksdb_create_default_env(); // the process has one
    CHECK(rocksdb_env_get_background_threads(same) == 4 && rocksdb_env_get_background_threads(memory) == 4);
    rocksdb_env_destroy(same);
    rocksdb_env_lower_thread_pool_io_priority(env);
    rocksdb_env_lower_high_priority_thread_pool_io_priority(env);
    rocksdb_env_lower_thread_pool_cpu_priority(env);
    rocksdb_env_lower_high_priority_thread_pool_cpu_priority(env);
    rocksdb_env_join_all_threads(env);
    rocksdb_options_set_env(options, env);
    rocksdb_env_destroy(env);

    rocksdb_options_set_env(options, memory);
    rocksdb_options_set_create_if_missing(options, 1);
    db = rocksdb_open(options, "/in/memory", &error);
    CHECK_OK(error);
    rocksdb_put(db, write, LIT("k"), LIT("v"), &error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("k"), &len, &error), 1, "v");
    rocksdb_close(db);
    rocksdb_destroy_db(options, "/in/memory", &error);
    CHECK_OK(error);
    rocksdb_options_destroy(options);
    rocksdb_env_destroy(memory);
}

static void log_line(void* state, unsigned level, char* line, size_t len) {
    (void)state, (void)level, (void)line, (void)len;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* How long it takes two databases at once to flush half a mebibyte each; `waits`: with a caller who waits. */
static double flush_two(char** argv, const char* names[2], rocksdb_ratelimiter_t* limiter, unsigned char waits) {
    static char value[512 << 10];
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_t* dbs[2];
    double start;
    int i;
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_options_set_ratelimiter(options, limiter);
    rocksdb_flushoptions_set_wait(flush, waits);
    for (i = 0; i < 2; ++i) {
        dbs[i] = rocksdb_open(options, path_in(argv, names[i]), &error);
        CHECK_OK(error);
        rocksdb_put(dbs[i], write, LIT("k"), value, sizeof value, &error);
        CHECK_OK(error);
    }
    start = seconds();
    for (i = 0; i < 2; ++i) rocksdb_flush(dbs[i], flush, &error);
    CHECK_OK(error);
    for (i = 0; i < 2;) {
        char* tables = rocksdb_property_value(dbs[i], "rocksdb.num-files-at-level0");
        i += strcmp(tables, "1") == 0;
        rocksdb_free(tables);
    }
    start = seconds() - start;
    for (i = 0; i < 2; ++i) rocksdb_close(dbs[i]);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_options_destroy(options);
    return start;
}

/* A mebibyte at two a second: the limit is one for both databases, and holds for nobody who is waited for. */
static void test_rate_limiters(char** argv) {
    const char* names[4][2] = {{"slow1", "slow2"}, {"awaited1", "awaited2"}, {"reads1", "reads2"}, {"none1", "none2"}};
    rocksdb_ratelimiter_t* limiter = rocksdb_ratelimiter_create(2 << 20, 100000, 10);
    double took = flush_two(argv, names[0], limiter, 0);
    CHECK(took > 0.4);
    CHECK(flush_two(argv, names[1], limiter, 1) < took);
    rocksdb_ratelimiter_destroy(limiter);
    limiter = rocksdb_ratelimiter_create_with_mode(1000, 100000, 10, 0, 0); /* a limit on reads alone */
    CHECK(flush_two(argv, names[2], limiter, 0) < 10);
    rocksdb_ratelimiter_destroy(limiter);
    CHECK(flush_two(argv, names[3], NULL, 0) < 10);
    rocksdb_ratelimiter_destroy(rocksdb_ratelimiter_create_auto_tuned(1 << 20, 100000, 10));
    rocksdb_ratelimiter_destroy(rocksdb_ratelimiter_create_with_mode(1 << 20, 100000, 10, 2, 1));
}

static void test_loggers(void) {
    rocksdb_logger_t* logger;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_info_log(options, NULL);
    logger = rocksdb_options_get_info_log(options);
    CHECK(logger == NULL);
    logger = rocksdb_logger_create_stderr_logger(1, "prefix");
    rocksdb_options_set_info_log(options, logger);
    rocksdb_logger_destroy(logger);
    logger = rocksdb_options_get_info_log(options);
    CHECK(logger != NULL);
    rocksdb_logger_destroy(logger);
    rocksdb_logger_destroy(rocksdb_logger_create_callback_logger(1, log_line, NULL));
    rocksdb_logger_destroy(NULL);
    rocksdb_options_destroy(options);
}

/* A database of some tables of small blocks, read through `cache`. */
static rocksdb_t* open_in_cache(char** argv, const char* name, rocksdb_cache_t* cache,
                                rocksdb_write_buffer_manager_t* manager) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_t* db;
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_options_set_block_based_table_factory(options, table);
    if (manager != NULL) {
        rocksdb_options_set_write_buffer_manager(options, manager);
    }
    db = rocksdb_open(options, path_in(argv, name), &error);
    CHECK_OK(error);
    rocksdb_block_based_options_destroy(table);
    rocksdb_options_destroy(options);
    return db;
}

static void put_many(rocksdb_t* db, int count) {
    char key[16], value[1000];
    int i;
    memset(value, 'v', sizeof(value));
    for (i = 0; i < count; ++i) {
        sprintf(key, "%05d", i);
        rocksdb_put(db, write, key, 5, value, sizeof(value), &error);
    }
    CHECK_OK(error);
}

/* A read fails with RocksDB's text when all of a strict cache is in use, and goes on once it is not. */
static void test_strict_cache(char** argv) {
    rocksdb_cache_t* cache = rocksdb_cache_create_lru_with_strict_capacity_limit(20000);
    rocksdb_t* db = open_in_cache(argv, "strict", cache, NULL);
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_iterator_t* held[10];
    char key[16];
    size_t len;
    int i;
    put_many(db, 2000);
    rocksdb_flush(db, flush, &error);
    rocksdb_flushoptions_destroy(flush);
    CHECK_OK(error);
    for (i = 0; i < 10; ++i) {
        held[i] = rocksdb_create_iterator(db, read);
        sprintf(key, "%05d", 100 * i);
        rocksdb_iter_seek(held[i], key, 5);
    }
    CHECK(!rocksdb_iter_valid(held[9]));
    rocksdb_iter_get_error(held[9], &error);
    CHECK_ERROR(error, "Operation aborted: Memory limit reached: Insert failed due to LRU cache being full.");
    CHECK(rocksdb_get(db, read, "01999", 5, &len, &error) == NULL);
    CHECK_ERROR(error, "Operation aborted: Memory limit reached: Insert failed due to LRU cache being full.");
    CHECK(rocksdb_cache_get_usage(cache) <= 20000);
    for (i = 0; i < 10; ++i) {
        rocksdb_iter_destroy(held[i]);
    }
    CHECK(rocksdb_cache_get_pinned_usage(cache) == 0);
    rocksdb_free(rocksdb_get(db, read, "01999", 5, &len, &error));
    CHECK_OK(error);
    CHECK(len == 1000);
    rocksdb_close(db);
    rocksdb_cache_destroy(cache);
}

/* One limit on the memtables of two databases: what is idle in one is flushed for the other. */
static void test_shared_limit(char** argv) {
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(16 << 20);
    rocksdb_write_buffer_manager_t* manager = rocksdb_write_buffer_manager_create_with_cache(4 << 20, cache, 1);
    rocksdb_t* idle = open_in_cache(argv, "idle", cache, manager);
    rocksdb_t* busy = open_in_cache(argv, "busy", cache, manager);
    struct timespec moment = {0, 1000000};
    char* tables;
    int looks, is_flushed = 0;
    put_many(idle, 1800);
    put_many(busy, 1700);
    for (looks = 0; looks < 10000 && !is_flushed; ++looks) {
        nanosleep(&moment, NULL);
        tables = rocksdb_property_value(idle, "rocksdb.num-files-at-level0");
        is_flushed = strcmp(tables, "1") == 0;
        rocksdb_free(tables);
    }
    CHECK(is_flushed);
    CHECK(rocksdb_write_buffer_manager_memory_usage(manager) <= 4 << 20);
    CHECK(rocksdb_write_buffer_manager_mutable_memtable_memory_usage(manager) <= 2 << 20);
    CHECK(rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(manager) >= 1 << 20);
    CHECK(rocksdb_cache_get_usage(cache) >= rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(manager));
    rocksdb_close(idle);
    rocksdb_close(busy);
    CHECK(rocksdb_write_buffer_manager_memory_usage(manager) == 0);
    rocksdb_write_buffer_manager_destroy(manager);
    rocksdb_cache_destroy(cache);
}

static void test_memory(char** argv) {
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
    rocksdb_write_buffer_manager_t *manager = rocksdb_write_buffer_manager_create(16 << 20, 0), *costed;
    rocksdb_memory_consumers_t* consumers = rocksdb_memory_consumers_create();
    rocksdb_memory_usage_t* usage;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_t* db;
    CHECK(rocksdb_write_buffer_manager_enabled(manager) && !rocksdb_write_buffer_manager_cost_to_cache(manager));
    CHECK(rocksdb_write_buffer_manager_buffer_size(manager) == 16 << 20);
    rocksdb_write_buffer_manager_set_buffer_size(manager, 8 << 20);
    rocksdb_write_buffer_manager_set_allow_stall(manager, 1);
    CHECK(rocksdb_write_buffer_manager_buffer_size(manager) == 8 << 20);
    costed = rocksdb_write_buffer_manager_create_with_cache(0, cache, 0);
    CHECK(rocksdb_write_buffer_manager_cost_to_cache(costed) && !rocksdb_write_buffer_manager_enabled(costed));
    rocksdb_write_buffer_manager_destroy(costed);
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_manager(options, manager);
    db = rocksdb_open(options, path_in(argv, "limited"), &error);
    CHECK_OK(error);
    rocksdb_put(db, write, LIT("k"), LIT("v"), &error);
    CHECK(rocksdb_write_buffer_manager_memory_usage(manager) > 0);
    CHECK(rocksdb_write_buffer_manager_mutable_memtable_memory_usage(manager) > 0);
    CHECK(rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(manager) == 0);
    rocksdb_memory_consumers_add_db(consumers, db);
    rocksdb_memory_consumers_add_cache(consumers, cache);
    usage = rocksdb_approximate_memory_usage_create(consumers, &error);
    CHECK_OK(error);
    CHECK(rocksdb_approximate_memory_usage_get_mem_table_total(usage) > 0);
    CHECK(rocksdb_approximate_memory_usage_get_mem_table_unflushed(usage) > 0);
    CHECK(rocksdb_approximate_memory_usage_get_mem_table_readers_total(usage) == 0);
    CHECK(rocksdb_approximate_memory_usage_get_cache_total(usage) > 0);
    rocksdb_approximate_memory_usage_destroy(usage);
    rocksdb_close(db);
    CHECK(rocksdb_write_buffer_manager_memory_usage(manager) == 0);
    rocksdb_memory_consumers_destroy(consumers);
    rocksdb_write_buffer_manager_destroy(manager);
    rocksdb_options_destroy(options);
    rocksdb_cache_destroy(cache);
}

static void test_file_managers(char** argv) {
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_sst_file_manager_t* manager = rocksdb_sst_file_manager_create(env);
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_t* db;
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_sst_file_manager(options, manager);
    db = rocksdb_open(options, path_in(argv, "managed"), &error);
    CHECK(rocksdb_sst_file_manager_get_total_size(manager) == 0);
    rocksdb_put(db, write, LIT("k"), LIT("v"), &error);
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    CHECK(rocksdb_sst_file_manager_get_total_size(manager) > 0);
    CHECK(!rocksdb_sst_file_manager_is_max_allowed_space_reached(manager));
    rocksdb_sst_file_manager_set_max_allowed_space_usage(manager, 1);
    CHECK(rocksdb_sst_file_manager_is_max_allowed_space_reached(manager));
    CHECK(rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(manager));
    rocksdb_sst_file_manager_set_compaction_buffer_size(manager, 1 << 20);
    rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(manager, 1 << 20);
    CHECK(rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(manager) == 1 << 20);
    rocksdb_sst_file_manager_set_max_trash_db_ratio(manager, 0.5);
    CHECK(rocksdb_sst_file_manager_get_max_trash_db_ratio(manager) == 0.5);
    CHECK(rocksdb_sst_file_manager_get_total_trash_size(manager) == 0);
    rocksdb_close(db);
    CHECK(rocksdb_sst_file_manager_get_total_size(manager) == 0);
    rocksdb_sst_file_manager_destroy(manager);
    rocksdb_options_destroy(options);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_env_destroy(env);
}

/* Costs of this thread's calls: a write, a lookup in the memtable, and one in a table that was just opened. */
static void test_perf_contexts(char** argv) {
    size_t len;
    char* report;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_perfcontext_t* context = rocksdb_perfcontext_create();
    rocksdb_iterator_t* iterator;
    rocksdb_t* db;
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(options, table);
    db = rocksdb_open(options, path_in(argv, "perf"), &error);
    CHECK_OK(error);
    rocksdb_put(db, write, LIT("k"), LIT("value"), &error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("k"), &len, &error), len, "value");
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_from_memtable_count) > 0); /* counted without a level */
    rocksdb_set_perf_level(rocksdb_disable);
    rocksdb_perfcontext_reset(context);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("k"), &len, &error), len, "value");
    report = rocksdb_perfcontext_report(context, 1);
    CHECK(strcmp(report, "") == 0);
    rocksdb_free(report);

    rocksdb_set_perf_level(rocksdb_enable_count);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("k"), &len, &error), len, "value");
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_from_memtable_count) == 1);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_read_bytes) == 5);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_from_memtable_time) == 0);
    report = rocksdb_perfcontext_report(context, 1);
    CHECK(strcmp(report, "get_read_bytes = 5, get_from_memtable_count = 1") == 0);
    rocksdb_free(report);
    rocksdb_perfcontext_reset(context);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_from_memtable_count) == 0);

    rocksdb_set_perf_level(rocksdb_enable_time);
    rocksdb_put(db, write, LIT("l"), LIT("value"), &error);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_write_wal_time) > 0);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_write_memtable_time) > 0);
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("k"), &len, &error), len, "value");
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_block_read_count) > 0);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_block_read_byte) > 0);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_block_read_time) > 0);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_block_read_cpu_time) > 0);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_block_checksum_time) > 0);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_from_output_files_time) > 0);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_post_process_time) > 0);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_bloom_sst_hit_count) == 1);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_user_key_comparison_count) == 0);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_total_metric_count) == 0);
    CHECK(rocksdb_perfcontext_metric(context, -1) == 0);
    report = rocksdb_perfcontext_report(context, 0);
    CHECK(strncmp(report, "user_key_comparison_count = 0, ", 31) == 0);
    rocksdb_free(report);

    rocksdb_delete(db, write, LIT("k"), &error);
    CHECK_OK(error);
    rocksdb_perfcontext_reset(context);
    iterator = rocksdb_create_iterator(db, read);
    rocksdb_iter_seek_to_first(iterator);
    CHECK(rocksdb_iter_valid(iterator));
    CHECK_BYTES(rocksdb_iter_key(iterator, &len), len, "l");
    rocksdb_iter_destroy(iterator);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_block_cache_hit_count) > 0);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_block_read_count) == 0);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_internal_delete_skipped_count) == 1);
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_internal_key_skipped_count) == 2); /* and the value below it */

    rocksdb_set_perf_level(rocksdb_disable);
    rocksdb_perfcontext_reset(context);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("l"), &len, &error), len, "value");
    CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_read_bytes) == 0);
    rocksdb_close(db);
    rocksdb_perfcontext_destroy(context);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_block_based_options_destroy(table);
    rocksdb_options_destroy(options);
}

static void test_statistics(char** argv) {
    enum { get_micros = 0, db_write_micros = 1 };
    size_t len;
    int i;
    uint64_t keys = 0;
    char* text;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_statistics_histogram_data_t* data = rocksdb_statistics_histogram_data_create();
    rocksdb_t* db;
    rocksdb_options_set_create_if_missing(options, 1);
    CHECK(rocksdb_options_statistics_get_string(options) == NULL);
    CHECK(rocksdb_options_statistics_get_ticker_count(options, 0) == 0);
    rocksdb_options_enable_statistics(options);
    db = rocksdb_open(options, path_in(argv, "counted"), &error);
    CHECK_OK(error);
    for (i = 0; i < 10; ++i) rocksdb_put(db, write, LIT("k"), LIT("v"), &error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("k"), &len, &error), 1, "v");
    text = rocksdb_options_statistics_get_string(options);
    CHECK(text != NULL && strstr(text, "rocksdb.number.keys.written COUNT : 10") != NULL);
    rocksdb_free(text);
    for (i = 0; i < 300; ++i) keys += rocksdb_options_statistics_get_ticker_count(options, (uint32_t)i) == 10;
    CHECK(keys >= 1);
    rocksdb_options_statistics_get_histogram_data(options, get_micros, data);
    CHECK(rocksdb_statistics_histogram_data_get_count(data) == 1);
    rocksdb_options_statistics_get_histogram_data(options, db_write_micros, data);
    CHECK(rocksdb_statistics_histogram_data_get_count(data) == 10);
    CHECK(rocksdb_statistics_histogram_data_get_min(data) <= rocksdb_statistics_histogram_data_get_median(data));
    CHECK(rocksdb_statistics_histogram_data_get_median(data) <= rocksdb_statistics_histogram_data_get_p95(data));
    CHECK(rocksdb_statistics_histogram_data_get_p95(data) <= rocksdb_statistics_histogram_data_get_p99(data));
    CHECK(rocksdb_statistics_histogram_data_get_p99(data) <= rocksdb_statistics_histogram_data_get_max(data));
    CHECK(rocksdb_statistics_histogram_data_get_average(data) * 10 <=
          (double)rocksdb_statistics_histogram_data_get_sum(data) + 0.001);
    CHECK(rocksdb_statistics_histogram_data_get_std_dev(data) >= 0);
    rocksdb_options_statistics_get_histogram_data(options, 79, data);
    CHECK(rocksdb_statistics_histogram_data_get_count(data) == 0);
    rocksdb_close(db);
    rocksdb_statistics_histogram_data_destroy(data);
    rocksdb_options_destroy(options);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    read = rocksdb_readoptions_create();
    write = rocksdb_writeoptions_create();
    test_caches(argv);
    test_envs();
    test_rate_limiters(argv);
    test_loggers();
    test_memory(argv);
    test_strict_cache(argv);
    test_shared_limit(argv);
    test_file_managers(argv);
    test_perf_contexts(argv);
    test_statistics(argv);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    return outcome("resources");
}
