/* Opening, reading and writing, iterators, snapshots, properties, and what lasts over a reopening. */

#include "check.h"

static rocksdb_options_t* options;
static rocksdb_readoptions_t* read;
static rocksdb_writeoptions_t* written;
static char* error;

static void put(rocksdb_t* db, const char* key, const char* value) {
    rocksdb_put(db, written, LIT(key), LIT(value), &error);
    CHECK_OK(error);
}

static void test_open_errors(char** argv) {
    rocksdb_options_t* strict = rocksdb_options_create();
    CHECK(rocksdb_open(strict, path_in(argv, "absent"), &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: ");
    /* A message that is there already is freed and replaced. */
    error = malloc(4);
    strcpy(error, "old");
    CHECK(rocksdb_open_for_read_only(strict, path_in(argv, "absent"), 0, &error) == NULL);
    CHECK(error != NULL && strcmp(error, "old") != 0);
    rocksdb_free(error);
    error = NULL;
    rocksdb_options_destroy(strict);
}

static void test_gets(rocksdb_t* db) {
    size_t len = 77;
    unsigned char found = 7, exists;
    char buffer[8];
    char* value;
    rocksdb_pinnableslice_t* pinned;
    rocksdb_pinnable_handle_t* handle;
    put(db, "a", "one");
    put(db, "empty", "");
    CHECK_GIVEN(rocksdb_get(db, read, LIT("a"), &len, &error), 3, "one");
    CHECK(len == 3 && error == NULL);
    CHECK(rocksdb_get(db, read, LIT("none"), &len, &error) == NULL && len == 0 && error == NULL);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("empty"), &len, &error), 0, "");
    rocksdb_put(db, written, NULL, 0, LIT("of the empty key"), &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, NULL, 0, &len, &error), len, "of the empty key");
    rocksdb_delete(db, written, NULL, 0, &error);
    CHECK_OK(error);

    pinned = rocksdb_get_pinned(db, read, LIT("a"), &error);
    CHECK_BYTES(rocksdb_pinnableslice_value(pinned, &len), len, "one");
    rocksdb_pinnableslice_destroy(pinned);
    CHECK(rocksdb_get_pinned(db, read, LIT("none"), &error) == NULL && error == NULL);
    CHECK(rocksdb_pinnableslice_value(NULL, &len) == NULL && len == 0);
    handle = rocksdb_get_pinned_v2(db, read, LIT("a"), &error);
    CHECK_BYTES(rocksdb_pinnable_handle_get_value(handle, &len), len, "one");
    rocksdb_pinnable_handle_destroy(handle);
    CHECK(rocksdb_get_into_buffer(db, read, LIT("a"), buffer, sizeof buffer, &len, &found, &error) == 1);
    CHECK_BYTES(buffer, len, "one");
    CHECK(rocksdb_get_into_buffer(db, read, LIT("a"), buffer, 2, &len, &found, &error) == 0 && found == 1 && len == 3);
    CHECK(rocksdb_get_into_buffer(db, read, LIT("none"), NULL, 0, &len, &found, &error) == 0 && found == 0);
    exists = rocksdb_key_may_exist(db, read, LIT("a"), &value, &len, NULL, 0, &found);
    CHECK(exists == 1 && found == 1);
    CHECK_GIVEN(value, len, "one");
    CHECK(rocksdb_key_may_exist(db, read, LIT("none"), NULL, NULL, NULL, 0, NULL) == 0);
    rocksdb_singledelete(db, written, LIT("empty"), &error);
    CHECK_OK(error);
    CHECK(rocksdb_get(db, read, LIT("empty"), &len, &error) == NULL);
}

static void test_multi_gets(rocksdb_t* db) {
    const char* keys[3] = {"a", "none", "b"};
    const size_t lens[3] = {1, 4, 1};
    char *values[3], *errors[3];
    size_t value_lens[3];
    put(db, "b", "two");
    rocksdb_multi_get(db, read, 3, keys, lens, values, value_lens, errors);
    CHECK_GIVEN(values[0], value_lens[0], "one");
    CHECK(values[1] == NULL && errors[0] == NULL && errors[1] == NULL && errors[2] == NULL);
    CHECK_GIVEN(values[2], value_lens[2], "two");
    rocksdb_multi_get(db, read, 0, NULL, NULL, NULL, NULL, NULL);
}

