/* Nothing is silent: options that change what is stored, kept or found are refused when a database is opened, whatever door
 * they came through; those that only change how are taken and returned. Arguments after the directory: `what:OPTION` and
 * `how:OPTION`, each a text of an option string, from the table of options that have no effect. */

#include "check.h"

static char* error;
static const char* dir;

/* What opening a database with the options says; NULL where it opens. */
static char* open_with(rocksdb_options_t* options) {
    rocksdb_t* db = rocksdb_open(options, dir, &error);
    char* said = error;
    error = NULL;
    if (db != NULL) rocksdb_close(db);
    return said;
}

static rocksdb_options_t* fresh(void) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    return options;
}

/* Refused with a message that names the option, and opened where the caller accepts that. */
static void refused(rocksdb_options_t* options, const char* name) {
    char* said = open_with(options);
    CHECK(said != NULL && strstr(said, name) != NULL);
    if (said == NULL || strstr(said, name) == NULL) fprintf(stderr, "%s: %s\n", name, said == NULL ? "opened" : said);
    rocksdb_free(said);
    spillway_options_set_ignore_unsupported_options(options, 1);
    CHECK(open_with(options) == NULL);
    spillway_options_set_ignore_unsupported_options(options, 0);
    rocksdb_options_destroy(options);
}

#define REFUSED(name, value)                          \
    {                                                 \
        rocksdb_options_t* options = fresh();         \
        rocksdb_options_set_##name(options, value);   \
        CHECK(rocksdb_options_get_##name(options) == (value)); \
        refused(options, #name);                      \
    }

static void test_setters(void) {
    REFUSED(enable_blob_files, 1);
    REFUSED(inplace_update_support, 1);
    REFUSED(compression, rocksdb_bz2_compression);
    REFUSED(bottommost_compression, rocksdb_xpress_compression);
    REFUSED(compaction_style, 3);
}

static void test_levels_of_compression(void) {
    const int levels[2] = {rocksdb_no_compression, rocksdb_bz2_compression};
    rocksdb_options_t* options = fresh();
    rocksdb_options_set_compression_per_level(options, levels, 2);
    refused(options, "compression_per_level");
}

static void test_what_only_changes_how(void) {
    rocksdb_options_t* options = fresh();
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_ribbon(9.0));
    rocksdb_block_based_options_set_format_version(table, 6);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_options_set_compaction_pri(options, rocksdb_k_round_robin_compaction_pri);
    rocksdb_options_set_use_fsync(options, 1);
    rocksdb_options_set_ttl(options, 0);
    CHECK(open_with(options) == NULL);
    CHECK(rocksdb_options_get_compaction_pri(options) == rocksdb_k_round_robin_compaction_pri);
    rocksdb_block_based_options_destroy(table);
    rocksdb_options_destroy(options);
}

/* Strings and setters put what is kept in one place. */
static void test_strings_and_setters_agree(void) {
    rocksdb_options_t* options = fresh();
    rocksdb_options_set_use_fsync(options, 1);
    rocksdb_get_options_from_string(options, "use_fsync=false;allow_mmap_reads=true;use_direct_reads=true;WAL_ttl_seconds=7;"
        "enable_blob_files=true;blob_garbage_collection_age_cutoff=0.5;compaction_pri=kRoundRobin;wal_compression=kZSTD;"
        "compression_opts={parallel_threads=3}", options, &error);
    CHECK_OK(error);
    CHECK(rocksdb_options_get_use_fsync(options) == 0 && rocksdb_options_get_allow_mmap_reads(options) == 1);
    CHECK(rocksdb_options_get_use_direct_reads(options) == 1 && rocksdb_options_get_WAL_ttl_seconds(options) == 7);
    CHECK(rocksdb_options_get_enable_blob_files(options) == 1 && rocksdb_options_get_blob_gc_age_cutoff(options) == 0.5);
    CHECK(rocksdb_options_get_compaction_pri(options) == 4 && rocksdb_options_get_wal_compression(options) == 7);
    CHECK(rocksdb_options_get_compression_options_parallel_threads(options) == 3);
    rocksdb_options_set_allow_mmap_reads(options, 0);
    rocksdb_options_set_WAL_ttl_seconds(options, 0);
    CHECK(rocksdb_options_get_allow_mmap_reads(options) == 0 && rocksdb_options_get_WAL_ttl_seconds(options) == 0);
    refused(options, "enable_blob_files");
}

static int lines, warnings;

static void count_line(void* state, unsigned level, char* line, size_t len) {
    CHECK(state == &lines && strlen(line) == len);
    ++lines;
    if (level == 2 && strstr(line, "use_fsync") != NULL) ++warnings;
}

/* The logger that was set has what is told, once, and there is no file. */
static void test_logger(void) {
    rocksdb_options_t* options = fresh();
    rocksdb_logger_t* logger = rocksdb_logger_create_callback_logger(1, count_line, &lines);
    rocksdb_options_set_info_log(options, logger);
    rocksdb_logger_destroy(logger);
    rocksdb_options_set_use_fsync(options, 1);
    CHECK(open_with(options) == NULL);
    CHECK(lines > 50);
    CHECK(warnings == 1);
    rocksdb_options_destroy(options);
}

static char told[1 << 16];

static void keep_line(void* state, unsigned level, char* line, size_t len) {
    (void)state;
    if (level == 2 && strlen(told) + len + 2 < sizeof told) strcat(strcat(told, line), "\n");
}

static int times_told(const char* what) {
    const char* at = told;
    int times = 0;
    while ((at = strstr(at, what)) != NULL) ++times, ++at;
    return times;
}

static char* read_by(rocksdb_t* db, rocksdb_readoptions_t* read) {
    size_t len;
    rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, read);
    char *said = NULL, *walked = NULL;
    rocksdb_free(rocksdb_get(db, read, "key", 3, &len, &said));
    rocksdb_iter_seek_to_first(iterator);
    rocksdb_iter_get_error(iterator, &walked);
    CHECK((said == NULL) == (walked == NULL));
    rocksdb_free(walked);
    rocksdb_iter_destroy(iterator);
    return said;
}

