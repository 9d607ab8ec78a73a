/* What RocksDB has and Spillway has not: errors that say so. */

#include "check.h"

static char* error;
static rocksdb_t* db;
static rocksdb_column_family_handle_t* family;
static rocksdb_options_t* options;
static rocksdb_readoptions_t* read_options;
static rocksdb_writeoptions_t* write_options;

#define CHECK_REFUSED() CHECK_ERROR(error, "Not implemented: ")

/* Nothing is returned, and an error says so. */
#define CHECK_ABSENT(call)                                                                \
    do {                                                                                  \
        CHECK((call) == NULL);                                                            \
        CHECK_REFUSED();                                                                  \
    } while (0)

static void test_opens(char** argv) {
    const char* names[1] = {"default"};
    const rocksdb_options_t* of[1];
    rocksdb_column_family_handle_t* families[1];
    char stamp[8] = {0};
    const char* name = path_in(argv, "other");
    of[0] = options;
    CHECK_ABSENT(rocksdb_open_and_trim_history(options, name, 1, names, of, families, stamp, 8, &error));
    CHECK_ABSENT(rocksdb_jemalloc_nodump_allocator_create(&error));
}

static void test_writes_with_timestamps(char** argv) {
    rocksdb_envoptions_t* env = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t* table = rocksdb_sstfilewriter_create(env, options);
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_put_with_ts(db, write_options, LIT("k"), LIT("time"), LIT("v"), &error);
    CHECK_REFUSED();
    rocksdb_put_cf_with_ts(db, write_options, family, LIT("k"), LIT("time"), LIT("v"), &error);
    CHECK_REFUSED();
    rocksdb_delete_with_ts(db, write_options, LIT("k"), LIT("time"), &error);
    CHECK_REFUSED();
    rocksdb_delete_cf_with_ts(db, write_options, family, LIT("k"), LIT("time"), &error);
    CHECK_REFUSED();
    rocksdb_singledelete_with_ts(db, write_options, LIT("k"), LIT("time"), &error);
    CHECK_REFUSED();
    rocksdb_singledelete_cf_with_ts(db, write_options, family, LIT("k"), LIT("time"), &error);
    CHECK_REFUSED();
    rocksdb_sstfilewriter_open(table, path_in(argv, "table.sst"), &error);
    CHECK_OK(error);
    rocksdb_sstfilewriter_put_with_ts(table, LIT("k"), LIT("time"), LIT("v"), &error);
    CHECK_REFUSED();
    rocksdb_sstfilewriter_delete_with_ts(table, LIT("k"), LIT("time"), &error);
    CHECK_REFUSED();
    rocksdb_sstfilewriter_destroy(table);
    rocksdb_envoptions_destroy(env);

    rocksdb_writebatch_put_cf_with_ts(batch, family, LIT("k"), LIT("time"), LIT("v"));
    rocksdb_write(db, write_options, batch, &error);
    CHECK_REFUSED();
    rocksdb_writebatch_clear(batch);
    rocksdb_write(db, write_options, batch, &error);
    CHECK_OK(error);
    rocksdb_writebatch_delete_cf_with_ts(batch, family, LIT("k"), LIT("time"));
    rocksdb_write(db, write_options, batch, &error);
    CHECK_REFUSED();
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_singledelete_cf_with_ts(batch, family, LIT("k"), LIT("time"));
    rocksdb_write(db, write_options, batch, &error);
    CHECK_REFUSED();
    rocksdb_writebatch_destroy(batch);
}

