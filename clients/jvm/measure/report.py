#!/usr/bin/env python3
"""Tables of measured runs: report.py FOLDER, with PROGRAM.jsonl. Medians of the rounds, and each contender's ratio to ours."""

import glob
import json
import os
import statistics
import sys

# Figure, its name in the table, and which is better. Others are in the files.
FIGURES = [
    ("records_per_s", "records a second", "more"),
    ("rows_per_s", "rows a second", "more"),
    ("load_rows_per_s", "rows a second, load", "more"),
    ("batch_ms", "batch, ms", "less"),
    ("update_ms", "updates of state, ms", "less"),
    ("commit_ms", "commit of state, ms", "less"),
    ("load_batch_ms", "load, ms", "less"),
    ("load_commit_ms", "commit of the load, ms", "less"),
    ("read_back_ms", "state read from the checkpoint, ms", "less"),
    ("p50_us", "a record, p50, us", "less"),
    ("p99_us", "a record, p99, us", "less"),
    ("p999_us", "a record, p999, us", "less"),
    ("max_ms", "a record, longest, ms", "less"),
    ("scan_ms", "scan of all stores, ms", "less"),
    ("open_ms", "open of all stores, ms", "less"),
    ("checkpoint_ms", "checkpoint, median, ms", "less"),
    ("checkpoint_max_ms", "checkpoint, longest, ms", "less"),
    ("resident_max_mib", "resident memory, highest, MiB", "less"),
    ("resident_mib", "resident memory at the end, MiB", "less"),
    ("disk_mib", "disk, MiB", "less"),
    ("threads", "threads", "less"),
]


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}".removesuffix(".0")


def cell(values, ours):
    median = statistics.median(values)
    text = number(median)
    if len(values) > 1:
        text += f" ({number(min(values))} to {number(max(values))})"
    if ours and statistics.median(ours):
        text += f", {median / statistics.median(ours):.2f} x"
    return text


def table(title, runs):
    order = lambda name: (name != "ours", [int(part) for part in name.split(".") if part.isdigit()])
    contenders = sorted({run["contender"] for run in runs}, key=order)
    rounds = {name: [run for run in runs if run["contender"] == name] for name in contenders}
    print(f"\n{title}; rounds: {', '.join(str(len(rounds[name])) for name in contenders)}\n")
    print("| median (least to most) | better | " + " | ".join(contenders) + " |")
    print("|---" * (len(contenders) + 2) + "|")
    for figure, name, better in FIGURES:
        if not all(figure in run for run in runs):
            continue
        values = {contender: [run[figure] for run in rounds[contender]] for contender in contenders}
        cells = [cell(values[one], None if one == "ours" else values.get("ours")) for one in contenders]
        print(f"| {name} | {better} | " + " | ".join(cells) + " |")


for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.jsonl"))):
    program = os.path.basename(path).removesuffix(".jsonl")
    groups = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            run = json.loads(line)
            groups.setdefault((run.get("keys", 0), run["variant"]), []).append(run)
    for (keys, variant), runs in sorted(groups.items()):
        table(f"{program}, {variant}" + (f", {keys:,} keys" if keys else ""), runs)
