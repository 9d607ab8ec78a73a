/* Tables made and ingested, checkpoints, and what a database consists of. */

#include <sys/stat.h>

#include "check.h"

static char* error;
static rocksdb_options_t* options;
static rocksdb_readoptions_t* read;
static rocksdb_writeoptions_t* write;

/* What RocksDB leaves of a table without an end. Programs count on the name. */
static void check_is_empty(const char* path) {
    struct stat found;
    CHECK(stat(path, &found) == 0 && found.st_size == 0);
}

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
    rocksdb_sstfilewriter_finish(writer, &error);
    CHECK_ERROR(error, "Invalid argument: "); /* no entries */
    check_is_empty(path_in(argv, "unfinished.sst"));
    rocksdb_sstfilewriter_open(writer, path_in(argv, "dropped.sst"), &error);
    rocksdb_sstfilewriter_put(writer, LIT("a"), LIT("1"), &error);
    CHECK_OK(error);
    rocksdb_sstfilewriter_destroy(writer);
    check_is_empty(path_in(argv, "dropped.sst"));
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
    CHECK_ERROR(error, "Invalid argument: external_files[0] is empty");
    rocksdb_ingest_external_file_cf(db, family, NULL, 0, ingest, &error);
    CHECK_ERROR(error, "Invalid argument: external_files[0] is empty");
    file = path_in(argv, "absent.sst");
    rocksdb_ingest_external_file(db, &file, 1, ingest, &error);
    CHECK(error != NULL);
    rocksdb_free(error);
    error = NULL;
    rocksdb_ingestexternalfileoptions_destroy(ingest);
}

/* A table with that value under each of these keys of one letter. */
static void make_keys(const char* path, const char* keys, const char* value) {
    rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create_with_comparator(NULL, options, NULL);
    rocksdb_sstfilewriter_open(writer, path, &error);
    for (; *keys != 0; ++keys) rocksdb_sstfilewriter_put(writer, keys, 1, LIT(value), &error);
    rocksdb_sstfilewriter_finish(writer, &error);
    CHECK_OK(error);
    rocksdb_sstfilewriter_destroy(writer);
}

/* Ingests such a table, and leaves the error to the caller. Returns where the table was. */
static const char* ingest_keys(rocksdb_t* db, char** argv, const char* keys,
                               const rocksdb_ingestexternalfileoptions_t* ingest) {
    const char* file = path_in(argv, "keys.sst");
    make_keys(file, keys, "new");
    rocksdb_ingest_external_file(db, &file, 1, ingest, &error);
    return file;
}

/* How many names a file has: 0 where there is none. */
static int names_of(const char* path) {
    struct stat file;
    return stat(path, &file) == 0 ? (int)file.st_nlink : 0;
}

/* move_files, link_files. */
static void test_names(rocksdb_t* db, char** argv) {
    size_t len;
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    CHECK(names_of(ingest_keys(db, argv, "a", ingest)) == 1);
    CHECK_OK(error);
    rocksdb_ingestexternalfileoptions_set_link_files(ingest, 1);
    CHECK(names_of(ingest_keys(db, argv, "b", ingest)) == 2);
    CHECK_OK(error);
    rocksdb_ingestexternalfileoptions_set_link_files(ingest, 0);
    rocksdb_ingestexternalfileoptions_set_move_files(ingest, 1);
    CHECK(names_of(ingest_keys(db, argv, "c", ingest)) == 0);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("c"), &len, &error), len, "new");
    rocksdb_ingestexternalfileoptions_destroy(ingest);
}

/* A path on another file system, from which nothing can be linked; NULL where the machine has none. */
static const char* far_path(char** argv) {
    static char path[512];
    struct stat far, here;
    const char* name = strrchr(argv[1], '/');
    FILE* file;
    if (stat("/dev/shm", &far) != 0 || stat(argv[1], &here) != 0 || far.st_dev == here.st_dev) return NULL;
    snprintf(path, sizeof path, "/dev/shm/%s.sst", name == NULL ? argv[1] : name + 1);
    file = fopen(path, "w");
    if (file == NULL) return NULL;
    fclose(file);
    return path;
}

