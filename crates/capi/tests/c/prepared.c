/* Two-phase commit: prepared transactions, in this process and found by an open. */

#include "check.h"

static char* error;
static rocksdb_options_t* options;
static rocksdb_readoptions_t* read;
static rocksdb_writeoptions_t* write;
static rocksdb_transaction_options_t* plain;
static rocksdb_transactiondb_t* database;

static void open_database(const char* path) {
    rocksdb_transactiondb_options_t* database_options = rocksdb_transactiondb_options_create();
    rocksdb_transactiondb_options_set_write_policy(database_options, 1);
    database = rocksdb_transactiondb_open(options, database_options, path, &error);
    CHECK_OK(error);
    rocksdb_transactiondb_options_destroy(database_options);
}

static rocksdb_transaction_t* begin(void) {
    return rocksdb_transaction_begin(database, write, plain, NULL);
}

static void check_value(const char* key, const char* value) {
    size_t len;
    CHECK_GIVEN(rocksdb_transactiondb_get(database, read, key, strlen(key), &len, &error), len, value);
    CHECK_OK(error);
}

static void check_absent(const char* key) {
    size_t len;
    CHECK(rocksdb_transactiondb_get(database, read, key, strlen(key), &len, &error) == NULL);
    CHECK_OK(error);
}

static void put(rocksdb_transaction_t* transaction, const char* key) {
    rocksdb_transaction_put(transaction, key, strlen(key), LIT("value"), &error);
    CHECK_OK(error);
}

static rocksdb_transaction_t* prepare(const char* name) {
    rocksdb_transaction_t* transaction = begin();
    put(transaction, name);
    rocksdb_transaction_set_name(transaction, name, strlen(name), &error);
    CHECK_OK(error);
    rocksdb_transaction_prepare(transaction, &error);
    CHECK_OK(error);
    return transaction;
}

static void check_name(rocksdb_transaction_t* transaction, const char* name) {
    size_t len;
    char* found = rocksdb_transaction_get_name(transaction, &len);
    CHECK(len == strlen(name) && memcmp(found, name, len) == 0);
    rocksdb_free(found);
}

static void test_steps(void) {
    rocksdb_transaction_t *first = begin(), *second = begin();
    rocksdb_transaction_prepare(first, &error);
    CHECK_ERROR(error, "Invalid argument: Cannot prepare a transaction that has not been named.");
    rocksdb_transaction_set_name(first, LIT(""), &error);
    CHECK_ERROR(error, "Invalid argument: Transaction name length must be between 1 and 512 chars.");
    check_name(first, "");
    rocksdb_transaction_set_name(first, LIT("name"), &error);
    CHECK_OK(error);
    check_name(first, "name");
    rocksdb_transaction_set_name(first, LIT("other"), &error);
    CHECK_ERROR(error, "Invalid argument: Transaction has already been named.");
    rocksdb_transaction_set_name(second, LIT("name"), &error);
    CHECK_ERROR(error, "Invalid argument: Duplicate txn name name");
    put(first, "k");
    rocksdb_transaction_prepare(first, &error);
    CHECK_OK(error);
    check_absent("k");
    rocksdb_transaction_prepare(first, &error);
    CHECK_ERROR(error, "Invalid argument: Transaction has already been prepared.");
    rocksdb_transaction_set_name(first, LIT("other"), &error);
    CHECK_ERROR(error, "Invalid argument: Transaction is beyond state for naming.");
    rocksdb_transaction_put(first, LIT("l"), LIT("late"), &error);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_transaction_rollback_to_savepoint(first, &error);
    CHECK_ERROR(error, "Invalid argument: Transaction is beyond state for rollback.");
    rocksdb_transaction_put(second, LIT("k"), LIT("second"), &error);
    CHECK_ERROR(error, "Operation timed out: ");
    rocksdb_transaction_commit(first, &error);
    CHECK_OK(error);
    check_value("k", "value");
    rocksdb_transaction_commit(first, &error);
    CHECK_ERROR(error, "Invalid argument: Transaction has already been committed.");
    rocksdb_transaction_rollback(first, &error);
    CHECK_ERROR(error, "Invalid argument: This transaction has already been committed.");
    rocksdb_transaction_destroy(first);
    first = prepare("rolled back");
    rocksdb_transaction_rollback(first, &error);
    CHECK_OK(error);
    rocksdb_transaction_commit(first, &error);
    CHECK_ERROR(error, "Invalid argument: Transaction has already been rolledback.");
    rocksdb_transaction_rollback(first, &error);
    CHECK_ERROR(error, "Invalid argument: Two phase transaction is not in state for rollback.");
    check_absent("rolled back");
    rocksdb_transaction_destroy(first);
    rocksdb_transaction_destroy(second);
}

