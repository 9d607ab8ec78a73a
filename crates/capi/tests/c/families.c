/* Column families, alone and together. */

#include "check.h"

static char* error;

static void test_reads(rocksdb_t* db, rocksdb_readoptions_t* read, rocksdb_column_family_handle_t** families) {
    const rocksdb_column_family_handle_t* of[3];
    const char* keys[3] = {"k", "k", "none"};
    const size_t lens[3] = {1, 1, 4};
    char *values[3], *errors[3], *value, buffer[8];
    size_t value_lens[3], len;
    unsigned char found;
    rocksdb_slice_t slices[2];
    rocksdb_pinnableslice_t* pinned[2];
    rocksdb_pinnable_handle_t* handle;
    of[0] = families[0];
    of[1] = of[2] = families[1];
    rocksdb_multi_get_cf(db, read, of, 3, keys, lens, values, value_lens, errors);
    CHECK_GIVEN(values[0], value_lens[0], "of default");
    CHECK_GIVEN(values[1], value_lens[1], "of one");
    CHECK(values[2] == NULL && errors[2] == NULL);
    rocksdb_batched_multi_get_cf(db, read, families[1], 2, keys + 1, lens + 1, pinned, errors, 0);
    CHECK_BYTES(rocksdb_pinnableslice_value(pinned[0], &len), len, "of one");
    CHECK(pinned[1] == NULL && errors[0] == NULL && errors[1] == NULL);
    rocksdb_pinnableslice_destroy(pinned[0]);
    slices[0].data = "k";
    slices[0].size = 1;
    slices[1].data = NULL;
    slices[1].size = 0;
    rocksdb_batched_multi_get_cf_slice(db, read, families[1], 2, slices, pinned, errors, 1);
    CHECK_BYTES(rocksdb_pinnableslice_value(pinned[0], &len), len, "of one");
    CHECK(pinned[1] == NULL);
    rocksdb_pinnableslice_destroy(pinned[0]);
    CHECK_GIVEN(rocksdb_get_cf(db, read, families[1], LIT("k"), &len, &error), len, "of one");
    pinned[0] = rocksdb_get_pinned_cf(db, read, families[1], LIT("k"), &error);
    CHECK_BYTES(rocksdb_pinnableslice_value(pinned[0], &len), len, "of one");
    rocksdb_pinnableslice_destroy(pinned[0]);
    handle = rocksdb_get_pinned_cf_v2(db, read, families[1], LIT("k"), &error);
    CHECK_BYTES(rocksdb_pinnable_handle_get_value(handle, &len), len, "of one");
    rocksdb_pinnable_handle_destroy(handle);
    CHECK(rocksdb_get_into_buffer_cf(db, read, families[1], LIT("k"), buffer, 8, &len, &found, &error) == 1);
    CHECK(rocksdb_key_may_exist_cf(db, read, families[1], LIT("k"), &value, &len, NULL, 0, &found) == 1);
    CHECK_GIVEN(value, len, "of one");
}

static void test_writes(rocksdb_t* db, rocksdb_writeoptions_t* write, rocksdb_readoptions_t* read,
                        rocksdb_column_family_handle_t* family) {
    size_t len;
    rocksdb_put_cf(db, write, family, LIT("x"), LIT("1"), &error);
    rocksdb_put_cf(db, write, family, LIT("y"), LIT("2"), &error);
    rocksdb_put_cf(db, write, family, LIT("z"), LIT("3"), &error);
    rocksdb_delete_cf(db, write, family, LIT("x"), &error);
    rocksdb_singledelete_cf(db, write, family, LIT("y"), &error);
    rocksdb_delete_range_cf(db, write, family, LIT("z"), LIT("zz"), &error);
    CHECK_OK(error);
    CHECK(rocksdb_get_cf(db, read, family, LIT("x"), &len, &error) == NULL);
    CHECK(rocksdb_get_cf(db, read, family, LIT("y"), &len, &error) == NULL);
    CHECK(rocksdb_get_cf(db, read, family, LIT("z"), &len, &error) == NULL);
    rocksdb_delete_range_cf(db, write, family, LIT("b"), LIT("a"), &error);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_merge_cf(db, write, family, LIT("x"), LIT("1"), &error);
    CHECK_ERROR(error, "Not implemented: "); /* the family has no merge operator */
}

