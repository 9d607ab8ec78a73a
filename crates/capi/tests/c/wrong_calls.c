/* Makes wrong calls, one by one, and prints each call's name and what the library answers: the error, "ok", or the value.
   scripts/wrong-calls.sh links it with RocksDB's library, and the test with ours. */

#define _GNU_SOURCE
#include <ctype.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static char* error;
static const char* root;
static rocksdb_readoptions_t* read_options;
static rocksdb_writeoptions_t* write_options;
static rocksdb_flushoptions_t* flush_options;

static bool is_of_a_number(char c) { return isdigit((unsigned char)c) || isupper((unsigned char)c); }

/* Prints a text on one line. What differs from run to run is named: DIR is the folder of the program, N a number or an id. */
static void print_text(const char* text) {
    const char* end;
    while (*text != 0) {
        bool digits = false;
        for (end = text; is_of_a_number(*end); ++end) digits = digits || isdigit((unsigned char)*end);
        if (strncmp(text, root, strlen(root)) == 0) {
            fputs("DIR", stdout);
            text += strlen(root);
        } else if (end > text) {
            if (digits) {
                putchar('N');
            } else {
                fwrite(text, 1, end - text, stdout);
            }
            text = end;
        } else {
            fputs(*text == '\n' ? "\\n" : *text == '\t' ? "\\t" : (char[2]){*text, 0}, stdout);
            ++text;
        }
    }
}

static void answer(const char* name, const char* text) {
    printf("%s\t%s\n", name, text);
    fflush(stdout);
}

static void tell_error(const char* name) {
    printf("%s\t", name);
    print_text(error == NULL ? "ok" : error);
    putchar('\n');
    fflush(stdout);
    rocksdb_free(error);
    error = NULL;
}

/* Makes a call, and prints its error. */
#define CALL(name, ...)   \
    do {                  \
        __VA_ARGS__;      \
        tell_error(name); \
    } while (0)

/* A path in the folder; one of the last sixteen. */
static const char* at(const char* name) {
    static char paths[16][512];
    static int next;
    char* path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

/* Ends the program where what a wrong call needs could not be made. */
static void must(const char* what) {
    if (error == NULL) return;
    fprintf(stderr, "%s: %s\n", what, error);
    exit(1);
}

static void write_file(const char* path, const char* text) {
    FILE* file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

/* Options of a string, which must be right, over those that make a database. */
static rocksdb_options_t* options_of(const char* text) {
    rocksdb_options_t *base = rocksdb_options_create(), *made = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(base, 1);
    rocksdb_get_options_from_string(base, text, made, &error);
    must(text);
    rocksdb_options_destroy(base);
    return made;
}

static rocksdb_t* open_plain(const char* name) {
    rocksdb_options_t* options = options_of("");
    rocksdb_t* db = rocksdb_open(options, at(name), &error);
    must(name);
    rocksdb_options_destroy(options);
    return db;
}

static void put(rocksdb_t* db, const char* key, const char* value) {
    rocksdb_put(db, write_options, LIT(key), LIT(value), &error);
    must("put");
}

static void flush(rocksdb_t* db) {
    rocksdb_flush(db, flush_options, &error);
    must("flush");
}

/* A closed database with one key in one table. */
static void make_database(const char* name) {
    rocksdb_t* db = open_plain(name);
    put(db, "a", "1");
    flush(db);
    rocksdb_close(db);
}

static rocksdb_column_family_handle_t* make_family(rocksdb_t* db, const char* name) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_column_family_handle_t* family = rocksdb_create_column_family(db, options, name, &error);
    must(name);
    rocksdb_options_destroy(options);
    return family;
}

static int by_bytes(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    (void)state;
    return order != 0 ? order : (int)a_len - (int)b_len;
}

static const char* name_of(void* state) { return (const char*)state; }

static void nothing(void* state) { (void)state; }

static rocksdb_options_t* ordered_by(const char* name) {
    rocksdb_options_t* options = options_of("");
    rocksdb_options_set_comparator(options, rocksdb_comparator_create((void*)name, nothing, by_bytes, name_of));
    return options;
}

#include "wrong/opening.inc"
#include "wrong/families.inc"
#include "wrong/options.inc"
#include "wrong/reading.inc"
#include "wrong/files.inc"
#include "wrong/copies.inc"
#include "wrong/transactions.inc"

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    root = argv[1];
    read_options = rocksdb_readoptions_create();
    write_options = rocksdb_writeoptions_create();
    flush_options = rocksdb_flushoptions_create();
    opening();
    families();
    options();
    reading();
    files();
    copies();
    transactions();
    return 0;
}
