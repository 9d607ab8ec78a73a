#!/usr/bin/env python3
"""A stateful stream of PySpark's on two executors, one of which is killed half of the way: counts.py FOLDER RESULT [LIBRARY].

LIBRARY is a librocksdbjni.so to take in place of the one in Spark's jar. Prints a line for each check, and appends what it
measured to the file RESULT, as a line of JSON. Ends with 1 where a check failed.
"""

import json
import os
import signal
import statistics
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

ROWS_PER_BATCH = 100_000
KEYS = 20_000
BATCHES = int(os.environ.get("BATCHES", "16"))

failures = []


def check(holds, name, why):
    print(f"ok {name}" if holds else f"FAILED {name}: {why}", flush=True)
    if not holds:
        failures.append(name)


def session(folder, library):
    builder = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "localhost")
        .config("spark.local.dir", folder + "/local")
        .config("spark.task.maxFailures", "100")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
    )
    if library:
        # All that the drop-in takes: its folder in front.
        for process in ("driver", "executor"):
            builder = builder.config(f"spark.{process}.extraLibraryPath", os.path.dirname(library))
    return builder.getOrCreate()


def executors():
    """Process ids below this one."""
    parents, found = {}, []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/cmdline") as command:
                parents[int(pid)] = int(stat.read().rsplit(")", 1)[1].split()[1])
                if "CoarseGrainedExecutorBackend" in command.read():
                    found.append(int(pid))
        except OSError:
            pass  # it has ended

    def is_ours(pid):
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return sorted(pid for pid in found if is_ours(pid))


def loaded(pid):
    with open(f"/proc/{pid}/maps") as maps:
        return {line[line.index("/"):].strip() for line in maps if "rocksdbjni" in line and "/" in line}


def batch(query):
    progress = query.lastProgress
    return -1 if progress is None else progress["batchId"]


def await_batch(query, number):
    until = time.monotonic() + 300
    while batch(query) < number:
        if query.exception() or time.monotonic() > until:
            sys.exit(f"batch {batch(query)} in place of {number}: {query.exception()}")
        time.sleep(0.05)


def main(folder, result, library=None):
    spark = session(folder, library)
    spark.sparkContext.setLogLevel("ERROR")
    query = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", ROWS_PER_BATCH)
        .option("numPartitions", 2)
        .load()
        .groupBy((F.col("value") % KEYS).alias("key"))
        .agg(F.count("*").alias("numbers"), F.sum("value").alias("sum"))
        .writeStream.format("memory")
        .queryName("counts")
        .outputMode("complete")
        .option("checkpointLocation", folder + "/checkpoint")
        .start()
    )
    await_batch(query, BATCHES // 2)
    before = executors()
    os.kill(before[0], signal.SIGKILL)
    print(f"killed executor {before[0]} of {before} behind batch {batch(query)}", flush=True)
    await_batch(query, BATCHES)
    libraries = set().union(*(loaded(pid) for pid in executors()))
    query.stop()

    rows = spark.table("counts").collect()
    total = sum(row["numbers"] for row in rows)
    wrong = 0
    for row in rows:
        numbers = (total - row["key"] + KEYS - 1) // KEYS
        expected = numbers * row["key"] + KEYS * (numbers * (numbers - 1) // 2)
        wrong += row["numbers"] != numbers or row["sum"] != expected
    check(len(rows) == KEYS, "every_key_is_there", f"{len(rows)} of {KEYS}")
    check(total > 0 and total % ROWS_PER_BATCH == 0, "whole_batches", f"{total} rows")
    check(wrong == 0, "counts_and_sums_are_exact", f"{wrong} keys are wrong")
    check(len(executors()) == 2 and executors() != before, "another_executor_took_over", f"{executors()}")
    check(not library or libraries == {os.path.realpath(library)}, "the_library_is_the_right_one", f"{libraries}")

    # Batches undisturbed by the start and by the kill.
    steady = [p for p in query.recentProgress if p["batchId"] not in (0, 1, *range(BATCHES // 2, BATCHES // 2 + 3))]
    median = lambda values: statistics.median(list(values) or [0])
    with open(result, "a", encoding="utf-8") as out:
        measured = {
            "library": "ours" if library else "stock",
            "rows_per_s": median(p["processedRowsPerSecond"] for p in steady),
            "batch_ms": median(p["durationMs"]["triggerExecution"] for p in steady),
            "commit_ms": median(p["stateOperators"][0]["commitTimeMs"] for p in steady),
            "update_ms": median(p["stateOperators"][0]["allUpdatesTimeMs"] for p in steady),
        }
        out.write(json.dumps(measured) + "\n")
    spark.stop()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
