/* Errors, statistics and calls of comparators that programs written for RocksDB go by. */

#include <sys/stat.h>

#include "check.h"

static char* error;
static rocksdb_writeoptions_t* write;
static rocksdb_readoptions_t* read;
static int compared;

static int compare(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    (void)state;
    ++compared;
    return order != 0 ? order : (int)a_len - (int)b_len;
}

static const char* name_of(void* state) { return (const char*)state; }

static void nothing(void* state) { (void)state; }

static char* failing_merge(void* state, const char* key, size_t key_len, const char* existing, size_t existing_len,
                           const char* const* operands, const size_t* lens, int count, unsigned char* success,
                           size_t* len) {
    (void)state, (void)key, (void)key_len, (void)existing, (void)existing_len, (void)operands, (void)lens, (void)count;
    *success = 0;
    *len = 0;
    return NULL;
}

static char* failing_partial_merge(void* state, const char* key, size_t key_len, const char* const* operands,
                                   const size_t* lens, int count, unsigned char* success, size_t* len) {
    return failing_merge(state, key, key_len, NULL, 0, operands, lens, count, success, len);
}

static rocksdb_options_t* new_options(void) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    return options;
}

/* A directory that is in use: an IO error that names the lock. */
static void test_locks(const char* dir) {
    rocksdb_options_t* options = new_options();
    rocksdb_t* db = rocksdb_open(options, dir, &error);
    CHECK_OK(error);
    CHECK(rocksdb_open(options, dir, &error) == NULL);
    CHECK(error != NULL && strstr(error, "/LOCK") != NULL);
    CHECK_ERROR(error, "IO error: lock hold by current process, acquire time ");
    rocksdb_destroy_db(options, dir, &error);
    CHECK(error != NULL && strstr(error, "/LOCK") != NULL);
    CHECK_ERROR(error, "IO error: lock hold by current process, acquire time ");
    rocksdb_close(db);
    rocksdb_destroy_db(options, dir, &error);
    CHECK_OK(error);
    rocksdb_options_destroy(options);
}

