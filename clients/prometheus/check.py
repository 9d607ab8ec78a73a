#!/usr/bin/env python3
"""A real Prometheus scrapes a live page's /metrics, and evaluates every expression of the dashboard.

    check.py URL DASHBOARD FOLDER

Fails where the scrape fails, where an expression is refused, or where more than those that have no samples without trouble
(SILENT) are empty.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

# No samples where nothing is in the way: a limit that is not set, an iterator that is not there.
SILENT = ["budget", "oldest_", "kept_", "value_log", "ingest", "seek_duration", "log_sync", "filter_looks"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def expressions(part):
    if isinstance(part, dict):
        if "expr" in part:
            yield part["expr"]
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from expressions(inner)


def main():
    url, dashboard, folder = sys.argv[1:4]
    target = urllib.parse.urlparse(url).netloc
    config = os.path.join(folder, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [{"job_name": "spillway", "static_configs": [{"targets": [target]}]}]}, file)
    port = free_port()
    with open(os.path.join(folder, "prometheus.log"), "w", encoding="utf-8") as log:
        server = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"], stderr=log)
    try:
        look(f"http://127.0.0.1:{port}/api/v1", dashboard)
    finally:
        server.kill()
        server.wait()


def ask(api, path, **query):
    with urllib.request.urlopen(f"{api}/{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
        return json.load(answer)["data"]


def look(api, dashboard):
    until = time.monotonic() + 60
    while True:
        try:
            targets = ask(api, "targets")["activeTargets"]
            if targets and targets[0]["health"] == "up" and ask(api, "query", query="count_over_time(spillway_writes_total[1m]) >= 8")["result"]:
                break
            error = targets[0]["lastError"] if targets else "no target yet"
        except OSError as down:
            error = str(down)
        if time.monotonic() > until:
            raise SystemExit(f"Prometheus cannot scrape the page: {error}")
        time.sleep(0.5)
    empty = []
    found = 0
    for expression in expressions(json.load(open(dashboard, encoding="utf-8"))):
        query = expression.replace("$__rate_interval", "30s").replace("$instance", ".*")
        try:
            result = ask(api, "query", query=query)["result"]
        except urllib.error.HTTPError as error:
            raise SystemExit(f"Prometheus refuses {expression}: {json.load(error)['error']}") from error
        found += len(result) > 0
        if not result and not any(name in expression for name in SILENT) and not re.search(r"== 1$", expression):
            empty.append(expression)
    if empty:
        raise SystemExit("no samples for:\n  " + "\n  ".join(empty))
    print(f"   Prometheus scrapes the page, and has samples for {found} expressions of the dashboard")


main()
