/* What a library leaves that is killed with prepared transactions, and what a library finds then:
 *     prepared_life LIBRARY make DIRECTORY SEED [CHECKPOINT]     some steps, a checkpoint where one is asked for, and the end
 *                                                                without a close
 *     prepared_life LIBRARY end DIRECTORY                        prints what is there, ends what is prepared, and prints again
 */

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

/* The functions are looked up by name: they are those of that library, not of the one that this is linked with. */
#define CALLS(CALL)                                                        \
    CALL(options_create) CALL(options_set_create_if_missing)               \
    CALL(options_set_create_missing_column_families)                       \
    CALL(transactiondb_options_create)                                     \
    CALL(transactiondb_options_set_default_lock_timeout)                   \
    CALL(transactiondb_options_set_transaction_lock_timeout)               \
    CALL(transactiondb_open_column_families) CALL(transactiondb_close)     \
    CALL(transactiondb_put_cf) CALL(transactiondb_flush_cf)                \
    CALL(transactiondb_create_iterator_cf)                                 \
    CALL(transactiondb_get_prepared_transactions)                          \
    CALL(transactiondb_checkpoint_object_create) CALL(checkpoint_create)   \
    CALL(transaction_options_create) CALL(transaction_begin)               \
    CALL(transaction_set_name) CALL(transaction_get_name)                  \
    CALL(transaction_put_cf) CALL(transaction_delete_cf)                   \
    CALL(transaction_prepare) CALL(transaction_commit)                     \
    CALL(transaction_rollback) CALL(transaction_destroy)                   \
    CALL(column_family_handle_destroy)                                     \
    CALL(writeoptions_create) CALL(readoptions_create)                     \
    CALL(flushoptions_create) CALL(iter_seek_to_first) CALL(iter_valid)    \
    CALL(iter_key) CALL(iter_value) CALL(iter_next) CALL(iter_destroy)     \
    CALL(iter_get_error) CALL(free)
#define DECLARE(name) static __typeof__(rocksdb_##name)* lib_##name;
CALLS(DECLARE)
#define rocksdb_free lib_free /* for the checks */

static char* error;
static rocksdb_transactiondb_t* database;
static rocksdb_column_family_handle_t* families[2];
static rocksdb_writeoptions_t* write_options;
static rocksdb_transaction_options_t* transaction_options;
static uint64_t seed;

static int below(int limit) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)limit);
}

static void open_database(const char* path) {
    const char* names[2] = {"default", "second"};
    const rocksdb_options_t* of[2];
    rocksdb_options_t* options = lib_options_create();
    rocksdb_transactiondb_options_t* locking = lib_transactiondb_options_create();
    lib_options_set_create_if_missing(options, 1);
    lib_options_set_create_missing_column_families(options, 1);
    lib_transactiondb_options_set_default_lock_timeout(locking, 1);
    lib_transactiondb_options_set_transaction_lock_timeout(locking, 1);
    of[0] = of[1] = options;
    database = lib_transactiondb_open_column_families(options, locking, path, 2, names, of, families, &error);
    CHECK_OK(error);
}

static void forget_error(void) {
    lib_free(error);
    error = NULL;
}

static rocksdb_transaction_t* begin(int step) {
    char text[32], key[8];
    int change;
    rocksdb_transaction_t* transaction = lib_transaction_begin(database, write_options, transaction_options, NULL);
    for (change = below(4); change > 0; --change) {
        rocksdb_column_family_handle_t* family = families[below(2)];
        int len = snprintf(key, sizeof key, "k%02d", below(12));
        if (below(4) == 0) {
            lib_transaction_delete_cf(transaction, family, key, (size_t)len, &error);
        } else {
            size_t text_len = (size_t)snprintf(text, sizeof text, "%d", step * 10 + change);
            lib_transaction_put_cf(transaction, family, key, (size_t)len, text, text_len, &error);
        }
        forget_error(); /* another transaction may have locked the key */
    }
    return transaction;
}

static void end(rocksdb_transaction_t* transaction, int commits) {
    if (commits) {
        lib_transaction_commit(transaction, &error);
    } else {
        lib_transaction_rollback(transaction, &error);
    }
    CHECK_OK(error);
    lib_transaction_destroy(transaction);
}

