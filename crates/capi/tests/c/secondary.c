/* A secondary follows a primary that is open in the same process. */

#include "check.h"

static char* error;
static rocksdb_options_t* options;
static rocksdb_readoptions_t* read;
static rocksdb_writeoptions_t* write;

static void put(rocksdb_t* db, const char* key, const char* value) {
    rocksdb_put(db, write, LIT(key), LIT(value), &error);
    CHECK_OK(error);
}

static void test_default_family(rocksdb_t* primary, const char* path, const char* second) {
    size_t len;
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_t* db = rocksdb_open_as_secondary(options, path, second, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("a"), &len, &error), len, "1");
    put(primary, "a", "2");
    rocksdb_flush(primary, flush, &error);
    CHECK_OK(error);
    put(primary, "b", "2");
    CHECK_GIVEN(rocksdb_get(db, read, LIT("a"), &len, &error), len, "1");
    rocksdb_try_catch_up_with_primary(db, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("a"), &len, &error), len, "2");
    CHECK_GIVEN(rocksdb_get(db, read, LIT("b"), &len, &error), len, "2");
    rocksdb_put(db, write, LIT("c"), LIT("3"), &error);
    CHECK_ERROR(error, "Not implemented: Not supported operation in secondary mode.");
    rocksdb_flush(db, flush, &error);
    CHECK_ERROR(error, "Not implemented: Not supported operation in secondary mode.");
    rocksdb_flushoptions_destroy(flush);
    rocksdb_close(db);
}

static void test_families(rocksdb_t* primary, rocksdb_column_family_handle_t* one, const char* path, const char* second) {
    const char* names[2] = {"default", "one"};
    const rocksdb_options_t* of[2];
    rocksdb_column_family_handle_t* families[2];
    size_t len;
    rocksdb_t* db;
    of[0] = of[1] = options;
    db = rocksdb_open_as_secondary_column_families(options, path, second, 2, names, of, families, &error);
    CHECK_OK(error);
    rocksdb_put_cf(primary, write, one, LIT("k"), LIT("v"), &error);
    CHECK_OK(error);
    rocksdb_try_catch_up_with_primary(db, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get_cf(db, read, families[1], LIT("k"), &len, &error), len, "v");
    CHECK_GIVEN(rocksdb_property_value(db, "spillway.secondary-bytes-behind"), 1, "0");
    rocksdb_column_family_handle_destroy(families[0]);
    rocksdb_column_family_handle_destroy(families[1]);
    rocksdb_close(db);
}

int main(int argc, char** argv) {
    rocksdb_t* primary;
    rocksdb_column_family_handle_t* one;
    if (argc < 2) return 2;
    options = rocksdb_options_create();
    read = rocksdb_readoptions_create();
    write = rocksdb_writeoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    CHECK(rocksdb_open_as_secondary(options, path_in(argv, "none"), path_in(argv, "second"), &error) == NULL);
    CHECK_ERROR(error, "");
    primary = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    put(primary, "a", "1");
    test_default_family(primary, path_in(argv, "db"), path_in(argv, "second"));
    one = rocksdb_create_column_family(primary, options, "one", &error);
    CHECK_OK(error);
    test_families(primary, one, path_in(argv, "db"), path_in(argv, "second"));
    rocksdb_try_catch_up_with_primary(primary, &error);
    CHECK_ERROR(error, "Not implemented: Supported only by secondary instance");
    rocksdb_column_family_handle_destroy(one);
    rocksdb_close(primary);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    return outcome("secondary");
}
