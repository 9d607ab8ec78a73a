## What nimbus-eth1 does with nim-rocksdb: families with vector memtables, one large batch over all of them, a flush of
## every family, reads by the pinned way, iterators, and a backup. On the binding's low level, `rocksdb/lib/librocksdb`,
## which loads librocksdb.so at run time. Prints `ok NAME` or `FAILED NAME: why`, which scripts/clients.sh counts.

import std/[os, strformat, strutils]
import rocksdb/lib/librocksdb

const names = ["default", "accounts", "storage", "code"]

type
  Family = ptr rocksdb_column_family_handle_t
  Database = object
    db: ptr rocksdb_t
    families: array[names.len, Family]
    options: ptr rocksdb_options_t
    reads: ptr rocksdb_readoptions_t
    writes: ptr rocksdb_writeoptions_t

var failure: cstring

template errptr(): untyped =
  cast[cstringArray](addr failure)

proc check(doing: string) =
  if failure != nil:
    let why = $failure
    rocksdb_free(failure)
    failure = nil
    raise newException(IOError, doing & ": " & why)

proc equal[T](found, expected: T) =
  if found != expected:
    raise newException(ValueError, &"expected {expected}, found {found}")

proc open(path: string): Database =
  result.options = rocksdb_options_create()
  rocksdb_options_set_create_if_missing(result.options, 1)
  rocksdb_options_set_create_missing_column_families(result.options, 1)
  rocksdb_options_set_memtable_vector_rep(result.options)
  rocksdb_options_set_allow_concurrent_memtable_write(result.options, 0)
  result.reads = rocksdb_readoptions_create()
  result.writes = rocksdb_writeoptions_create()
  var
    cnames: array[names.len, cstring]
    options: array[names.len, ptr rocksdb_options_t]
  for i, name in names:
    cnames[i] = name.cstring
    options[i] = result.options
  result.db = rocksdb_open_column_families(
    result.options,
    path.cstring,
    names.len.cint,
    cast[cstringArray](addr cnames),
    addr options[0],
    addr result.families[0],
    errptr(),
  )
  check "open"

proc close(it: Database) =
  for family in it.families:
    rocksdb_column_family_handle_destroy(family)
  rocksdb_close(it.db)
  rocksdb_readoptions_destroy(it.reads)
  rocksdb_writeoptions_destroy(it.writes)
  rocksdb_options_destroy(it.options)

proc key(i: int): string =
  ## Eight bytes, as nimbus-eth1's vertex ids are.
  for shift in countdown(56, 0, 8):
    result.add chr((i shr shift) and 0xff)

proc text(bytes: cstring, len: csize_t): string =
  ## Copied: what the library returns has no zero at its end.
  result = newString(len.int)
  if len > 0:
    copyMem(addr result[0], cast[pointer](bytes), len.int)

proc get(it: Database, family: int, key: string): string =
  ## "-" for a key that is not there.
  let pinned =
    rocksdb_get_pinned_cf(it.db, it.reads, it.families[family], key.cstring, key.len.csize_t, errptr())
  check "get"
  if pinned == nil:
    return "-"
  var len: csize_t
  let bytes = rocksdb_pinnableslice_value(pinned, addr len)
  result = text(bytes, len)
  rocksdb_pinnableslice_destroy(pinned)

proc write(it: Database, first, last: int) =
  ## One batch over all families.
  let batch = rocksdb_writebatch_create()
  for i in first ..< last:
    let (key, value) = (key(i), &"value {i}")
    rocksdb_writebatch_put_cf(
      batch, it.families[i mod names.len], key.cstring, key.len.csize_t, value.cstring, value.len.csize_t
    )
  rocksdb_write(it.db, it.writes, batch, errptr())
  rocksdb_writebatch_destroy(batch)
  check "write"

proc flush(it: Database) =
  let how = rocksdb_flushoptions_create()
  var families = it.families
  when defined(flush_one_by_one): # the library is too old for more
    for family in families:
      rocksdb_flush_cf(it.db, how, family, errptr())
      check "flush"
  else:
    rocksdb_flush_cfs(it.db, how, addr families[0], names.len.cint, errptr())
  rocksdb_flushoptions_destroy(how)
  check "flush"

proc count(it: Database, family: int): int =
  ## Entries of a family, which must be in order.
  let entries = rocksdb_create_iterator_cf(it.db, it.reads, it.families[family])
  rocksdb_iter_seek_to_first(entries)
  var before = ""
  while rocksdb_iter_valid(entries) != 0:
    var len: csize_t
    let bytes = rocksdb_iter_key(entries, addr len)
    let found = text(bytes, len)
    equal(result == 0 or found > before, true)
    before = found
    inc result
    rocksdb_iter_next(entries)
  rocksdb_iter_get_error(entries, errptr())
  rocksdb_iter_destroy(entries)
  check "iterate"

proc checkAll(it: Database, last: int) =
  for i in 0 ..< last:
    equal(it.get(i mod names.len, key(i)), &"value {i}")
  for family in 0 ..< names.len:
    equal(it.count(family), last div names.len)
  equal(it.get(0, key(last)), "-")

proc batchesOverFamiliesAreFlushed(dir: string) =
  let it = open(dir / "db")
  for round in 0 ..< 5:
    it.write(round * 2000, (round + 1) * 2000)
    it.checkAll((round + 1) * 2000)
    it.flush()
    it.checkAll((round + 1) * 2000)
  it.close()

proc whatWasFlushedIsThereAfterReopening(dir: string) =
  block:
    let it = open(dir / "db")
    it.write(0, 2000)
    it.flush()
    it.write(2000, 3000)
    it.close()
  let it = open(dir / "db")
  it.checkAll(3000)
  it.close()

proc backupsComeBack(dir: string) =
  let
    it = open(dir / "db")
    path = dir / "backups"
    engine = rocksdb_backup_engine_open(it.options, path.cstring, errptr())
  check "open the backups"
  it.write(0, 2000)
  rocksdb_backup_engine_create_new_backup(engine, it.db, errptr())
  check "back up"
  it.write(2000, 3000)
  it.close()
  let
    how = rocksdb_restore_options_create()
    target = dir / "db"
  rocksdb_backup_engine_restore_db_from_latest_backup(engine, target.cstring, target.cstring, how, errptr())
  check "restore"
  rocksdb_restore_options_destroy(how)
  rocksdb_backup_engine_close(engine)
  let again = open(target)
  again.checkAll(2000)
  again.close()

var failed = 0

proc run(name: string, check: proc(dir: string)) =
  let dir = getTempDir() / &"client-nim-{getCurrentProcessId()}-{name}"
  createDir(dir)
  try:
    check(dir)
    echo "ok ", name
  except CatchableError as error:
    inc failed
    echo "FAILED ", name, ": ", error.msg.splitWhitespace.join(" ")
  removeDir(dir)

run("batches_over_families_are_flushed", batchesOverFamiliesAreFlushed)
run("what_was_flushed_is_there_after_reopening", whatWasFlushedIsThereAfterReopening)
run("backups_come_back", backupsComeBack)
quit(if failed == 0: 0 else: 1)
