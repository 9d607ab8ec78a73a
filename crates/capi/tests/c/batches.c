/* Write batches: made, read, put together from bytes. */

#include "check.h"

static char* error;
static char seen[256];

static void note(const char* what, const char* key, size_t len) {
    strcat(seen, what);
    strncat(seen, key, len);
    strcat(seen, ";");
}

static void on_put(void* state, const char* key, size_t len, const char* value, size_t value_len) {
    (void)state, (void)value, (void)value_len;
    note("put ", key, len);
}

static void on_deleted(void* state, const char* key, size_t len) {
    (void)state;
    note("delete ", key, len);
}

static void on_put_cf(void* state, uint32_t family, const char* key, size_t len, const char* value, size_t value_len) {
    note(family == *(uint32_t*)state ? "own put " : "put ", key, len);
    (void)value, (void)value_len;
}

static void on_deleted_cf(void* state, uint32_t family, const char* key, size_t len) {
    note(family == *(uint32_t*)state ? "own delete " : "delete ", key, len);
}

static void on_merge_cf(void* state, uint32_t family, const char* key, size_t len, const char* v, size_t v_len) {
    note(family == *(uint32_t*)state ? "own merge " : "merge ", key, len);
    (void)v, (void)v_len;
}

static void fill(rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t* family) {
    rocksdb_writebatch_put(batch, LIT("a"), LIT("1"));
    rocksdb_writebatch_put_cf(batch, family, LIT("b"), LIT("2"));
    rocksdb_writebatch_delete(batch, LIT("c"));
    rocksdb_writebatch_delete_cf(batch, family, LIT("d"));
    rocksdb_writebatch_merge(batch, LIT("e"), LIT("3"));
    rocksdb_writebatch_merge_cf(batch, family, LIT("f"), LIT("4"));
    rocksdb_writebatch_singledelete(batch, LIT("g"));
    rocksdb_writebatch_singledelete_cf(batch, family, LIT("h"));
    rocksdb_writebatch_delete_range(batch, LIT("i"), LIT("j"));
    rocksdb_writebatch_delete_range_cf(batch, family, LIT("k"), LIT("l"));
    rocksdb_writebatch_put_log_data(batch, LIT("no change"));
}

static void test_savepoints(rocksdb_writebatch_t* batch) {
    rocksdb_writebatch_pop_save_point(batch, &error);
    CHECK_ERROR(error, "NotFound: ");
    rocksdb_writebatch_rollback_to_save_point(batch, &error);
    CHECK_ERROR(error, "NotFound: ");
    rocksdb_writebatch_set_save_point(batch);
    rocksdb_writebatch_put(batch, LIT("x"), LIT("y"));
    rocksdb_writebatch_set_save_point(batch);
    rocksdb_writebatch_pop_save_point(batch, &error);
    CHECK_OK(error);
    rocksdb_writebatch_rollback_to_save_point(batch, &error);
    CHECK_OK(error);
}

int main(int argc, char** argv) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create(), *copy, *broken;
    rocksdb_column_family_handle_t* family;
    rocksdb_t* db;
    const char* bytes;
    size_t len;
    uint32_t id;
    if (argc < 2) return 2;
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_uint64add_merge_operator(options);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    family = rocksdb_create_column_family(db, options, "own", &error);
    CHECK_OK(error);
    id = rocksdb_column_family_handle_get_id(family);
    fill(batch, family);
    CHECK(rocksdb_writebatch_count(batch) == 10);
    test_savepoints(batch);
    CHECK(rocksdb_writebatch_count(batch) == 10);
    rocksdb_writebatch_iterate(batch, NULL, on_put, on_deleted);
    CHECK(strcmp(seen, "put a;put b;delete c;delete d;") == 0);
    seen[0] = '\0';
    rocksdb_writebatch_iterate_cf(batch, &id, on_put_cf, on_deleted_cf, on_merge_cf);
    CHECK(strcmp(seen, "put a;own put b;delete c;own delete d;merge e;own merge f;") == 0);
    bytes = rocksdb_writebatch_data(batch, &len);
    CHECK(len > 12);
    copy = rocksdb_writebatch_create_from(bytes, len);
    CHECK(rocksdb_writebatch_count(copy) == 10);
    broken = rocksdb_writebatch_create_from(bytes, len - 1);
    rocksdb_write(db, write, broken, &error);
    CHECK_ERROR(error, "Corruption: ");
    rocksdb_writebatch_clear(broken);
    rocksdb_write(db, write, broken, &error);
    CHECK_OK(error);
    rocksdb_write(db, write, copy, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("a"), &len, &error), 1, "1");
    CHECK_GIVEN(rocksdb_get_cf(db, read, family, LIT("b"), &len, &error), 1, "2");
    rocksdb_writebatch_destroy(broken);
    rocksdb_writebatch_destroy(copy);
    rocksdb_writebatch_clear(batch);
    CHECK(rocksdb_writebatch_count(batch) == 0);
    rocksdb_writebatch_destroy(batch);

    /* A family that is gone. */
    batch = rocksdb_writebatch_create_with_params(100, 0, 0, 0);
    rocksdb_writebatch_put_cf(batch, family, LIT("b"), LIT("2"));
    rocksdb_drop_column_family(db, family, &error);
    rocksdb_write(db, write, batch, &error);
    CHECK(error != NULL);
    rocksdb_free(error);
    error = NULL;
    rocksdb_writeoptions_set_ignore_missing_column_families(write, 1);
    rocksdb_write(db, write, batch, &error);
    CHECK_OK(error);
    rocksdb_writebatch_destroy(batch);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
    return outcome("batches");
}