/* What is disabled does nothing, until it is enabled as often. */
static void test_disabled(rocksdb_t* db, rocksdb_writeoptions_t* write, rocksdb_column_family_handle_t* family) {
    size_t before;
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_column_family_metadata_t* metadata;
    rocksdb_put_cf(db, write, family, LIT("d"), LIT("1"), &error);
    rocksdb_flush_cf(db, flush, family, &error);
    rocksdb_put_cf(db, write, family, LIT("d"), LIT("2"), &error);
    rocksdb_flush_cf(db, flush, family, &error);
    CHECK_OK(error);
    metadata = rocksdb_get_column_family_metadata_cf(db, family);
    before = rocksdb_column_family_metadata_get_file_count(metadata);
    rocksdb_column_family_metadata_destroy(metadata);
    CHECK(before >= 2);
    rocksdb_disable_manual_compaction(db);
    rocksdb_disable_manual_compaction(db);
    rocksdb_enable_manual_compaction(db);
    rocksdb_compact_range_cf(db, family, NULL, 0, NULL, 0);
    metadata = rocksdb_get_column_family_metadata_cf(db, family);
    CHECK(rocksdb_column_family_metadata_get_file_count(metadata) == before);
    rocksdb_column_family_metadata_destroy(metadata);
    rocksdb_enable_manual_compaction(db);
    rocksdb_compact_range_cf(db, family, NULL, 0, NULL, 0);
    metadata = rocksdb_get_column_family_metadata_cf(db, family);
    CHECK(rocksdb_column_family_metadata_get_file_count(metadata) == 1);
    rocksdb_column_family_metadata_destroy(metadata);
    rocksdb_cancel_all_background_work(db, 1);
    rocksdb_put_cf(db, write, family, LIT("d"), LIT("3"), &error);
    rocksdb_flush_cf(db, flush, family, &error);
    CHECK_OK(error);
    rocksdb_flushoptions_destroy(flush);
}

