/* Tables made and ingested, checkpoints, and what a database consists of. */

#include "check.h"

static char* error;
static rocksdb_options_t* options;
static rocksdb_readoptions_t* read;
static rocksdb_writeoptions_t* write;

static void make_table(char** argv, const char* name) {
    uint64_t bytes = 0;
    rocksdb_envoptions_t* env = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
    rocksdb_sstfilewriter_put(writer, LIT("a"), LIT("1"), &error);
    CHECK_ERROR(error, "Invalid argument: "); /* no table is open */
    rocksdb_sstfilewriter_finish(writer, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_sstfilewriter_open(writer, path_in(argv, name), &error);
    CHECK_OK(error);
    rocksdb_sstfilewriter_put(writer, LIT("t1"), LIT("of the table"), &error);
    rocksdb_sstfilewriter_add(writer, LIT("t2"), LIT("too"), &error);
    rocksdb_sstfilewriter_delete(writer, LIT("t3"), &error);
    rocksdb_sstfilewriter_merge(writer, LIT("t4"), LIT("12345678"), &error);
    rocksdb_sstfilewriter_delete_range(writer, LIT("u"), LIT("v"), &error);
    CHECK_OK(error);
    rocksdb_sstfilewriter_put(writer, LIT("t0"), LIT("out of order"), &error);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_sstfilewriter_finish(writer, &error);
    CHECK_OK(error);
    rocksdb_sstfilewriter_file_size(writer, &bytes);
    CHECK(bytes > 100);
    rocksdb_sstfilewriter_destroy(writer);
    writer = rocksdb_sstfilewriter_create_with_comparator(NULL, options, NULL);
    rocksdb_sstfilewriter_open(writer, path_in(argv, "unfinished.sst"), &error);
    CHECK_OK(error);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(env);
}

static void test_ingest(rocksdb_t* db, rocksdb_column_family_handle_t* family, char** argv) {
    size_t len;
    const char* file = path_in(argv, "made.sst");
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_put(db, write, LIT("t3"), LIT("goes"), &error);
    rocksdb_put(db, write, LIT("uu"), LIT("goes"), &error);
    rocksdb_ingest_external_file(db, &file, 1, ingest, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("t1"), &len, &error), len, "of the table");
    CHECK(rocksdb_get(db, read, LIT("t3"), &len, &error) == NULL);
    CHECK(rocksdb_get(db, read, LIT("uu"), &len, &error) == NULL);
    rocksdb_ingest_external_file_cf(db, family, &file, 1, ingest, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get_cf(db, read, family, LIT("t2"), &len, &error), len, "too");
    rocksdb_ingest_external_file(db, &file, 0, ingest, &error);
    CHECK_ERROR(error, "Invalid argument: external_files is empty");
    rocksdb_ingest_external_file_cf(db, family, NULL, 0, ingest, &error);
    CHECK_ERROR(error, "Invalid argument: external_files is empty");
    file = path_in(argv, "absent.sst");
    rocksdb_ingest_external_file(db, &file, 1, ingest, &error);
    CHECK(error != NULL);
    rocksdb_free(error);
    error = NULL;
    rocksdb_ingestexternalfileoptions_destroy(ingest);
}

static void test_checkpoint(rocksdb_t* db, char** argv) {
    size_t len;
    rocksdb_t* copy;
    rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &error);
    CHECK_OK(error);
    rocksdb_checkpoint_create(checkpoint, path_in(argv, "checkpoint"), 0, &error);
    CHECK_OK(error);
    rocksdb_checkpoint_create(checkpoint, path_in(argv, "checkpoint"), 0, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_checkpoint_object_destroy(checkpoint);
    copy = rocksdb_open_for_read_only(options, path_in(argv, "checkpoint"), 0, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(copy, read, LIT("t1"), &len, &error), len, "of the table");
    rocksdb_close(copy);
}

static void test_live_files(rocksdb_t* db, char** argv) {
    size_t len;
    int i, of_default = 0;
    const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
    CHECK(rocksdb_livefiles_count(files) >= 2);
    for (i = 0; i < rocksdb_livefiles_count(files); ++i) {
        of_default += strcmp(rocksdb_livefiles_column_family_name(files, i), "default") == 0;
        CHECK(rocksdb_livefiles_name(files, i)[0] == '/');
        CHECK(strcmp(rocksdb_livefiles_directory(files, i), path_in(argv, "db")) == 0);
        CHECK(rocksdb_livefiles_size(files, i) > 100);
        CHECK(rocksdb_livefiles_level(files, i) >= 0);
        CHECK(rocksdb_livefiles_entries(files, i) > 0);
        CHECK(rocksdb_livefiles_deletions(files, i) <= rocksdb_livefiles_entries(files, i));
        CHECK(rocksdb_livefiles_smallest_seqno(files, i) <= rocksdb_livefiles_largest_seqno(files, i));
        CHECK(rocksdb_livefiles_smallestkey(files, i, &len) != NULL && len > 0);
        CHECK(rocksdb_livefiles_largestkey(files, i, &len) != NULL && len > 0);
    }
    CHECK(of_default >= 1);
    CHECK(rocksdb_livefiles_name(files, i) == NULL && rocksdb_livefiles_size(files, -1) == 0);
    rocksdb_livefiles_destroy(files);
}

