/* Changes out of the log, in their order, and logs that are kept for it. */

#include "check.h"

static char* error;
static rocksdb_t* db;
static rocksdb_writeoptions_t* write;

static void put(const char* key) {
    rocksdb_put(db, write, LIT(key), LIT("v"), &error);
    CHECK_OK(error);
}

static rocksdb_wal_iterator_t* since(uint64_t sequence) {
    rocksdb_wal_iterator_t* iterator = rocksdb_get_updates_since(db, sequence, NULL, &error);
    CHECK_OK(error);
    return iterator;
}

/* It stands on a batch of that number, with so many changes. */
static void check_at(rocksdb_wal_iterator_t* iterator, uint64_t sequence, int count, int line) {
    uint64_t found = 0, in_header = 0;
    size_t len = 0;
    rocksdb_writebatch_t* batch;
    if (!rocksdb_wal_iter_valid(iterator)) {
        fprintf(stderr, "line %d: not valid\n", line);
        ++failures;
        return;
    }
    batch = rocksdb_wal_iter_get_batch(iterator, &found);
    memcpy(&in_header, rocksdb_writebatch_data(batch, &len), 8);
    if (found != sequence || in_header != sequence || rocksdb_writebatch_count(batch) != count) {
        fprintf(stderr, "line %d: at %d with %d\n", line, (int)found, rocksdb_writebatch_count(batch));
        ++failures;
    }
    rocksdb_writebatch_destroy(batch);
}
#define CHECK_AT(iterator, sequence, count) check_at((iterator), (sequence), (count), __LINE__)

static void check_ended(rocksdb_wal_iterator_t* iterator) {
    CHECK(!rocksdb_wal_iter_valid(iterator));
    rocksdb_wal_iter_status(iterator, &error);
    CHECK_OK(error);
}

static void test_reading(void) {
    rocksdb_wal_iterator_t* iterator = since(0);
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    uint64_t sequence = 9;
    CHECK(rocksdb_get_current_wal_file(db, &error) == NULL);
    CHECK_ERROR(error, "NotFound: nothing was logged since");
    check_ended(iterator);
    rocksdb_writebatch_destroy(rocksdb_wal_iter_get_batch(iterator, &sequence));
    CHECK(sequence == 0);
    CHECK(rocksdb_get_updates_since(db, 1, NULL, &error) == NULL);
    CHECK_ERROR(error, "NotFound: Requested sequence not yet written in the db");
    put("a");
    rocksdb_writebatch_put(batch, LIT("b"), LIT("1"));
    rocksdb_writebatch_put(batch, LIT("c"), LIT("2"));
    rocksdb_write(db, write, batch, &error);
    CHECK_OK(error);
    rocksdb_writebatch_destroy(batch);
    rocksdb_wal_iter_next(iterator);
    CHECK_AT(iterator, 1, 1);
    rocksdb_wal_iter_next(iterator);
    CHECK_AT(iterator, 2, 2);
    rocksdb_wal_iter_next(iterator);
    check_ended(iterator);
    put("d");
    rocksdb_wal_iter_next(iterator);
    CHECK_AT(iterator, 4, 1);
    rocksdb_wal_iter_destroy(iterator);
    iterator = since(3);
    CHECK_AT(iterator, 2, 2);
    rocksdb_wal_iter_destroy(iterator);
}

static void test_what_is_in_no_log(void) {
    rocksdb_writeoptions_t* unlogged = rocksdb_writeoptions_create();
    rocksdb_wal_iterator_t* iterator = since(4);
    rocksdb_writeoptions_disable_WAL(unlogged, 1);
    rocksdb_put(db, unlogged, LIT("e"), LIT("v"), &error);
    CHECK_OK(error);
    put("f");
    CHECK_AT(iterator, 4, 1);
    rocksdb_wal_iter_next(iterator);
    CHECK(!rocksdb_wal_iter_valid(iterator));
    rocksdb_wal_iter_status(iterator, &error);
    CHECK_ERROR(error, "NotFound: Gap in sequence numbers");
    rocksdb_wal_iter_destroy(iterator);
    iterator = since(5);
    CHECK_AT(iterator, 6, 1);
    rocksdb_wal_iter_destroy(iterator);
    rocksdb_writeoptions_destroy(unlogged);
}

