/* Indexed batches: read alone, over a database, and walked through with it. */

#include "check.h"

static char* error;
static rocksdb_options_t* options;
static rocksdb_readoptions_t* read;
static rocksdb_writeoptions_t* write;
static char walked[256];

static int backwards(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
    int order = memcmp(b, a, a_len < b_len ? a_len : b_len);
    (void)state;
    return order != 0 ? order : (int)b_len - (int)a_len;
}

static const char* backwards_name(void* state) {
    (void)state;
    return "backwards";
}

static void note(rocksdb_iterator_t* iterator) {
    size_t key_len, len;
    const char* key = rocksdb_iter_key(iterator, &key_len);
    const char* value = rocksdb_iter_value(iterator, &len);
    strncat(walked, key, key_len);
    strcat(walked, "=");
    strncat(walked, value, len);
    strcat(walked, " ");
}

/* Everything from first to last, or from last to first. */
static const char* walk(rocksdb_iterator_t* iterator, int forward) {
    walked[0] = 0;
    if (forward) {
        for (rocksdb_iter_seek_to_first(iterator); rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator))
            note(iterator);
    } else {
        for (rocksdb_iter_seek_to_last(iterator); rocksdb_iter_valid(iterator); rocksdb_iter_prev(iterator))
            note(iterator);
    }
    rocksdb_iter_get_error(iterator, &error);
    CHECK_OK(error);
    return walked;
}

static void check_walk(rocksdb_iterator_t* iterator, const char* forward, const char* backward) {
    CHECK(strcmp(walk(iterator, 1), forward) == 0);
    if (strcmp(walked, forward) != 0) fprintf(stderr, "%s\n", walked);
    CHECK(strcmp(walk(iterator, 0), backward) == 0);
    if (strcmp(walked, backward) != 0) fprintf(stderr, "%s\n", walked);
}

static void test_alone(rocksdb_column_family_handle_t* family) {
    size_t len;
    rocksdb_options_t* plain = rocksdb_options_create();
    rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(16, 0);
    CHECK(rocksdb_writebatch_wi_get_from_batch(batch, options, LIT("a"), &len, &error) == NULL && len == 0);
    CHECK_OK(error);
    rocksdb_writebatch_wi_put(batch, LIT("a"), LIT("1"));
    rocksdb_writebatch_wi_put(batch, LIT("a"), LIT("2"));
    rocksdb_writebatch_wi_put_cf(batch, family, LIT("a"), LIT("of the family"));
    CHECK(rocksdb_writebatch_wi_count(batch) == 3);
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch(batch, options, LIT("a"), &len, &error), len, "2");
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch_cf(batch, options, family, LIT("a"), &len, &error), len,
                "of the family");
    rocksdb_writebatch_wi_set_save_point(batch);
    rocksdb_writebatch_wi_delete(batch, LIT("a"));
    CHECK(rocksdb_writebatch_wi_get_from_batch(batch, options, LIT("a"), &len, &error) == NULL);
    rocksdb_writebatch_wi_delete_cf(batch, family, LIT("a"));
    rocksdb_writebatch_wi_singledelete(batch, LIT("b"));
    rocksdb_writebatch_wi_singledelete_cf(batch, family, LIT("b"));
    rocksdb_writebatch_wi_rollback_to_save_point(batch, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch(batch, options, LIT("a"), &len, &error), len, "2");
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch_cf(batch, options, family, LIT("a"), &len, &error), len,
                "of the family");
    rocksdb_writebatch_wi_rollback_to_save_point(batch, &error);
    CHECK_ERROR(error, "NotFound: ");
    rocksdb_writebatch_wi_merge(batch, LIT("a"), LIT("3"));
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch(batch, options, LIT("a"), &len, &error), len, "2,3");
    rocksdb_writebatch_wi_merge_cf(batch, family, LIT("m"), LIT("1"));
    CHECK(rocksdb_writebatch_wi_get_from_batch_cf(batch, options, family, LIT("m"), &len, &error) == NULL);
    CHECK_ERROR(error, "Merge in progress: ");
    /* The family's operator applies them, whatever the options have. */
    rocksdb_writebatch_wi_merge_cf(batch, family, LIT("a"), LIT("3"));
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch_cf(batch, plain, family, LIT("a"), &len, &error), len,
                "of the family,3");
    CHECK(rocksdb_writebatch_wi_get_from_batch(batch, plain, LIT("a"), &len, &error) == NULL && len == 0);
    CHECK_ERROR(error, "Invalid argument: ");
    rocksdb_options_destroy(plain);
    rocksdb_writebatch_wi_put_log_data(batch, LIT("no change"));
    CHECK(rocksdb_writebatch_wi_count(batch) == 6);
    CHECK(rocksdb_writebatch_wi_data(batch, &len) != NULL && len > 12);
    rocksdb_writebatch_wi_clear(batch);
    CHECK(rocksdb_writebatch_wi_count(batch) == 0);
    CHECK(rocksdb_writebatch_wi_get_from_batch(batch, options, LIT("a"), &len, &error) == NULL);
    CHECK_OK(error);
    rocksdb_writebatch_wi_destroy(batch);
    rocksdb_writebatch_wi_destroy(NULL);
}