/* failed_move_fall_back_to_copy. */
static void test_far_file(rocksdb_t* db, char** argv) {
    size_t len;
    const char* file = far_path(argv);
    rocksdb_ingestexternalfileoptions_t* ingest;
    if (file == NULL) {
        fprintf(stderr, "there is no second file system here: a link across two is not tried\n");
        return;
    }
    ingest = rocksdb_ingestexternalfileoptions_create();
    make_keys(file, "d", "new");
    rocksdb_ingestexternalfileoptions_set_link_files(ingest, 1);
    rocksdb_ingestexternalfileoptions_set_failed_move_fall_back_to_copy(ingest, 0);
    rocksdb_ingest_external_file(db, &file, 1, ingest, &error);
    CHECK_ERROR(error, "Not implemented: the file cannot be linked, and failed_move_fall_back_to_copy is off");
    rocksdb_ingestexternalfileoptions_set_failed_move_fall_back_to_copy(ingest, 1);
    rocksdb_ingest_external_file(db, &file, 1, ingest, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("d"), &len, &error), len, "new");
    CHECK(names_of(file) == 1 && remove(file) == 0);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
}

/* allow_global_seqno, snapshot_consistency, and allow_blocking_flush, which has nothing to forbid: no writer waits. */
static void test_numbers(rocksdb_t* db, char** argv) {
    size_t len;
    const rocksdb_snapshot_t* snapshot;
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_put(db, write, LIT("g"), LIT("old"), &error);
    CHECK_OK(error);
    rocksdb_ingestexternalfileoptions_set_allow_global_seqno(ingest, 0);
    ingest_keys(db, argv, "g", ingest);
    CHECK_ERROR(error, "Invalid argument: Global seqno is required, but disabled (because keys of the ingest are in memtables");
    ingest_keys(db, argv, "h", ingest);
    CHECK_OK(error);
    snapshot = rocksdb_create_snapshot(db);
    ingest_keys(db, argv, "i", ingest);
    CHECK_ERROR(error, "Invalid argument: Global seqno is required, but disabled (because there are snapshots");
    rocksdb_ingestexternalfileoptions_set_snapshot_consistency(ingest, 0);
    ingest_keys(db, argv, "i", ingest);
    CHECK_OK(error);
    rocksdb_release_snapshot(db, snapshot);
    rocksdb_ingestexternalfileoptions_set_allow_global_seqno(ingest, 1);
    rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(ingest, 0);
    ingest_keys(db, argv, "g", ingest);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("g"), &len, &error), len, "new");
    rocksdb_ingestexternalfileoptions_destroy(ingest);
}

/* fail_if_not_bottommost_level. */
static void test_bottommost(rocksdb_t* db, char** argv) {
    size_t len;
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_put(db, write, LIT("j"), LIT("old"), &error);
    CHECK_OK(error);
    rocksdb_ingestexternalfileoptions_set_fail_if_not_bottommost_level(ingest, 1);
    ingest_keys(db, argv, "j", ingest);
    CHECK_ERROR(error, "Operation failed. Try again.: Files cannot be ingested to Lmax");
    ingest_keys(db, argv, "k", ingest);
    CHECK_OK(error);
    rocksdb_ingestexternalfileoptions_set_fail_if_not_bottommost_level(ingest, 0);
    ingest_keys(db, argv, "j", ingest);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("j"), &len, &error), len, "new");
    rocksdb_ingestexternalfileoptions_destroy(ingest);
}

/* ingest_behind: what is there stays, and there must be a level for it. */
static void test_behind(rocksdb_t* db, char** argv) {
    size_t len;
    rocksdb_t* layered;
    rocksdb_options_t* behind = rocksdb_options_create();
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_options_set_create_if_missing(behind, 1);
    rocksdb_options_set_allow_ingest_behind(behind, 1);
    layered = rocksdb_open(behind, path_in(argv, "behind"), &error);
    rocksdb_put(layered, write, LIT("l"), LIT("stays"), &error);
    CHECK_OK(error);
    rocksdb_ingestexternalfileoptions_set_ingest_behind(ingest, 1);
    ingest_keys(db, argv, "lm", ingest);
    CHECK_ERROR(error, "Invalid argument: Can't ingest_behind file in ColumnFamily");
    ingest_keys(layered, argv, "lm", ingest);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(layered, read, LIT("l"), &len, &error), len, "stays");
    CHECK_GIVEN(rocksdb_get(layered, read, LIT("m"), &len, &error), len, "new");
    rocksdb_close(layered);
    rocksdb_options_destroy(behind);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
}