/* One log, whose first change is `first`. */
static void check_log(const rocksdb_wal_file_t* file, int type, const char* dir, uint64_t first) {
    char expected[64];
    snprintf(expected, sizeof expected, "%s%06d.splog", dir, (int)rocksdb_wal_file_log_number(file));
    CHECK(strcmp(rocksdb_wal_file_path_name(file), expected) == 0);
    CHECK(rocksdb_wal_file_type(file) == type);
    CHECK(rocksdb_wal_file_start_sequence(file) == first);
    CHECK(rocksdb_wal_file_size_file_bytes(file) > 0);
}

static void test_logs(uint64_t archived, uint64_t alive) {
    rocksdb_wal_file_t* current = rocksdb_get_current_wal_file(db, &error);
    rocksdb_wal_files_t* files;
    size_t count = archived > 0 ? 2 : 1;
    CHECK_OK(error);
    check_log(current, rocksdb_wal_file_type_alive_log, "/", 0);
    files = rocksdb_get_sorted_wal_files(db, &error);
    CHECK_OK(error);
    CHECK(rocksdb_wal_files_count(files) == count);
    CHECK(rocksdb_wal_files_get_wal_file(files, count) == NULL);
    if (archived > 0) {
        check_log(rocksdb_wal_files_get_wal_file(files, 0), rocksdb_wal_file_type_archived_log, "/archive/", archived);
    }
    check_log(rocksdb_wal_files_get_wal_file(files, count - 1), rocksdb_wal_file_type_alive_log, "/", alive);
    CHECK(rocksdb_wal_file_log_number(rocksdb_wal_files_get_wal_file(files, count - 1)) ==
          rocksdb_wal_file_log_number(current));
    rocksdb_wal_files_destroy(files);
    rocksdb_wal_file_destroy(current);
}

/* Flushed logs are there as long as the options say. */
static void test_archive(rocksdb_options_t* options, const char* path) {
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_wal_readoptions_t* read = rocksdb_wal_readoptions_create();
    rocksdb_wal_iterator_t* iterator;
    int i;
    rocksdb_options_set_WAL_ttl_seconds(options, 3600);
    rocksdb_options_set_WAL_size_limit_MB(options, 10);
    db = rocksdb_open(options, path, &error);
    CHECK_OK(error);
    put("a");
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    rocksdb_close(db);
    db = rocksdb_open(options, path, &error);
    CHECK_OK(error);
    put("b");
    test_logs(1, 2);
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    rocksdb_wal_readoptions_set_verify_checksums(read, 1);
    CHECK(rocksdb_wal_readoptions_get_verify_checksums(read) == 1);
    iterator = rocksdb_get_updates_since(db, 1, read, &error);
    CHECK_OK(error);
    for (i = 1; i <= 2; ++i) {
        CHECK_AT(iterator, (uint64_t)i, 1);
        rocksdb_wal_iter_next(iterator);
    }
    check_ended(iterator);
    rocksdb_wal_iter_destroy(iterator);
    rocksdb_wal_readoptions_destroy(read);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_close(db);
}

int main(int argc, char** argv) {
    rocksdb_options_t* options = rocksdb_options_create();
    if (argc < 2) return 2;
    write = rocksdb_writeoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    test_reading();
    test_what_is_in_no_log();
    test_logs(0, 1);
    rocksdb_close(db);
    test_archive(options, path_in(argv, "archived"));
    rocksdb_writeoptions_destroy(write);
    rocksdb_options_destroy(options);
    return outcome("updates");
}
