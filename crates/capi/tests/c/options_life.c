/* The options file says what is in force whenever it is read: after families came and went, and options changed. */

#include "check.h"

static char* error;
static rocksdb_env_t* env;
static const char* dir;

/* What the newest file has of one family, or -1 where it has no such family. */
static long long write_buffer_size_of(const char* name, size_t families) {
    rocksdb_options_t *loaded, **of;
    char** names;
    size_t count, i;
    long long bytes = -1;
    rocksdb_load_latest_options(dir, env, 0, NULL, &loaded, &count, &names, &of, &error);
    CHECK_OK(error);
    CHECK(count == families);
    for (i = 0; i < count; ++i) {
        if (strcmp(names[i], name) == 0) bytes = (long long)rocksdb_options_get_write_buffer_size(of[i]);
    }
    rocksdb_load_latest_options_destroy(loaded, names, of, count);
    return bytes;
}

/* Opens by nothing but what the file says, as programs do that keep no list of their families. */
static void test_open_by_the_file(const char* name) {
    rocksdb_options_t *loaded, **of;
    char** names;
    size_t count, i, len;
    rocksdb_column_family_handle_t* families[4] = {NULL};
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_t* db;
    rocksdb_load_latest_options(dir, env, 0, NULL, &loaded, &count, &names, &of, &error);
    CHECK_OK(error);
    CHECK(count == 2);
    db = rocksdb_open_column_families(loaded, dir, (int)count, (const char* const*)names,
                                      (const rocksdb_options_t* const*)of, families, &error);
    CHECK_OK(error);
    for (i = 0; db != NULL && i < count; ++i) {
        if (strcmp(names[i], name) == 0) {
            CHECK_GIVEN(rocksdb_get_cf(db, read, families[i], LIT("k"), &len, &error), len, "v");
        }
        rocksdb_column_family_handle_destroy(families[i]);
    }
    rocksdb_close(db);
    rocksdb_load_latest_options_destroy(loaded, names, of, count);
    rocksdb_readoptions_destroy(read);
}

int main(int argc, char** argv) {
    const char* changed[1] = {"write_buffer_size"};
    const char* to[1] = {"3145728"};
    rocksdb_options_t *options = rocksdb_options_create(), *own = rocksdb_options_create();
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_column_family_handle_t *first, *second;
    rocksdb_t* db;
    if (argc < 2) return 2;
    env = rocksdb_create_default_env();
    dir = path_in(argv, "db");
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(own, 2 << 20);
    db = rocksdb_open(options, dir, &error);
    CHECK_OK(error);
    CHECK(write_buffer_size_of("first", 1) == -1);
    first = rocksdb_create_column_family(db, own, "first", &error);
    CHECK_OK(error);
    CHECK(write_buffer_size_of("first", 2) == 2 << 20);
    second = rocksdb_create_column_family(db, own, "second", &error);
    CHECK_OK(error);
    CHECK(write_buffer_size_of("second", 3) == 2 << 20);
    rocksdb_set_options_cf(db, first, 1, changed, to, &error);
    CHECK_OK(error);
    CHECK(write_buffer_size_of("first", 3) == 3 << 20 && write_buffer_size_of("second", 3) == 2 << 20);
    rocksdb_drop_column_family(db, second, &error);
    CHECK_OK(error);
    CHECK(write_buffer_size_of("second", 2) == -1);
    rocksdb_put_cf(db, write, first, LIT("k"), LIT("v"), &error);
    CHECK_OK(error);
    rocksdb_column_family_handle_destroy(first);
    rocksdb_column_family_handle_destroy(second);
    rocksdb_close(db);
    test_open_by_the_file("first");
    rocksdb_env_destroy(env);
    rocksdb_writeoptions_destroy(write);
    rocksdb_options_destroy(own);
    rocksdb_options_destroy(options);
    return outcome("options_life");
}
