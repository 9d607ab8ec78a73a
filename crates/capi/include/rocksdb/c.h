/* RocksDB's C API, as librocksdb.so of Spillway has it.

   Names, types and behaviour are those of RocksDB 11.

   Handles. Whatever a function named create, open or get returns as a pointer to a rocksdb_..._t is the caller's, and is
   given back to the function named destroy, close or release; options take over what the comments say. A database
   can be closed while iterators and snapshots live: they go on showing what they saw. NULL in place of a handle ends the
   process with a message, but where a comment allows it, and in functions that destroy.

   Bytes. A pointer comes with a length and may be NULL where that is 0. Results of type char* are the caller's, to be given
   to free() or rocksdb_free(); results of type const char* are the handle's, and stay until it is changed.

   Errors. The last parameter char** errptr leads to NULL or to a message in memory of malloc(). On an error the message is
   freed and replaced; otherwise it stays. Messages begin with RocksDB's status ("Invalid argument: ", "Corruption: ",
   "IO error: ", "Not implemented: ", "Resource busy: ", "Result incomplete: ", "Shutdown in progress: ", "NotFound: ",
   "Operation aborted: ", "Merge in progress: ").

   What Spillway has not (c/absent.h): functions with an errptr report "Not implemented: ". Those without take handles that
   only such functions would have made, end the process with a message, and do nothing with NULL where they destroy.

   Threads. A database, its families, snapshots and caches may be used by any threads at once. Iterators, batches and options
   may be used by one thread at a time. Functions of the caller (comparators, merge operators, compaction filters, prefixes)
   are called by any thread, by several at once.

   Options that RocksDB honours and Spillway does not are kept, so that a getter returns what was set, and logged once.
   Spillway's own options are set by their names: rocksdb_get_options_from_string, rocksdb_set_options. */

#ifndef STORAGE_ROCKSDB_INCLUDE_C_H_
#define STORAGE_ROCKSDB_INCLUDE_C_H_

#include "c/database.h"
#include "c/batch.h"
#include "c/options.h"
#include "c/settings.h"
#include "c/extend.h"
#include "c/files.h"
#include "c/transactions.h"
#include "c/absent.h"

#endif
