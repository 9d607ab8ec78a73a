/* Children forked while databases are open: no lock is given away, nothing waits, and no file is touched. */

#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static char* error;
static rocksdb_options_t* options;
static rocksdb_writeoptions_t* write_options;
static rocksdb_readoptions_t* read_options;
static rocksdb_flushoptions_t* flush_options;

#define FORKED "Shutdown in progress"

/* A child that takes longer is one that hangs. */
enum { PATIENCE_S = 30, FORKS = 60 };

static pid_t begin_child(void) {
    pid_t child;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        failures = 0;
        alarm(PATIENCE_S);
    }
    return child;
}

/* Of a process that ends by exit, exit handlers included. */
static void check_ends_well(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (WIFSIGNALED(status)) fprintf(stderr, "a child was ended by signal %d\n", WTERMSIG(status));
}

static rocksdb_t* open_db(const char* path) {
    rocksdb_t* db = rocksdb_open(options, path, &error);
    CHECK_OK(error);
    return db;
}

static void put(rocksdb_t* db, const char* key) {
    rocksdb_put(db, write_options, LIT(key), LIT("v"), &error);
    CHECK_OK(error);
}

static int has(rocksdb_t* db, const char* key) {
    size_t len;
    char* value = rocksdb_get(db, read_options, LIT(key), &len, &error);
    CHECK_OK(error);
    rocksdb_free(value);
    return value != NULL;
}

/* What a process that did not open the database gets. */
static void check_is_locked(const char* path) {
    pid_t child = begin_child();
    if (child == 0) {
        rocksdb_t* db = rocksdb_open(options, path, &error);
        CHECK(db == NULL);
        CHECK_ERROR(error, "IO error: ");
        exit(failures);
    }
    check_ends_well(child);
}

static void in_child(rocksdb_t* db, rocksdb_iterator_t* walk, const rocksdb_snapshot_t* snapshot, const char* path) {
    size_t len = 0;
    uint64_t number;
    rocksdb_iterator_t* begun;
    const rocksdb_livefiles_t* files;
    rocksdb_put(db, write_options, LIT("child"), LIT("v"), &error);
    CHECK_ERROR(error, FORKED);
    rocksdb_flush(db, flush_options, &error);
    CHECK_ERROR(error, FORKED);
    CHECK(rocksdb_get(db, read_options, LIT("before"), &len, &error) == NULL);
    CHECK_ERROR(error, FORKED);
    begun = rocksdb_create_iterator(db, read_options);
    rocksdb_iter_seek_to_first(begun);
    CHECK(!rocksdb_iter_valid(begun));
    rocksdb_iter_get_error(begun, &error);
    CHECK_ERROR(error, FORKED);
    rocksdb_iter_destroy(begun);
    CHECK(rocksdb_property_value(db, "rocksdb.stats") == NULL);
    CHECK(rocksdb_property_int(db, "rocksdb.estimate-num-keys", &number) == -1);
    rocksdb_release_snapshot(db, rocksdb_create_snapshot(db));
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    rocksdb_disable_manual_compaction(db);
    rocksdb_enable_manual_compaction(db);
    rocksdb_cancel_all_background_work(db, 1);
    files = rocksdb_livefiles(db);
    CHECK(rocksdb_livefiles_count(files) == 0);
    rocksdb_livefiles_destroy(files);
    {
        rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &error);
        CHECK_OK(error);
        rocksdb_checkpoint_create(checkpoint, path, 0, &error);
        CHECK_ERROR(error, FORKED);
        rocksdb_checkpoint_object_destroy(checkpoint);
    }
    rocksdb_iter_destroy(walk);
    rocksdb_release_snapshot(db, snapshot);
    rocksdb_close(db);
}

/* Keeps the threads of the library busy, and its locks taken. */
static atomic_int is_over;

static void* write_and_flush(void* db) {
    char* refused = NULL;
    char key[16];
    int i;
    for (i = 0; !is_over; i++) {
        snprintf(key, sizeof key, "%08d", i);
        rocksdb_put(db, write_options, LIT(key), LIT("v"), &refused);
        if (i % 500 == 0) rocksdb_flush(db, flush_options, &refused);
        if (i % 5000 == 0) rocksdb_compact_range(db, NULL, 0, NULL, 0);
        rocksdb_release_snapshot(db, rocksdb_create_snapshot(db));
        rocksdb_free(rocksdb_property_value(db, "rocksdb.stats"));
        if (refused != NULL) {
            fprintf(stderr, "a write of the parent failed: %s\n", refused);
            abort();
        }
    }
    return NULL;
}

