/* Pessimistic transactions: who waits for whom, for how long, and what a database opened for them does. */

#include "check.h"

static char* error;
static rocksdb_readoptions_t* read;
static rocksdb_writeoptions_t* write;
static rocksdb_transaction_options_t* plain;
static rocksdb_transactiondb_t* database;
static rocksdb_column_family_handle_t* families[2];

static rocksdb_transaction_t* begin(void) {
    return rocksdb_transaction_begin(database, write, plain, NULL);
}

static void check_value(const char* key, const char* value) {
    size_t len;
    CHECK_GIVEN(rocksdb_transactiondb_get(database, read, key, strlen(key), &len, &error), len, value);
    CHECK_OK(error);
}

static void test_locks(void) {
    size_t len;
    rocksdb_transaction_t *first = begin(), *second = begin();
    rocksdb_transaction_put(first, LIT("k"), LIT("first"), &error);
    CHECK_OK(error);
    rocksdb_transaction_put(second, LIT("k"), LIT("second"), &error);
    CHECK_ERROR(error, "Operation timed out: ");
    CHECK(rocksdb_transaction_get_for_update(second, read, LIT("k"), &len, 0, &error) == NULL);
    CHECK_ERROR(error, "Operation timed out: ");
    rocksdb_transactiondb_put(database, write, LIT("k"), LIT("outside"), &error);
    CHECK_ERROR(error, "Operation timed out: ");
    rocksdb_transaction_commit(first, &error);
    CHECK_OK(error);
    check_value("k", "first");
    /* Shared locks. */
    CHECK_GIVEN(rocksdb_transaction_get_for_update(first, read, LIT("k"), &len, 0, &error), len, "first");
    CHECK_GIVEN(rocksdb_transaction_get_for_update(second, read, LIT("k"), &len, 0, &error), len, "first");
    rocksdb_transaction_put(second, LIT("k"), LIT("second"), &error);
    CHECK_ERROR(error, "Operation timed out: ");
    rocksdb_transaction_rollback(first, &error);
    rocksdb_transaction_put(second, LIT("k"), LIT("second"), &error);
    CHECK_OK(error);
    rocksdb_transaction_commit(second, &error);
    CHECK_OK(error);
    check_value("k", "second");
    rocksdb_transaction_destroy(first);
    rocksdb_transaction_destroy(second);
}

static void test_options(void) {
    rocksdb_transaction_options_t* options = rocksdb_transaction_options_create();
    rocksdb_transaction_t *first, *second;
    rocksdb_transaction_options_set_lock_timeout(options, 0);
    rocksdb_transaction_options_set_set_snapshot(options, 1);
    rocksdb_transaction_options_set_max_write_batch_size(options, 64);
    rocksdb_transaction_options_set_deadlock_detect(options, 1);
    rocksdb_transaction_options_set_deadlock_detect_depth(options, 10);
    rocksdb_transaction_options_set_expiration(options, 1);
    first = rocksdb_transaction_begin(database, write, options, NULL);
    rocksdb_transactiondb_put(database, write, LIT("k"), LIT("newer"), &error);
    CHECK_OK(error);
    rocksdb_transaction_put(first, LIT("k"), LIT("older"), &error);
    CHECK_ERROR(error, "Resource busy: ");
    rocksdb_transaction_put(first, LIT("much"), LIT("0123456789012345678901234567890123456789012345678901234567890123"), &error);
    CHECK_ERROR(error, "Operation aborted: Memory limit reached");
    rocksdb_transaction_put(first, LIT("j"), LIT("1"), &error);
    CHECK_OK(error);
    rocksdb_transactiondb_put(database, write, LIT("j"), LIT("2"), &error); /* waits until the lock expires */
    CHECK_OK(error);
    rocksdb_transaction_commit(first, &error);
    CHECK_ERROR(error, "Operation expired: ");
    check_value("j", "2");
    /* Begun anew, it gives its locks back. */
    rocksdb_transaction_options_set_expiration(options, -1);
    first = rocksdb_transaction_begin(database, write, options, first);
    rocksdb_transaction_put(first, LIT("j"), LIT("3"), &error);
    CHECK_OK(error);
    second = rocksdb_transaction_begin(database, write, options, NULL);
    rocksdb_transaction_put(second, LIT("j"), LIT("4"), &error);
    CHECK_ERROR(error, "Operation timed out: ");
    first = rocksdb_transaction_begin(database, write, options, first);
    rocksdb_transaction_put(second, LIT("j"), LIT("4"), &error);
    CHECK_OK(error);
    rocksdb_transaction_commit(second, &error);
    CHECK_OK(error);
    check_value("j", "4");
    rocksdb_transaction_destroy(first);
    rocksdb_transaction_destroy(second);
    rocksdb_transaction_options_destroy(options);
}

