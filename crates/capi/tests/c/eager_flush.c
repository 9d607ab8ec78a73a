/* nimbus-eth1's recipe, as docs/memtables.md has it: a vector memtable, and each batch in a table once its write returns. */

#include "check.h"

static char* error;

static rocksdb_options_t* state_options(void) {
    rocksdb_options_t* plain = rocksdb_options_create();
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(plain, 1);
    rocksdb_options_set_memtable_vector_rep(plain);
    rocksdb_options_set_level0_file_num_compaction_trigger(plain, 2);
    rocksdb_options_set_max_bytes_for_level_base(plain, 8 * (64 << 20));
    rocksdb_options_set_max_bytes_for_level_multiplier(plain, 16);
    rocksdb_options_set_target_file_size_base(plain, 64 << 20);
    rocksdb_get_options_from_string(plain, "eager_flush=true", options, &error);
    CHECK_OK(error);
    rocksdb_options_destroy(plain);
    return options;
}

static void write_blocks(rocksdb_t* db, uint32_t first) {
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    for (uint32_t block = first; block < first + 1000; ++block)
        rocksdb_writebatch_put(batch, (const char*)&block, sizeof block, LIT("state"));
    rocksdb_write(db, write, batch, &error);
    CHECK_OK(error);
    rocksdb_writeoptions_destroy(write);
    rocksdb_writebatch_destroy(batch);
}

static uint64_t number(rocksdb_t* db, const char* property) {
    uint64_t value = UINT64_MAX;
    CHECK(rocksdb_property_int(db, property, &value) == 0);
    return value;
}

int main(int argc, char** argv) {
    rocksdb_options_t* options = state_options();
    rocksdb_t* db;
    char* stats;
    if (argc < 2) return 2;
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    stats = rocksdb_property_value(db, "rocksdb.stats");
    CHECK(stats != NULL && strstr(stats, "vector") != NULL);
    rocksdb_free(stats);
    write_blocks(db, 0);
    write_blocks(db, 1000);
    CHECK(number(db, "rocksdb.num-entries-active-mem-table") == 0);
    CHECK(number(db, "rocksdb.num-entries-imm-mem-tables") == 0);
    CHECK(number(db, "rocksdb.estimate-num-keys") == 2000);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    return outcome("eager_flush");
}
