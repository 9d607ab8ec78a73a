#!/usr/bin/env bash
# Runs what the section on ingests of docs/benchmarks.md is drawn from, on a quiet machine, and draws it.
#
#     scripts/bench-ingest.sh [overlap|writers|load ...]      all three where none is named
#
# To try the script, SECONDS_PER_RUN, ROUNDS, ROWS and SYNC_RATE make it smaller, and RESULTS is another folder than
# bench/results, of which nothing is drawn. With the defaults and two processors, overlap takes about 1 minute, writers 12, load 1.
# Runs of writers during which the machine's host gives more than STOLEN_MAX percent of the processors to others are made again, each
# up to ten times: on a host that is always busy, set it to 100.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${SECONDS_PER_RUN:-4}
rounds=${ROUNDS:-10}
rows=${ROWS:-1000000}
sync_rate=${SYNC_RATE:-1000}
stolen_max=${STOLEN_MAX:-1}
results=${RESULTS:-bench/results}
work=${WORK:-$(mktemp -d)}
bin=${CARGO_TARGET_DIR:-target}/release/spillway-bench
out=$results/$(date +%F)-ingest.jsonl

say() { printf '\n== %s  %s\n' "$(date +%T)" "$*"; }

# ingest FLAGS...: appends the run's JSON lines to the results.
ingest() {
    say "ingest: $*"
    "$bin" ingest --db="$work/db" --json="$work/lines.jsonl" "$@"
    cat "$work/lines.jsonl" >>"$out"
}

run_overlap() {
    ingest --part=overlap --repeats=$((2 * rounds))
    ingest --part=overlap --stores=memory --mode=flushable --asleep --repeats=$((2 * rounds))
}

# writers LOAD SYNC MODES: pairs of runs with and without ingests.
writers() {
    ingest --part=writers --loads="$1" --sync="$2" --mode="$3" --seconds="$seconds" --warmup=0.3 --rounds="$rounds" \
        --sync_rate="$sync_rate" --stolen_max="$stolen_max" --copy
}

run_writers() {
    writers small no blocking,flush-first,direct,flushable
    writers small yes blocking,flushable
    writers big no blocking,flushable
    writers big yes flushable
}

run_load() {
    ingest --part=load --rows="$rows" --rounds=3
}

cargo build --release --package spillway-bench --package spillway-cli
mkdir -p "$work"
: >"$out"
for part in ${*:-overlap writers load}; do
    "run_$part"
done
if [ "$results" = bench/results ]; then
    say "drawing docs/benchmarks.md"
    "$bin" report
fi
