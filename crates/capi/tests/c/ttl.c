/* Databases whose values grow old. The program leaves one behind, for others to read. */

#define _DEFAULT_SOURCE

#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

static char* error;
static rocksdb_options_t* options;
static rocksdb_readoptions_t* reads;
static rocksdb_writeoptions_t* writes;

/* Appends operands with dots between them. */
static char* append(void* state, const char* key, size_t key_len, const char* below, size_t below_len,
                    const char* const* operands, const size_t* lens, int count, unsigned char* success, size_t* len) {
    char* merged = malloc(256);
    int i;
    (void)state, (void)key, (void)key_len;
    *len = 0;
    if (below != NULL) memcpy(merged, below, *len = below_len);
    for (i = 0; i < count; ++i) {
        merged[(*len)++] = '.';
        memcpy(merged + *len, operands[i], lens[i]);
        *len += lens[i];
    }
    *success = 1;
    return merged;
}

static char* append_partly(void* state, const char* key, size_t key_len, const char* const* operands,
                           const size_t* lens, int count, unsigned char* success, size_t* len) {
    (void)state, (void)key, (void)key_len, (void)operands, (void)lens, (void)count;
    *success = 0;
    *len = 0;
    return NULL;
}

static const char* append_name(void* state) {
    (void)state;
    return "append";
}

/* Removes values "drop" and turns "old" into "new": neither is found where a stamp is shown. */
static unsigned char filter(void* state, int level, const char* key, size_t key_len, const char* value, size_t len,
                            char** new_value, size_t* new_len, unsigned char* changed) {
    (void)state, (void)level, (void)key, (void)key_len;
    if (len == 3 && memcmp(value, "old", 3) == 0) {
        *new_value = "new";
        *new_len = 3;
        *changed = 1;
    }
    return len == 4 && memcmp(value, "drop", 4) == 0;
}

static const char* filter_name(void* state) {
    (void)state;
    return "filter";
}

static void compact(rocksdb_t* db) {
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_compactoptions_t* compact = rocksdb_compactoptions_create();
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    rocksdb_compactoptions_set_bottommost_level_compaction(compact, 2);
    rocksdb_compact_range_opt(db, compact, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(compact);
    rocksdb_flushoptions_destroy(flush);
}

static void test_reads(rocksdb_t* db) {
    const char* keys[2] = {"k", "none"};
    const size_t lens[2] = {1, 4};
    char *values[2], *errors[2], *value, buffer[8];
    size_t value_lens[2], len;
    unsigned char found;
    rocksdb_pinnableslice_t* pinned;
    rocksdb_iterator_t* iterator;
    rocksdb_put(db, writes, LIT("k"), LIT("value"), &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, reads, LIT("k"), &len, &error), len, "value");
    pinned = rocksdb_get_pinned(db, reads, LIT("k"), &error);
    CHECK_BYTES(rocksdb_pinnableslice_value(pinned, &len), len, "value");
    rocksdb_pinnableslice_destroy(pinned);
    CHECK(rocksdb_get_into_buffer(db, reads, LIT("k"), buffer, 8, &len, &found, &error) == 1);
    CHECK_BYTES(buffer, len, "value");
    rocksdb_multi_get(db, reads, 2, keys, lens, values, value_lens, errors);
    CHECK_GIVEN(values[0], value_lens[0], "value");
    CHECK(values[1] == NULL && errors[0] == NULL && errors[1] == NULL);
    CHECK(rocksdb_key_may_exist(db, reads, LIT("k"), &value, &len, NULL, 0, &found) == 1);
    CHECK_GIVEN(value, len, "value");
    iterator = rocksdb_create_iterator(db, reads);
    rocksdb_iter_seek_to_first(iterator);
    CHECK_BYTES(rocksdb_iter_value(iterator, &len), len, "value");
    rocksdb_iter_destroy(iterator);
}