static void test_levels(rocksdb_t* db, rocksdb_column_family_handle_t* family) {
    size_t len, level, shown = 0;
    char* name;
    rocksdb_column_family_metadata_t* metadata = rocksdb_get_column_family_metadata_cf(db, family);
    name = rocksdb_column_family_metadata_get_name(metadata);
    CHECK_GIVEN(name, strlen(name), "own");
    CHECK(rocksdb_column_family_metadata_get_size(metadata) > 100);
    for (level = 0; level < rocksdb_column_family_metadata_get_level_count(metadata); ++level) {
        rocksdb_level_metadata_t* of = rocksdb_column_family_metadata_get_level_metadata(metadata, level);
        rocksdb_sst_file_metadata_t* file = rocksdb_level_metadata_get_sst_file_metadata(of, 0);
        CHECK(rocksdb_level_metadata_get_level(of) == (int)level);
        shown += rocksdb_level_metadata_get_file_count(of);
        if (file != NULL) {
            CHECK(rocksdb_sst_file_metadata_get_size(file) == rocksdb_level_metadata_get_size(of));
            name = rocksdb_sst_file_metadata_get_relative_filename(file);
            CHECK(strstr(name, ".sst") != NULL && name[0] != '/');
            rocksdb_free(name);
            rocksdb_free(rocksdb_sst_file_metadata_get_directory(file));
            name = rocksdb_sst_file_metadata_get_smallestkey(file, &len);
            CHECK_GIVEN(name, len, "t1");
            rocksdb_free(rocksdb_sst_file_metadata_get_largestkey(file, &len));
            CHECK(len > 0);
        }
        rocksdb_sst_file_metadata_destroy(file);
        rocksdb_level_metadata_destroy(of);
    }
    CHECK(shown == 1 && rocksdb_column_family_metadata_get_file_count(metadata) == 1);
    CHECK(rocksdb_column_family_metadata_get_level_metadata(metadata, 1000) == NULL);
    rocksdb_column_family_metadata_destroy(metadata);
    rocksdb_column_family_metadata_destroy(rocksdb_get_column_family_metadata(db));
}

static void test_jobs(rocksdb_t* db) {
    size_t len;
    const char *names[1] = {"disable_auto_compactions"}, *values[1] = {"true"};
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_compactoptions_t* compact = rocksdb_compactoptions_create();
    rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
    rocksdb_put(db, write, LIT("f"), LIT("flushed"), &error);
    rocksdb_disable_file_deletions(db, &error);
    rocksdb_flushoptions_set_wait(flush, 0);
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    rocksdb_flushoptions_set_wait(flush, 1);
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    rocksdb_compactoptions_set_bottommost_level_compaction(compact, 2);
    rocksdb_compact_range_opt(db, compact, NULL, 0, NULL, 0);
    rocksdb_compact_range(db, LIT("a"), LIT("z"));
    rocksdb_wait_for_compact_options_set_flush(wait, 1);
    rocksdb_wait_for_compact(db, wait, &error);
    CHECK_OK(error);
    rocksdb_enable_file_deletions(db, &error);
    CHECK_OK(error);
    rocksdb_set_options(db, 1, names, values, &error);
    CHECK_OK(error);
    rocksdb_delete_file_in_range(db, LIT("f"), LIT("g"), &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("f"), &len, &error), len, "flushed"); /* its file has more */
    rocksdb_delete_file_in_range(db, LIT("g"), NULL, 0, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("t1"), &len, &error), len, "of the table");
    rocksdb_delete_file_in_range(db, LIT("f"), NULL, 0, &error);
    CHECK_OK(error);
    CHECK(rocksdb_get(db, read, LIT("f"), &len, &error) == NULL);
    CHECK(rocksdb_get(db, read, LIT("t1"), &len, &error) == NULL);
    rocksdb_wait_for_compact_options_set_close_db(wait, 1);
    rocksdb_wait_for_compact(db, wait, &error);
    CHECK_OK(error);
    rocksdb_put(db, write, LIT("f"), LIT("too late"), &error);
    CHECK_ERROR(error, "Shutdown in progress: ");
    rocksdb_flushoptions_destroy(flush);
    rocksdb_compactoptions_destroy(compact);
    rocksdb_wait_for_compact_options_destroy(wait);
}

