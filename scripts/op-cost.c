/* Operations through RocksDB's C interface, for scripts/op-cost.sh to count what each takes.

       op-cost DIRECTORY fill|runsfill|put|get|missing|batch|[page|map][runs](tableget|multiget|seek|find|fresh|walk) COUNT

   fill makes 200,000 entries and a table of them, runsfill of the same a level and four tables of level 0. put, get and missing
   work on a fresh memtable, tableget, multiget (16 keys at a time), find (a seek), seek (and ten steps), fresh (the same, of a new iterator) and walk (a step) on the
   tables, read once before so that their blocks are cached: by the block cache, or with "page" (a block cache of 1 MiB) by the
   system, or with "map" by the system, mapped. The loop runs COUNT times; a script subtracts two counts. */
#include <rocksdb/c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES 200000

static char* failed;

static void check(void) {
    if (failed != NULL) {
        fprintf(stderr, "%s\n", failed);
        exit(1);
    }
}

/* Sixteen digits, spread at random; without snprintf, which would be a tenth of a get. */
static size_t key_of(uint64_t number, char* key) {
    uint64_t left = number * UINT64_C(2654435761) % UINT64_C(1000000007);
    int at;
    for (at = 15; at >= 0; --at, left /= 10) key[at] = (char)('0' + left % 10);
    return 16;
}

static void put_from(rocksdb_t* db, uint64_t number, uint64_t count) {
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    char key[32], value[100];
    uint64_t end = number + count;
    memset(value, 'v', sizeof value);
    for (; number < end; ++number) {
        size_t len = key_of(number, key);
        rocksdb_put(db, write, key, len, value, sizeof value, &failed);
        check();
    }
    rocksdb_writeoptions_destroy(write);
}

static void put_all(rocksdb_t* db, uint64_t count) { put_from(db, 0, count); }

static void write_batches(rocksdb_t* db, uint64_t count) {
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    char key[32], value[100];
    uint64_t number;
    memset(value, 'v', sizeof value);
    for (number = 0; number < count; ++number) {
        size_t len = key_of(number, key);
        rocksdb_writebatch_put(batch, key, len, value, sizeof value);
        if (number % 100 == 99) {
            rocksdb_write(db, write, batch, &failed);
            check();
            rocksdb_writebatch_clear(batch);
        }
    }
    rocksdb_writebatch_destroy(batch);
    rocksdb_writeoptions_destroy(write);
}

static uint64_t get_all(rocksdb_t* db, uint64_t first, uint64_t count) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    uint64_t number, bytes = 0;
    char key[32];
    for (number = first; number < first + count; ++number) {
        size_t found = 0, len = key_of(number, key);
        char* value = rocksdb_get(db, read, key, len, &found, &failed);
        check();
        bytes += found;
        rocksdb_free(value);
    }
    rocksdb_readoptions_destroy(read);
    return bytes;
}

#define BATCH 16

/* count counts keys. */
static uint64_t multi_get_all(rocksdb_t* db, uint64_t first, uint64_t count) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    uint64_t number, bytes = 0;
    static char keys[BATCH][32];
    for (number = first; number < first + count; number += BATCH) {
        const char* asked[BATCH];
        char *found[BATCH], *errors[BATCH];
        size_t lens[BATCH], found_lens[BATCH];
        int i;
        for (i = 0; i < BATCH; ++i) {
            lens[i] = key_of((number + (uint64_t)i) % ENTRIES, keys[i]);
            asked[i] = keys[i];
        }
        rocksdb_multi_get(db, read, BATCH, asked, lens, found, found_lens, errors);
        for (i = 0; i < BATCH; ++i) {
            failed = errors[i];
            check();
            bytes += found_lens[i];
            rocksdb_free(found[i]);
        }
    }
    rocksdb_readoptions_destroy(read);
    return bytes;
}

static uint64_t seek_all(rocksdb_t* db, uint64_t count, int steps) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, read);
    uint64_t number, bytes = 0;
    char key[32];
    for (number = 0; number < count; ++number) {
        int step;
        size_t found, len = key_of(number % ENTRIES, key);
        rocksdb_iter_seek(iterator, key, len);
        for (step = 0; step <= steps && rocksdb_iter_valid(iterator); ++step) {
            rocksdb_iter_value(iterator, &found);
            bytes += found;
            if (step < steps) rocksdb_iter_next(iterator);
        }
    }
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_destroy(read);
    return bytes;
}

