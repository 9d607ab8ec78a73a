/* Backups: made, listed, verified, restored, given up. */

#include "check.h"

static char* error;
static rocksdb_options_t* options;
static rocksdb_readoptions_t* read;
static rocksdb_writeoptions_t* write;

static void test_options(char** argv) {
    rocksdb_backup_engine_options_t* backup = rocksdb_backup_engine_options_create(path_in(argv, "elsewhere"));
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_backup_engine_t* engine;
#define ROW(handle, prefix, name, set_type, get_type, sample)        \
    {                                                                \
        get_type before = prefix##get_##name(handle);                \
        prefix##set_##name(handle, (set_type)(sample));              \
        CHECK(prefix##get_##name(handle) == (get_type)(sample));     \
        prefix##set_##name(handle, (set_type)before);                \
    }
#include "backup_rows.inc"
#undef ROW
    rocksdb_backup_engine_options_set_backup_dir(backup, path_in(argv, "here"));
    rocksdb_backup_engine_options_set_env(backup, env);
    engine = rocksdb_backup_engine_open_opts(backup, env, &error);
    CHECK_OK(error);
    rocksdb_backup_engine_close(engine);
    rocksdb_backup_engine_options_set_max_background_operations(backup, 0);
    CHECK(rocksdb_backup_engine_open_opts(backup, NULL, &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_backup_engine_options_destroy(backup);
    rocksdb_env_destroy(env);
}

static void check_restored(const char* path, const char* expected) {
    size_t len;
    rocksdb_t* db = rocksdb_open(options, path, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("k"), &len, &error), len, expected);
    rocksdb_close(db);
}

int main(int argc, char** argv) {
    rocksdb_restore_options_t* restore = rocksdb_restore_options_create();
    const rocksdb_backup_engine_info_t* list;
    rocksdb_backup_engine_t* engine;
    rocksdb_t* db;
    uint32_t first;
    if (argc < 2) return 2;
    options = rocksdb_options_create();
    read = rocksdb_readoptions_create();
    write = rocksdb_writeoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_restore_options_set_keep_log_files(restore, 0);
    test_options(argv);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    engine = rocksdb_backup_engine_open(options, path_in(argv, "kept"), &error);
    CHECK_OK(error);
    rocksdb_put(db, write, LIT("k"), LIT("first"), &error);
    rocksdb_backup_engine_create_new_backup(engine, db, &error);
    CHECK_OK(error);
    rocksdb_put(db, write, LIT("k"), LIT("second"), &error);
    rocksdb_backup_engine_create_new_backup_flush(engine, db, 1, &error);
    CHECK_OK(error);
    rocksdb_close(db);

    list = rocksdb_backup_engine_get_backup_info(engine);
    CHECK(rocksdb_backup_engine_info_count(list) == 2);
    first = rocksdb_backup_engine_info_backup_id(list, 0);
    CHECK(rocksdb_backup_engine_info_backup_id(list, 1) == first + 1);
    CHECK(rocksdb_backup_engine_info_timestamp(list, 0) > 1000000000);
    CHECK(rocksdb_backup_engine_info_size(list, 0) > 0 && rocksdb_backup_engine_info_number_files(list, 0) > 0);
    CHECK(rocksdb_backup_engine_info_backup_id(list, 2) == 0 && rocksdb_backup_engine_info_size(list, -1) == 0);
    rocksdb_backup_engine_info_destroy(list);
    rocksdb_backup_engine_verify_backup(engine, first, &error);
    CHECK_OK(error);
    rocksdb_backup_engine_verify_backup(engine, 99, &error);
    CHECK(error != NULL);
    rocksdb_free(error);
    error = NULL;
    rocksdb_backup_engine_restore_db_from_backup(engine, path_in(argv, "one"), path_in(argv, "one"), restore, first,
                                                 &error);
    CHECK_OK(error);
    check_restored(path_in(argv, "one"), "first");
    rocksdb_backup_engine_restore_db_from_latest_backup(engine, path_in(argv, "two"), path_in(argv, "two"), restore,
                                                        &error);
    CHECK_OK(error);
    check_restored(path_in(argv, "two"), "second");
    rocksdb_backup_engine_purge_old_backups(engine, 1, &error);
    CHECK_OK(error);
    list = rocksdb_backup_engine_get_backup_info(engine);
    CHECK(rocksdb_backup_engine_info_count(list) == 1);
    rocksdb_backup_engine_info_destroy(list);
    rocksdb_backup_engine_close(engine);
    rocksdb_restore_options_destroy(restore);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    return outcome("backups");
}