static void test_children_of_a_writer(char** argv) {
    const char* path = path_in(argv, "writer");
    rocksdb_t* db = open_db(path);
    pthread_t thread;
    int i;
    put(db, "before");
    CHECK(pthread_create(&thread, NULL, write_and_flush, db) == 0);
    for (i = 0; i < FORKS; i++) {
        const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
        rocksdb_iterator_t* walk = rocksdb_create_iterator(db, read_options);
        pid_t child = begin_child();
        if (child == 0) {
            in_child(db, walk, snapshot, path_in(argv, "copy"));
            exit(failures);
        }
        rocksdb_iter_destroy(walk);
        rocksdb_release_snapshot(db, snapshot);
        check_ends_well(child);
        if (i % 20 == 0) check_is_locked(path);
    }
    is_over = 1;
    pthread_join(thread, NULL);
    CHECK(has(db, "before") && has(db, "00000000"));
    rocksdb_close(db);
    db = open_db(path);
    CHECK(has(db, "before") && has(db, "00000000") && !has(db, "child"));
    rocksdb_close(db);
}

/* Locks share a list of waiting threads, which a child inherits: its own waits might never end. */
static void test_a_database_of_the_child(char** argv) {
    rocksdb_t* db = open_db(path_in(argv, "parents"));
    pid_t child = begin_child();
    if (child == 0) {
        CHECK(rocksdb_open(options, path_in(argv, "childs"), &error) == NULL);
        CHECK_ERROR(error, "Not implemented: this process was forked");
        rocksdb_close(db);
        exit(failures);
    }
    check_ends_well(child);
    put(db, "k");
    rocksdb_close(db);
}

/* A child works on no backups of its parent's. */
static void test_backups(char** argv) {
    rocksdb_t* db = open_db(path_in(argv, "backed-up"));
    rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open(options, path_in(argv, "backups"), &error);
    pid_t child;
    CHECK_OK(error);
    put(db, "k");
    rocksdb_backup_engine_create_new_backup(engine, db, &error);
    CHECK_OK(error);
    child = begin_child();
    if (child == 0) {
        rocksdb_backup_engine_create_new_backup(engine, db, &error);
        CHECK_ERROR(error, FORKED);
        rocksdb_backup_engine_purge_old_backups(engine, 0, &error);
        CHECK_ERROR(error, FORKED);
        rocksdb_backup_engine_close(engine);
        rocksdb_close(db);
        exit(failures);
    }
    check_ends_well(child);
    rocksdb_backup_engine_verify_backup(engine, 1, &error);
    CHECK_OK(error);
    rocksdb_backup_engine_close(engine);
    rocksdb_close(db);
}

/* What the child drops stays: a table that an iterator pins, a file begun, unlogged writes. */
static void test_files_stay(char** argv) {
    const char* path = path_in(argv, "files");
    const char* made = path_in(argv, "made.sst");
    rocksdb_t* db = open_db(path);
    rocksdb_envoptions_t* env_options = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env_options, options);
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_iterator_t* walk;
    pid_t child;
    put(db, "a");
    rocksdb_flush(db, flush_options, &error);
    put(db, "b");
    rocksdb_flush(db, flush_options, &error);
    walk = rocksdb_create_iterator(db, read_options);
    rocksdb_compact_range(db, NULL, 0, NULL, 0); /* the iterator alone keeps the first tables */
    rocksdb_writeoptions_disable_WAL(write_options, 1);
    put(db, "unlogged");
    rocksdb_writeoptions_disable_WAL(write_options, 0);
    rocksdb_sstfilewriter_open(writer, made, &error);
    rocksdb_sstfilewriter_put(writer, LIT("c"), LIT("v"), &error);
    CHECK_OK(error);
    child = begin_child();
    if (child == 0) {
        rocksdb_sstfilewriter_put(writer, LIT("d"), LIT("v"), &error);
        CHECK_ERROR(error, FORKED);
        rocksdb_sstfilewriter_finish(writer, &error);
        CHECK_ERROR(error, FORKED);
        rocksdb_sstfilewriter_destroy(writer);
        rocksdb_iter_destroy(walk);
        rocksdb_close(db);
        exit(failures);
    }
    check_ends_well(child);
    rocksdb_iter_seek_to_first(walk);
    CHECK(rocksdb_iter_valid(walk));
    rocksdb_iter_get_error(walk, &error);
    CHECK_OK(error);
    rocksdb_iter_destroy(walk);
    rocksdb_sstfilewriter_put(writer, LIT("d"), LIT("v"), &error);
    rocksdb_sstfilewriter_finish(writer, &error);
    CHECK_OK(error);
    rocksdb_ingest_external_file(db, &made, 1, ingest, &error);
    CHECK_OK(error);
    CHECK(has(db, "unlogged") && has(db, "d"));
    rocksdb_ingestexternalfileoptions_destroy(ingest);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(env_options);
    rocksdb_close(db);
}

