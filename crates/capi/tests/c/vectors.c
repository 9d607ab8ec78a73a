/* Batches of keys and values that come in parts. */

#include "check.h"

static char* error;
static char seen[256];

static void on_put(void* state, const char* key, size_t len, const char* value, size_t value_len) {
    size_t at = strlen(seen);
    (void)state;
    snprintf(seen + at, sizeof seen - at, "put %.*s=%.*s;", (int)len, key, (int)value_len, value);
}

static void on_deleted(void* state, const char* key, size_t len) {
    size_t at = strlen(seen);
    (void)state;
    snprintf(seen + at, sizeof seen - at, "delete %.*s;", (int)len, key);
}

static const char* const key[2] = {"ke", "y1"};
static const size_t key_lens[2] = {2, 2};
static const char* const value[3] = {"", "va", "lue"};
static const size_t value_lens[3] = {0, 2, 3};
static const char* const operand[2] = {"mo", "re"};
static const size_t operand_lens[2] = {2, 2};
static const char* const gone[2] = {"go", "ne"};
static const size_t gone_lens[2] = {2, 2};
static const char* const from[2] = {"r", "1"};
static const char* const to[2] = {"r", "3"};
static const size_t one_each[2] = {1, 1};

/* The same batch in parts and whole, in both forms: the same bytes. */
static void test_same(rocksdb_column_family_handle_t* family) {
    rocksdb_writebatch_t *parts = rocksdb_writebatch_create(), *whole = rocksdb_writebatch_create();
    rocksdb_writebatch_wi_t* indexed = rocksdb_writebatch_wi_create(0, 1);
    const char *bytes, *expected;
    size_t len, expected_len;
    rocksdb_writebatch_putv(parts, 2, key, key_lens, 3, value, value_lens);
    rocksdb_writebatch_mergev(parts, 2, key, key_lens, 2, operand, operand_lens);
    rocksdb_writebatch_deletev(parts, 2, gone, gone_lens);
    rocksdb_writebatch_delete_rangev(parts, 2, from, one_each, to, one_each);
    rocksdb_writebatch_putv_cf(parts, family, 2, key, key_lens, 3, value, value_lens);
    rocksdb_writebatch_mergev_cf(parts, family, 2, key, key_lens, 2, operand, operand_lens);
    rocksdb_writebatch_deletev_cf(parts, family, 2, gone, gone_lens);
    rocksdb_writebatch_delete_rangev_cf(parts, family, 2, from, one_each, to, one_each);
    rocksdb_writebatch_wi_putv(indexed, 2, key, key_lens, 3, value, value_lens);
    rocksdb_writebatch_wi_mergev(indexed, 2, key, key_lens, 2, operand, operand_lens);
    rocksdb_writebatch_wi_deletev(indexed, 2, gone, gone_lens);
    rocksdb_writebatch_wi_delete_rangev(indexed, 2, from, one_each, to, one_each);
    rocksdb_writebatch_wi_putv_cf(indexed, family, 2, key, key_lens, 3, value, value_lens);
    rocksdb_writebatch_wi_mergev_cf(indexed, family, 2, key, key_lens, 2, operand, operand_lens);
    rocksdb_writebatch_wi_deletev_cf(indexed, family, 2, gone, gone_lens);
    rocksdb_writebatch_wi_delete_rangev_cf(indexed, family, 2, from, one_each, to, one_each);
    rocksdb_writebatch_put(whole, LIT("key1"), LIT("value"));
    rocksdb_writebatch_merge(whole, LIT("key1"), LIT("more"));
    rocksdb_writebatch_delete(whole, LIT("gone"));
    rocksdb_writebatch_delete_range(whole, LIT("r1"), LIT("r3"));
    rocksdb_writebatch_put_cf(whole, family, LIT("key1"), LIT("value"));
    rocksdb_writebatch_merge_cf(whole, family, LIT("key1"), LIT("more"));
    rocksdb_writebatch_delete_cf(whole, family, LIT("gone"));
    rocksdb_writebatch_delete_range_cf(whole, family, LIT("r1"), LIT("r3"));
    expected = rocksdb_writebatch_data(whole, &expected_len);
    bytes = rocksdb_writebatch_data(parts, &len);
    CHECK(len == expected_len && memcmp(bytes, expected, len) == 0);
    bytes = rocksdb_writebatch_wi_data(indexed, &len);
    CHECK(len == expected_len && memcmp(bytes, expected, len) == 0);
    rocksdb_writebatch_wi_iterate(indexed, NULL, on_put, on_deleted);
    CHECK(strcmp(seen, "put key1=value;delete gone;put key1=value;delete gone;") == 0);
    rocksdb_writebatch_destroy(parts);
    rocksdb_writebatch_destroy(whole);
    rocksdb_writebatch_wi_destroy(indexed);
}

/* What is written of one is read back. */
static void test_written(rocksdb_t* db, rocksdb_column_family_handle_t* family) {
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    size_t len;
    rocksdb_put_cf(db, write, family, LIT("r2"), LIT("v"), &error);
    rocksdb_put_cf(db, write, family, LIT("gone"), LIT("v"), &error);
    CHECK_OK(error);
    rocksdb_writebatch_putv_cf(batch, family, 2, key, key_lens, 3, value, value_lens);
    rocksdb_writebatch_deletev_cf(batch, family, 2, gone, gone_lens);
    rocksdb_writebatch_delete_rangev_cf(batch, family, 2, from, one_each, to, one_each);
    rocksdb_writebatch_putv(batch, 0, NULL, NULL, 2, operand, operand_lens); /* the empty key */
    rocksdb_write(db, write, batch, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get_cf(db, read, family, LIT("key1"), &len, &error), len, "value");
    CHECK(rocksdb_get_cf(db, read, family, LIT("gone"), &len, &error) == NULL);
    CHECK(rocksdb_get_cf(db, read, family, LIT("r2"), &len, &error) == NULL);
    CHECK_GIVEN(rocksdb_get(db, read, LIT(""), &len, &error), len, "more");
    rocksdb_writebatch_destroy(batch);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
}

int main(int argc, char** argv) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_column_family_handle_t* family;
    rocksdb_t* db;
    if (argc < 2) return 2;
    rocksdb_options_set_create_if_missing(options, 1);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    family = rocksdb_create_column_family(db, options, "own", &error);
    CHECK_OK(error);
    test_same(family);
    test_written(db, family);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    return outcome("vectors");
}
