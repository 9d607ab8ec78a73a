/* Walks over an indexed batch and a database, beside walks over a database that the batch was written to. */

#include "check.h"

static char* error;
static rocksdb_options_t* options;
static rocksdb_writeoptions_t* write;

static unsigned random_state = 1;

static unsigned below(unsigned limit) {
    random_state = random_state * 1103515245u + 12345u;
    return (random_state >> 16) % limit;
}

/* A key of few, so that changes meet. */
static size_t some_key(char* key) {
    key[0] = (char)('a' + below(6));
    key[1] = (char)('a' + below(6));
    return 1 + below(2);
}

static void change(rocksdb_writebatch_wi_t* batch) {
    char key[2], end[2], value = (char)('0' + below(10));
    size_t key_len = some_key(key), end_len = some_key(end);
    int order = memcmp(key, end, key_len < end_len ? key_len : end_len);
    switch (below(8)) {
        case 0: /* a database refuses a range whose start comes after its end */
            if (order < 0 || (order == 0 && key_len <= end_len)) {
                rocksdb_writebatch_wi_delete_range(batch, key, key_len, end, end_len);
            } else {
                rocksdb_writebatch_wi_delete_range(batch, end, end_len, key, key_len);
            }
            break;
        case 1: case 2: rocksdb_writebatch_wi_delete(batch, key, key_len); break;
        case 3: case 4: rocksdb_writebatch_wi_merge(batch, key, key_len, &value, 1); break;
        default: rocksdb_writebatch_wi_put(batch, key, key_len, &value, 1);
    }
}

static void move(rocksdb_iterator_t* iterator, unsigned how, const char* key, size_t len) {
    switch (how) {
        case 0: rocksdb_iter_seek_to_first(iterator); break;
        case 1: rocksdb_iter_seek_to_last(iterator); break;
        case 2: rocksdb_iter_seek(iterator, key, len); break;
        case 3: rocksdb_iter_seek_for_prev(iterator, key, len); break;
        default: if (rocksdb_iter_valid(iterator)) (how % 2 ? rocksdb_iter_next : rocksdb_iter_prev)(iterator);
    }
}

/* Walks over a batch and a database as over one that the batch was written to, whichever way they turn. */
static void check_same_walks(rocksdb_iterator_t* both, rocksdb_iterator_t* written) {
    char key[2];
    size_t len, other_len, key_len;
    const char *bytes, *other;
    int steps;
    for (steps = 0; steps < 200; ++steps) {
        unsigned how = below(14);
        key_len = some_key(key);
        move(both, how, key, key_len);
        move(written, how, key, key_len);
        CHECK(rocksdb_iter_valid(both) == rocksdb_iter_valid(written));
        if (!rocksdb_iter_valid(both) || !rocksdb_iter_valid(written)) continue;
        bytes = rocksdb_iter_key(both, &len);
        other = rocksdb_iter_key(written, &other_len);
        CHECK(len == other_len && memcmp(bytes, other, len) == 0);
        bytes = rocksdb_iter_value(both, &len);
        other = rocksdb_iter_value(written, &other_len);
        CHECK(len == other_len && memcmp(bytes, other, len) == 0);
    }
}

/* Before and after: what the batch and its walks say is what the database says once the batch is written. */
static void test_random(char** argv) {
    int rounds, changes;
    char lower[2], upper[2];
    size_t lower_len, upper_len;
    rocksdb_t* db = rocksdb_open(options, path_in(argv, "random"), &error);
    CHECK_OK(error);
    for (rounds = 0; rounds < 60 && failures == 0; ++rounds) {
        rocksdb_readoptions_t *bounded = rocksdb_readoptions_create(), *before = rocksdb_readoptions_create();
        const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
        rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, (unsigned char)below(2));
        rocksdb_iterator_t *both, *written;
        lower_len = some_key(lower);
        upper_len = some_key(upper);
        rocksdb_readoptions_set_snapshot(before, snapshot);
        if (rounds % 3 == 0) {
            rocksdb_readoptions_set_iterate_lower_bound(before, lower, lower_len);
            rocksdb_readoptions_set_iterate_lower_bound(bounded, lower, lower_len);
        }
        if (rounds % 5 == 0) {
            rocksdb_readoptions_set_iterate_upper_bound(before, upper, upper_len);
            rocksdb_readoptions_set_iterate_upper_bound(bounded, upper, upper_len);
        }
        for (changes = (int)below(20); changes > 0; --changes) change(batch);
        rocksdb_write_writebatch_wi(db, write, batch, &error);
        CHECK_OK(error);
        both = rocksdb_writebatch_wi_create_iterator_with_base(batch, rocksdb_create_iterator(db, before));
        written = rocksdb_create_iterator(db, bounded);
        check_same_walks(both, written);
        rocksdb_iter_destroy(written);
        rocksdb_iter_destroy(both);
        rocksdb_writebatch_wi_destroy(batch);
        rocksdb_release_snapshot(db, snapshot);
        rocksdb_readoptions_destroy(before);
        rocksdb_readoptions_destroy(bounded);
    }
    rocksdb_close(db);
}

int main(int argc, char** argv) {
    rocksdb_options_t* base = rocksdb_options_create();
    if (argc < 2) return 2;
    options = rocksdb_options_create();
    write = rocksdb_writeoptions_create();
    rocksdb_get_options_from_string(base, "merge_operator=stringappend", options, &error);
    CHECK_OK(error);
    rocksdb_options_set_create_if_missing(options, 1);
    test_random(argv);
    rocksdb_options_destroy(base);
    rocksdb_options_destroy(options);
    rocksdb_writeoptions_destroy(write);
    return outcome("walks");
}