/* A table of three keys, the middle one between the others. */
static void ingest_three(rocksdb_t* db, rocksdb_column_family_handle_t* family, const char* path, const char* keys) {
    int i;
    rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create_with_comparator(NULL, options, NULL);
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_sstfilewriter_open(writer, path, &error);
    for (i = 0; i < 3; i++) rocksdb_sstfilewriter_put(writer, keys + i, 1, LIT("old"), &error);
    rocksdb_sstfilewriter_finish(writer, &error);
    CHECK_OK(error);
    rocksdb_ingest_external_file_cf(db, family, &path, 1, ingest, &error);
    rocksdb_flush_cf(db, flush, family, &error); /* gives it the last level */
    CHECK_OK(error);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
    rocksdb_sstfilewriter_destroy(writer);
}

/* The keys of a family, with a capital for those that have a new value. */
static void check_keys(rocksdb_t* db, rocksdb_column_family_handle_t* family, const char* expected) {
    char found[32];
    size_t len, count = 0;
    rocksdb_iterator_t* entries = rocksdb_create_iterator_cf(db, read, family);
    for (rocksdb_iter_seek_to_first(entries); rocksdb_iter_valid(entries) && count < 31; rocksdb_iter_next(entries)) {
        char key = rocksdb_iter_key(entries, &len)[0];
        found[count++] = rocksdb_iter_value(entries, &len)[0] == 'n' ? (char)(key - 'a' + 'A') : key;
    }
    rocksdb_iter_destroy(entries);
    CHECK_BYTES(found, count, expected);
}

/* Whole files go, and nothing else does: not what reaches out of the range, lies in level 0 or in memory. */
static void test_delete_files(rocksdb_t* db, char** argv) {
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_column_family_handle_t* family = rocksdb_create_column_family(db, options, "ranges", &error);
    rocksdb_iterator_t* before;
    size_t len;
    CHECK_OK(error);
    ingest_three(db, family, path_in(argv, "abc.sst"), "abc");
    ingest_three(db, family, path_in(argv, "def.sst"), "def");
    ingest_three(db, family, path_in(argv, "ghi.sst"), "ghi");
    rocksdb_put_cf(db, write, family, LIT("e"), LIT("new"), &error);
    CHECK_OK(error);
    check_keys(db, family, "abcdEfghi");
    before = rocksdb_create_iterator_cf(db, read, family);
    rocksdb_delete_file_in_range_cf(db, family, LIT("e"), LIT("h"), &error);
    CHECK_OK(error);
    check_keys(db, family, "abcdEfghi");
    rocksdb_delete_file_in_range_cf(db, family, LIT("b"), LIT("f"), &error);
    CHECK_OK(error);
    check_keys(db, family, "abcEghi");
    rocksdb_delete_file_in_range_cf(db, family, LIT("g"), NULL, 0, &error);
    CHECK_OK(error);
    check_keys(db, family, "abcE");
    rocksdb_delete_file_in_range_cf(db, family, LIT("f"), LIT("a"), &error);
    CHECK_OK(error);
    check_keys(db, family, "abcE");
    rocksdb_flush_cf(db, flush, family, &error);
    CHECK_OK(error);
    rocksdb_delete_file_in_range_cf(db, family, NULL, 0, NULL, 0, &error);
    CHECK_OK(error);
    check_keys(db, family, "E");
    rocksdb_iter_seek(before, LIT("i")); /* sees what it saw */
    CHECK(rocksdb_iter_valid(before));
    CHECK_BYTES(rocksdb_iter_value(before, &len), len, "old");
    rocksdb_iter_destroy(before);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_flushoptions_destroy(flush);
}

int main(int argc, char** argv) {
    rocksdb_t* db;
    rocksdb_column_family_handle_t* family;
    if (argc < 2) return 2;
    options = rocksdb_options_create();
    read = rocksdb_readoptions_create();
    write = rocksdb_writeoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_uint64add_merge_operator(options);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    family = rocksdb_create_column_family(db, options, "own", &error);
    CHECK_OK(error);
    make_table(argv, "made.sst");
    test_ingest(db, family, argv);
    test_checkpoint(db, argv);
    test_live_files(db, argv);
    test_levels(db, family);
    test_delete_files(db, argv);
    test_jobs(db);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    return outcome("files");
}