static void test_writes(void) {
    size_t len;
    rocksdb_transaction_t* transaction = begin();
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_transactiondb_put_cf(database, write, families[1], LIT("a"), LIT("1"), &error);
    rocksdb_transactiondb_merge_cf(database, write, families[1], LIT("a"), LIT("2"), &error);
    rocksdb_transactiondb_merge(database, write, LIT("m"), LIT("3"), &error);
    rocksdb_transactiondb_put(database, write, LIT("d"), LIT("4"), &error);
    rocksdb_transactiondb_delete(database, write, LIT("d"), &error);
    rocksdb_transactiondb_put_cf(database, write, families[1], LIT("d"), LIT("4"), &error);
    rocksdb_transactiondb_delete_cf(database, write, families[1], LIT("d"), &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_transactiondb_get_cf(database, read, families[1], LIT("a"), &len, &error), len, "1,2");
    check_value("m", "3");
    CHECK(rocksdb_transactiondb_get_pinned(database, read, LIT("d"), &error) == NULL);
    CHECK(rocksdb_transactiondb_get_pinned_cf(database, read, families[1], LIT("d"), &error) == NULL);
    /* A batch is written whole or, if one of its keys or ranges is locked, not at all. */
    rocksdb_transaction_put(transaction, LIT("r5"), LIT("mine"), &error);
    CHECK_OK(error);
    rocksdb_writebatch_put(batch, LIT("b"), LIT("5"));
    rocksdb_writebatch_delete_range(batch, LIT("r"), LIT("s"));
    rocksdb_transactiondb_write(database, write, batch, &error);
    CHECK_ERROR(error, "Operation timed out: ");
    CHECK(rocksdb_transactiondb_get(database, read, LIT("b"), &len, &error) == NULL);
    rocksdb_transaction_commit(transaction, &error);
    rocksdb_transactiondb_write(database, write, batch, &error);
    CHECK_OK(error);
    check_value("b", "5");
    CHECK(rocksdb_transactiondb_get(database, read, LIT("r5"), &len, &error) == NULL);
    rocksdb_writebatch_destroy(batch);
    rocksdb_transaction_destroy(transaction);
}

static void test_reads(void) {
    const char* keys[2] = {"a", "b"};
    size_t lens[2] = {1, 1}, value_lens[2];
    const rocksdb_column_family_handle_t* of[2];
    char *values[2], *errors[2];
    rocksdb_iterator_t* iterator;
    const rocksdb_snapshot_t* snapshot = rocksdb_transactiondb_create_snapshot(database);
    of[0] = families[1];
    of[1] = families[0];
    rocksdb_transactiondb_multi_get_cf(database, read, of, 2, keys, lens, values, value_lens, errors);
    CHECK(errors[0] == NULL && errors[1] == NULL);
    CHECK_GIVEN(values[0], value_lens[0], "1,2");
    CHECK_GIVEN(values[1], value_lens[1], "5");
    rocksdb_transactiondb_multi_get(database, read, 2, keys, lens, values, value_lens, errors);
    CHECK(values[0] == NULL && errors[0] == NULL && errors[1] == NULL);
    CHECK_GIVEN(values[1], value_lens[1], "5");
    rocksdb_transactiondb_put(database, write, LIT("b"), LIT("later"), &error);
    rocksdb_readoptions_set_snapshot(read, snapshot);
    iterator = rocksdb_transactiondb_create_iterator(database, read);
    rocksdb_iter_seek_to_first(iterator);
    CHECK(rocksdb_iter_valid(iterator));
    rocksdb_iter_destroy(iterator);
    iterator = rocksdb_transactiondb_create_iterator_cf(database, read, families[1]);
    rocksdb_iter_seek_to_last(iterator);
    CHECK(rocksdb_iter_valid(iterator));
    rocksdb_iter_destroy(iterator);
    check_value("b", "5");
    rocksdb_readoptions_set_snapshot(read, NULL);
    check_value("b", "later");
    rocksdb_transactiondb_release_snapshot(database, snapshot);
}

