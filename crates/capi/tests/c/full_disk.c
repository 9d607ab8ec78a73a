/* A lack of space that passes: the size that files may have stands for the disk. */

#include "check.h"

#include <signal.h>
#include <sys/resource.h>

#define KEYS 800
#define VALUE_BYTES 1024

static rocksdb_readoptions_t* read;
static rocksdb_writeoptions_t* write;

static void limit_files(rlim_t bytes) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* Bytes that do not compress. */
static void value_of(int n, char* value) {
    unsigned state = (unsigned)n * 2654435761u + 1;
    int i;
    for (i = 0; i < VALUE_BYTES; ++i) {
        state = state * 1664525u + 1013904223u;
        value[i] = (char)(state >> 24);
    }
}

static void put(rocksdb_t* db, int n) {
    char value[VALUE_BYTES], key[16], *error = NULL;
    value_of(n, value);
    sprintf(key, "%08d", n);
    rocksdb_put(db, write, key, strlen(key), value, VALUE_BYTES, &error);
    CHECK_OK(error);
}

static void check_all(rocksdb_t* db, int written) {
    char value[VALUE_BYTES], key[16], *found, *error = NULL;
    size_t len;
    int n;
    for (n = 0; n < written; ++n) {
        value_of(n, value);
        sprintf(key, "%08d", n);
        found = rocksdb_get(db, read, key, strlen(key), &len, &error);
        CHECK_OK(error);
        CHECK(found != NULL && len == VALUE_BYTES && memcmp(found, value, len) == 0);
        rocksdb_free(found);
    }
}

static void test_resume(char** argv) {
    char path[4096], *error = NULL;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_t* db;
    uint64_t errors = 0;
    int n;
    sprintf(path, "%s/full", argv[1]);
    rocksdb_options_set_create_if_missing(options, 1);
    db = rocksdb_open(options, path, &error);
    CHECK_OK(error);
    spillway_resume(db, &error);
    CHECK_OK(error);
    rocksdb_writeoptions_disable_WAL(write, 1);
    for (n = 0; n < KEYS; ++n) put(db, n);
    limit_files(256 << 10);
    rocksdb_flush(db, flush, &error);
    CHECK_ERROR(error, "IO error: a flush waits, and is tried again: cannot append; a file may not become larger here");
    CHECK(rocksdb_property_int(db, "rocksdb.background-errors", &errors) == 0 && errors >= 1);
    for (; n < KEYS + 50; ++n) put(db, n);
    spillway_resume(db, &error);
    CHECK_ERROR(error, "IO error: a flush waits, and is tried again: cannot append; a file may not become larger here");
    check_all(db, n);
    limit_files(RLIM_INFINITY);
    spillway_resume(db, &error);
    CHECK_OK(error);
    put(db, n++);
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    check_all(db, n);
    rocksdb_close(db);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_options_destroy(options);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    signal(SIGXFSZ, SIG_IGN);
    read = rocksdb_readoptions_create();
    write = rocksdb_writeoptions_create();
    test_resume(argv);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    return outcome("full_disk");
}