/* The file of the table that begins with that key. */
static const char* table_of(rocksdb_t* db, const char* key) {
    static char path[512];
    int i;
    size_t len;
    const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
    path[0] = 0;
    for (i = 0; i < rocksdb_livefiles_count(files); ++i) {
        const char* smallest = rocksdb_livefiles_smallestkey(files, i, &len);
        if (len != strlen(key) || memcmp(smallest, key, len) != 0) continue;
        snprintf(path, sizeof path, "%s%s", rocksdb_livefiles_directory(files, i), rocksdb_livefiles_name(files, i));
    }
    rocksdb_livefiles_destroy(files);
    CHECK(path[0] != 0);
    return path;
}

static int have_same_bytes(const char* one_path, const char* other_path) {
    FILE *one = fopen(one_path, "rb"), *other = fopen(other_path, "rb");
    int byte = 0, is_same = one != NULL && other != NULL;
    while (is_same && byte != EOF) {
        byte = getc(one);
        is_same = byte == getc(other);
    }
    if (one != NULL) fclose(one);
    if (other != NULL) fclose(other);
    return is_same;
}

/* write_global_seqno. */
static void test_written_number(rocksdb_t* db, char** argv) {
    const char* file;
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    file = ingest_keys(db, argv, "n", ingest);
    CHECK_OK(error);
    CHECK(have_same_bytes(table_of(db, "n"), file));
    rocksdb_ingestexternalfileoptions_set_write_global_seqno(ingest, 1);
    file = ingest_keys(db, argv, "o", ingest);
    CHECK_OK(error);
    CHECK(!have_same_bytes(table_of(db, "o"), file));
    rocksdb_ingestexternalfileoptions_destroy(ingest);
}

/* allow_db_generated_files. */
static void test_table_of_a_database(rocksdb_t* db, char** argv) {
    size_t len;
    const char* file;
    rocksdb_t* other = rocksdb_open(options, path_in(argv, "other"), &error);
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_put(other, write, LIT("p"), LIT("of another"), &error);
    rocksdb_flush(other, flush, &error);
    CHECK_OK(error);
    file = table_of(other, "p");
    rocksdb_ingest_external_file(db, &file, 1, ingest, &error);
    CHECK_ERROR(error, "Invalid argument: the table comes from a database");
    rocksdb_ingestexternalfileoptions_set_allow_db_generated_files(ingest, 1);
    rocksdb_ingest_external_file(db, &file, 1, ingest, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("p"), &len, &error), len, "of another");
    rocksdb_close(other);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
}

/* fill_cache: of the reads that find out whether a table's span, between two keys of another, is free. */
static void test_fill_cache(char** argv) {
    size_t before;
    rocksdb_t* db;
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
    rocksdb_options_t* cached = rocksdb_options_create();
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_options_set_create_if_missing(cached, 1);
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_options_set_block_based_table_factory(cached, table);
    db = rocksdb_open(cached, path_in(argv, "cached"), &error);
    rocksdb_put(db, write, LIT("a"), LIT("old"), &error);
    rocksdb_put(db, write, LIT("z"), LIT("old"), &error);
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    before = rocksdb_cache_get_usage(cache);
    rocksdb_ingestexternalfileoptions_set_allow_global_seqno(ingest, 0); /* it has to find that out itself */
    rocksdb_ingestexternalfileoptions_set_fill_cache(ingest, 0);
    ingest_keys(db, argv, "m", ingest);
    CHECK_OK(error);
    CHECK(rocksdb_cache_get_usage(cache) == before);
    rocksdb_ingestexternalfileoptions_set_fill_cache(ingest, 1);
    ingest_keys(db, argv, "n", ingest);
    CHECK_OK(error);
    CHECK(rocksdb_cache_get_usage(cache) > before);
    rocksdb_close(db);
    rocksdb_cache_destroy(cache);
    rocksdb_options_destroy(cached);
    rocksdb_block_based_options_destroy(table);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
}

/* Ingests a table over a key in memory, in that mode. Returns how many ingests are in the queue then. */
static int queued_after(rocksdb_t* db, char** argv, rocksdb_ingestexternalfileoptions_t* ingest, const char* mode) {
    char* text;
    int queued;
    spillway_ingestexternalfileoptions_set_mode(ingest, mode, &error);
    CHECK_OK(error);
    rocksdb_put(db, write, LIT("m"), LIT("old"), &error);
    ingest_keys(db, argv, "lm", ingest);
    CHECK_OK(error);
    text = rocksdb_property_value(db, "spillway.ingests-queued");
    CHECK(text != NULL);
    queued = text == NULL ? -1 : atoi(text);
    rocksdb_free(text);
    return queued;
}

