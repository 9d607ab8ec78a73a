/* Names and paths are any bytes, as in RocksDB; and standard output is no file of a database. */

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

static const char* name_of(void* name) { return name; }
static int by_bytes(void* name, const char* a, size_t a_len, const char* b, size_t b_len) {
    size_t common = a_len < b_len ? a_len : b_len;
    int order = memcmp(a, b, common);
    (void)name;
    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}
static void keep(void* name) { (void)name; }

/* Two names that differ in a byte which is not UTF-8 are two comparators. */
static void check_comparators(const char* dir) {
    static char first[] = "order\xff", second[] = "order\xfe";
    rocksdb_comparator_t* one = rocksdb_comparator_create(first, keep, by_bytes, name_of);
    rocksdb_comparator_t* other = rocksdb_comparator_create(second, keep, by_bytes, name_of);
    rocksdb_options_t* options = rocksdb_options_create();
    int round;
    rocksdb_options_set_create_if_missing(options, 1);
    for (round = 0; round < 2; round++) { /* made, and opened again */
        rocksdb_options_set_comparator(options, one);
        rocksdb_t* db = rocksdb_open(options, dir, &error);
        CHECK_OK(error);
        if (db != NULL) rocksdb_close(db);
        rocksdb_options_set_comparator(options, other);
        CHECK(rocksdb_open(options, dir, &error) == NULL);
        CHECK(error != NULL && strstr(error, first) != NULL && strstr(error, second) != NULL);
        CHECK_ERROR(error, "Invalid argument: ");
    }
    rocksdb_options_destroy(options);
    rocksdb_comparator_destroy(one);
    rocksdb_comparator_destroy(other);
}

/* A program that has closed its standard output and error prints into no file of a database. */
static void check_closed_outputs(const char* dir) {
    int out = dup(1), err = dup(2);
    int taken;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_t* db;
    rocksdb_options_set_create_if_missing(options, 1);
    close(1);
    close(2);
    db = rocksdb_open(options, dir, &error);
    taken = (fcntl(1, F_GETFD) != -1) + (fcntl(2, F_GETFD) != -1);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    CHECK_OK(error);
    CHECK(taken == 0);
    if (db != NULL) rocksdb_close(db);
    rocksdb_options_destroy(options);
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

    rocksdb_options_set_wal_dir(options, path_in(argv, "elsewhere"));
    CHECK(rocksdb_open_column_families(options, dir, 2, names, of, families, &error) == NULL);
    CHECK(error != NULL && strstr(error, "/logs") != NULL); /* they are looked for there */
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_options_set_wal_dir(options, logs);
    check_comparators(path_in(argv, "ordered"));
    check_closed_outputs(path_in(argv, "closed"));

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