/* The database has a=A c=C e=E g=G, in the family too. */
static rocksdb_writebatch_wi_t* changes(rocksdb_column_family_handle_t* family) {
    rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create_with_params(NULL, 0, 1, 0, 0);
    if (family == NULL) {
        rocksdb_writebatch_wi_put(batch, LIT("b"), LIT("2"));
        rocksdb_writebatch_wi_put(batch, LIT("c"), LIT("3"));
        rocksdb_writebatch_wi_delete(batch, LIT("e"));
        rocksdb_writebatch_wi_merge(batch, LIT("g"), LIT("7"));
        rocksdb_writebatch_wi_put(batch, LIT("h"), LIT("8"));
    } else {
        rocksdb_writebatch_wi_put_cf(batch, family, LIT("b"), LIT("2"));
        rocksdb_writebatch_wi_put_cf(batch, family, LIT("c"), LIT("3"));
        rocksdb_writebatch_wi_delete_cf(batch, family, LIT("e"));
        rocksdb_writebatch_wi_merge_cf(batch, family, LIT("g"), LIT("7"));
        rocksdb_writebatch_wi_put_cf(batch, family, LIT("h"), LIT("8"));
    }
    return batch;
}

static void test_over_database(rocksdb_t* db, rocksdb_column_family_handle_t* family) {
    size_t len;
    rocksdb_pinnableslice_t* pinned;
    rocksdb_writebatch_wi_t *batch = changes(NULL), *other = changes(family);
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, read, LIT("a"), &len, &error), len, "A");
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, read, LIT("c"), &len, &error), len, "3");
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, read, LIT("g"), &len, &error), len, "G,7");
    CHECK(rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, read, LIT("e"), &len, &error) == NULL && len == 0);
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch_and_db_cf(other, db, read, family, LIT("g"), &len, &error), len,
                "G,7");
    pinned = rocksdb_writebatch_wi_get_pinned_from_batch_and_db(batch, db, read, LIT("b"), &error);
    CHECK_BYTES(rocksdb_pinnableslice_value(pinned, &len), len, "2");
    rocksdb_pinnableslice_destroy(pinned);
    pinned = rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(other, db, read, family, LIT("a"), &error);
    CHECK_BYTES(rocksdb_pinnableslice_value(pinned, &len), len, "A");
    rocksdb_pinnableslice_destroy(pinned);
    CHECK(rocksdb_writebatch_wi_get_pinned_from_batch_and_db(batch, db, read, LIT("e"), &error) == NULL);
    CHECK_OK(error);
    rocksdb_writebatch_wi_destroy(batch);
    rocksdb_writebatch_wi_destroy(other);
}