static void test_set_options(const char* dir) {
    const char* names[1] = {"nonsense"};
    const char* values[1] = {"1"};
    rocksdb_options_t* options = new_options();
    rocksdb_t* db = rocksdb_open(options, dir, &error);
    CHECK_OK(error);
    rocksdb_set_options(db, 0, names, values, &error);
    CHECK_ERROR(error, "Invalid argument: empty input");
    rocksdb_set_options(db, 1, names, values, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_set_db_options(db, 1, names, values, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    names[0] = "max_log_file_size";
    rocksdb_set_db_options(db, 1, names, values, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    names[0] = "max_background_jobs";
    rocksdb_set_db_options(db, 1, names, values, &error);
    CHECK_OK(error);
    { /* members are taken as options are, and a fixed option may be given the value that it has */
        static const char* const taken[][2] = {
            {"block_based_table_factory", "{block_size=32}"},
            {"block_based_table_factory", "{block_size=16384;no_block_cache=false}"},
            {"compression_opts", "{level=1e1}"},
            {"compression_opts", "{window_bits=1000}"},
            {"prefix_extractor", "nullptr"},
        };
        for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
            rocksdb_set_options(db, 1, &taken[i][0], &taken[i][1], &error);
            CHECK_OK(error);
        }
        names[0] = "block_based_table_factory";
        values[0] = "{no_block_cache=true}";
        rocksdb_set_options(db, 1, names, values, &error);
        CHECK_ERROR(error, "Invalid argument: ");
    }
    rocksdb_merge(db, write, LIT("m"), LIT("x"), &error);
    CHECK_ERROR(error, "Not implemented: Provide a merge_operator when opening DB");
    rocksdb_close(db);
    /* Values with times are for rocksdb_open_with_ttl. */
    rocksdb_get_options_from_string(options, "value_ttl_s=60", options, &error);
    CHECK_OK(error);
    db = rocksdb_open(options, dir, &error);
    CHECK(db == NULL && error != NULL && strstr(error, "rocksdb_open_with_ttl") != NULL);
    CHECK_ERROR(error, "Invalid argument: column family \"default\", value_ttl_s");
    rocksdb_options_destroy(options);
}

static void test_failed_merges(const char* dir) {
    char failing[] = "failing";
    size_t len;
    rocksdb_options_t* options = new_options();
    rocksdb_iterator_t* iterator;
    rocksdb_t* db;
    rocksdb_options_set_merge_operator(
        options, rocksdb_mergeoperator_create(failing, nothing, failing_merge, failing_partial_merge, NULL, name_of));
    db = rocksdb_open(options, dir, &error);
    CHECK_OK(error);
    rocksdb_merge(db, write, LIT("m"), LIT("x"), &error);
    CHECK_OK(error);
    CHECK(rocksdb_get(db, read, LIT("m"), &len, &error) == NULL);
    CHECK_ERROR(error, "Corruption: Merge operator failed");
    iterator = rocksdb_create_iterator(db, read);
    rocksdb_iter_seek_to_first(iterator);
    CHECK(!rocksdb_iter_valid(iterator));
    rocksdb_iter_get_error(iterator, &error);
    CHECK_ERROR(error, "Corruption: Merge operator failed");
    rocksdb_iter_destroy(iterator);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

/* RocksDB 11 calls a comparator as often; other orders than the database's are refused with its text. */
static void test_comparators(const char* dir) {
    char one[] = "one", two[] = "two";
    size_t len;
    rocksdb_comparator_t* first = rocksdb_comparator_create(one, nothing, compare, name_of);
    rocksdb_comparator_t* second = rocksdb_comparator_create(two, nothing, compare, name_of);
    rocksdb_options_t* options = new_options();
    rocksdb_t* db;
    rocksdb_options_set_comparator(options, first);
    db = rocksdb_open(options, dir, &error);
    CHECK_OK(error);
    compared = 0;
    rocksdb_put(db, write, LIT("a"), LIT("1"), &error);
    CHECK_OK(error);
    CHECK(compared == 0);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("a"), &len, &error), len, "1");
    CHECK(compared <= 2);
    compared = 0;
    rocksdb_put(db, write, LIT("b"), LIT("2"), &error);
    CHECK_OK(error);
    CHECK(compared <= 2);
    rocksdb_close(db);
    rocksdb_options_set_comparator(options, second);
    CHECK(rocksdb_open(options, dir, &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: two: does not match existing comparator one");
    rocksdb_options_destroy(options);
    rocksdb_comparator_destroy(first);
    rocksdb_comparator_destroy(second);
}

static void test_statistics(void) {
    char* text;
    rocksdb_options_t* options = rocksdb_options_create();
    CHECK(rocksdb_options_statistics_get_string(options) == NULL);
    CHECK(rocksdb_options_get_statistics_level(options) == rocksdb_statistics_level_disable_all);
    rocksdb_options_set_statistics_level(options, rocksdb_statistics_level_all);
    CHECK(rocksdb_options_get_statistics_level(options) == rocksdb_statistics_level_disable_all);
    rocksdb_options_enable_statistics(options);
    CHECK(rocksdb_options_get_statistics_level(options) == rocksdb_statistics_level_except_detailed_timers);
    rocksdb_options_set_statistics_level(options, 99);
    CHECK(rocksdb_options_get_statistics_level(options) == rocksdb_statistics_level_all);
    rocksdb_options_set_statistics_level(options, -1);
    CHECK(rocksdb_options_get_statistics_level(options) == rocksdb_statistics_level_disable_all);
    text = rocksdb_options_statistics_get_string(options);
    CHECK(text != NULL && strncmp(text, LIT("rocksdb.block.cache.miss COUNT : 0")) == 0);
    rocksdb_free(text);
    rocksdb_options_destroy(options);
}

static void test_directories(char** argv) {
    struct stat found;
    rocksdb_env_t* env = rocksdb_create_default_env();
    FILE* file;
    rocksdb_create_dir_if_missing(env, path_in(argv, "dir"), &error);
    CHECK_OK(error);
    CHECK(stat(path_in(argv, "dir"), &found) == 0 && S_ISDIR(found.st_mode));
    rocksdb_create_dir_if_missing(env, path_in(argv, "dir"), &error);
    CHECK_OK(error);
    rocksdb_create_dir_if_missing(env, "", &error);
    CHECK_ERROR(error, "IO error: ");
    rocksdb_create_dir_if_missing(env, path_in(argv, "no/such"), &error);
    CHECK_ERROR(error, "IO error: ");
    file = fopen(path_in(argv, "file"), "w");
    CHECK(file != NULL && fclose(file) == 0);
    rocksdb_create_dir_if_missing(env, path_in(argv, "file"), &error);
    CHECK_ERROR(error, "IO error: ");
    rocksdb_env_destroy(env);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    write = rocksdb_writeoptions_create();
    read = rocksdb_readoptions_create();
    test_locks(path_in(argv, "locked"));
    test_set_options(path_in(argv, "set"));
    test_failed_merges(path_in(argv, "merged"));
    test_comparators(path_in(argv, "ordered"));
    test_statistics();
    test_directories(argv);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
    return outcome("texts");
}
