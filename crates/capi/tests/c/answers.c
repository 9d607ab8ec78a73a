/* Whether a key may exist, and what is in memory: what RocksDB's callers make of the answers. */

#include <unistd.h>

#include "check.h"


static char* error;
static rocksdb_t* db;
static rocksdb_readoptions_t* reading;
static char untouched[] = "untouched";

/* With `found` a sure answer has a value, which is empty where the key is absent: bindings make a slice of it and free it. */
static void test_key(const char* key, int exists, const char* expected) {
    char* value = untouched;
    size_t len = 99;
    unsigned char found = 9;
    CHECK(rocksdb_key_may_exist(db, reading, LIT(key), &value, &len, NULL, 0, &found) == exists && found == 1);
    CHECK(value != untouched);
    CHECK_GIVEN(value, len, expected);
    /* Without it there is none, which nobody would free. */
    value = untouched;
    CHECK(rocksdb_key_may_exist(db, reading, LIT(key), &value, &len, NULL, 0, NULL) == exists && value == untouched);
    CHECK(rocksdb_key_may_exist(db, reading, LIT(key), NULL, NULL, NULL, 0, &found) == exists && found == 1);
    CHECK(rocksdb_key_may_exist(db, reading, LIT(key), NULL, NULL, NULL, 0, NULL) == exists);
}

static void test_keys(void) {
    test_key("a", 1, "value");
    test_key("empty", 1, "");
    test_key("none", 0, "");
}

/* A tier of 1 leaves files alone. */
static void test_tier(void) {
    size_t len;
    unsigned char found = 9;
    rocksdb_iterator_t* iterator;
    rocksdb_readoptions_t* in_memory = rocksdb_readoptions_create();
    rocksdb_readoptions_t* anywhere = rocksdb_readoptions_create();
    rocksdb_readoptions_set_read_tier(in_memory, 1);
    CHECK(rocksdb_readoptions_get_read_tier(in_memory) == 1);
    CHECK(rocksdb_get(db, in_memory, LIT("a"), &len, &error) == NULL);
    CHECK_ERROR(error, "Result incomplete: ");
    CHECK(rocksdb_key_may_exist(db, in_memory, LIT("a"), NULL, NULL, NULL, 0, &found) == 1 && found == 0);
    iterator = rocksdb_create_iterator(db, in_memory);
    rocksdb_iter_seek_to_first(iterator);
    CHECK(!rocksdb_iter_valid(iterator));
    rocksdb_iter_get_error(iterator, &error);
    CHECK_ERROR(error, "Result incomplete: ");
    CHECK_GIVEN(rocksdb_get(db, anywhere, LIT("a"), &len, &error), len, "value");
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, in_memory, LIT("a"), &len, &error), len, "value");
    CHECK_OK(error);
    rocksdb_iter_seek_to_first(iterator);
    CHECK(rocksdb_iter_valid(iterator));
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_destroy(anywhere);
    rocksdb_readoptions_destroy(in_memory);
}

struct taken {
    int pipe[2];
    size_t count;
    rocksdb_pinnableslice_t* values[3];
    char* errors[3];
};

static void take(void* state, size_t count, rocksdb_pinnableslice_t** values, char** errors) {
    struct taken* taken = state;
    taken->count = count;
    memcpy(taken->values, values, count * sizeof *values);
    memcpy(taken->errors, errors, count * sizeof *errors);
    CHECK(write(taken->pipe[1], "!", 1) == 1);
}

static void check_value(rocksdb_pinnableslice_t* value, const char* expected) {
    size_t len;
    const char* bytes = rocksdb_pinnableslice_value(value, &len);
    CHECK(value != NULL);
    CHECK_BYTES(bytes, len, expected);
    rocksdb_pinnableslice_destroy(value);
}

/* Results come at once where memory has them, and later where a file must be read. */
static void test_async(int at_once) {
    const char* keys[3] = {"a", "none", "empty"};
    size_t lens[3] = {1, 4, 5};
    char byte;
    struct taken taken;
    rocksdb_readoptions_t* options = rocksdb_readoptions_create();
    rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
    memset(&taken, 0, sizeof taken);
    CHECK(pipe(taken.pipe) == 0);
    spillway_multi_get_async(db, options, family, 3, keys, lens, &taken, take);
    CHECK(!at_once || taken.count == 3);
    CHECK(read(taken.pipe[0], &byte, 1) == 1 && taken.count == 3);
    CHECK(taken.errors[0] == NULL && taken.errors[1] == NULL && taken.errors[2] == NULL && taken.values[1] == NULL);
    check_value(taken.values[0], "value");
    check_value(taken.values[2], "");

    rocksdb_readoptions_set_timestamp(options, LIT("time"));
    spillway_multi_get_async(db, options, family, 1, keys, lens, &taken, take);
    CHECK(read(taken.pipe[0], &byte, 1) == 1 && taken.count == 1 && taken.values[0] == NULL);
    CHECK_ERROR(taken.errors[0], "Not implemented: ");
    spillway_multi_get_async(db, options, family, 0, NULL, NULL, &taken, take);
    CHECK(read(taken.pipe[0], &byte, 1) == 1 && taken.count == 0);
    close(taken.pipe[0]);
    close(taken.pipe[1]);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_readoptions_destroy(options);
}

int main(int argc, char** argv) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_column_family_handle_t* family;
    char* value = untouched;
    size_t len;
    unsigned char found = 9;
    if (argc < 2) return 2;
    reading = rocksdb_readoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    rocksdb_put(db, write, LIT("a"), LIT("value"), &error);
    rocksdb_put(db, write, LIT("empty"), LIT(""), &error);
    CHECK_OK(error);
    test_keys();
    test_async(1);
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    test_keys();
    family = rocksdb_get_default_column_family_handle(db);
    CHECK(rocksdb_key_may_exist_cf(db, reading, family, LIT("none"), &value, &len, NULL, 0, &found) == 0 && found == 1);
    CHECK_GIVEN(value, len, "");
    /* Nothing is known where the read fails. */
    rocksdb_readoptions_set_timestamp(reading, LIT("time"));
    value = untouched;
    CHECK(rocksdb_key_may_exist(db, reading, LIT("a"), &value, &len, NULL, 0, &found) == 1 && found == 0);
    CHECK(value == untouched);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    test_tier();
    rocksdb_close(db);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    test_async(0);
    test_async(1);
    rocksdb_close(db);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(reading);
    rocksdb_options_destroy(options);
    return outcome("answers");
}
