#!/usr/bin/env bash
# Runs what the sections on flushes and restarts of docs/benchmarks.md are drawn from, on a quiet machine, and draws them.
#
#     scripts/bench-flush.sh [flush|flush-big|restart|restart-big ...]      all four where none is named
#
# flush and restart are of 64 MiB, the others of 1 GiB and 1.5 GiB; those need 12 GB of disk. To try the script, BYTES,
# BIG_BYTES, RESTART_BYTES and ROUNDS make it smaller, and RESULTS is another folder than bench/results, of which nothing is
# drawn. WORK is where the databases lie: a folder on a disk, of ext4 or XFS.
set -euo pipefail
cd "$(dirname "$0")/.."

bytes=${BYTES:-$((64 << 20))}
big_bytes=${BIG_BYTES:-$((1 << 30))}
restart_bytes=${RESTART_BYTES:-$((3 << 29))}
rounds=${ROUNDS:-5}
results=${RESULTS:-bench/results}
work=${WORK:-$(mktemp -d)}
bin=${CARGO_TARGET_DIR:-target}/release/spillway-bench
today=$results/$(date +%F)

say() { printf '\n== %s  %s\n' "$(date +%T)" "$*"; }

# measure BENCHMARK FLAGS...: appends the run's JSON lines to the benchmark's results of today.
measure() {
    say "$*"
    "$bin" "$1" --db="$work/db" --json="$work/lines.jsonl" "${@:2}"
    cat "$work/lines.jsonl" >>"$today-$1.jsonl"
}

run_flush() {
    measure flush --bytes="$bytes" --rounds="$((2 * rounds))"
}

run_flush-big() {
    measure flush --bytes="$big_bytes" --value_sizes=100 --rounds="$rounds"
}

run_restart() {
    measure restart --bytes="$bytes" --rounds="$((2 * rounds))"
}

run_restart-big() {
    measure restart --bytes="$restart_bytes" --rounds="$(((rounds + 1) / 2))"
}

cargo build --release --package spillway-bench
mkdir -p "$work" "$results"
for part in ${*:-flush flush-big restart restart-big}; do
    "run_$part"
done
if [ "$results" = bench/results ]; then
    say "drawing docs/benchmarks.md"
    "$bin" report
fi