static void test_walks(rocksdb_t* db, rocksdb_column_family_handle_t* family) {
    size_t len;
    rocksdb_writebatch_wi_t *batch = changes(NULL), *other = changes(family);
    rocksdb_readoptions_t* bounded = rocksdb_readoptions_create();
    rocksdb_iterator_t* iterator =
        rocksdb_writebatch_wi_create_iterator_with_base(batch, rocksdb_create_iterator(db, read));
    check_walk(iterator, "a=A b=2 c=3 g=G,7 h=8 ", "h=8 g=G,7 c=3 b=2 a=A ");
    walked[0] = 0;
    rocksdb_iter_seek(iterator, LIT("c"));
    note(iterator);
    rocksdb_iter_next(iterator); /* over e, which the batch deletes */
    note(iterator);
    rocksdb_iter_prev(iterator);
    note(iterator);
    rocksdb_iter_prev(iterator);
    note(iterator);
    rocksdb_iter_next(iterator);
    note(iterator);
    rocksdb_iter_seek_for_prev(iterator, LIT("f"));
    note(iterator);
    CHECK(strcmp(walked, "c=3 g=G,7 c=3 b=2 c=3 c=3 ") == 0);
    rocksdb_iter_seek(iterator, LIT("x"));
    CHECK(!rocksdb_iter_valid(iterator));
    rocksdb_iter_next(iterator);
    CHECK(!rocksdb_iter_valid(iterator));
    /* The walk shows what is added to the batch on its way. */
    rocksdb_iter_seek(iterator, LIT("c"));
    rocksdb_writebatch_wi_put(batch, LIT("d"), LIT("4"));
    rocksdb_iter_next(iterator);
    CHECK_BYTES(rocksdb_iter_key(iterator, &len), len, "d");
    check_walk(iterator, "a=A b=2 c=3 d=4 g=G,7 h=8 ", "h=8 g=G,7 d=4 c=3 b=2 a=A ");
    rocksdb_iter_refresh(iterator, &error);
    CHECK_OK(error);
    CHECK(!rocksdb_iter_valid(iterator));
    rocksdb_iter_destroy(iterator);

    rocksdb_readoptions_set_iterate_lower_bound(bounded, LIT("b"));
    rocksdb_readoptions_set_iterate_upper_bound(bounded, LIT("g"));
    iterator = rocksdb_writebatch_wi_create_iterator_with_base(batch, rocksdb_create_iterator(db, bounded));
    check_walk(iterator, "b=2 c=3 d=4 ", "d=4 c=3 b=2 ");
    rocksdb_iter_destroy(iterator);
    iterator = rocksdb_writebatch_wi_create_iterator_with_base_readopts(batch, rocksdb_create_iterator(db, bounded),
                                                                        bounded);
    check_walk(iterator, "b=2 c=3 d=4 ", "d=4 c=3 b=2 ");
    rocksdb_iter_destroy(iterator);
    iterator = rocksdb_writebatch_wi_create_iterator_with_base_cf(
        other, rocksdb_create_iterator_cf(db, read, family), family);
    check_walk(iterator, "a=A b=2 c=3 g=G,7 h=8 ", "h=8 g=G,7 c=3 b=2 a=A ");
    rocksdb_iter_destroy(iterator);
    iterator = rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
        other, rocksdb_create_iterator_cf(db, bounded, family), family, bounded);
    check_walk(iterator, "b=2 c=3 ", "c=3 b=2 ");
    rocksdb_iter_destroy(iterator);
    /* A walk begun over nothing shows what comes, and outlives its batch. */
    rocksdb_writebatch_wi_clear(batch);
    iterator = rocksdb_writebatch_wi_create_iterator_with_base(batch, rocksdb_create_iterator(db, bounded));
    rocksdb_writebatch_wi_put(batch, LIT("d"), LIT("4"));
    rocksdb_readoptions_destroy(bounded);
    rocksdb_writebatch_wi_destroy(batch);
    check_walk(iterator, "c=C d=4 e=E ", "e=E d=4 c=C ");
    rocksdb_iter_destroy(iterator);
    iterator = rocksdb_writebatch_wi_create_iterator_with_base_cf(
        other, rocksdb_create_iterator_cf(db, read, family), family);
    rocksdb_writebatch_wi_clear(other);
    check_walk(iterator, "a=A c=C e=E g=G ", "g=G e=E c=C a=A ");
    rocksdb_iter_destroy(iterator);
    rocksdb_writebatch_wi_destroy(other);
}

static void test_ranges(rocksdb_t* db, rocksdb_column_family_handle_t* family) {
    size_t len;
    rocksdb_iterator_t* iterator;
    rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, 1);
    rocksdb_writebatch_wi_put(batch, LIT("d"), LIT("4"));
    rocksdb_writebatch_wi_delete_range(batch, LIT("b"), LIT("d"));
    rocksdb_writebatch_wi_delete_range(batch, LIT("d"), LIT("f")); /* joins the one before it */
    rocksdb_writebatch_wi_delete_range(batch, LIT("z"), LIT("y")); /* holds nothing */
    rocksdb_writebatch_wi_put(batch, LIT("e"), LIT("5"));
    rocksdb_writebatch_wi_merge(batch, LIT("c"), LIT("3"));
    CHECK(rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, read, LIT("d"), &len, &error) == NULL);
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, read, LIT("c"), &len, &error), len, "3");
    CHECK_GIVEN(rocksdb_writebatch_wi_get_from_batch(batch, options, LIT("c"), &len, &error), len, "3");
    iterator = rocksdb_writebatch_wi_create_iterator_with_base(batch, rocksdb_create_iterator(db, read));
    check_walk(iterator, "a=A c=3 e=5 g=G ", "g=G e=5 c=3 a=A ");
    rocksdb_iter_destroy(iterator);
    rocksdb_writebatch_wi_clear(batch);
    rocksdb_writebatch_wi_delete_range_cf(batch, family, LIT("a"), LIT("d"));
    CHECK(rocksdb_writebatch_wi_get_from_batch_and_db_cf(batch, db, read, family, LIT("c"), &len, &error) == NULL);
    iterator = rocksdb_writebatch_wi_create_iterator_with_base_cf(
        batch, rocksdb_create_iterator_cf(db, read, family), family);
    check_walk(iterator, "e=E g=G ", "g=G e=E ");
    rocksdb_iter_destroy(iterator);
    rocksdb_writebatch_wi_destroy(batch);
}