/* A writer that was killed can be started again, though its child lives on. The first: a child of a process that has used the
   library opens no database for writing. */
static void test_restart_beside_an_orphan(char** argv) {
    const char* path = path_in(argv, "orphan");
    pid_t writer, orphan;
    int pipes[2];
    rocksdb_t* db;
    CHECK(pipe(pipes) == 0);
    writer = begin_child();
    if (writer == 0) {
        db = open_db(path);
        put(db, "k");
        orphan = begin_child();
        if (orphan == 0) {
            pause();
            _exit(1);
        }
        CHECK(write(pipes[1], &orphan, sizeof orphan) == sizeof orphan);
        pause();
        _exit(1);
    }
    CHECK(read(pipes[0], &orphan, sizeof orphan) == sizeof orphan);
    check_is_locked(path);
    CHECK(kill(writer, SIGKILL) == 0 && waitpid(writer, NULL, 0) == writer);
    db = open_db(path);
    CHECK(db != NULL && has(db, "k"));
    put(db, "after");
    CHECK(kill(orphan, SIGKILL) == 0);
    CHECK(has(db, "after"));
    rocksdb_close(db);
}

/* Reads of what is open for reading only go on. */
static void test_a_reader(char** argv) {
    const char* path = path_in(argv, "reader");
    rocksdb_t* db = open_db(path);
    pid_t child;
    put(db, "table");
    rocksdb_flush(db, flush_options, &error);
    put(db, "log");
    rocksdb_close(db);
    db = rocksdb_open_for_read_only(options, path, 0, &error);
    CHECK_OK(error);
    child = begin_child();
    if (child == 0) {
        rocksdb_iterator_t* walk = rocksdb_create_iterator(db, read_options);
        CHECK(has(db, "table") && has(db, "log") && !has(db, "neither"));
        rocksdb_iter_seek_to_first(walk);
        CHECK(rocksdb_iter_valid(walk));
        rocksdb_iter_destroy(walk);
        rocksdb_close(db);
        exit(failures);
    }
    check_ends_well(child);
    CHECK(has(db, "table"));
    rocksdb_close(db);
}

static void test_locks_of_transactions(char** argv) {
    rocksdb_transactiondb_options_t* db_options = rocksdb_transactiondb_options_create();
    rocksdb_transaction_options_t* transaction_options = rocksdb_transaction_options_create();
    rocksdb_transactiondb_t* db =
        rocksdb_transactiondb_open(options, db_options, path_in(argv, "transactions"), &error);
    rocksdb_transaction_t* transaction = rocksdb_transaction_begin(db, write_options, transaction_options, NULL);
    pid_t child;
    CHECK_OK(error);
    rocksdb_transaction_put(transaction, LIT("a"), LIT("v"), &error);
    CHECK_OK(error);
    child = begin_child();
    if (child == 0) {
        rocksdb_transaction_put(transaction, LIT("b"), LIT("v"), &error);
        CHECK_ERROR(error, FORKED);
        rocksdb_transaction_commit(transaction, &error);
        CHECK_ERROR(error, FORKED);
        rocksdb_transaction_destroy(transaction);
        rocksdb_transactiondb_close(db);
        exit(failures);
    }
    check_ends_well(child);
    rocksdb_transaction_put(transaction, LIT("b"), LIT("v"), &error);
    rocksdb_transaction_commit(transaction, &error);
    CHECK_OK(error);
    rocksdb_transaction_destroy(transaction);
    rocksdb_transactiondb_close(db);
    rocksdb_transaction_options_destroy(transaction_options);
    rocksdb_transactiondb_options_destroy(db_options);
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    write_options = rocksdb_writeoptions_create();
    read_options = rocksdb_readoptions_create();
    flush_options = rocksdb_flushoptions_create();
    test_restart_beside_an_orphan(argv);
    test_children_of_a_writer(argv);
    test_a_database_of_the_child(argv);
    test_backups(argv);
    test_files_stay(argv);
    test_a_reader(argv);
    test_locks_of_transactions(argv);
    rocksdb_flushoptions_destroy(flush_options);
    rocksdb_readoptions_destroy(read_options);
    rocksdb_writeoptions_destroy(write_options);
    rocksdb_options_destroy(options);
    return outcome("forked");
}