static void make(int steps) {
    rocksdb_flushoptions_t* flush = lib_flushoptions_create();
    rocksdb_transaction_t* open[512];
    size_t count = 0, i;
    rocksdb_transaction_t** found = lib_transactiondb_get_prepared_transactions(database, &count);
    char name[32];
    int step, first = below(1000000) * 100;
    for (i = 0; i < count; ++i) open[i] = found[i];
    for (step = first; step < first + steps; ++step) {
        int kind = below(10);
        if (kind < 4) {
            rocksdb_transaction_t* transaction = begin(step);
            size_t len = (size_t)snprintf(name, sizeof name, "t%d", step);
            lib_transaction_set_name(transaction, name, len, &error);
            CHECK_OK(error);
            lib_transaction_prepare(transaction, &error);
            CHECK_OK(error);
            open[count++] = transaction;
        } else if (kind < 6 && count > 0) {
            size_t at = (size_t)below((int)count);
            end(open[at], below(3) > 0);
            open[at] = open[--count];
        } else if (kind < 7) {
            end(begin(step), 1);
        } else if (kind < 8) {
            lib_transactiondb_flush_cf(database, flush, families[below(2)], &error);
            CHECK_OK(error);
        } else {
            size_t len = (size_t)snprintf(name, sizeof name, "k%02d", below(12));
            lib_transactiondb_put_cf(database, write_options, families[below(2)], name, len, name, len, &error);
            forget_error(); /* as above */
        }
    }
}

static void make_checkpoint(const char* directory) {
    rocksdb_checkpoint_t* checkpoint = lib_transactiondb_checkpoint_object_create(database, &error);
    CHECK_OK(error);
    lib_checkpoint_create(checkpoint, directory, UINT64_MAX, &error);
    CHECK_OK(error);
}

static void print_all(void) {
    rocksdb_readoptions_t* read = lib_readoptions_create();
    int i;
    for (i = 0; i < 2; ++i) {
        rocksdb_iterator_t* iterator = lib_transactiondb_create_iterator_cf(database, read, families[i]);
        for (lib_iter_seek_to_first(iterator); lib_iter_valid(iterator); lib_iter_next(iterator)) {
            size_t key_len, value_len;
            const char* key = lib_iter_key(iterator, &key_len);
            const char* value = lib_iter_value(iterator, &value_len);
            printf("%d %.*s %.*s\n", i, (int)key_len, key, (int)value_len, value);
        }
        lib_iter_get_error(iterator, &error);
        CHECK_OK(error);
        lib_iter_destroy(iterator);
    }
}

/* Some are committed and some rolled back, in the order of their names: libraries may find them in different orders, and
 * RocksDB, which recovers without locks, lets several have a key. */
static void end_all(void) {
    size_t count = 0, i, j;
    rocksdb_transaction_t** found = lib_transactiondb_get_prepared_transactions(database, &count);
    char(*names)[32] = calloc(count + 1, sizeof *names);
    for (i = 0; i < count; ++i) {
        size_t len = 0;
        char* name = lib_transaction_get_name(found[i], &len);
        memcpy(names[i], name, len);
        lib_free(name);
    }
    for (i = 0; i < count; ++i) {
        size_t least = SIZE_MAX;
        for (j = 0; j < count; ++j) {
            if (names[j][0] != '\0' && (least == SIZE_MAX || strcmp(names[j], names[least]) < 0)) least = j;
        }
        int commits = names[least][strlen(names[least]) - 1] % 2;
        printf("%s %s\n", commits ? "commit" : "rollback", names[least]);
        end(found[least], commits);
        names[least][0] = '\0';
    }
    free(names);
}

int main(int argc, char** argv) {
    void* library;
    if (argc < 4 || (library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) == NULL) return 2;
#define FIND(name)                                                         \
    *(void**)&lib_##name = dlsym(library, "rocksdb_" #name);               \
    if (lib_##name == NULL) return 3;
    CALLS(FIND)
    write_options = lib_writeoptions_create();
    transaction_options = lib_transaction_options_create();
    open_database(argv[3]);
    if (strcmp(argv[2], "make") == 0) {
        seed = strtoull(argv[4], NULL, 10);
        make(60);
        if (argc > 5) make_checkpoint(argv[5]);
        fflush(NULL);
        _exit(failures != 0);
    }
    print_all();
    end_all();
    print_all();
    lib_column_family_handle_destroy(families[0]);
    lib_column_family_handle_destroy(families[1]);
    lib_transactiondb_close(database);
    return failures != 0;
}
