/* Names and paths are any bytes, as in RocksDB. */

#include <dirent.h>
#include <sys/stat.h>

#include "check.h"

#define NAME "\xff one \xc3"

static char* error;

/* How many files of a directory have the ending. */
static int files(const char* dir, const char* ending) {
    int count = 0;
    const struct dirent* entry;
    DIR* open = opendir(dir);
    if (open == NULL) return -1;
    while ((entry = readdir(open)) != NULL) {
        size_t len = strlen(entry->d_name), end = strlen(ending);
        count += len > end && strcmp(entry->d_name + len - end, ending) == 0;
    }
    closedir(open);
    return count;
}

static int loaded(const char* dir) {
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
    rocksdb_options_t *of_database, **of_families;
    char** names;
    size_t count = 0;
    rocksdb_load_latest_options(dir, env, 0, cache, &of_database, &count, &names, &of_families, &error);
    CHECK_OK(error);
    CHECK(count == 2 && strcmp(names[1], NAME) == 0);
    if (count > 0) rocksdb_load_latest_options_destroy(of_database, names, of_families, count);
    rocksdb_cache_destroy(cache);
    rocksdb_env_destroy(env);
    return count == 2;
}

int main(int argc, char** argv) {
    const char* dir = path_in(argv, "db\xfe");
    const char* logs = path_in(argv, "logs\xfd");
    const char* names[2] = {"default", NAME};
    rocksdb_column_family_handle_t* families[2];
    rocksdb_options_t* options = rocksdb_options_create();
    const rocksdb_options_t* of[2] = {options, options};
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    size_t len = 0;
    char** list;
    (void)argc;

    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    rocksdb_options_set_wal_dir(options, logs);
    rocksdb_t* db = rocksdb_open_column_families(options, dir, 2, names, of, families, &error);
    CHECK_OK(error);
    if (db == NULL) return outcome("bytes");
    rocksdb_put_cf(db, write, families[1], LIT("key"), LIT("value"), &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_column_family_handle_get_name(families[1], &len), len, NAME);
    CHECK(files(logs, "log") > 0);
    CHECK(rocksdb_create_column_family(db, options, NAME, &error) == NULL);
    CHECK(error != NULL && strstr(error, NAME) != NULL);
    CHECK_ERROR(error, "Invalid argument: Column family already exists");
    rocksdb_column_family_handle_destroy(families[0]);
    rocksdb_column_family_handle_destroy(families[1]);
    rocksdb_close(db);

    list = rocksdb_list_column_families(options, dir, &len, &error);
    CHECK_OK(error);
    CHECK(len == 2 && strcmp(list[1], NAME) == 0);
    rocksdb_list_column_families_destroy(list, len);
    CHECK(loaded(dir));
    CHECK(rocksdb_open(options, dir, &error) == NULL);
    CHECK(error != NULL && strstr(error, NAME) != NULL);
    CHECK_ERROR(error, "Invalid argument: Column families not opened: ");

    db = rocksdb_open_column_families(options, dir, 2, names, of, families, &error);
    CHECK_OK(error);
    if (db == NULL) return outcome("bytes");
    CHECK_GIVEN(rocksdb_get_cf(db, read, families[1], LIT("key"), &len, &error), len, "value");
    rocksdb_column_family_handle_destroy(families[0]);
    rocksdb_column_family_handle_destroy(families[1]);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    return outcome("bytes");
}