static void test_skip_prepare(void) {
    rocksdb_transaction_t* transaction;
    rocksdb_transaction_options_t* prepared = rocksdb_transaction_options_create();
    rocksdb_transaction_options_set_skip_prepare(prepared, 0);
    transaction = rocksdb_transaction_begin(database, write, prepared, NULL);
    put(transaction, "skip");
    rocksdb_transaction_commit(transaction, &error);
    CHECK_ERROR(error, "Invalid argument: Txn not prepared");
    rocksdb_transaction_set_name(transaction, LIT("skip"), &error);
    CHECK_OK(error);
    rocksdb_transaction_prepare(transaction, &error);
    CHECK_OK(error);
    rocksdb_transaction_commit(transaction, &error);
    CHECK_OK(error);
    check_value("skip", "value");
    rocksdb_transaction_destroy(transaction);
    rocksdb_transaction_options_destroy(prepared);
}

static void test_recovery(const char* path) {
    size_t count;
    rocksdb_transaction_t **found, *other;
    CHECK(rocksdb_transactiondb_get_prepared_transactions(database, &count) == NULL && count == 0);
    rocksdb_transaction_destroy(prepare("a"));
    rocksdb_transaction_destroy(prepare("b"));
    rocksdb_transactiondb_close(database);
    open_database(path);
    found = rocksdb_transactiondb_get_prepared_transactions(database, &count);
    CHECK(found != NULL && count == 2);
    check_name(found[0], "a");
    check_name(found[1], "b");
    other = begin();
    rocksdb_transaction_put(other, LIT("a"), LIT("other"), &error);
    CHECK_ERROR(error, "Operation timed out: ");
    rocksdb_transaction_destroy(other);
    rocksdb_transaction_commit(found[0], &error);
    CHECK_OK(error);
    rocksdb_transaction_rollback(found[1], &error);
    CHECK_OK(error);
    rocksdb_transaction_destroy(found[0]);
    rocksdb_transaction_destroy(found[1]);
    rocksdb_free(found);
    check_value("a", "value");
    check_absent("b");
    CHECK(rocksdb_transactiondb_get_prepared_transactions(database, &count) == NULL && count == 0);
}

static void test_optimistic_options(const char* place) {
    const char* names[] = {"default"};
    const rocksdb_options_t* family_options[] = {options};
    rocksdb_column_family_handle_t* family;
    rocksdb_optimistictransactiondb_t* optimistic;
    rocksdb_optimistictransactiondb_options_t* settings = rocksdb_optimistictransactiondb_options_create();
    rocksdb_optimistictransactiondb_lock_buckets_t* buckets =
        rocksdb_optimistictransactiondb_lock_buckets_create(1 << 10, 1);
    CHECK(rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(buckets) == 24 + 64 * (1 << 10));
    rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(settings, buckets);
    rocksdb_optimistictransactiondb_options_set_occ_lock_buckets(settings, 7);
    optimistic = rocksdb_optimistictransactiondb_open_with_otxn_db_options(options, settings, place, &error);
    CHECK_OK(error);
    rocksdb_optimistictransactiondb_close(optimistic);
    optimistic = rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(options, settings, place, 1,
        names, family_options, &family, &error);
    CHECK_OK(error);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_optimistictransactiondb_close(optimistic);
    rocksdb_optimistictransactiondb_lock_buckets_destroy(buckets);
    rocksdb_optimistictransactiondb_options_destroy(settings);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    read = rocksdb_readoptions_create();
    write = rocksdb_writeoptions_create();
    plain = rocksdb_transaction_options_create();
    rocksdb_transaction_options_set_lock_timeout(plain, 1);
    open_database(path_in(argv, "db"));
    test_steps();
    test_skip_prepare();
    test_recovery(path_in(argv, "db"));
    rocksdb_transactiondb_close(database);
    test_optimistic_options(path_in(argv, "optimistic"));
    rocksdb_transaction_options_destroy(plain);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
    rocksdb_options_destroy(options);
    return outcome("prepared");
}
