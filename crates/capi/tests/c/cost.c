/* Puts and gets, as examples/cost.rs does them through Rust's API: scripts/capi-cost.sh compares the two.

       cost DIRECTORY put|get|none COUNT */

#include "check.h"

int main(int argc, char** argv) {
    char key[32], value[100], *error = NULL;
    size_t len = 0, bytes = 0;
    uint64_t number, count;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_t* db;
    if (argc < 4) return 2;
    count = strtoull(argv[3], NULL, 10);
    memset(value, 'v', sizeof value);
    rocksdb_options_set_create_if_missing(options, 1);
    db = rocksdb_open(options, argv[1], &error);
    CHECK_OK(error);
    if (db == NULL) return 1;
    for (number = 0; number < count; ++number) {
        int key_len = snprintf(key, sizeof key, "%016llu",
                               (unsigned long long)(number * UINT64_C(2654435761) % UINT64_C(1000000007)));
        if (strcmp(argv[2], "put") == 0) {
            rocksdb_put(db, write, key, (size_t)key_len, value, sizeof value, &error);
        } else if (strcmp(argv[2], "get") == 0) {
            char* got = rocksdb_get(db, read, key, (size_t)key_len, &len, &error);
            bytes += len;
            rocksdb_free(got);
        } else {
            bytes += (size_t)key_len;
        }
        CHECK_OK(error);
    }
    printf("%lu\n", (unsigned long)bytes);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    return failures;
}
