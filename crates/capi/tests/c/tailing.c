/* Iterators over what changes: refreshed ones, and tailing ones, which follow a writer without a new seek. */

#include "check.h"

static char* error;
static rocksdb_t* db;
static rocksdb_writeoptions_t* write;

static void put(const char* key) {
    rocksdb_put(db, write, LIT(key), LIT("v"), &error);
    CHECK_OK(error);
}

/* It stands on that key, or on none where `key` is empty. */
static void check_at(rocksdb_iterator_t* iterator, const char* key, int line) {
    size_t len = 0;
    const char* at = rocksdb_iter_valid(iterator) ? rocksdb_iter_key(iterator, &len) : "";
    if (len != strlen(key) || memcmp(at, key, len) != 0) {
        fprintf(stderr, "line %d: not at \"%s\": \"%.*s\"\n", line, key, (int)len, at);
        ++failures;
    }
}
#define CHECK_AT(iterator, key) check_at((iterator), (key), __LINE__)

/* RocksDB shows the latest state then, whatever snapshot the iterator was made with. */
static void test_refresh(void) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
    rocksdb_iterator_t* iterator;
    rocksdb_readoptions_set_snapshot(read, snapshot);
    iterator = rocksdb_create_iterator(db, read);
    put("late");
    rocksdb_iter_seek(iterator, LIT("late"));
    CHECK_AT(iterator, "");
    rocksdb_iter_refresh(iterator, &error);
    CHECK_OK(error);
    CHECK_AT(iterator, "");
    rocksdb_iter_seek(iterator, LIT("late"));
    CHECK_AT(iterator, "late");
    rocksdb_iter_destroy(iterator);
    rocksdb_release_snapshot(db, snapshot);
    rocksdb_readoptions_destroy(read);
    rocksdb_delete(db, write, LIT("late"), &error);
    CHECK_OK(error);
}

static void test_following(rocksdb_iterator_t* iterator) {
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    put("a");
    put("c");
    rocksdb_iter_seek_to_first(iterator);
    CHECK_AT(iterator, "a");
    put("b"); /* before the next step: seen */
    rocksdb_iter_next(iterator);
    CHECK_AT(iterator, "b");
    rocksdb_delete(db, write, LIT("b"), &error);
    rocksdb_iter_next(iterator);
    CHECK_AT(iterator, "c");
    rocksdb_iter_next(iterator);
    CHECK_AT(iterator, "");
    rocksdb_iter_next(iterator);
    CHECK_AT(iterator, "");
    put("b"); /* behind it: not seen */
    put("d");
    rocksdb_iter_next(iterator);
    CHECK_AT(iterator, "d");
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    rocksdb_iter_next(iterator);
    put("e");
    rocksdb_iter_next(iterator);
    CHECK_AT(iterator, "e");
    rocksdb_iter_prev(iterator);
    CHECK_AT(iterator, "d");
    rocksdb_iter_get_error(iterator, &error);
    CHECK_OK(error);
    rocksdb_flushoptions_destroy(flush);
}

/* A seek behind the end waits for what comes there. */
static void test_waiting(rocksdb_iterator_t* iterator) {
    rocksdb_iter_seek(iterator, LIT("m"));
    CHECK_AT(iterator, "");
    put("l");
    put("m");
    rocksdb_iter_next(iterator);
    CHECK_AT(iterator, "m");
    rocksdb_iter_refresh(iterator, &error);
    CHECK_OK(error);
    CHECK_AT(iterator, "");
    rocksdb_iter_seek_for_prev(iterator, LIT("lz"));
    CHECK_AT(iterator, "l");
    put("n");
    rocksdb_iter_seek_to_last(iterator);
    CHECK_AT(iterator, "n");
}

int main(int argc, char** argv) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_readoptions_t* tailing = rocksdb_readoptions_create();
    rocksdb_iterator_t* iterator;
    if (argc < 2) return 2;
    write = rocksdb_writeoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    test_refresh();
    rocksdb_readoptions_set_tailing(tailing, 1);
    iterator = rocksdb_create_iterator(db, tailing);
    rocksdb_iter_next(iterator); /* nothing is there */
    CHECK_AT(iterator, "");
    test_following(iterator);
    test_waiting(iterator);
    rocksdb_iter_destroy(iterator);
    rocksdb_close(db);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(tailing);
    rocksdb_options_destroy(options);
    return outcome("tailing");
}
