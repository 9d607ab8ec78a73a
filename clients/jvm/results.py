#!/usr/bin/env python3
"""What JVM suites said, on RocksDB's library and on ours.

    results.py compare RESULTS stock|ours SUITE    prints each difference from not-here-SUITE.txt; ends with 1 where there is one
    results.py passed RESULTS stock|ours SUITE     prints the file without tests that did not pass
    results.py why RESULTS stock|ours SUITE        counts the tests that did not pass, by message
    results.py warnings LOG                        prints those of -Xcheck:jni with one of org.rocksdb's natives at the top
    results.py table RESULTS [DOCUMENT]            prints the table of both; puts it into DOCUMENT, between its markers

RESULTS has stock/SUITE.tsv and ours/SUITE.tsv: class, test, result, message. The last line of a test counts. One without an
end has crashed.
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BEGIN, END = "<!-- jvm -->", "<!-- end of jvm -->"
SUITES = {
    "rocksdbjni": "rocksdbjni 9.8.4's own",
    "rocksdbjni-10": "the same under rocksdbjni 10.1.3",
    "rocksdbjni-11": "the same under rocksdbjni 11.8.1",
    "kafka": "Kafka Streams 4.1.2, its RocksDB stores",
    "spark-rocksdb": "Spark 4.2.0, RocksDBSuite",
    "spark-store": "Spark 4.2.0, state store suites",
    "spark-more": "Spark 4.2.0, streaming jobs and other suites",
    "jraft": "JRaft 1.4.0's stores, with RheaKV",
    "flink": "Flink 2.3.0, RocksDB state backend",
}


def read(path):
    """Of each test, result and message."""
    tests = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                name, test, result, message = (line.rstrip("\n").split("\t", 3) + [""] * 3)[:4]
                if result == "started":
                    result, message = "crash", "the JVM ended in it"
                tests[f"{name}::{test}"] = (result, message)
    return tests


def listed(suite, library):
    """Tests expected to fail on `library`, each with its reason: `root`, where root runs them; `both`; `stock`; `ours`."""
    applies = {"both", library} | ({"root"} if os.geteuid() == 0 else set())
    # Under a newer jar the tests are rocksdbjni's.
    expected = listed("rocksdbjni", library) if suite.startswith("rocksdbjni-") else {}
    path = os.path.join(HERE, f"not-here-{suite}.txt")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if line.strip() and not line.startswith("#"):
                    where, rest = line.strip().split(" ", 1)
                    test, reason = rest.split("  ", 1)
                    if where in applies:
                        expected[test] = reason.strip()
    return expected


def compare(results, library, suite):
    tests = read(os.path.join(results, library, suite + ".tsv"))
    stock = read(os.path.join(results, "stock", suite + ".tsv"))
    expected = listed(suite, library)
    if suite == "quick":
        # Two classes of rocksdbjni's: what that suite's list has of them.
        expected = {test: reason for test, reason in listed("rocksdbjni", library).items() if test in tests}
    wrong = []
    for test, (result, message) in sorted(tests.items()):
        if result in ("fail", "crash", "hang") and test not in expected:
            wrong.append(f"{test}: {result}, {message}")
        elif result == "pass" and test in expected:
            wrong.append(f"{test}: it passes, and is listed in clients/jvm/not-here-*.txt")
        elif result == "skip" and library == "ours" and stock.get(test, ("",))[0] == "pass":
            wrong.append(f"{test}: skipped, {message}")
    for test in sorted(expected.keys() - tests.keys()):
        wrong.append(f"{test}: listed in clients/jvm/not-here-{suite}.txt, and did not run")
    if library == "ours":
        for test in sorted(stock.keys() - tests.keys() - expected.keys()):
            wrong.append(f"{test}: it runs on RocksDB's library, and did not run here")
    if not tests:
        wrong.append(f"{suite}: no test ran")
    passed = sum(result == "pass" for result, _ in tests.values())
    print(f"{suite} on {library}: {passed} of {len(tests)} pass, {len(expected)} are listed, {len(wrong)} wrong")
    for line in wrong:
        print(f"FAILED {line[:400]}")
    return 1 if wrong else 0


def passed(results, library, suite):
    for test, (result, message) in read(os.path.join(results, library, suite + ".tsv")).items():
        if result in ("pass", "skip"):
            print(test.replace("::", "\t", 1), result, message, sep="\t")
    return 0


def why(results, library, suite):
    counts = {}
    for result, message in read(os.path.join(results, library, suite + ".tsv")).values():
        if result not in ("pass", "skip"):
            counts[f"{result}, {message}"] = counts.get(f"{result}, {message}", 0) + 1
    for message, count in sorted(counts.items(), key=lambda item: -item[1]):
        print(count, message[:200])
    return 0


def warnings(log):
    """A warning, and the first frame of Java behind it: the native method it was in."""
    found, warning = {}, None
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in [*lines, ""]:
            if warning:
                # Threads that only native code made have no frame: ours.
                frame = line.strip() if line.startswith("\tat ") else "at org.rocksdb.(no frame)"
                found[(warning, frame)] = found.get((warning, frame), 0) + 1
                warning = None
            if re.search(r"^(WARNING|FATAL ERROR).*(native method|JNI|local refs)", line):
                warning = line.strip()
    ours = {key: count for key, count in found.items() if key[1].startswith("at org.rocksdb.")}
    print(f"-Xcheck:jni: {sum(found.values())} warnings, {sum(ours.values())} in org.rocksdb's natives")
    for (warning, frame), count in sorted(ours.items()):
        print(f"FAILED {warning} {frame} ({count} times)")
    return 1 if ours else 0


def cell(results, library, suite):
    tests = read(os.path.join(results, library, suite + ".tsv"))
    if not tests:
        return None
    count = {kind: sum(result == kind for result, _ in tests.values()) for kind in ("pass", "crash", "hang", "skip")}
    text = f"{count['pass']} of {len(tests)}"
    return text + "".join(f", {count[kind]} {kind}" for kind in ("crash", "hang", "skip") if count[kind])


def table(results, document):
    text = open(document, encoding="utf-8").read() if document else ""
    recorded = dict(re.findall(r"^\| ([^|]+?) \| (.*) \|$", text.partition(BEGIN)[2].partition(END)[0], re.M))
    rows = ["| suite | RocksDB's library passes | ours passes | listed with a reason |", "|---|---|---|---|"]
    for suite, title in SUITES.items():
        old = (recorded.get(title, "- | - | -").split(" | ") + ["-"] * 3)[:3]
        stock = cell(results, "stock", suite) or old[0]
        ours = cell(results, "ours", suite) or old[1]
        if (stock, ours) != ("-", "-"):
            rows.append(f"| {title} | {stock} | {ours} | {len(listed(suite, 'ours'))} |")
    print("\n".join(rows))
    if document:
        if BEGIN not in text:
            sys.exit(f"{document} has no line {BEGIN}")
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        with open(document, "w", encoding="utf-8") as out:
            out.write(before + BEGIN + "\n" + "\n".join(rows) + "\n" + END + after)
    return 0


if __name__ == "__main__":
    command, *arguments = sys.argv[1:] or [""]
    if command == "compare" and len(arguments) == 3:
        sys.exit(compare(*arguments))
    if command == "passed" and len(arguments) == 3:
        sys.exit(passed(*arguments))
    if command == "why" and len(arguments) == 3:
        sys.exit(why(*arguments))
    if command == "warnings" and len(arguments) == 1:
        sys.exit(warnings(*arguments))
    if command == "table" and len(arguments) in (1, 2):
        sys.exit(table(arguments[0], arguments[1] if len(arguments) == 2 else None))
    sys.exit(__doc__)