/* spillway_ingestexternalfileoptions_set_mode. */
static void test_modes(char** argv) {
    rocksdb_t* db = rocksdb_open(options, path_in(argv, "modes"), &error);
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    CHECK_OK(error);
    CHECK(queued_after(db, argv, ingest, "blocking") == 0);
    CHECK(queued_after(db, argv, ingest, "flush-first") == 0);
    CHECK(queued_after(db, argv, ingest, "direct") == 0);
    CHECK(queued_after(db, argv, ingest, "allow_write") == 0);
    CHECK(queued_after(db, argv, ingest, "flushable") == 1);
    spillway_ingestexternalfileoptions_set_mode(ingest, "blocking", &error);
    CHECK_OK(error);
    spillway_ingestexternalfileoptions_set_mode(ingest, "slowly", &error);
    CHECK_ERROR(error, "Invalid argument: no mode of an ingest is called \"slowly\"; known are flushable, blocking, "
                       "flush-first, direct, allow_write");
    rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(ingest, 0);
    rocksdb_put(db, write, LIT("m"), LIT("old"), &error);
    ingest_keys(db, argv, "lm", ingest);
    CHECK_ERROR(error, "Invalid argument: External file requires flush"); /* the mode is still blocking */
    rocksdb_close(db);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
}

/* A table of many blocks, one of which, in the middle, is damaged. */
static void make_damaged(const char* path) {
    int i, byte;
    char key[16];
    uint64_t bytes = 0;
    FILE* file;
    rocksdb_options_t* plain = rocksdb_options_create();
    rocksdb_sstfilewriter_t* writer;
    rocksdb_options_set_compression(plain, rocksdb_no_compression);
    writer = rocksdb_sstfilewriter_create(NULL, plain);
    rocksdb_sstfilewriter_open(writer, path, &error);
    for (i = 0; i < 5000; ++i) {
        snprintf(key, sizeof key, "q%04d", i);
        rocksdb_sstfilewriter_put(writer, LIT(key), LIT("a value of some twenty letters"), &error);
    }
    rocksdb_sstfilewriter_finish(writer, &error);
    CHECK_OK(error);
    rocksdb_sstfilewriter_file_size(writer, &bytes);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_options_destroy(plain);
    file = fopen(path, "r+b");
    CHECK(file != NULL);
    if (file == NULL) return;
    fseek(file, (long)(bytes / 2), SEEK_SET);
    byte = getc(file);
    fseek(file, (long)(bytes / 2), SEEK_SET);
    putc(byte ^ 1, file);
    CHECK(fclose(file) == 0);
}

/* verify_checksums_before_ingest. */
static void test_damaged(rocksdb_t* db, char** argv) {
    const char* file = path_in(argv, "damaged.sst");
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    make_damaged(file);
    rocksdb_ingestexternalfileoptions_set_verify_checksums_before_ingest(ingest, 1);
    rocksdb_ingest_external_file(db, &file, 1, ingest, &error);
    CHECK_ERROR(error, "Corruption: ");
    rocksdb_ingestexternalfileoptions_set_verify_checksums_before_ingest(ingest, 0);
    rocksdb_ingest_external_file(db, &file, 1, ingest, &error);
    CHECK_OK(error); /* its ends are whole */
    rocksdb_ingestexternalfileoptions_destroy(ingest);
}

/* What each option does. Not verify_file_checksum: there is no way to state a checksum here. */
static void test_ingest_options(char** argv) {
    rocksdb_t* db = rocksdb_open(options, path_in(argv, "ingested"), &error);
    CHECK_OK(error);
    test_names(db, argv);
    test_far_file(db, argv);
    test_numbers(db, argv);
    test_bottommost(db, argv);
    test_behind(db, argv);
    test_written_number(db, argv);
    test_table_of_a_database(db, argv);
    test_fill_cache(argv);
    test_damaged(db, argv);
    test_modes(argv);
    rocksdb_close(db);
}

static void test_checkpoint(rocksdb_t* db, char** argv) {
    size_t len;
    rocksdb_t* copy;
    rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &error);
    CHECK_OK(error);
    rocksdb_checkpoint_create(checkpoint, path_in(argv, "missing/checkpoint"), 0, &error);
    CHECK_ERROR(error, "IO error: No such file or directory: While mkdir: ");
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
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    make_keys(path, keys, "old");
    rocksdb_ingest_external_file_cf(db, family, &path, 1, ingest, &error);
    rocksdb_flush_cf(db, flush, family, &error); /* gives it the last level */
    CHECK_OK(error);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
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
    test_ingest_options(argv);
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