static void test_reads_with_timestamps(void) {
    const rocksdb_column_family_handle_t* of[1];
    const char* keys[1] = {"k"};
    const size_t lens[1] = {1};
    char *values[1], *stamps[1], *errors[1], *stamp, time[] = "time";
    size_t value_lens[1], stamp_lens[1], len, stamp_len;
    rocksdb_iterator_t* iterator;
    rocksdb_compactoptions_t* compact = rocksdb_compactoptions_create();
    of[0] = family;
    CHECK_ABSENT(rocksdb_get_with_ts(db, read_options, LIT("k"), &len, &stamp, &stamp_len, &error));
    CHECK_ABSENT(rocksdb_get_cf_with_ts(db, read_options, family, LIT("k"), &len, &stamp, &stamp_len, &error));
    values[0] = stamps[0] = time;
    value_lens[0] = stamp_lens[0] = 4;
    rocksdb_multi_get_with_ts(db, read_options, 1, keys, lens, values, value_lens, stamps, stamp_lens, errors);
    CHECK(values[0] == NULL && value_lens[0] == 0 && stamps[0] == NULL && stamp_lens[0] == 0);
    CHECK_ERROR(errors[0], "Not implemented: ");
    values[0] = stamps[0] = time;
    rocksdb_multi_get_cf_with_ts(db, read_options, of, 1, keys, lens, values, value_lens, stamps, stamp_lens, errors);
    CHECK(values[0] == NULL && value_lens[0] == 0 && stamps[0] == NULL && stamp_lens[0] == 0);
    CHECK_ERROR(errors[0], "Not implemented: ");
    rocksdb_increase_full_history_ts_low(db, family, LIT("time"), &error);
    CHECK_REFUSED();
    CHECK_ABSENT(rocksdb_get_full_history_ts_low(db, family, &stamp_len, &error));
    rocksdb_compactoptions_set_full_history_ts_low(compact, time, 4);
    rocksdb_compactoptions_destroy(compact);

    rocksdb_readoptions_set_timestamp(read_options, LIT("time"));
    CHECK_ABSENT(rocksdb_get(db, read_options, LIT("k"), &len, &error));
    rocksdb_multi_get(db, read_options, 1, keys, lens, values, value_lens, errors);
    CHECK_ERROR(errors[0], "Not implemented: ");
    iterator = rocksdb_create_iterator(db, read_options);
    rocksdb_iter_seek_to_first(iterator);
    CHECK(!rocksdb_iter_valid(iterator));
    rocksdb_iter_get_error(iterator, &error);
    CHECK_REFUSED();
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_set_timestamp(read_options, NULL, 0);
    CHECK_GIVEN(rocksdb_get(db, read_options, LIT("k"), &len, &error), len, "v");
    rocksdb_readoptions_set_iter_start_ts(read_options, LIT("time"));
    CHECK_ABSENT(rocksdb_get(db, read_options, LIT("k"), &len, &error));
    rocksdb_readoptions_set_iter_start_ts(read_options, NULL, 0);
    iterator = rocksdb_create_iterator(db, read_options);
    rocksdb_iter_seek_to_first(iterator);
    /* Bindings make a slice of what is returned: NULL would end a program in Rust. */
    len = 9;
    CHECK(rocksdb_iter_timestamp(iterator, &len) != NULL && len == 0);
    CHECK(rocksdb_iter_timestamp_slice(iterator).data != NULL && rocksdb_iter_timestamp_slice(iterator).size == 0);
    rocksdb_iter_destroy(iterator);
}

static int compare(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
    (void)state, (void)a, (void)b;
    return (int)a_len - (int)b_len;
}

static int compare_without(void* state, const char* a, size_t a_len, unsigned char a_has, const char* b, size_t b_len,
                           unsigned char b_has) {
    (void)a_has, (void)b_has;
    return compare(state, a, a_len, b, b_len);
}

static const char* name_of(void* state) {
    (void)state;
    return "with timestamps";
}

static void test_comparators_with_timestamps(char** argv) {
    rocksdb_options_t* stamped = rocksdb_options_create_copy(options);
    rocksdb_comparator_t* comparator =
        rocksdb_comparator_with_ts_create(NULL, NULL, compare, compare, compare_without, name_of, 8);
    rocksdb_options_set_comparator(stamped, comparator);
    CHECK_ABSENT(rocksdb_open(stamped, path_in(argv, "stamped"), &error));
    CHECK_ABSENT(rocksdb_create_column_family(db, stamped, "stamped", &error));
    rocksdb_options_set_comparator(stamped, NULL);
    rocksdb_column_family_handle_destroy(rocksdb_create_column_family(db, stamped, "not stamped", &error));
    CHECK_OK(error);
    rocksdb_options_destroy(stamped);
    rocksdb_comparator_destroy(comparator);
}

static void test_paths(char** argv) {
    rocksdb_options_t* elsewhere = rocksdb_options_create_copy(options);
    rocksdb_dbpath_t *own = rocksdb_dbpath_create(path_in(argv, "here"), 0),
                     *other = rocksdb_dbpath_create(path_in(argv, "there"), 1 << 20);
    const rocksdb_dbpath_t* paths[2];
    paths[0] = own;
    paths[1] = other;
    rocksdb_options_set_db_paths(elsewhere, paths, 2);
    CHECK_ABSENT(rocksdb_open(elsewhere, path_in(argv, "here"), &error));
    rocksdb_options_set_db_paths(elsewhere, paths, 0);
    rocksdb_options_set_cf_paths(elsewhere, paths + 1, 1);
    CHECK_ABSENT(rocksdb_open(elsewhere, path_in(argv, "here"), &error));
    rocksdb_options_set_cf_paths(elsewhere, paths, 1);
    rocksdb_close(rocksdb_open(elsewhere, path_in(argv, "here"), &error));
    CHECK_OK(error);
    rocksdb_dbpath_destroy(own);
    rocksdb_dbpath_destroy(other);
    rocksdb_options_destroy(elsewhere);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    rocksdb_memory_allocator_destroy(NULL); /* nothing makes one */
    options = rocksdb_options_create();
    read_options = rocksdb_readoptions_create();
    write_options = rocksdb_writeoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    family = rocksdb_create_column_family(db, options, "one", &error);
    rocksdb_put(db, write_options, LIT("k"), LIT("v"), &error);
    CHECK_OK(error);
    test_opens(argv);
    test_writes_with_timestamps(argv);
    test_reads_with_timestamps();
    test_comparators_with_timestamps(argv);
    test_paths(argv);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(read_options);
    rocksdb_writeoptions_destroy(write_options);
    return outcome("absent");
}