static void test_iterators(rocksdb_t* db) {
    size_t len;
    rocksdb_slice_t slice;
    rocksdb_iterator_t* it = rocksdb_create_iterator(db, read);
    rocksdb_readoptions_t* bounded = rocksdb_readoptions_create();
    CHECK(!rocksdb_iter_valid(it));
    put(db, "c", "three");
    rocksdb_iter_seek_to_first(it);
    CHECK(rocksdb_iter_valid(it));
    CHECK_BYTES(rocksdb_iter_key(it, &len), len, "a");
    CHECK_BYTES(rocksdb_iter_value(it, &len), len, "one");
    rocksdb_iter_next(it);
    slice = rocksdb_iter_key_slice(it);
    CHECK_BYTES(slice.data, slice.size, "b");
    slice = rocksdb_iter_value_slice(it);
    CHECK_BYTES(slice.data, slice.size, "two");
    rocksdb_iter_next(it);
    CHECK(!rocksdb_iter_valid(it)); /* it was made before "c" */
    rocksdb_iter_key(it, &len);
    CHECK(len == 0);
    rocksdb_iter_next(it);
    rocksdb_iter_refresh(it, &error);
    CHECK_OK(error);
    rocksdb_iter_seek_to_last(it);
    CHECK_BYTES(rocksdb_iter_key(it, &len), len, "c");
    rocksdb_iter_prev(it);
    CHECK_BYTES(rocksdb_iter_key(it, &len), len, "b");
    rocksdb_iter_seek(it, LIT("bb"));
    CHECK_BYTES(rocksdb_iter_key(it, &len), len, "c");
    rocksdb_iter_seek_for_prev(it, LIT("bb"));
    CHECK_BYTES(rocksdb_iter_key(it, &len), len, "b");
    rocksdb_iter_get_error(it, &error);
    CHECK_OK(error);
    rocksdb_iter_destroy(it);

    rocksdb_readoptions_set_iterate_lower_bound(bounded, LIT("b"));
    rocksdb_readoptions_set_iterate_upper_bound(bounded, LIT("c"));
    it = rocksdb_create_iterator(db, bounded);
    rocksdb_iter_seek_to_first(it);
    CHECK_BYTES(rocksdb_iter_key(it, &len), len, "b");
    rocksdb_iter_next(it);
    CHECK(!rocksdb_iter_valid(it));
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_set_iterate_lower_bound(bounded, NULL, 0);
    rocksdb_readoptions_set_iterate_upper_bound(bounded, NULL, 0);
    rocksdb_readoptions_set_tailing(bounded, 1);
    it = rocksdb_create_iterator(db, bounded);
    put(db, "d", "four");
    rocksdb_iter_seek(it, LIT("d"));
    CHECK(rocksdb_iter_valid(it)); /* tailing iterators see what is new */
    rocksdb_iter_destroy(it);
    rocksdb_delete(db, written, LIT("d"), &error);
    rocksdb_readoptions_destroy(bounded);
}

static void test_snapshots(rocksdb_t* db) {
    size_t len;
    rocksdb_readoptions_t* then = rocksdb_readoptions_create();
    const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
    CHECK(rocksdb_snapshot_get_sequence_number(snapshot) == rocksdb_get_latest_sequence_number(db));
    put(db, "a", "new");
    rocksdb_readoptions_set_snapshot(then, snapshot);
    CHECK_GIVEN(rocksdb_get(db, then, LIT("a"), &len, &error), 3, "one");
    rocksdb_readoptions_set_snapshot(then, NULL);
    CHECK_GIVEN(rocksdb_get(db, then, LIT("a"), &len, &error), 3, "new");
    rocksdb_release_snapshot(db, snapshot);
    rocksdb_readoptions_destroy(then);
}

static void test_properties(rocksdb_t* db) {
    const char *start = "a", *limit = "zz";
    size_t start_len = 1, limit_len = 2, len;
    uint64_t number = 0, size = 77;
    char* text = rocksdb_property_value(db, "rocksdb.estimate-num-keys");
    CHECK(text != NULL && atoi(text) > 0);
    rocksdb_free(text);
    CHECK(rocksdb_property_value(db, "rocksdb.nonsense") == NULL);
    CHECK(rocksdb_property_int(db, "rocksdb.estimate-num-keys", &number) == 0 && number > 0);
    CHECK(rocksdb_property_int(db, "rocksdb.stats", &number) == -1);
    text = rocksdb_get_db_identity(db, &len);
    CHECK(text != NULL && len == 36);
    rocksdb_free(text);
    rocksdb_approximate_sizes(db, 1, &start, &start_len, &limit, &limit_len, &size, &error);
    CHECK_OK(error);
    CHECK(size < 1 << 20);
}

