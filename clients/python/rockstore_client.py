"""The package rockstore, as it comes from PyPI: it loads the library librocksdb.so and calls it through cffi."""

import os

from checks import check, equal, fails, run
from rockstore import RockStore, open_database

PAIRS = {b"key%03d" % i: b"value %d" % i for i in range(300)}


def filled(directory, **options):
    store = RockStore(os.path.join(directory, "db"), options=options)
    for key, value in PAIRS.items():
        store.put(key, value)
    return store


@check
def puts_are_got(directory):
    with filled(directory) as store:
        for key, value in PAIRS.items():
            equal(store.get(key), value)
        equal(store.get(b"no such key"), None)
        equal(store.get(b"key007", fill_cache=False), b"value 7")


@check
def binary_and_empty_values_come_back(directory):
    with filled(directory) as store:
        for key, value in [(b"\x00\xff\x00", b"\x00" * 100), (b"empty", b""), (b"", b"of the empty key")]:
            store.put(key, value, sync=True)
            equal(store.get(key), value)


@check
def deletes_hide(directory):
    with filled(directory) as store:
        store.delete(b"key100")
        store.delete(b"key101", sync=True)
        store.delete(b"never there")
        equal([store.get(b"key%d" % i) for i in (100, 101, 102)], [None, None, b"value 102"])


@check
def iterators_go_in_order(directory):
    with filled(directory) as store:
        equal(list(store.get_all().items()), sorted(PAIRS.items()))
        found = store.get_range(start_key=b"key050", end_key=b"key060")
        equal(list(found), [b"key%03d" % i for i in range(50, 61)])
        equal(list(store.get_range(start_key=b"key2", limit=3, fill_cache=False)), [b"key200", b"key201", b"key202"])
        equal(sum(1 for _ in store.iterate_range(start_key=b"key299")), 1)


@check
def an_iterator_that_is_left_in_the_middle_does_no_harm(directory):
    with filled(directory) as store:
        entries = store.iterate_range()
        equal(next(entries), (b"key000", b"value 0"))
        store.put(b"key000", b"new")
        equal(next(entries), (b"key001", b"value 1"))
        del entries
        equal(store.get(b"key000"), b"new")


@check
def batches_are_written_and_deleted(directory):
    with filled(directory) as store:
        store.write_batch([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")], sync=True)
        equal([store.get(b"a"), store.get(b"b")], [b"3", b"2"])
        store.delete_batch([b"a", b"b", b"c"])
        equal([store.get(b"a"), store.get(b"b")], [None, None])


@check
def what_was_written_is_there_after_reopening(directory):
    filled(directory).close()
    with open_database(os.path.join(directory, "db")) as store:
        equal(store.get_all(), PAIRS)


@check
def reading_only_refuses_writes(directory):
    filled(directory).close()
    with open_database(os.path.join(directory, "db"), options={"read_only": True}) as store:
        equal(store.get(b"key010"), b"value 10")
        fails(OSError, lambda: store.put(b"key010", b"other"))


@check
def every_compression_is_taken(directory):
    for name in ("no", "snappy", "zlib", "lz4", "lz4hc", "zstd"):
        path = os.path.join(directory, name)
        options = {"compression_type": f"{name}_compression", "write_buffer_size": 1 << 16, "max_open_files": -1}
        with open_database(path, options=options) as store:
            store.write_batch([(b"%06d" % i, b"value " * 20) for i in range(5000)])
        with open_database(path, options=options) as store:
            equal(len(store.get_all()), 5000)


@check
def errors_say_what_is_wrong(directory):
    absent = os.path.join(directory, "absent")
    said = fails(RuntimeError, lambda: RockStore(absent, options={"create_if_missing": False}))
    equal((absent in said, "create_if_missing" in said), (True, True))
    with filled(directory) as store:
        said = fails(RuntimeError, lambda: RockStore(store.path.decode()))
        equal("lock" in said.lower(), True)


run()
