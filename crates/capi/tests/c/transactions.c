/* Optimistic transactions: what they read, when they conflict, and what is theirs to give. */

#include "check.h"

static char* error;
static rocksdb_readoptions_t* read;
static rocksdb_writeoptions_t* write;
static rocksdb_optimistictransaction_options_t* plain;
static rocksdb_optimistictransaction_options_t* at_snapshot;
static rocksdb_optimistictransactiondb_t* optimistic;
static rocksdb_t* base;
static rocksdb_column_family_handle_t* families[2];

static rocksdb_transaction_t* begin(void) {
    return rocksdb_optimistictransaction_begin(optimistic, write, plain, NULL);
}

static void put_outside(const char* key, const char* value) {
    rocksdb_put(base, write, key, strlen(key), value, strlen(value), &error);
    CHECK_OK(error);
}

static void check_outside(const char* key, const char* value) {
    size_t len;
    CHECK_GIVEN(rocksdb_get(base, read, key, strlen(key), &len, &error), len, value);
    CHECK_OK(error);
}

static void test_conflicts(void) {
    size_t len;
    rocksdb_transaction_t* transaction = begin();
    rocksdb_transaction_put(transaction, LIT("k"), LIT("mine"), &error);
    CHECK_OK(error);
    put_outside("k", "theirs");
    rocksdb_transaction_commit(transaction, &error);
    CHECK_ERROR(error, "Resource busy: ");
    rocksdb_transaction_commit(transaction, &error);
    CHECK_ERROR(error, "Resource busy: ");
    rocksdb_transaction_rollback(transaction, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_transaction_get_for_update(transaction, read, LIT("k"), &len, 1, &error), len, "theirs");
    rocksdb_transaction_put_cf(transaction, families[1], LIT("k"), LIT("mine"), &error);
    rocksdb_transaction_commit(transaction, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get_cf(base, read, families[1], LIT("k"), &len, &error), len, "mine");
    /* A read alone conflicts too; of another family it does not. */
    CHECK(rocksdb_transaction_get_for_update_cf(transaction, read, families[1], LIT("n"), &len, 0, &error) == NULL);
    put_outside("n", "theirs");
    rocksdb_transaction_commit(transaction, &error);
    CHECK_OK(error);
    CHECK(rocksdb_transaction_get_pinned_for_update(transaction, read, LIT("m"), 1, &error) == NULL);
    CHECK(rocksdb_transaction_get_pinned_for_update_cf(transaction, read, families[1], LIT("m"), 1, &error) == NULL);
    put_outside("m", "theirs");
    rocksdb_transaction_commit(transaction, &error);
    CHECK_ERROR(error, "Resource busy: ");
    rocksdb_transaction_destroy(transaction);
}

static void test_reads(void) {
    size_t len;
    const char* keys[2] = {"r", "s"};
    size_t lens[2] = {1, 1};
    const rocksdb_column_family_handle_t* of[2];
    char *values[2], *errors[2];
    size_t value_lens[2];
    int round;
    rocksdb_pinnableslice_t* pinned;
    rocksdb_iterator_t* iterator;
    rocksdb_transaction_t* transaction = begin();
    of[0] = of[1] = families[1];
    put_outside("r", "below");
    rocksdb_transaction_put(transaction, LIT("s"), LIT("mine"), &error);
    rocksdb_transaction_put_cf(transaction, families[1], LIT("s"), LIT("mine"), &error);
    rocksdb_transaction_merge(transaction, LIT("r"), LIT("more"), &error);
    rocksdb_transaction_merge_cf(transaction, families[1], LIT("r"), LIT("one"), &error);
    rocksdb_transaction_delete(transaction, LIT("k"), &error);
    rocksdb_transaction_delete_cf(transaction, families[1], LIT("k"), &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_transaction_get(transaction, read, LIT("r"), &len, &error), len, "below,more");
    CHECK_GIVEN(rocksdb_transaction_get_cf(transaction, read, families[1], LIT("r"), &len, &error), len, "one");
    CHECK(rocksdb_transaction_get_pinned_cf(transaction, read, families[1], LIT("k"), &error) == NULL);
    pinned = rocksdb_transaction_get_pinned(transaction, read, LIT("s"), &error);
    CHECK_BYTES(rocksdb_pinnableslice_value(pinned, &len), len, "mine");
    rocksdb_pinnableslice_destroy(pinned);
    for (round = 0; round < 4; ++round) {
        if (round == 0)
            rocksdb_transaction_multi_get(transaction, read, 2, keys, lens, values, value_lens, errors);
        else if (round == 1)
            rocksdb_transaction_multi_get_cf(transaction, read, of, 2, keys, lens, values, value_lens, errors);
        else if (round == 2)
            rocksdb_transaction_multi_get_for_update(transaction, read, 2, keys, lens, values, value_lens, errors);
        else
            rocksdb_transaction_multi_get_for_update_cf(transaction, read, of, 2, keys, lens, values, value_lens,
                                                        errors);
        CHECK_GIVEN(values[0], value_lens[0], round % 2 == 0 ? "below,more" : "one");
        CHECK_GIVEN(values[1], value_lens[1], "mine");
        CHECK(errors[0] == NULL && errors[1] == NULL);
    }
    iterator = rocksdb_transaction_create_iterator(transaction, read);
    rocksdb_iter_seek(iterator, LIT("r"));
    CHECK(rocksdb_iter_valid(iterator));
    CHECK_BYTES(rocksdb_iter_value(iterator, &len), len, "below,more");
    rocksdb_iter_next(iterator);
    CHECK_BYTES(rocksdb_iter_value(iterator, &len), len, "mine");
    rocksdb_iter_destroy(iterator);
    iterator = rocksdb_transaction_create_iterator_cf(transaction, read, families[1]);
    rocksdb_iter_seek_to_first(iterator);
    CHECK_BYTES(rocksdb_iter_key(iterator, &len), len, "r");
    rocksdb_iter_destroy(iterator);
    rocksdb_transaction_commit(transaction, &error);
    CHECK_OK(error);
    check_outside("r", "below,more");
    rocksdb_transaction_destroy(transaction);
}

