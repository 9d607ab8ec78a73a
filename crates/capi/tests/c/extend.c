/* Comparators, merge operators, compaction filters and prefixes by functions of this program. */

#include "check.h"

static char* error;
static int destroyed;
static rocksdb_writeoptions_t* write;
static rocksdb_readoptions_t* read;

static void destructor(void* state) {
    (void)state;
    ++destroyed;
}

static const char* name(void* state) {
    return state;
}

/* The order of the bytes seen as text, backwards. */
static int backwards(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    (void)state;
    return order != 0 ? -order : (a_len < b_len) - (a_len > b_len);
}

/* Joins everything with commas; fails where an operand is "bad". */
static char* full_merge(void* state, const char* key, size_t key_len, const char* existing, size_t existing_len,
                        const char* const* operands, const size_t* lens, int count, unsigned char* success,
                        size_t* merged_len) {
    char* merged = malloc(512);
    int i;
    (void)state, (void)key, (void)key_len;
    *merged_len = 0;
    *success = 1;
    if (existing != NULL) {
        memcpy(merged, existing, existing_len);
        *merged_len = existing_len;
    }
    for (i = 0; i < count; ++i) {
        if (lens[i] == 3 && memcmp(operands[i], "bad", 3) == 0) *success = 0;
        if (*merged_len > 0) merged[(*merged_len)++] = ',';
        memcpy(merged + *merged_len, operands[i], lens[i]);
        *merged_len += lens[i];
    }
    return merged;
}

static char* partial_merge(void* state, const char* key, size_t key_len, const char* const* operands,
                           const size_t* lens, int count, unsigned char* success, size_t* merged_len) {
    (void)state, (void)key, (void)key_len, (void)operands, (void)lens, (void)count;
    *success = 0;
    *merged_len = 0;
    return NULL;
}

/* Removes what begins with "drop", changes what begins with "change". */
static unsigned char filter(void* state, int level, const char* key, size_t key_len, const char* value, size_t len,
                            char** new_value, size_t* new_len, unsigned char* changed) {
    static char replaced[] = "changed";
    (void)state, (void)level, (void)value, (void)len;
    if (key_len >= 4 && memcmp(key, "drop", 4) == 0) return 1;
    if (key_len >= 6 && memcmp(key, "change", 6) == 0) {
        *new_value = replaced;
        *new_len = strlen(replaced);
        *changed = 1;
    }
    return 0;
}

static rocksdb_compactionfilter_t* make_filter(void* state, rocksdb_compactionfiltercontext_t* context) {
    CHECK(rocksdb_compactionfiltercontext_is_manual_compaction(context) == 1);
    CHECK(rocksdb_compactionfiltercontext_is_full_compaction(context) == 1);
    return rocksdb_compactionfilter_create(state, destructor, filter, name);
}

/* The part before a colon. */
static char* before_colon(void* state, const char* key, size_t len, size_t* prefix_len) {
    const char* colon = memchr(key, ':', len);
    (void)state;
    *prefix_len = colon == NULL ? len : (size_t)(colon - key);
    return (char*)key;
}

static unsigned char has_colon(void* state, const char* key, size_t len) {
    (void)state;
    return memchr(key, ':', len) != NULL;
}

static rocksdb_options_t* new_options(void) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    return options;
}