static void test_batches_and_merges(rocksdb_t* db) {
    size_t len;
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_wi_t* indexed = rocksdb_writebatch_wi_create(0, 1);
    rocksdb_writebatch_put(batch, LIT("b"), LIT("1"));
    rocksdb_writebatch_merge(batch, LIT("b"), LIT("2"));
    rocksdb_writebatch_put(batch, LIT("gone"), LIT("x"));
    rocksdb_writebatch_put(batch, LIT("gone too"), LIT("x"));
    rocksdb_writebatch_put(batch, LIT("range"), LIT("x"));
    rocksdb_writebatch_delete(batch, LIT("gone"));
    rocksdb_writebatch_singledelete(batch, LIT("gone too"));
    rocksdb_writebatch_delete_range(batch, LIT("r"), LIT("s"));
    rocksdb_write(db, writes, batch, &error);
    CHECK_OK(error);
    rocksdb_merge(db, writes, LIT("b"), LIT("3"), &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, reads, LIT("b"), &len, &error), len, "1.2.3");
    CHECK(rocksdb_get(db, reads, LIT("gone"), &len, &error) == NULL);
    CHECK(rocksdb_get(db, reads, LIT("gone too"), &len, &error) == NULL);
    CHECK(rocksdb_get(db, reads, LIT("range"), &len, &error) == NULL);
    rocksdb_writebatch_wi_put(indexed, LIT("w"), LIT("of the batch"));
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch_and_db(indexed, db, reads, LIT("b"), &len, &error), len, "1.2.3");
    rocksdb_writebatch_wi_merge(indexed, LIT("b"), LIT("4"));
    CHECK(rocksdb_writebatch_wi_get_from_batch_and_db(indexed, db, reads, LIT("b"), &len, &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: "); /* the operator takes what is stamped, and the batch is not */
    rocksdb_write_writebatch_wi(db, writes, indexed, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, reads, LIT("w"), &len, &error), len, "of the batch");
    CHECK_GIVEN(rocksdb_get(db, reads, LIT("b"), &len, &error), len, "1.2.3.4");
    rocksdb_writebatch_destroy(batch);
    rocksdb_writebatch_wi_destroy(indexed);
}

static void test_values_grow_old(char** argv) {
    const char* names[2] = {"default", "fresh"};
    const rocksdb_options_t* family_options[2];
    rocksdb_column_family_handle_t *families[2], *short_lived;
    const int ttls[2] = {1, 0};
    size_t len;
    rocksdb_compactionfilter_t* callback = rocksdb_compactionfilter_create(NULL, NULL, filter, filter_name);
    rocksdb_options_t* filtered = rocksdb_options_create_copy(options);
    rocksdb_t* db;
    rocksdb_options_set_create_missing_column_families(filtered, 1);
    rocksdb_options_set_compaction_filter(filtered, callback);
    family_options[0] = options;
    family_options[1] = filtered;
    db = rocksdb_open_column_families_with_ttl(filtered, path_in(argv, "old"), 2, names, family_options, families,
                                               ttls, &error);
    CHECK_OK(error);
    short_lived = rocksdb_create_column_family_with_ttl(db, options, "short-lived", 1, &error);
    CHECK_OK(error);
    rocksdb_put(db, writes, LIT("k"), LIT("v"), &error);
    rocksdb_put_cf(db, writes, families[1], LIT("k"), LIT("v"), &error);
    rocksdb_put_cf(db, writes, families[1], LIT("a"), LIT("drop"), &error);
    rocksdb_put_cf(db, writes, families[1], LIT("b"), LIT("old"), &error);
    rocksdb_put_cf(db, writes, short_lived, LIT("k"), LIT("v"), &error);
    rocksdb_merge(db, writes, LIT("operands"), LIT("1"), &error);
    rocksdb_merge(db, writes, LIT("operands"), LIT("2"), &error);
    CHECK_OK(error);
    sleep(3); /* older than a second, whenever in a second that was */
    CHECK_GIVEN(rocksdb_get(db, reads, LIT("k"), &len, &error), len, "v");
    compact(db);
    CHECK(rocksdb_get(db, reads, LIT("k"), &len, &error) == NULL);
    CHECK_GIVEN(rocksdb_get(db, reads, LIT("operands"), &len, &error), len, ".1.2"); /* as young as the merge */
    rocksdb_compact_range_cf(db, short_lived, NULL, 0, NULL, 0);
    rocksdb_compact_range_cf(db, families[1], NULL, 0, NULL, 0);
    CHECK(rocksdb_get_cf(db, reads, short_lived, LIT("k"), &len, &error) == NULL);
    CHECK_GIVEN(rocksdb_get_cf(db, reads, families[1], LIT("k"), &len, &error), len, "v");
    CHECK(rocksdb_get_cf(db, reads, families[1], LIT("a"), &len, &error) == NULL);
    CHECK_GIVEN(rocksdb_get_cf(db, reads, families[1], LIT("b"), &len, &error), len, "new");
    CHECK_OK(error);
    rocksdb_column_family_handle_destroy(families[0]);
    rocksdb_column_family_handle_destroy(families[1]);
    rocksdb_column_family_handle_destroy(short_lived);
    rocksdb_close(db);
    rocksdb_options_destroy(filtered);
    rocksdb_compactionfilter_destroy(callback);
}

