#!/usr/bin/env bash
# Runs what the sections on memtables of docs/benchmarks.md are drawn from, on a quiet machine, and draws them.
#
#     scripts/bench-memtables.sh [memtable|engine|persist ...]      all three where none is named
#
# MEMTABLES, a comma list of option strings, says which take part. To try the script, SCALE divides all sizes, and RESULTS
# is another folder than bench/results, of which nothing is drawn. With the defaults and two processors, memtable takes
# about 9 minutes, engine 8, persist 1.
set -euo pipefail
cd "$(dirname "$0")/.."

memtables=${MEMTABLES:-skip_list,trie,sorted_hash,vector}
scale=${SCALE:-1}
results=${RESULTS:-bench/results}
work=${WORK:-$(mktemp -d)}
bin=${CARGO_TARGET_DIR:-target}/release/spillway-bench
day=$(date +%F)

say() { printf '\n== %s  %s\n' "$(date +%T)" "$*"; }

# memtable NAME FLAGS...: appends the run's JSON lines to the results.
memtable() {
    local name=$1
    shift
    say "memtable: $*"
    "$bin" memtable --memtablerep="$memtables" --json="$work/lines.jsonl" "$@"
    cat "$work/lines.jsonl" >>"$results/$day-$name.jsonl"
}

# Entries of 17 bytes, as memtablerep_bench is run with --item_size=0.
run_memtable() {
    local ten=$((10000000 / scale)) three=$((3000000 / scale)) name=memtables
    local reads="firstread,readrandom,readdependent,multireadrandom,seekrandom,readseq,readreverse"
    : >"$results/$day-$name.jsonl"
    memtable "$name" --benchmarks="fillrandom,$reads" --num_operations=$ten --reads=$((1000000 / scale)) \
        --num_scans=1 --item_size=0 --rounds=3
    memtable "$name" --benchmarks=fillrandom,firstread,readrandom,multireadrandom,readwrite --num_operations=$ten \
        --reads=$((1000000 / scale)) --num_scans=1 --item_size=0 --fill_threads=2 --num_threads=2 --batch_size=16
    for shape in be8 random8 random16 random24 user uuid url; do
        memtable "$name" --benchmarks="fillrandom,$reads" --num_operations=$three --reads=$((500000 / scale)) \
            --num_scans=1 --item_size=0 --key_shape=$shape
    done
}

# Beside Debian's RocksDB, which has its skiplist; through the C API.
run_engine() {
    local memtable libs=() options=()
    for memtable in ${memtables//,/ }; do
        libs+=(--lib "$memtable=$(dirname "$bin")/librocksdb.so")
        options+=(--options "$memtable=memtable_factory=$memtable")
    done
    say "engine"
    NUM=$((5000000 / scale)) ROUNDS=1 WORK="$work" NAME=engine-memtables RESULTS="$results" ./scripts/compare.sh "${libs[@]}" \
        "${options[@]}" --reads $((200000 / scale)) --workloads fillrandom,readrandom,fillbatch,speedb_write,speedb_mixed,speedb_seek
}

run_persist() {
    say "persist"
    "$bin" persist --db="$work/persist" --keys=$((100000 / scale)) --json="$results/$day-persist.jsonl" \
        --sides="${PERSIST_SIDES:-skip_list+flush,skip_list+eager,vector+eager,vector+unlogged,trie+flush,trie+eager}"
}

cargo build --release --package spillway-bench
for part in ${*:-memtable engine persist}; do
    "run_$part"
done
if [ "$results" = bench/results ]; then
    say "drawing docs/benchmarks.md"
    "$bin" report
fi
