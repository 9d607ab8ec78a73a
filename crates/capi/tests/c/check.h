/* What the programs share: checks that say where they failed, and a few handles that most of them need. */

#ifndef SPILLWAY_CAPI_TESTS_CHECK_H_
#define SPILLWAY_CAPI_TESTS_CHECK_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static int failures;

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);       \
            ++failures;                                                                   \
        }                                                                                 \
    } while (0)

/* No error was reported. */
#define CHECK_OK(error)                                                                   \
    do {                                                                                  \
        if ((error) != NULL) {                                                            \
            fprintf(stderr, "%s:%d: an error: %s\n", __FILE__, __LINE__, (error));        \
            ++failures;                                                                   \
            rocksdb_free(error);                                                          \
            (error) = NULL;                                                               \
        }                                                                                 \
    } while (0)

/* An error whose text begins like that was reported. */
#define CHECK_ERROR(error, beginning)                                                     \
    do {                                                                                  \
        if ((error) == NULL || strncmp((error), (beginning), strlen(beginning)) != 0) {   \
            fprintf(stderr, "%s:%d: not \"%s\": %s\n", __FILE__, __LINE__, (beginning),   \
                    (error) == NULL ? "no error" : (error));                              \
            ++failures;                                                                   \
        }                                                                                 \
        rocksdb_free(error);                                                              \
        (error) = NULL;                                                                   \
    } while (0)

/* Bytes are those of a literal. */
#define CHECK_BYTES(bytes, len, literal)                                                  \
    CHECK((bytes) != NULL && (len) == strlen(literal) && memcmp((bytes), (literal), (len)) == 0)

#define LIT(literal) (literal), strlen(literal)

/* The same of a result that is ours. */
static inline void check_given(char* bytes, size_t len, const char* literal, int line) {
    if (bytes == NULL || len != strlen(literal) || memcmp(bytes, literal, len) != 0) {
        fprintf(stderr, "line %d: not \"%s\"\n", line, literal);
        ++failures;
    }
    rocksdb_free(bytes);
}
#define CHECK_GIVEN(bytes, len, literal)                                                  \
    do {                                                                                  \
        char* given = (bytes); /* before the length is looked at: the call may set it */  \
        check_given(given, (len), (literal), __LINE__);                                   \
    } while (0)

/* A path in the folder that the program was given. */
static inline const char* path_in(char** argv, const char* name) {
    static char paths[8][512];
    static int next;
    char* path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", argv[1], name);
    return path;
}

static inline int outcome(const char* program) {
    if (failures == 0) printf("ok %s\n", program);
    return failures == 0 ? 0 : 1;
}

#endif
