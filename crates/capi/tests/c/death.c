/* Calls that end the process, each chosen by its name. */

#include "check.h"

int main(int argc, char** argv) {
    char* error = NULL;
    size_t len;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    const char* how = argc < 2 ? "" : argv[1];
    if (strcmp(how, "get") == 0) rocksdb_get(NULL, read, "k", 1, &len, &error);
    if (strcmp(how, "iter_next") == 0) rocksdb_iter_next(NULL);
    if (strcmp(how, "batch_key") == 0) rocksdb_writebatch_put(batch, NULL, 1, "v", 1);
    if (strcmp(how, "setter") == 0) rocksdb_options_set_num_levels(NULL, 3);
    if (strcmp(how, "name") == 0) rocksdb_open(options, NULL, &error);
    return 0;
}