static void test_written(rocksdb_t* db) {
    size_t len;
    rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, read);
    rocksdb_writebatch_wi_t* batch = changes(NULL);
    rocksdb_write_writebatch_wi(db, write, batch, &error);
    CHECK_OK(error);
    CHECK_GIVEN(rocksdb_get(db, read, LIT("g"), &len, &error), len, "G,7");
    rocksdb_iter_destroy(iterator);
    iterator = rocksdb_create_iterator(db, read);
    check_walk(iterator, "a=A b=2 c=3 g=G,7 h=8 ", "h=8 g=G,7 c=3 b=2 a=A ");
    rocksdb_iter_destroy(iterator);
    rocksdb_writebatch_wi_destroy(batch);
}

/* Keys sort by the family's comparator, or by the one that the batch was made with. */
static void test_other_order(rocksdb_t* db, rocksdb_comparator_t* comparator) {
    rocksdb_options_t* reversed = rocksdb_options_create_copy(options);
    rocksdb_column_family_handle_t* family;
    rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create_with_params(comparator, 0, 0, 0, 0);
    rocksdb_iterator_t* iterator;
    rocksdb_options_set_comparator(reversed, comparator);
    family = rocksdb_create_column_family(db, reversed, "reversed", &error);
    CHECK_OK(error);
    rocksdb_put_cf(db, write, family, LIT("b"), LIT("B"), &error);
    rocksdb_writebatch_wi_put_cf(batch, family, LIT("a"), LIT("1"));
    rocksdb_writebatch_wi_put_cf(batch, family, LIT("c"), LIT("3"));
    iterator = rocksdb_writebatch_wi_create_iterator_with_base_cf(
        batch, rocksdb_create_iterator_cf(db, read, family), family);
    check_walk(iterator, "c=3 b=B a=1 ", "a=1 b=B c=3 ");
    rocksdb_iter_destroy(iterator);
    rocksdb_writebatch_wi_destroy(batch);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_options_destroy(reversed);
}

int main(int argc, char** argv) {
    const char* keys[4] = {"a", "c", "e", "g"};
    const char* values[4] = {"A", "C", "E", "G"};
    int i;
    rocksdb_t* db;
    rocksdb_column_family_handle_t* family;
    rocksdb_options_t* base = rocksdb_options_create();
    rocksdb_comparator_t* comparator = rocksdb_comparator_create(NULL, NULL, backwards, backwards_name);
    if (argc < 2) return 2;
    options = rocksdb_options_create();
    read = rocksdb_readoptions_create();
    write = rocksdb_writeoptions_create();
    rocksdb_get_options_from_string(base, "merge_operator=stringappend", options, &error);
    CHECK_OK(error);
    rocksdb_options_set_create_if_missing(options, 1);
    db = rocksdb_open(options, path_in(argv, "db"), &error);
    CHECK_OK(error);
    family = rocksdb_create_column_family(db, options, "one", &error);
    for (i = 0; i < 4; ++i) {
        rocksdb_put(db, write, keys[i], 1, values[i], 1, &error);
        rocksdb_put_cf(db, write, family, keys[i], 1, values[i], 1, &error);
    }
    CHECK_OK(error);
    test_alone(family);
    test_over_database(db, family);
    test_walks(db, family);
    test_ranges(db, family);
    test_other_order(db, comparator);
    test_written(db);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    rocksdb_comparator_destroy(comparator);
    rocksdb_options_destroy(base);
    rocksdb_options_destroy(options);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    return outcome("indexed");
}
