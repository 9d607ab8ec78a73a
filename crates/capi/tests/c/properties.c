/* Properties that programs written for RocksDB read and parse: present, in RocksDB's form, and true. */

#define _POSIX_C_SOURCE 199309L

#include <time.h>

#include "check.h"

static char* error;
static rocksdb_t* db;
static rocksdb_writeoptions_t* write;
static rocksdb_readoptions_t* read;
static rocksdb_flushoptions_t* flush;

enum { KEYS = 10, VALUE_BYTES = 100 };

static uint64_t number(const char* name) {
    uint64_t value = 12345;
    CHECK(rocksdb_property_int(db, name, &value) == 0);
    return value;
}

static char* text(const char* name) {
    char* value = rocksdb_property_value(db, name);
    if (value == NULL) fprintf(stderr, "no property %s\n", name);
    CHECK(value != NULL);
    return value;
}

static void check_has(const char* name, const char* part, int line) {
    char* value = text(name);
    if (value == NULL || strstr(value, part) == NULL) {
        fprintf(stderr, "line %d: no \"%s\" in %s:\n%s\n", line, part, name, value == NULL ? "" : value);
        ++failures;
    }
    rocksdb_free(value);
}
#define CHECK_HAS(name, part) check_has((name), (part), __LINE__)

/* One more table in level 0, over the same keys. */
static void add_table(void) {
    char key[8], value[VALUE_BYTES];
    int i;
    memset(value, 'v', sizeof value);
    for (i = 0; i < KEYS; ++i) {
        snprintf(key, sizeof key, "k%d", i);
        rocksdb_put(db, write, key, 2, value, sizeof value, &error);
        CHECK_OK(error);
    }
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
}

/* The job that made a version may hold the one before for a moment. */
static void wait_for_versions(uint64_t versions) {
    const struct timespec moment = {0, 1000000};
    int moments;
    for (moments = 0; moments < 10000 && number("rocksdb.num-live-versions") != versions; ++moments) {
        nanosleep(&moment, NULL);
    }
    CHECK(number("rocksdb.num-live-versions") == versions);
}

static void test_numbers(void) {
    uint64_t views = number("rocksdb.current-super-version-number"), live;
    rocksdb_iterator_t* iterator;
    CHECK(number("rocksdb.estimate-live-data-size") == 0);
    add_table();
    live = number("rocksdb.estimate-live-data-size");
    CHECK(live > KEYS * VALUE_BYTES / 10 && live == number("rocksdb.total-sst-files-size"));
    CHECK(number("rocksdb.current-super-version-number") > views);

    /* A reader holds the version that it began with. */
    wait_for_versions(1);
    iterator = rocksdb_create_iterator(db, read);
    rocksdb_iter_seek_to_first(iterator);
    add_table();
    wait_for_versions(2);
    rocksdb_iter_destroy(iterator);
    wait_for_versions(1);

    /* Of two tables over the same keys one is left once they are compacted. */
    live = number("rocksdb.estimate-live-data-size");
    CHECK(live > 0 && live < number("rocksdb.total-sst-files-size"));

    CHECK(number("rocksdb.is-file-deletions-enabled") == 1);
    rocksdb_disable_file_deletions(db, &error);
    CHECK(number("rocksdb.is-file-deletions-enabled") == 0);
    rocksdb_enable_file_deletions(db, &error);
    CHECK_OK(error);
    CHECK(number("rocksdb.is-file-deletions-enabled") == 1);
    CHECK(number("rocksdb.num-blob-files") == 0 && number("rocksdb.total-blob-file-size") == 0);
    CHECK(number("rocksdb.live-blob-file-size") == 0 && number("rocksdb.live-blob-file-garbage-size") == 0);
}

/* Two tables of the same keys are in level 0. */
static void test_texts(void) {
    size_t len;
    const char* aggregated = "rocksdb.aggregated-table-properties";
    CHECK_HAS(aggregated, "# data blocks=2; # entries=20; # deletions=0; ");
    CHECK_HAS(aggregated, "raw value size=2000; raw average value size=100.000000; ");
    CHECK_HAS(aggregated, "(estimated) table size=");
    CHECK_HAS("rocksdb.aggregated-table-properties-at-level0", "# entries=20; ");
    CHECK_HAS("rocksdb.aggregated-table-properties-at-level1", "# entries=0; ");
    rocksdb_free(rocksdb_get(db, read, LIT("k1"), &len, &error)); /* the iterator has read the other block */
    CHECK_OK(error);
    CHECK_HAS("rocksdb.block-cache-entry-stats", "\nBlock cache entry stats(count,size,portion): DataBlock(2,");
    CHECK_HAS("rocksdb.fast-block-cache-entry-stats", "capacity: 32.00 MB usage: ");
    CHECK_HAS("rocksdb.cf-file-histogram", "\n** File Read Latency Histogram By Level [default] **\n");
    CHECK_HAS("rocksdb.levelstats", "Level Files Size(MB)\n--------------------\n  0        2        0\n  1        0");
    CHECK_HAS("rocksdb.cf-write-stall-stats", "Write Stall (count): l0-file-count-limit-delays: 0, ");
    CHECK_HAS("rocksdb.db-write-stall-stats", "write-buffer-manager-limit-stops: 0\n");
}

