#!/usr/bin/env bash
# Spillway beside Debian's RocksDB, both through RocksDB's C API, on one machine and in one run: writes bench/results/DATE-sides.jsonl
# and draws docs/benchmarks.md and its pictures from it. A few minutes with the defaults, whose memtables are small so that flushes and
# compactions take part.
#
#     scripts/compare.sh [FLAGS OF bench-compare...]      for example: --workloads fillrandom,readrandom --profile best
#
# NUM, ROUNDS: how much and how often. NAME: the end of the results' name. ROCKSDB_LIB: another library than Debian's. WORK: a folder on the file system to be measured. RESULTS is
# another folder than bench/results, of which nothing is drawn. On a machine that does other things too, only ratios mean something.
set -euo pipefail
cd "$(dirname "$0")/.."

num=${NUM:-500000}
rounds=${ROUNDS:-3}
results=${RESULTS:-bench/results}
work=${WORK:-$(mktemp -d)}
built=${CARGO_TARGET_DIR:-target}/release

say() { printf '\n== %s  %s\n' "$(date +%T)" "$*"; }

find_rocksdb() {
    local path
    for path in "${ROCKSDB_LIB:-}" /usr/lib/*/librocksdb.so.7.8 /usr/lib/*/librocksdb.so.[0-9]* /usr/lib/*/librocksdb.so \
        /usr/local/lib/librocksdb.so; do
        if [ -e "$path" ]; then
            echo "$path"
            return
        fi
    done
    echo "RocksDB's library is nowhere to be found. On Debian it is in the package librocksdb7.8: apt-get install librocksdb7.8." >&2
    echo "ROCKSDB_LIB=PATH names one of your own." >&2
    exit 1
}

rocksdb=$(find_rocksdb)
say "building (release; the first time takes some minutes)"
cargo build --release --package spillway-capi --package spillway-compare --package spillway-bench
mkdir -p "$results"
json=$results/$(date +%F)-${NAME:-sides}.jsonl
"$built/bench-compare" --lib "rocksdb=$rocksdb" --lib "spillway=$built/librocksdb.so" --num "$num" --rounds "$rounds" \
    --write_buffer_size $((16 << 20)) --db "$work/compare" --json "$json" "$@"
say "kept in $json"
if [ "$results" = bench/results ]; then
    say "drawing docs/benchmarks.md"
    "$built/spillway-bench" report
fi