static uint64_t seek_afresh(rocksdb_t* db, uint64_t count) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    uint64_t number, bytes = 0;
    char key[32];
    for (number = 0; number < count; ++number) {
        rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, read);
        int step;
        size_t found, len = key_of(number % ENTRIES, key);
        rocksdb_iter_seek(iterator, key, len);
        for (step = 0; step < 10 && rocksdb_iter_valid(iterator); ++step) {
            rocksdb_iter_value(iterator, &found);
            bytes += found;
            rocksdb_iter_next(iterator);
        }
        rocksdb_iter_destroy(iterator);
    }
    rocksdb_readoptions_destroy(read);
    return bytes;
}

static uint64_t step_all(rocksdb_t* db, uint64_t count) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, read);
    uint64_t bytes = 0;
    rocksdb_iter_seek_to_first(iterator);
    for (; count > 0 && rocksdb_iter_valid(iterator); --count) {
        size_t key, value;
        rocksdb_iter_key(iterator, &key);
        rocksdb_iter_value(iterator, &value);
        bytes += key + value;
        rocksdb_iter_next(iterator);
    }
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_destroy(read);
    return bytes;
}

/* Every block of the table comes into the cache. */
static uint64_t walk_all(rocksdb_t* db) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, read);
    uint64_t bytes = 0;
    for (rocksdb_iter_seek_to_first(iterator); rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator)) ++bytes;
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_destroy(read);
    return bytes;
}

static void flush_now(rocksdb_t* db) {
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_flush(db, flush, &failed);
    check();
    rocksdb_flushoptions_destroy(flush);
}

static void fill(rocksdb_t* db, uint64_t compacted) {
    put_all(db, compacted);
    flush_now(db);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
}

static void fill_runs(rocksdb_t* db) {
    uint64_t number;
    fill(db, ENTRIES / 5 * 3);
    for (number = ENTRIES / 5 * 3; number < ENTRIES; number += ENTRIES / 10) {
        put_from(db, number, ENTRIES / 10);
        flush_now(db);
    }
}

static rocksdb_t* open_at(const char* path, size_t cache_bytes, unsigned char maps) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_t* db;
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_disable_auto_compactions(options, 1);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(cache_bytes));
    rocksdb_options_set_allow_mmap_reads(options, maps);
    rocksdb_options_set_block_based_table_factory(options, table);
    db = rocksdb_open(options, path, &failed);
    check();
    rocksdb_options_destroy(options);
    return db;
}

int main(int argc, char** argv) {
    uint64_t count, bytes = 0;
    const char* what;
    size_t cache_bytes = 256 << 20;
    unsigned char maps = 0;
    rocksdb_t* db;
    if (argc < 4) return 2;
    what = argv[2];
    count = strtoull(argv[3], NULL, 10);
    if (strncmp(what, "page", 4) == 0) {
        cache_bytes = 1 << 20;
        what += 4;
    } else if (strncmp(what, "map", 3) == 0) {
        maps = 1;
        what += 3;
    }
    db = open_at(argv[1], cache_bytes, maps);
    if (strncmp(what, "runs", 4) == 0 && strcmp(what, "runsfill") != 0) what += 4;
    if (strcmp(what, "fill") == 0) {
        fill(db, ENTRIES);
    } else if (strcmp(what, "runsfill") == 0) {
        fill_runs(db);
    } else if (strcmp(what, "put") == 0) {
        put_all(db, count);
    } else if (strcmp(what, "batch") == 0) {
        write_batches(db, count);
    } else if (strcmp(what, "get") == 0) {
        put_all(db, 20000);
        for (; count > 20000; count -= 20000) bytes += get_all(db, 0, 20000);
        bytes += get_all(db, 0, count);
    } else if (strcmp(what, "missing") == 0) {
        bytes = get_all(db, ENTRIES, count);
    } else if (strcmp(what, "tableget") == 0) {
        bytes = walk_all(db);
        for (; count > ENTRIES; count -= ENTRIES) bytes += get_all(db, 0, ENTRIES);
        bytes += get_all(db, 0, count);
    } else if (strcmp(what, "multiget") == 0) {
        bytes = walk_all(db);
        bytes += multi_get_all(db, 0, count);
    } else if (strcmp(what, "seek") == 0) {
        bytes = walk_all(db);
        bytes += seek_all(db, count, 10);
    } else if (strcmp(what, "find") == 0) {
        bytes = walk_all(db);
        bytes += seek_all(db, count, 0);
    } else if (strcmp(what, "fresh") == 0) {
        bytes = walk_all(db);
        bytes += seek_afresh(db, count);
    } else if (strcmp(what, "walk") == 0) {
        bytes = walk_all(db);
        bytes += step_all(db, count);
    } else {
        return 2;
    }
    printf("%lu\n", (unsigned long)bytes);
    rocksdb_close(db);
    return 0;
}