/* Options of calls follow the rule too: what would change what is found is refused, or told of where that is accepted. */
static void test_calls(void) {
    int accepts;
    for (accepts = 0; accepts < 2; accepts++) {
        rocksdb_options_t* options = fresh();
        rocksdb_logger_t* logger = rocksdb_logger_create_callback_logger(2, keep_line, NULL);
        rocksdb_sst_file_manager_t* files = rocksdb_sst_file_manager_create(NULL);
        rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
        rocksdb_readoptions_t* read = rocksdb_readoptions_create();
        rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
        rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
        rocksdb_t* db;
        char* said;
        told[0] = 0;
        rocksdb_sst_file_manager_set_max_allowed_space_usage(files, 12345);
        rocksdb_options_set_sst_file_manager(options, files);
        rocksdb_block_based_options_set_partition_pinning_tier(table, 3);
        rocksdb_options_set_block_based_table_factory(options, table);
        rocksdb_options_set_info_log(options, logger);
        spillway_options_set_ignore_unsupported_options(options, accepts);
        db = rocksdb_open(options, dir, &error);
        CHECK_OK(error);

        rocksdb_writeoptions_set_low_pri(write, 1);
        rocksdb_put(db, write, "key", 3, "value", 5, &error);
        CHECK_OK(error);
        rocksdb_put(db, write, "key", 3, "value", 5, &error);
        CHECK_OK(error);
        rocksdb_flushoptions_set_allow_write_stall(flush, 1);
        rocksdb_flush(db, flush, &error);
        CHECK_OK(error);
        rocksdb_readoptions_set_deadline(read, 7);
        CHECK(read_by(db, read) == NULL);
        rocksdb_readoptions_set_read_tier(read, 2);
        said = read_by(db, read);
        CHECK(accepts ? said == NULL : said != NULL && strstr(said, "Not implemented: read option `read_tier=2`") == said);
        rocksdb_free(said);
        rocksdb_readoptions_set_read_tier(read, 0);
        rocksdb_readoptions_set_ignore_range_deletions(read, 1);
        said = read_by(db, read);
        CHECK(said == NULL); /* programs that delete no ranges set it to read faster */
        rocksdb_close(db);

        CHECK(times_told("`max_allowed_space_usage=12345`") == 1);
        CHECK(times_told("partition_pinning=kAll") == 1);
        CHECK(times_told("`low_pri=1`") == 1);
        CHECK(times_told("`allow_write_stall=1`") == 1);
        CHECK(times_told("`deadline=7`") == 1);
        CHECK(times_told("`ignore_range_deletions=1`") == 1);
        rocksdb_logger_destroy(logger);
        rocksdb_sst_file_manager_destroy(files);
        rocksdb_block_based_options_destroy(table);
        rocksdb_readoptions_destroy(read);
        rocksdb_writeoptions_destroy(write);
        rocksdb_flushoptions_destroy(flush);
        rocksdb_options_destroy(options);
    }
}

/* Directories of the database do not hide those of a family, nor the other way round. */
static void test_directories(void) {
    const rocksdb_dbpath_t* elsewhere[1];
    const rocksdb_dbpath_t* here[1];
    rocksdb_options_t* options = fresh();
    char* said;
    elsewhere[0] = rocksdb_dbpath_create("/elsewhere", 1 << 20);
    here[0] = rocksdb_dbpath_create(dir, 1 << 20);
    rocksdb_options_set_db_paths(options, elsewhere, 1);
    rocksdb_options_set_cf_paths(options, here, 1);
    said = open_with(options);
    CHECK(said != NULL && strstr(said, "/elsewhere") != NULL);
    rocksdb_free(said);
    rocksdb_dbpath_destroy((rocksdb_dbpath_t*)elsewhere[0]);
    rocksdb_dbpath_destroy((rocksdb_dbpath_t*)here[0]);
    rocksdb_options_destroy(options);
}

static void test_option_string(const char* given) {
    const int refuses = strncmp(given, "what:", 5) == 0;
    const char* text = strchr(given, ':') + 1;
    rocksdb_options_t* options = fresh();
    rocksdb_get_options_from_string(options, text, options, &error);
    CHECK_OK(error);
    if (refuses) {
        refused(options, "option `");
        return;
    }
    CHECK(open_with(options) == NULL);
    rocksdb_options_destroy(options);
}

int main(int argc, char** argv) {
    int i;
    if (argc < 2) return 2;
    dir = argv[1];
    test_setters();
    test_levels_of_compression();
    test_what_only_changes_how();
    test_strings_and_setters_agree();
    test_logger();
    test_calls();
    test_directories();
    for (i = 2; i < argc; i++) test_option_string(argv[i]);
    return outcome("silent");
}
