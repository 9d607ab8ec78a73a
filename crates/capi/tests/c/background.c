/* Compactions by hand that are disabled and enabled, hints what to compact, and tables named for it. */

#define _POSIX_C_SOURCE 200809L /* strdup */
#include "check.h"

static char* error;
static rocksdb_t* db;
static rocksdb_writeoptions_t* write;
static rocksdb_flushoptions_t* flush;

static int files_at(int level) {
    char name[64];
    char* text;
    int files;
    snprintf(name, sizeof name, "rocksdb.num-files-at-level%d", level);
    text = rocksdb_property_value(db, name);
    files = text == NULL ? -1 : atoi(text);
    rocksdb_free(text);
    return files;
}

/* One more table in level 0. */
static void add_table(const char* first, const char* last) {
    rocksdb_put(db, write, LIT(first), LIT("v"), &error);
    rocksdb_put(db, write, LIT(last), LIT("v"), &error);
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
}

/* As RocksDB, calls are counted below 0 too: who enables first is not left without compactions for good. */
static void test_counts(void) {
    rocksdb_enable_manual_compaction(db);
    rocksdb_disable_manual_compaction(db);
    add_table("a", "b");
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    CHECK(files_at(0) == 0);
    rocksdb_disable_manual_compaction(db);
    add_table("a", "b");
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    CHECK(files_at(0) == 1);
    rocksdb_enable_manual_compaction(db);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    CHECK(files_at(0) == 0);
}

static void wait_for_background(void) {
    rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
    rocksdb_wait_for_compact(db, wait, &error);
    CHECK_OK(error);
    rocksdb_wait_for_compact_options_destroy(wait);
}

/* A hint is no error, and has the range's tables compacted. */
static void test_hints(void) {
    rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
    rocksdb_suggest_compact_range(db, NULL, 0, NULL, 0, &error);
    CHECK_OK(error);
    add_table("a", "b");
    add_table("x", "y");
    CHECK(files_at(0) == 2);
    rocksdb_suggest_compact_range_cf(db, family, LIT("m"), LIT("n"), &error);
    CHECK_OK(error);
    wait_for_background();
    CHECK(files_at(0) == 2);
    rocksdb_suggest_compact_range(db, LIT("w"), LIT("z"), &error);
    CHECK_OK(error);
    wait_for_background();
    CHECK(files_at(0) == 1);
    rocksdb_suggest_compact_range(db, NULL, 0, NULL, 0, &error);
    CHECK_OK(error);
    wait_for_background();
    CHECK(files_at(0) == 0);
    rocksdb_column_family_handle_destroy(family);
}

/* The names of the live tables, by level. */
static size_t names_at(int level, char** names) {
    const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
    size_t count = 0;
    for (int i = 0; i < rocksdb_livefiles_count(files); ++i)
        if (rocksdb_livefiles_level(files, i) == level) names[count++] = strdup(rocksdb_livefiles_name(files, i));
    rocksdb_livefiles_destroy(files);
    return count;
}

static void test_named_tables(void) {
    rocksdb_compaction_options_t* options = rocksdb_compaction_options_create();
    rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
    unsigned char* canceled = rocksdb_compaction_options_canceled_create();
    char *names[8] = {NULL}, **made = NULL;
    size_t count, made_count = 7;
    add_table("a", "b");
    add_table("a", "c");
    add_table("x", "y");
    count = names_at(0, names);
    CHECK(count == 3);

    rocksdb_compaction_options_set_canceled(options, canceled);
    rocksdb_compaction_options_canceled_set(canceled, 1);
    rocksdb_compact_files(db, options, (const char* const*)names, 1, 6, -1, &made, &made_count, NULL, &error);
    CHECK(error != NULL && strcmp(error, "Result incomplete: Manual compaction paused") == 0);
    CHECK(made_count == 0 && files_at(0) == 3);
    rocksdb_free(error), error = NULL;
    rocksdb_compaction_options_canceled_set(canceled, 0);

    rocksdb_compact_files(db, options, (const char* const*)names, 1, 70, -1, NULL, NULL, NULL, &error);
    CHECK(error != NULL && strstr(error, "Invalid argument: ") == error);
    rocksdb_free(error), error = NULL;

    /* The newest table of level 0 alone; then what overlaps the others. */
    rocksdb_compact_files(db, options, (const char* const*)names, 1, 5, -1, &made, &made_count, NULL, &error);
    CHECK_OK(error);
    CHECK(made_count == 1 && strstr(made[0], ".sst") != NULL && files_at(0) == 2 && files_at(5) == 1);
    rocksdb_compact_files_output_file_names_destroy(made, made_count);
    rocksdb_compact_files_cf(db, family, options, (const char* const*)names + 1, 1, 6, -1, &made, &made_count, NULL, &error);
    CHECK_OK(error);
    CHECK(made_count == 1 && files_at(0) == 0 && files_at(5) == 1);
    rocksdb_compact_files_output_file_names_destroy(made, made_count);

    for (size_t i = 0; i < count; ++i) free(names[i]);
    rocksdb_compaction_options_canceled_destroy(canceled);
    rocksdb_compaction_options_destroy(options);
    rocksdb_column_family_handle_destroy(family);
}

int main(int argc, char** argv) {
    rocksdb_options_t* options = rocksdb_options_create();
    if (argc < 2) return 2;
    write = rocksdb_writeoptions_create();
    flush = rocksdb_flushoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    test_counts();
    test_hints();
    test_named_tables();
    rocksdb_close(db);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_writeoptions_destroy(write);
    rocksdb_options_destroy(options);
    return outcome("background");
}
