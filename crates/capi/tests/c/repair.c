/* rocksdb_repair_db: a database without its MANIFEST, or with a damaged table, opens again. */

#include <dirent.h>
#include <unistd.h>

#include "check.h"

static rocksdb_options_t* options;
static rocksdb_readoptions_t* read_options;
static char* error;

/* The path of the file in the directory whose name holds `part`. */
static void find(const char* dir_path, const char* part, char* path, size_t size) {
    DIR* dir = opendir(dir_path);
    struct dirent* entry;
    path[0] = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strstr(entry->d_name, part) != NULL) snprintf(path, size, "%s/%s", dir_path, entry->d_name);
    }
    if (dir != NULL) closedir(dir);
    CHECK(path[0] != 0);
}

static void put(rocksdb_t* db, const char* key, const char* value) {
    rocksdb_writeoptions_t* written = rocksdb_writeoptions_create();
    rocksdb_put(db, written, LIT(key), LIT(value), &error);
    CHECK_OK(error);
    rocksdb_writeoptions_destroy(written);
}

static void check_value(const char* dir, const char* key, const char* value) {
    size_t len;
    rocksdb_t* db = rocksdb_open(options, dir, &error);
    CHECK_OK(error);
    if (db == NULL) return;
    if (value == NULL) {
        CHECK(rocksdb_get(db, read_options, LIT(key), &len, &error) == NULL);
    } else {
        CHECK_GIVEN(rocksdb_get(db, read_options, LIT(key), &len, &error), len, value);
    }
    CHECK_OK(error);
    rocksdb_close(db);
}

int main(int argc, char** argv) {
    char dir[4096], file[4400];
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_t* db;
    FILE* table;
    char* report;
    unsigned char lost_nothing;
    if (argc < 2) return 2;
    snprintf(dir, sizeof dir, "%s/db", argv[1]);
    options = rocksdb_options_create();
    read_options = rocksdb_readoptions_create();
    rocksdb_repair_db(options, dir, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_options_set_create_if_missing(options, 1);
    db = rocksdb_open(options, dir, &error);
    CHECK_OK(error);
    put(db, "key", "in a table");
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    put(db, "other", "in the log");
    rocksdb_repair_db(options, dir, &error);
    CHECK_ERROR(error, "IO error: ");
    rocksdb_close(db);

    find(dir, "MANIFEST-", file, sizeof file);
    CHECK(unlink(file) == 0);
    CHECK(rocksdb_open(options, dir, &error) == NULL);
    CHECK_ERROR(error, "Corruption: ");
    rocksdb_repair_db(options, dir, &error);
    CHECK_OK(error);
    check_value(dir, "key", "in a table");
    check_value(dir, "other", "in the log");

    find(dir, ".sst", file, sizeof file);
    table = fopen(file, "r+");
    CHECK(table != NULL && fputc(0x55, table) != EOF && fclose(table) == 0);
    report = spillway_repair_db(options, dir, &lost_nothing, &error);
    CHECK_OK(error);
    CHECK(report != NULL && strstr(report, "\nlost: ") != NULL && lost_nothing == 0);
    rocksdb_free(report);
    check_value(dir, "key", NULL);
    check_value(dir, "other", "in the log");
    snprintf(file, sizeof file, "%s/lost/REPORT", dir);
    CHECK(access(file, R_OK) == 0);
    report = spillway_repair_db(options, dir, &lost_nothing, &error);
    CHECK_OK(error);
    CHECK(report != NULL && strstr(report, "\nlost: ") == NULL && strstr(report, "an earlier repair") != NULL);
    CHECK(lost_nothing == 0);
    rocksdb_free(report);
    CHECK(unlink(file) == 0);
    report = spillway_repair_db(options, dir, &lost_nothing, &error);
    CHECK_OK(error);
    CHECK(report != NULL && lost_nothing == 1);
    rocksdb_free(report);
    lost_nothing = 1;
    CHECK(spillway_repair_db(options, argv[0], &lost_nothing, &error) == NULL && lost_nothing == 0);
    CHECK_ERROR(error, "");

    /* With the logs elsewhere nothing is repaired, and nothing is lost. */
    snprintf(dir, sizeof dir, "%s/apart", argv[1]);
    snprintf(file, sizeof file, "%s/logs", argv[1]);
    rocksdb_options_set_wal_dir(options, file);
    check_value(dir, "key", NULL);
    db = rocksdb_open(options, dir, &error);
    CHECK_OK(error);
    put(db, "key", "in the log");
    rocksdb_close(db);
    rocksdb_options_set_wal_dir(options, "");
    rocksdb_repair_db(options, dir, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_options_set_wal_dir(options, file);
    rocksdb_repair_db(options, dir, &error);
    CHECK_OK(error);
    check_value(dir, "key", "in the log");

    rocksdb_flushoptions_destroy(flush);
    rocksdb_readoptions_destroy(read_options);
    rocksdb_options_destroy(options);
    return outcome("repair");
}