static void test_the_database(char** argv) {
    uint64_t number;
    size_t count = 1;
    char* text;
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_checkpoint_t* checkpoint;
    rocksdb_column_family_handle_t* family;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_t* base = rocksdb_transactiondb_get_base_db(database);
    rocksdb_flushwaloptions_t* flush_wal = rocksdb_flushwaloptions_create();
    rocksdb_transactiondb_flush(database, flush, &error);
    rocksdb_transactiondb_flush_cf(database, flush, families[1], &error);
    rocksdb_transactiondb_flush_cfs(database, flush, families, 2, &error);
    rocksdb_transactiondb_flush_wal(database, 1, &error);
    CHECK_OK(error);
    rocksdb_transactiondb_flush_wal_with_options(database, flush_wal, &error);
    CHECK_OK(error);
    rocksdb_flushwaloptions_destroy(flush_wal);
    family = rocksdb_transactiondb_create_column_family(database, options, "two", &error);
    CHECK_OK(error);
    rocksdb_column_family_handle_destroy(family);
    checkpoint = rocksdb_transactiondb_checkpoint_object_create(database, &error);
    rocksdb_checkpoint_create(checkpoint, path_in(argv, "checkpoint"), 0, &error);
    CHECK_OK(error);
    rocksdb_checkpoint_object_destroy(checkpoint);
    CHECK(rocksdb_transactiondb_property_int(database, "rocksdb.estimate-num-keys", &number) == 0);
    CHECK(number > 0);
    CHECK(rocksdb_transactiondb_property_int(database, "unknown", &number) == -1);
    text = rocksdb_transactiondb_property_value(database, "rocksdb.stats");
    CHECK(text != NULL);
    rocksdb_free(text);
    CHECK(rocksdb_transactiondb_get_prepared_transactions(database, &count) == NULL && count == 0);
    rocksdb_put(base, write, LIT("base"), LIT("1"), &error);
    CHECK_OK(error);
    check_value("base", "1");
    rocksdb_transactiondb_close_base_db(base);
    rocksdb_options_destroy(options);
    rocksdb_flushoptions_destroy(flush);
}

int main(int argc, char** argv) {
    const char* names[2] = {"default", "one"};
    const rocksdb_options_t* of[2];
    rocksdb_options_t *options, *from = rocksdb_options_create();
    rocksdb_transactiondb_options_t* transactions;
    if (argc < 2) return 2;
    options = rocksdb_options_create();
    read = rocksdb_readoptions_create();
    write = rocksdb_writeoptions_create();
    plain = rocksdb_transaction_options_create();
    transactions = rocksdb_transactiondb_options_create();
    rocksdb_transactiondb_options_set_transaction_lock_timeout(transactions, 5);
    rocksdb_transactiondb_options_set_default_lock_timeout(transactions, 5);
    rocksdb_get_options_from_string(from, "merge_operator=stringappend", options, &error);
    rocksdb_options_set_create_if_missing(options, 1);
    database = rocksdb_transactiondb_open(options, transactions, path_in(argv, "db"), &error);
    CHECK_OK(error);
    CHECK(rocksdb_transactiondb_open(options, transactions, path_in(argv, "db"), &error) == NULL);
    CHECK_ERROR(error, "IO error: lock hold by current process, acquire time ");
    rocksdb_transactiondb_close(database);
    rocksdb_options_set_create_missing_column_families(options, 1);
    of[0] = of[1] = options;
    database = rocksdb_transactiondb_open_column_families(options, transactions, path_in(argv, "db"), 2, names, of, families,
                                                          &error);
    CHECK_OK(error);
    test_locks();
    test_options();
    test_writes();
    test_reads();
    test_the_database(argv);
    rocksdb_column_family_handle_destroy(families[0]);
    rocksdb_column_family_handle_destroy(families[1]);
    rocksdb_transactiondb_close(database);
    rocksdb_transactiondb_options_destroy(transactions);
    rocksdb_transaction_options_destroy(plain);
    rocksdb_options_destroy(from);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    return outcome("locking");
}