/* The columns of one row of the table of levels: a size is two words, files and files being compacted one. */
static int row(const char* stats, const char* name, char words[32][32]) {
    const char *at = strstr(stats, "** Compaction Stats [default] **"), *end;
    char line[512];
    int count = 0, used;
    for (; at != NULL; at = strchr(at, '\n') == NULL ? NULL : strchr(at, '\n') + 1) {
        while (*at == ' ') ++at;
        if (strncmp(at, name, strlen(name)) == 0 && at[strlen(name)] == ' ') break;
    }
    if (at == NULL || (end = strchr(at, '\n')) == NULL || end - at >= (long)sizeof line) return 0;
    memcpy(line, at, (size_t)(end - at));
    line[end - at] = '\0';
    for (at = line; count < 32 && sscanf(at, "%31s%n", words[count], &used) == 1; at += used) ++count;
    return count;
}

enum { FILES = 1, W_AMP = 12, COUNT = 17, KEY_IN = 19, KEY_DROP = 20, COLUMNS = 23 };

static void test_stats(void) {
    char words[32][32];
    char *stats = text("rocksdb.stats"), *again;
    CHECK(row(stats, "L0", words) == COLUMNS);
    CHECK(strcmp(words[FILES], "2/0") == 0 && strcmp(words[COUNT], "2") == 0 && strcmp(words[W_AMP], "1.0") == 0);
    CHECK(strcmp(words[KEY_IN], "20") == 0);
    CHECK(row(stats, "Sum", words) == COLUMNS && row(stats, "Int", words) == COLUMNS);
    CHECK(row(stats, "High", words) == COLUMNS && row(stats, "Low", words) == 0);
    CHECK(strstr(stats, " W-Amp ") != NULL && strstr(stats, "\nUptime(secs): ") != NULL);
    CHECK(strstr(stats, "\nCumulative writes: 20 writes, 20 keys, 20 commit groups, 1.0 writes per commit group, ") != NULL);
    CHECK(strstr(stats, "\nInterval writes: 20 writes, ") != NULL && strstr(stats, "\nInterval stall: ") != NULL);
    CHECK(strstr(stats, "\nCumulative WAL: 20 writes, ") != NULL);
    rocksdb_free(stats);

    /* Both tables become one: 20 entries are read, 10 of them hidden. */
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    again = text("rocksdb.stats");
    CHECK(row(again, "Low", words) == COLUMNS);
    CHECK(strcmp(words[COUNT], "1") == 0 && strcmp(words[KEY_IN], "20") == 0 && strcmp(words[KEY_DROP], "10") == 0);
    CHECK(row(again, "Int", words) == COLUMNS && strcmp(words[COUNT], "1") == 0);
    CHECK(row(again, "Sum", words) == COLUMNS && strcmp(words[COUNT], "3") == 0);
    CHECK(strstr(again, "\nInterval writes: 0 writes, 0 keys, ") != NULL);
    rocksdb_free(again);
    CHECK(number("rocksdb.estimate-live-data-size") == number("rocksdb.total-sst-files-size"));
}

/* Spillway's own: OpenMetrics text. */
static void test_metrics(void) {
    size_t len = 0;
    char* text = spillway_metrics(db, &len);
    CHECK(text != NULL && strlen(text) == len);
    CHECK(strstr(text, "spillway_writes_total ") != NULL && strcmp(text + len - 6, "# EOF\n") == 0);
    rocksdb_free(text);
}

int main(int argc, char** argv) {
    rocksdb_options_t* options = rocksdb_options_create();
    if (argc < 2) return 2;
    write = rocksdb_writeoptions_create();
    read = rocksdb_readoptions_create();
    flush = rocksdb_flushoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    test_numbers();
    test_texts();
    test_stats();
    test_metrics();
    rocksdb_close(db);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    rocksdb_options_destroy(options);
    return outcome("properties");
}
