/* A family's tables out of one database and into another. */

#include "check.h"

static char* error;
static rocksdb_options_t* options;
static rocksdb_readoptions_t* read;
static rocksdb_writeoptions_t* write;

static void test_described(void) {
    size_t len;
    char* name;
    rocksdb_livefile_t* file = rocksdb_livefile_create();
    rocksdb_livefiles_t *files = rocksdb_livefiles_create(), *copy;
    rocksdb_export_import_files_metadata_t* metadata = rocksdb_export_import_files_metadata_create();
    rocksdb_livefile_set_column_family_name(file, "one");
    rocksdb_livefile_set_level(file, 3);
    rocksdb_livefile_set_name(file, "/000007.sst");
    rocksdb_livefile_set_directory(file, "/somewhere");
    rocksdb_livefile_set_size(file, 1000);
    rocksdb_livefile_set_smallest_key(file, LIT("a"));
    rocksdb_livefile_set_largest_key(file, LIT("z"));
    rocksdb_livefile_set_smallest_seqno(file, 5);
    rocksdb_livefile_set_largest_seqno(file, 9);
    rocksdb_livefile_set_num_entries(file, 4);
    rocksdb_livefile_set_num_deletions(file, 2);
    rocksdb_livefiles_add(files, file);
    rocksdb_livefile_destroy(file);
    rocksdb_export_import_files_metadata_set_files(metadata, files);
    rocksdb_livefiles_destroy(files);
    copy = rocksdb_export_import_files_metadata_get_files(metadata);
    CHECK(rocksdb_livefiles_count(copy) == 1 && rocksdb_livefiles_level(copy, 0) == 3);
    CHECK(strcmp(rocksdb_livefiles_column_family_name(copy, 0), "one") == 0);
    CHECK(strcmp(rocksdb_livefiles_name(copy, 0), "/000007.sst") == 0);
    CHECK(strcmp(rocksdb_livefiles_directory(copy, 0), "/somewhere") == 0);
    CHECK(rocksdb_livefiles_size(copy, 0) == 1000);
    CHECK_BYTES(rocksdb_livefiles_smallestkey(copy, 0, &len), len, "a");
    CHECK_BYTES(rocksdb_livefiles_largestkey(copy, 0, &len), len, "z");
    CHECK(rocksdb_livefiles_smallest_seqno(copy, 0) == 5 && rocksdb_livefiles_largest_seqno(copy, 0) == 9);
    CHECK(rocksdb_livefiles_entries(copy, 0) == 4 && rocksdb_livefiles_deletions(copy, 0) == 2);
    rocksdb_livefiles_destroy(copy);
    rocksdb_export_import_files_metadata_set_db_comparator_name(metadata, "by something");
    name = rocksdb_export_import_files_metadata_get_db_comparator_name(metadata);
    CHECK(strcmp(name, "by something") == 0);
    rocksdb_free(name);
    rocksdb_export_import_files_metadata_destroy(metadata);
}

static void fill(rocksdb_t* db, rocksdb_column_family_handle_t* family) {
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_put_cf(db, write, family, LIT("deep"), LIT("1"), &error);
    rocksdb_put_cf(db, write, family, LIT("gone"), LIT("1"), &error);
    rocksdb_put_cf(db, write, family, LIT("over"), LIT("1"), &error);
    rocksdb_flush_cf(db, flush, family, &error);
    rocksdb_compact_range_cf(db, family, NULL, 0, NULL, 0);
    rocksdb_put_cf(db, write, family, LIT("over"), LIT("2"), &error);
    rocksdb_flush_cf(db, flush, family, &error);
    rocksdb_put_cf(db, write, family, LIT("over"), LIT("3"), &error);
    rocksdb_delete_cf(db, write, family, LIT("gone"), &error);
    CHECK_OK(error);
    rocksdb_flushoptions_destroy(flush);
}

static void test_imported(char** argv, rocksdb_export_import_files_metadata_t* metadata) {
    size_t len;
    rocksdb_import_column_family_options_t* import = rocksdb_import_column_family_options_create();
    rocksdb_t* db = rocksdb_open(options, path_in(argv, "to"), &error);
    rocksdb_column_family_handle_t* family =
        rocksdb_create_column_family_with_import(db, options, "two", import, metadata, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get_cf(db, read, family, LIT("deep"), &len, &error), len, "1");
    CHECK_GIVEN(rocksdb_get_cf(db, read, family, LIT("over"), &len, &error), len, "3");
    CHECK(rocksdb_get_cf(db, read, family, LIT("gone"), &len, &error) == NULL);
    CHECK(rocksdb_create_column_family_with_import(db, options, "two", import, metadata, &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: "); /* there is one of that name */
    rocksdb_export_import_files_metadata_set_db_comparator_name(metadata, "by something");
    CHECK(rocksdb_create_column_family_with_import(db, options, "three", import, metadata, &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    rocksdb_import_column_family_options_destroy(import);
}

int main(int argc, char** argv) {
    char* name;
    rocksdb_t* db;
    rocksdb_column_family_handle_t* family;
    rocksdb_checkpoint_t* checkpoint;
    rocksdb_export_import_files_metadata_t* metadata;
    rocksdb_livefiles_t* files;
    if (argc < 2) return 2;
    options = rocksdb_options_create();
    read = rocksdb_readoptions_create();
    write = rocksdb_writeoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    test_described();
    db = rocksdb_open(options, path_in(argv, "from"), &error);
    CHECK_OK(error);
    family = rocksdb_create_column_family(db, options, "one", &error);
    fill(db, family);
    checkpoint = rocksdb_checkpoint_object_create(db, &error);
    metadata = rocksdb_checkpoint_export_column_family(checkpoint, family, path_in(argv, "exported"), &error);
    CHECK_OK(error);
    CHECK(rocksdb_checkpoint_export_column_family(checkpoint, family, path_in(argv, "exported"), &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_checkpoint_object_destroy(checkpoint);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    name = rocksdb_export_import_files_metadata_get_db_comparator_name(metadata);
    CHECK(strcmp(name, "leveldb.BytewiseComparator") == 0);
    rocksdb_free(name);
    files = rocksdb_export_import_files_metadata_get_files(metadata);
    CHECK(rocksdb_livefiles_count(files) >= 2);
    CHECK(strcmp(rocksdb_livefiles_column_family_name(files, 0), "") == 0 && rocksdb_livefiles_entries(files, 0) == 0);
    CHECK(strcmp(rocksdb_livefiles_directory(files, 0), path_in(argv, "exported")) == 0);
    rocksdb_livefiles_destroy(files);
    test_imported(argv, metadata);
    rocksdb_export_import_files_metadata_destroy(metadata);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    return outcome("exports");
}
