#!/usr/bin/env python3
"""A table of JMH's results: report.py FOLDER, which has CONTENDER-ROUND.json. Medians of the rounds, and each ratio to ours."""

import glob
import json
import os
import re
import statistics
import sys

CONTENDERS = ["ours", "9.8.4", "10.1.3", "11.8.1"]

times = {}
for path in glob.glob(os.path.join(sys.argv[1], "*.json")):
    contender = re.fullmatch(r"(.*)-\d+\.json", os.path.basename(path))[1]
    for result in json.load(open(path, encoding="utf-8")):
        name = result["benchmark"].rsplit(".", 1)[1]
        times.setdefault(name, {}).setdefault(contender, []).append(result["primaryMetric"]["score"])

print("| ns a key, median (least to most) | " + " | ".join(CONTENDERS) + " |")
print("|---" * (len(CONTENDERS) + 1) + "|")
for name, row in sorted(times.items()):
    cells = []
    for contender in CONTENDERS:
        rounds = row.get(contender, [])
        if not rounds:
            cells.append("-")
            continue
        text = f"{statistics.median(rounds):.0f} ({min(rounds):.0f} to {max(rounds):.0f})"
        if contender != "ours" and row.get("ours"):
            text += f", {statistics.median(rounds) / statistics.median(row['ours']):.2f} x"
        cells.append(text)
    print(f"| {name} | " + " | ".join(cells) + " |")
