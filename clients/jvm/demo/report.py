#!/usr/bin/env python3
"""A table of what counts.py measured: report.py RESULT. Medians of the runs."""

import json
import statistics
import sys

COLUMNS = {
    "rows_per_s": "rows/s",
    "batch_ms": "batch, ms",
    "update_ms": "updates of state, ms (all partitions)",
    "commit_ms": "commit of state, ms (all partitions)",
}

runs = {}
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in lines:
        run = json.loads(line)
        runs.setdefault(run["library"], []).append(run)
print("| library | runs | " + " | ".join(COLUMNS.values()) + " |")
print("|---" * (len(COLUMNS) + 2) + "|")
for library, rows in sorted(runs.items()):
    medians = (f"{statistics.median(row[column] for row in rows):.0f}" for column in COLUMNS)
    print(f"| {library} | {len(rows)} | " + " | ".join(medians) + " |")