/* Values are read with what they were written with. */
static void test_misuse(char** argv) {
    size_t len;
    char buffer[8];
    unsigned char found = 1;
    rocksdb_t* db = rocksdb_open(options, path_in(argv, "plain"), &error);
    rocksdb_put(db, writes, LIT("short"), LIT("v"), &error);
    rocksdb_put(db, writes, LIT("long"), LIT("\1\1\1\1\1\1"), &error);
    CHECK(rocksdb_create_column_family_with_ttl(db, options, "one", 1, &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_close(db);
    db = rocksdb_open_with_ttl(options, path_in(argv, "plain"), 10, &error);
    CHECK_OK(error);
    len = 9;
    CHECK(rocksdb_get(db, reads, LIT("short"), &len, &error) == NULL && len == 0);
    CHECK_ERROR(error, "Corruption: ");
    len = 9;
    CHECK(!rocksdb_get_into_buffer(db, reads, LIT("short"), buffer, 8, &len, &found, &error) && len == 0 && !found);
    CHECK_ERROR(error, "Corruption: ");
    CHECK(rocksdb_get(db, reads, LIT("long"), &len, &error) == NULL);
    CHECK_ERROR(error, "Corruption: ");
    rocksdb_close(db);
}

/* An open notes nothing of a family, nor does what writes no value: a later reader takes nothing off plain values. */
static void test_notes(char** argv) {
    enum { FAMILIES = 7 };
    size_t len, i;
    const char* names[FAMILIES] = {"default", "put", "batched", "merged", "ingested", "deleted", "refused"};
    const rocksdb_options_t* family_options[FAMILIES];
    rocksdb_column_family_handle_t *families[FAMILIES], *empty;
    const int ttls[FAMILIES] = {0};
    const char *tables[1], *none[1];
    char stamped[] = "v\0\0\0\x60"; /* of the year 2021 */
    rocksdb_envoptions_t* env = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t* table = rocksdb_sstfilewriter_create(env, options);
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_options_t* denying = rocksdb_options_create();
    rocksdb_t* db;
    tables[0] = path_in(argv, "stamped.sst");
    rocksdb_sstfilewriter_open(table, tables[0], &error);
    rocksdb_sstfilewriter_put(table, LIT("k"), stamped, 5, &error);
    rocksdb_sstfilewriter_finish(table, &error);
    CHECK_OK(error);
    rocksdb_options_set_create_missing_column_families(options, 1);
    for (i = 0; i < FAMILIES; ++i) family_options[i] = options;
    db = rocksdb_open_column_families(options, path_in(argv, "noted"), FAMILIES, names, family_options, families, &error);
    CHECK_OK(error);
    for (i = 0; i < FAMILIES; ++i) {
        rocksdb_put_cf(db, writes, families[i], LIT("plain"), LIT("a plain value"), &error);
        rocksdb_column_family_handle_destroy(families[i]);
    }
    rocksdb_close(db);
    db = rocksdb_open_column_families_with_ttl(options, path_in(argv, "noted"), FAMILIES, names, family_options,
                                               families, ttls, &error);
    CHECK_OK(error);
    empty = rocksdb_create_column_family_with_ttl(db, options, "empty", 10, &error);
    rocksdb_put_cf(db, writes, families[1], LIT("k"), LIT("v"), &error);
    rocksdb_writebatch_put_cf(batch, families[2], LIT("k"), LIT("v"));
    rocksdb_writebatch_delete_cf(batch, families[5], LIT("k"));
    rocksdb_write(db, writes, batch, &error);
    rocksdb_merge_cf(db, writes, families[3], LIT("k"), LIT("v"), &error);
    rocksdb_ingest_external_file_cf(db, families[4], tables, 1, ingest, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get_cf(db, reads, families[4], LIT("k"), &len, &error), len, "v");
    rocksdb_delete_cf(db, writes, families[5], LIT("k"), &error);
    rocksdb_delete_range_cf(db, writes, families[5], LIT("x"), LIT("y"), &error);
    CHECK_OK(error);
    none[0] = path_in(argv, "none.sst");
    rocksdb_ingest_external_file_cf(db, families[6], none, 1, ingest, &error);
    CHECK_ERROR(error, "IO error: ");
    for (i = 0; i < FAMILIES; ++i) rocksdb_column_family_handle_destroy(families[i]);
    rocksdb_column_family_handle_destroy(empty);
    rocksdb_close(db);
    rocksdb_get_options_from_string(options, "value_times=false", denying, &error);
    CHECK_OK(error);
    CHECK(rocksdb_open_with_ttl(denying, path_in(argv, "denied"), 10, &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: column family \"default\", value_times=false: ");
    rocksdb_options_destroy(denying);
    rocksdb_writebatch_destroy(batch);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
    rocksdb_sstfilewriter_destroy(table);
    rocksdb_envoptions_destroy(env);
}

/* A batch is written whole or not at all, with stamps too. */
static void test_too_long(rocksdb_t* db) {
    const size_t too_long = (size_t)4 << 30;
    size_t len;
    char* bytes = mmap(NULL, too_long, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    CHECK(bytes != MAP_FAILED);
    rocksdb_writebatch_put(batch, LIT("part"), LIT("of it"));
    rocksdb_writebatch_put(batch, LIT("rest"), bytes, too_long);
    rocksdb_write(db, writes, batch, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    CHECK(rocksdb_get(db, reads, LIT("part"), &len, &error) == NULL);
    CHECK_OK(error);
    rocksdb_writebatch_destroy(batch);
    munmap(bytes, too_long);
}

/* A family brought from a database with stamps into another has them, and its operator is not shown them. */
static void test_imported(char** argv, rocksdb_t* from) {
    size_t len;
    rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(from, &error);
    rocksdb_column_family_handle_t *source = rocksdb_get_default_column_family_handle(from), *family;
    rocksdb_import_column_family_options_t* import = rocksdb_import_column_family_options_create();
    rocksdb_export_import_files_metadata_t* files =
        rocksdb_checkpoint_export_column_family(checkpoint, source, path_in(argv, "files"), &error);
    rocksdb_t* to = rocksdb_open_with_ttl(options, path_in(argv, "to"), 1000000, &error);
    CHECK_OK(error);
    family = rocksdb_create_column_family_with_import(to, options, "imported", import, files, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get_cf(to, reads, family, LIT("k"), &len, &error), len, "value");
    rocksdb_merge_cf(to, writes, family, LIT("k"), LIT("more"), &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get_cf(to, reads, family, LIT("k"), &len, &error), len, "value.more");
    rocksdb_column_family_handle_destroy(family);
    rocksdb_column_family_handle_destroy(source);
    rocksdb_close(to);
    rocksdb_export_import_files_metadata_destroy(files);
    rocksdb_import_column_family_options_destroy(import);
    rocksdb_checkpoint_object_destroy(checkpoint);
}

static void test_options_load(char** argv) {
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_options_t *loaded, **families;
    char** names;
    size_t count;
    rocksdb_load_latest_options(path_in(argv, "stamped"), env, 0, NULL, &loaded, &count, &names, &families, &error);
    CHECK_OK(error);
    CHECK(count == 1);
    rocksdb_load_latest_options_destroy(loaded, names, families, count);
    rocksdb_env_destroy(env);
}

int main(int argc, char** argv) {
    size_t len;
    char* value;
    rocksdb_t* db;
    if (argc < 2) return 2;
    options = rocksdb_options_create();
    reads = rocksdb_readoptions_create();
    writes = rocksdb_writeoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_merge_operator(options,
        rocksdb_mergeoperator_create(NULL, NULL, append, append_partly, NULL, append_name));
    db = rocksdb_open_with_ttl(options, path_in(argv, "stamped"), 1000000, &error);
    CHECK_OK(error);
    test_reads(db);
    test_batches_and_merges(db);
    compact(db);
    CHECK_GIVEN(rocksdb_get(db, reads, LIT("b"), &len, &error), len, "1.2.3.4");
    test_too_long(db);
    test_imported(argv, db);
    rocksdb_close(db);
    test_options_load(argv);
    test_values_grow_old(argv);
    test_misuse(argv);
    test_notes(argv);
    db = rocksdb_open(options, path_in(argv, "stamped"), &error);
    value = rocksdb_get(db, reads, LIT("k"), &len, &error);
    CHECK(value != NULL && len == strlen("value") + 4 && memcmp(value, "value", 5) == 0);
    rocksdb_free(value);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(reads);
    rocksdb_writeoptions_destroy(writes);
    return outcome("ttl");
}
