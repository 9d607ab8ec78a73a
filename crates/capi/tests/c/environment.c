/* A program that says little of its own: what else counts comes from the environment of its process. */

#include "check.h"

static int compare_backwards(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
    size_t len = a_len < b_len ? a_len : b_len;
    int order = memcmp(a, b, len);
    (void)state;
    return order != 0 ? -order : (a_len < b_len) - (a_len > b_len);
}

static void nothing(void* state) { (void)state; }

static const char* backwards(void* state) {
    (void)state;
    return "backwards";
}

/* Opens twice: a mistake in the environment is told each time. */
int main(int argc, char** argv) {
    char* error = NULL;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_comparator_t* order = rocksdb_comparator_create(NULL, nothing, compare_backwards, backwards);
    (void)argc;
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, 32 << 20);
    for (int i = 0; i < 2; ++i) {
        rocksdb_t* db = rocksdb_open(options, path_in(argv, "store"), &error);
        if (error != NULL) {
            printf("%s\n", error);
            rocksdb_free(error);
            error = NULL;
            continue;
        }
        if (i == 0) {
            rocksdb_options_set_comparator(options, order);
            rocksdb_column_family_handle_t* family = rocksdb_create_column_family(db, options, "later", &error);
            CHECK_OK(error);
            rocksdb_drop_column_family(db, family, &error);
            CHECK_OK(error);
            rocksdb_column_family_handle_destroy(family);
            rocksdb_options_set_comparator(options, NULL);
        }
        rocksdb_close(db);
        printf("opened\n");
    }
    /* The program's own options are as they were. */
    CHECK(rocksdb_options_get_write_buffer_size(options) == 32 << 20);
    rocksdb_options_destroy(options);
    rocksdb_comparator_destroy(order);
    return outcome("environment");
}