static void test_looking_after(rocksdb_t* db, rocksdb_readoptions_t* read, rocksdb_column_family_handle_t** families) {
    const char *start = "a", *limit = "z";
    const char* names[1] = {"write_buffer_size"};
    const char* values[1] = {"131072"};
    size_t one = 1, len;
    uint64_t number, size;
    char* text;
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_compactoptions_t* compact = rocksdb_compactoptions_create();
    rocksdb_iterator_t* iterators[2];
    rocksdb_flush_cf(db, flush, families[1], &error);
    CHECK_OK(error);
    rocksdb_flush_cfs(db, flush, families, 2, &error);
    CHECK_OK(error);
    rocksdb_compact_range_cf(db, families[1], NULL, 0, NULL, 0);
    rocksdb_compact_range_cf_opt(db, families[1], compact, LIT("a"), LIT("z"));
    text = rocksdb_property_value_cf(db, families[1], "rocksdb.num-files-at-level0");
    CHECK(text != NULL);
    rocksdb_free(text);
    CHECK(rocksdb_property_int_cf(db, families[1], "rocksdb.estimate-num-keys", &number) == 0);
    rocksdb_approximate_sizes_cf(db, families[1], 1, &start, &one, &limit, &one, &size, &error);
    CHECK_OK(error);
    rocksdb_approximate_sizes_cf_with_flags(db, families[1], 1, &start, &one, &limit, &one,
        rocksdb_size_approximation_flags_include_memtable, &size, &error);
    CHECK_OK(error);
    CHECK(size == 0); /* everything is in tables */
    values[0] = "2048";
    rocksdb_set_options_cf(db, families[1], 1, names, values, &error);
    CHECK_OK(error); /* the least there is, as a note in LOG says */
    values[0] = "131072";
    rocksdb_set_options_cf(db, families[1], 1, names, values, &error);
    CHECK_OK(error);
    names[0] = "comparator";
    rocksdb_set_options_cf(db, families[1], 1, names, values, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_create_iterators(db, read, families, iterators, 2, &error);
    CHECK_OK(error);
    rocksdb_iter_seek_to_first(iterators[1]);
    CHECK_BYTES(rocksdb_iter_value(iterators[1], &len), len, "of one");
    rocksdb_iter_destroy(iterators[0]);
    rocksdb_iter_destroy(iterators[1]);
    iterators[0] = rocksdb_create_iterator_cf(db, read, families[0]);
    rocksdb_iter_seek_to_last(iterators[0]);
    CHECK_BYTES(rocksdb_iter_value(iterators[0], &len), len, "of default");
    rocksdb_iter_destroy(iterators[0]);
    rocksdb_delete_file_in_range_cf(db, families[1], NULL, 0, NULL, 0, &error);
    CHECK_OK(error);
    CHECK(rocksdb_get_cf(db, read, families[1], LIT("k"), &len, &error) == NULL);
    CHECK_GIVEN(rocksdb_get_cf(db, read, families[0], LIT("k"), &len, &error), len, "of default");
    rocksdb_flushoptions_destroy(flush);
    rocksdb_compactoptions_destroy(compact);
}

static void test_making(rocksdb_t* db, rocksdb_options_t* options) {
    const char* names[2] = {"three", "four"};
    size_t len = 0;
    char* name;
    rocksdb_column_family_handle_t* two = rocksdb_create_column_family(db, options, "two", &error);
    rocksdb_column_family_handle_t *fallback, **many;
    CHECK_OK(error);
    CHECK(rocksdb_column_family_handle_get_id(two) > 0);
    name = rocksdb_column_family_handle_get_name(two, &len);
    CHECK_GIVEN(name, len, "two");
    CHECK(rocksdb_create_column_family(db, options, "two", &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: ");
    many = rocksdb_create_column_families(db, options, 2, names, &len, &error);
    CHECK_OK(error);
    CHECK(len == 2);
    rocksdb_drop_column_family(db, many[0], &error);
    CHECK_OK(error);
    rocksdb_drop_column_family(db, many[0], &error);
    CHECK_ERROR(error, "Invalid argument: Column family already dropped!");
    rocksdb_column_family_handle_destroy(many[0]);
    rocksdb_column_family_handle_destroy(many[1]);
    rocksdb_create_column_families_destroy(many);
    fallback = rocksdb_get_default_column_family_handle(db);
    rocksdb_drop_column_family(db, fallback, &error);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_column_family_handle_destroy(fallback);
    rocksdb_column_family_handle_destroy(two);
}

int main(int argc, char** argv) {
    rocksdb_options_t* options = rocksdb_options_create();
    const char* names[2] = {"default", "one"};
    const rocksdb_options_t* of[2];
    rocksdb_column_family_handle_t* families[2];
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_t* db;
    char** list;
    size_t len;
    if (argc < 2) return 2;
    of[0] = of[1] = options;
    rocksdb_options_set_create_if_missing(options, 1);
    CHECK(rocksdb_open_column_families(options, path_in(argv, "db"), 1, names + 1, of, families, &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_options_set_create_missing_column_families(options, 1);
    db = rocksdb_open_column_families(options, path_in(argv, "db"), 2, names, of, families, &error);
    CHECK_OK(error);
    if (db == NULL) return outcome("families");
    rocksdb_put(db, write, LIT("k"), LIT("of default"), &error);
    rocksdb_put_cf(db, write, families[1], LIT("k"), LIT("of one"), &error);
    CHECK_OK(error);
    test_reads(db, read, families);
    test_writes(db, write, read, families[1]);
    test_looking_after(db, read, families);
    test_making(db, options);
    test_disabled(db, write, families[1]);
    rocksdb_column_family_handle_destroy(families[0]);
    rocksdb_close(db);
    rocksdb_column_family_handle_destroy(families[1]); /* after the database: harmless */

    CHECK(rocksdb_open(options, path_in(argv, "db"), &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: "); /* families that are not named */
    list = rocksdb_list_column_families(options, path_in(argv, "db"), &len, &error);
    CHECK_OK(error);
    CHECK(len == 4 && strcmp(list[0], "default") == 0);
    rocksdb_list_column_families_destroy(list, len);
    CHECK(rocksdb_list_column_families(options, path_in(argv, "absent"), &len, &error) == NULL && len == 0);
    CHECK(error != NULL);
    rocksdb_free(error);
    error = NULL;
    db = rocksdb_open_for_read_only_column_families(options, path_in(argv, "db"), 2, names, of, families, 1, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get_cf(db, read, families[0], LIT("k"), &len, &error), len, "of default");
    rocksdb_column_family_handle_destroy(families[0]);
    rocksdb_column_family_handle_destroy(families[1]);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    return outcome("families");
}