static void test_savepoints_and_batches(void) {
    size_t len;
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_wi_t *lent, *indexed = rocksdb_writebatch_wi_create(0, 1);
    rocksdb_transaction_t* transaction = begin();
    rocksdb_transaction_rollback_to_savepoint(transaction, &error);
    CHECK_ERROR(error, "NotFound: ");
    rocksdb_transaction_put(transaction, LIT("t"), LIT("1"), &error);
    rocksdb_transaction_set_savepoint(transaction);
    rocksdb_transaction_put(transaction, LIT("t"), LIT("2"), &error);
    rocksdb_transaction_put(transaction, LIT("u"), LIT("2"), &error);
    rocksdb_transaction_rollback_to_savepoint(transaction, &error);
    CHECK_OK(error);
    put_outside("u", "theirs"); /* no conflict any more */
    rocksdb_writebatch_put(batch, LIT("v"), LIT("3"));
    rocksdb_transaction_rebuild_from_writebatch(transaction, batch, &error);
    rocksdb_writebatch_wi_put(indexed, LIT("w"), LIT("4"));
    rocksdb_transaction_rebuild_from_writebatch_wi(transaction, indexed, &error);
    CHECK_OK(error);
    rocksdb_transaction_put_log_data(transaction, LIT("only in the log"));
    lent = rocksdb_transaction_get_writebatch_wi(transaction);
    CHECK(rocksdb_writebatch_wi_count(lent) == 3);
    rocksdb_free(lent);
    lent = rocksdb_transaction_get_writebatch_wi(transaction);
    rocksdb_writebatch_wi_put(lent, LIT("x"), LIT("5"));
    rocksdb_free(lent);
    CHECK_GIVEN(rocksdb_transaction_get(transaction, read, LIT("x"), &len, &error), len, "5");
    rocksdb_transaction_commit(transaction, &error);
    CHECK_OK(error);
    check_outside("t", "1");
    check_outside("u", "theirs");
    check_outside("v", "3");
    check_outside("w", "4");
    check_outside("x", "5");
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_delete_range(batch, LIT("a"), LIT("b"));
    rocksdb_transaction_rebuild_from_writebatch(transaction, batch, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_optimistictransactiondb_write(optimistic, write, batch, &error);
    CHECK_OK(error);
    rocksdb_writebatch_destroy(batch);
    rocksdb_writebatch_wi_destroy(indexed);
    rocksdb_transaction_destroy(transaction);
}

static void test_snapshots(void) {
    size_t len;
    const rocksdb_snapshot_t* snapshot;
    rocksdb_transaction_t* transaction = begin();
    CHECK(rocksdb_transaction_get_snapshot(transaction) == NULL);
    put_outside("y", "before");
    CHECK(rocksdb_optimistictransaction_begin(optimistic, write, at_snapshot, transaction) == transaction);
    put_outside("y", "after");
    snapshot = rocksdb_transaction_get_snapshot(transaction);
    rocksdb_readoptions_set_snapshot(read, snapshot);
    CHECK_GIVEN(rocksdb_transaction_get(transaction, read, LIT("y"), &len, &error), len, "before");
    rocksdb_readoptions_set_snapshot(read, NULL);
    rocksdb_free((void*)snapshot);
    rocksdb_transaction_put(transaction, LIT("y"), LIT("mine"), &error);
    rocksdb_transaction_commit(transaction, &error);
    CHECK_ERROR(error, "Resource busy: "); /* changed since the snapshot */
    rocksdb_transaction_destroy(transaction);
    rocksdb_transaction_destroy(NULL);
}

static void test_refused(void) {
    size_t len = 7;
    char* name;
    rocksdb_transaction_t* transaction = begin();
    rocksdb_transaction_prepare(transaction, &error);
    CHECK_ERROR(error, "Invalid argument: Two phase commit not supported for optimistic transactions.");
    rocksdb_transaction_set_name(transaction, LIT("name"), &error);
    CHECK_ERROR(error, "Invalid argument: Optimistic transactions cannot be named.");
    name = rocksdb_transaction_get_name(transaction, &len);
    CHECK(name != NULL && len == 0);
    rocksdb_free(name);
    rocksdb_transaction_set_commit_timestamp(transaction, 1);
    rocksdb_transaction_set_read_timestamp_for_validation(transaction, 1);
    rocksdb_transaction_destroy(transaction);
}

static void test_the_database(char** argv) {
    uint64_t number = 0;
    char* text;
    rocksdb_checkpoint_t* checkpoint = rocksdb_optimistictransactiondb_checkpoint_object_create(optimistic, &error);
    rocksdb_checkpoint_create(checkpoint, path_in(argv, "checkpoint"), 0, &error);
    CHECK_OK(error);
    rocksdb_checkpoint_object_destroy(checkpoint);
    CHECK(rocksdb_optimistictransactiondb_property_int(optimistic, "rocksdb.estimate-num-keys", &number) == 0);
    CHECK(number > 0);
    CHECK(rocksdb_optimistictransactiondb_property_int(optimistic, "unknown", &number) == -1);
    text = rocksdb_optimistictransactiondb_property_value(optimistic, "rocksdb.stats");
    CHECK(text != NULL);
    rocksdb_free(text);
}

/* Clients that have only a handle for transactions pass it where a database is wanted. */
static void test_as_database(const rocksdb_options_t* options) {
    rocksdb_t* db = (rocksdb_t*)optimistic;
    rocksdb_column_family_handle_t* made = rocksdb_create_column_family(db, options, "made", &error);
    CHECK_OK(error);
    rocksdb_put_cf(db, write, made, LIT("k"), LIT("v"), &error);
    CHECK_OK(error);
    rocksdb_drop_column_family(db, made, &error);
    CHECK_OK(error);
    rocksdb_column_family_handle_destroy(made);
}

int main(int argc, char** argv) {
    const char* names[2] = {"default", "one"};
    const rocksdb_options_t* of[2];
    rocksdb_options_t *options, *from = rocksdb_options_create();
    if (argc < 2) return 2;
    options = rocksdb_options_create();
    read = rocksdb_readoptions_create();
    write = rocksdb_writeoptions_create();
    plain = rocksdb_optimistictransaction_options_create();
    at_snapshot = rocksdb_optimistictransaction_options_create();
    rocksdb_optimistictransaction_options_set_set_snapshot(at_snapshot, 1);
    CHECK(rocksdb_optimistictransaction_options_get_set_snapshot(at_snapshot) == 1);
    rocksdb_get_options_from_string(from, "merge_operator=stringappend", options, &error);
    rocksdb_options_set_create_if_missing(options, 1);
    optimistic = rocksdb_optimistictransactiondb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    CHECK(rocksdb_optimistictransactiondb_open(options, path_in(argv, "db"), &error) == NULL);
    CHECK_ERROR(error, "IO error: lock hold by current process, acquire time ");
    rocksdb_optimistictransactiondb_close(optimistic);
    rocksdb_options_set_create_missing_column_families(options, 1);
    of[0] = of[1] = options;
    optimistic = rocksdb_optimistictransactiondb_open_column_families(options, path_in(argv, "db"), 2, names, of,
                                                                      families, &error);
    CHECK_OK(error);
    base = rocksdb_optimistictransactiondb_get_base_db(optimistic);
    test_conflicts();
    test_reads();
    test_savepoints_and_batches();
    test_snapshots();
    test_refused();
    test_the_database(argv);
    test_as_database(options);
    rocksdb_column_family_handle_destroy(families[0]);
    rocksdb_column_family_handle_destroy(families[1]);
    rocksdb_optimistictransactiondb_close_base_db(base);
    rocksdb_optimistictransactiondb_close(optimistic);
    rocksdb_optimistictransaction_options_destroy(plain);
    rocksdb_optimistictransaction_options_destroy(at_snapshot);
    rocksdb_options_destroy(from);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    return outcome("transactions");
}
