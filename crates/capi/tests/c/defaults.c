/* Prints the default of every option that a library has a getter for, one a line: the library is the first argument. */

#include <dlfcn.h>

#include "check.h"

/* The functions are looked up by name: they are those of that library, not of the one that this is linked with. */
static void* library;

static void* find(const char* prefix, const char* verb, const char* name) {
    char symbol[256];
    snprintf(symbol, sizeof symbol, "%s%s%s", prefix, verb, name);
    return dlsym(library, symbol);
}

static void* create(const char* prefix) {
    void* (*make)(void);
    *(void**)&make = find(prefix, "create", "");
    return make == NULL ? NULL : make();
}

int main(int argc, char** argv) {
    void *options, *table, *universal, *fifo, *flush, *compact, *compaction, *wait, *write, *read, *ingest;
    void *cuckoo, *import, *transactiondb, *transaction, *optimistic, *optimistic_db, *flush_wal;
    if (argc < 2 || (library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) == NULL) return 2;
    options = create("rocksdb_options_");
    table = create("rocksdb_block_based_options_");
    universal = create("rocksdb_universal_compaction_options_");
    fifo = create("rocksdb_fifo_compaction_options_");
    flush = create("rocksdb_flushoptions_");
    compact = create("rocksdb_compactoptions_");
    compaction = create("rocksdb_compaction_options_");
    wait = create("rocksdb_wait_for_compact_options_");
    write = create("rocksdb_writeoptions_");
    read = create("rocksdb_readoptions_");
    ingest = create("rocksdb_ingestexternalfileoptions_");
    cuckoo = create("rocksdb_cuckoo_options_");
    import = create("rocksdb_import_column_family_options_");
    transactiondb = create("rocksdb_transactiondb_options_");
    transaction = create("rocksdb_transaction_options_");
    optimistic = create("rocksdb_optimistictransaction_options_");
    optimistic_db = create("rocksdb_optimistictransactiondb_options_");
    flush_wal = create("rocksdb_flushwaloptions_");
#define ROW(handle, prefix, name, set_type, get_type, sample)                           \
    {                                                                                   \
        get_type (*get)(void*);                                                         \
        *(void**)&get = handle == NULL ? NULL : find(#prefix, "get_", #name);           \
        if (get != NULL) printf(#prefix #name " %.17g\n", (double)get(handle));         \
    }
#include "rows.inc"
#undef ROW
    return 0;
}