static void test_comparator(char** argv) {
    size_t len;
    rocksdb_options_t* options = new_options();
    rocksdb_comparator_t* order = rocksdb_comparator_create("backwards", destructor, backwards, name);
    rocksdb_iterator_t* it;
    rocksdb_t* db;
    rocksdb_options_set_comparator(options, order);
    db = rocksdb_open(options, path_in(argv, "ordered"), &error);
    CHECK_OK(error);
    rocksdb_put(db, write, LIT("a"), LIT("1"), &error);
    rocksdb_put(db, write, LIT("b"), LIT("2"), &error);
    it = rocksdb_create_iterator(db, read);
    rocksdb_iter_seek_to_first(it);
    CHECK_BYTES(rocksdb_iter_key(it, &len), len, "b");
    rocksdb_iter_destroy(it);
    rocksdb_close(db);
    rocksdb_options_set_comparator(options, NULL);
    CHECK(rocksdb_open(options, path_in(argv, "ordered"), &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: "); /* another order than the database's */
    rocksdb_options_destroy(options);
    CHECK(destroyed == 0);
    rocksdb_comparator_destroy(order);
    CHECK(destroyed == 1);
}

static void test_merge(char** argv) {
    size_t len;
    rocksdb_options_t* options = new_options();
    rocksdb_t* db;
    destroyed = 0;
    rocksdb_mergeoperator_destroy(
        rocksdb_mergeoperator_create("unused", destructor, full_merge, partial_merge, NULL, name));
    CHECK(destroyed == 1);
    rocksdb_options_set_merge_operator(
        options, rocksdb_mergeoperator_create("commas", destructor, full_merge, partial_merge, NULL, name));
    db = rocksdb_open(options, path_in(argv, "merged"), &error);
    CHECK_OK(error);
    rocksdb_merge(db, write, LIT("k"), LIT("1"), &error);
    rocksdb_merge(db, write, LIT("k"), LIT("2"), &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("k"), &len, &error), 3, "1,2");
    rocksdb_merge(db, write, LIT("k"), LIT("bad"), &error);
    CHECK_OK(error);
    CHECK(rocksdb_get(db, read, LIT("k"), &len, &error) == NULL);
    CHECK_ERROR(error, "Corruption: ");
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    CHECK(destroyed == 2);
}

static void fill(rocksdb_t* db) {
    rocksdb_put(db, write, LIT("change"), LIT("v"), &error);
    rocksdb_put(db, write, LIT("drop"), LIT("v"), &error);
    rocksdb_put(db, write, LIT("keep"), LIT("v"), &error);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    CHECK_OK(error);
}

static void test_filter(char** argv, const char* path, int by_factory) {
    size_t len;
    rocksdb_options_t* options = new_options();
    rocksdb_compactionfilter_t* made = rocksdb_compactionfilter_create("filter", destructor, filter, name);
    rocksdb_t* db;
    destroyed = 0;
    rocksdb_compactionfilter_set_ignore_snapshots(made, 1);
    if (by_factory) {
        rocksdb_options_set_compaction_filter_factory(
            options, rocksdb_compactionfilterfactory_create("factory", destructor, make_filter, name));
    } else {
        rocksdb_options_set_compaction_filter(options, made);
    }
    db = rocksdb_open(options, path_in(argv, path), &error);
    CHECK_OK(error);
    fill(db);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("change"), &len, &error), len, "changed");
    CHECK(rocksdb_get(db, read, LIT("drop"), &len, &error) == NULL);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("keep"), &len, &error), len, "v");
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_compactionfilter_destroy(made);
    CHECK(destroyed == (by_factory ? 3 : 1)); /* the filter made here, the factory, and the one filter of its own */
    rocksdb_compactionfilterfactory_destroy(
        rocksdb_compactionfilterfactory_create("unused", NULL, make_filter, name));
}

static void test_prefixes(char** argv) {
    size_t len;
    rocksdb_options_t* options = new_options();
    rocksdb_readoptions_t* same = rocksdb_readoptions_create();
    rocksdb_iterator_t* it;
    rocksdb_t* db;
    destroyed = 0;
    rocksdb_slicetransform_destroy(rocksdb_slicetransform_create_fixed_prefix(4));
    rocksdb_options_set_prefix_extractor(options, rocksdb_slicetransform_create_fixed_prefix(4));
    rocksdb_options_set_prefix_extractor(options, rocksdb_slicetransform_create_noop());
    rocksdb_options_set_prefix_extractor(
        options, rocksdb_slicetransform_create("colon", destructor, before_colon, has_colon, name));
    db = rocksdb_open(options, path_in(argv, "prefixed"), &error);
    CHECK_OK(error);
    rocksdb_put(db, write, LIT("a:1"), LIT("1"), &error);
    rocksdb_put(db, write, LIT("b:1"), LIT("2"), &error);
    rocksdb_readoptions_set_prefix_same_as_start(same, 1);
    it = rocksdb_create_iterator(db, same);
    rocksdb_iter_seek(it, LIT("a:"));
    CHECK_BYTES(rocksdb_iter_key(it, &len), len, "a:1");
    rocksdb_iter_next(it);
    CHECK(!rocksdb_iter_valid(it));
    rocksdb_iter_destroy(it);
    rocksdb_close(db);
    rocksdb_readoptions_destroy(same);
    rocksdb_options_destroy(options);
    CHECK(destroyed == 1);
}

/* The options of a database are loaded without the objects that only its maker has. */
static void check_loads(char** argv, const char* path) {
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_options_t *loaded, **families;
    char** names;
    size_t count;
    rocksdb_load_latest_options(path_in(argv, path), env, 0, NULL, &loaded, &count, &names, &families, &error);
    CHECK_OK(error);
    CHECK(loaded != NULL && count == 1 && strcmp(names[0], "default") == 0);
    rocksdb_load_latest_options_destroy(loaded, names, families, count);
    rocksdb_env_destroy(env);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    write = rocksdb_writeoptions_create();
    read = rocksdb_readoptions_create();
    test_comparator(argv);
    test_merge(argv);
    test_filter(argv, "filtered", 0);
    test_filter(argv, "made", 1);
    test_prefixes(argv);
    check_loads(argv, "ordered");
    check_loads(argv, "merged");
    check_loads(argv, "prefixed");
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
    return outcome("extend");
}