static void test_what_outlives_a_close(char** argv) {
    size_t len;
    const char* path = path_in(argv, "outlived");
    rocksdb_t* db = rocksdb_open(options, path, &error);
    rocksdb_iterator_t* it;
    const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
    rocksdb_pinnableslice_t* pinned;
    put(db, "a", "one");
    it = rocksdb_create_iterator(db, read);
    pinned = rocksdb_get_pinned(db, read, LIT("a"), &error);
    rocksdb_close(db);
    rocksdb_iter_seek_to_first(it);
    CHECK_BYTES(rocksdb_iter_key(it, &len), len, "a");
    CHECK_BYTES(rocksdb_pinnableslice_value(pinned, &len), len, "one");
    CHECK(rocksdb_snapshot_get_sequence_number(snapshot) == 0);
    rocksdb_iter_refresh(it, &error);
    CHECK_ERROR(error, "Shutdown in progress: ");
    rocksdb_iter_get_error(it, &error);
    CHECK_ERROR(error, "Shutdown in progress: ");
    CHECK(!rocksdb_iter_valid(it));
    rocksdb_iter_destroy(it);
    rocksdb_pinnableslice_destroy(pinned);
    /* The directory is free again while handles of the old one live. */
    db = rocksdb_open(options, path, &error);
    CHECK_OK(error);
    rocksdb_release_snapshot(db, snapshot);
    rocksdb_close(db);
}

/* The log is there from the open on, as RocksDB's: writes need nothing of the directory any more. */
static void test_removed_directory(char** argv) {
    char command[600];
    size_t len;
    rocksdb_t* db = rocksdb_open(options, path_in(argv, "removed"), &error);
    CHECK_OK(error);
    snprintf(command, sizeof command, "rm -r '%s'", path_in(argv, "removed"));
    CHECK(system(command) == 0);
    put(db, "a", "one");
    CHECK_GIVEN(rocksdb_get(db, read, LIT("a"), &len, &error), 3, "one");
    rocksdb_close(db);
}

int main(int argc, char** argv) {
    rocksdb_t *db, *other;
    rocksdb_flushwaloptions_t* flush_wal = rocksdb_flushwaloptions_create();
    size_t len;
    if (argc < 2) return 2;
    options = rocksdb_options_create();
    read = rocksdb_readoptions_create();
    written = rocksdb_writeoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    test_open_errors(argv);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    if (db == NULL) return outcome("basics");
    CHECK(rocksdb_open(options, path_in(argv, "db"), &error) == NULL);
    CHECK_ERROR(error, "IO error: lock hold by current process, acquire time ");
    test_gets(db);
    test_multi_gets(db);
    test_iterators(db);
    test_snapshots(db);
    test_properties(db);
    rocksdb_writeoptions_set_sync(written, 1);
    put(db, "synced", "yes");
    rocksdb_writeoptions_set_sync(written, 0);
    rocksdb_writeoptions_disable_WAL(written, 1);
    CHECK(rocksdb_writeoptions_get_disable_WAL(written) == 1);
    put(db, "unlogged", "yes");
    rocksdb_writeoptions_disable_WAL(written, 0);
    rocksdb_flush_wal(db, 1, &error);
    CHECK_OK(error);
    rocksdb_flush_wal(db, 0, &error);
    CHECK_OK(error);
    rocksdb_flushwaloptions_set_sync(flush_wal, 1);
    rocksdb_flush_wal_with_options(db, flush_wal, &error);
    CHECK_OK(error);
    rocksdb_flushwaloptions_destroy(flush_wal);
    rocksdb_close(db);

    other = rocksdb_open_for_read_only(options, path_in(argv, "db"), 0, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(other, read, LIT("unlogged"), &len, &error), 3, "yes");
    rocksdb_put(other, written, LIT("a"), LIT("b"), &error);
    CHECK_ERROR(error, "Not implemented: ");
    rocksdb_close(other);
    rocksdb_repair_db(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    test_what_outlives_a_close(argv);
    test_removed_directory(argv);
    rocksdb_destroy_db(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    rocksdb_options_set_create_if_missing(options, 0);
    CHECK(rocksdb_open(options, path_in(argv, "db"), &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_close(NULL);
    rocksdb_iter_destroy(NULL);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(written);
    return outcome("basics");
}
