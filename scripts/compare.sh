#!/usr/bin/env bash
# Spillway beside RocksDB's release library, both through RocksDB's C API, on one machine and by turns: what docs/benchmarks.md has of
# the two. Draws the page.
#
#     scripts/compare.sh [rocksdb|mechanisms|operations|memtables|writers ...]      rocksdb where none is named
#
# rocksdb takes 5 minutes, mechanisms 3, operations 5, memtables 5, writers 2. NUM, ROUNDS: how much and how often. FLAGS: more flags of
# bench-compare. ROCKSDB_LIB: another library than RocksDB's release. WORK: a folder on the file system to be measured. RESULTS is
# another folder than bench/results, of which nothing is drawn. On a machine that does other things too, only ratios mean something.
set -euo pipefail
cd "$(dirname "$0")/.."

num=${NUM:-300000}
rounds=${ROUNDS:-5}
results=${RESULTS:-bench/results}
work=${WORK:-$(mktemp -d)}
built=${CARGO_TARGET_DIR:-target}/release
read -r -a more <<<"${FLAGS:-}"

say() { printf '\n== %s  %s\n' "$(date +%T)" "$*"; }

# compare FILE FLAGS...
compare() {
    "$built/bench-compare" --lib "rocksdb=$rocksdb" --lib "spillway=$built/librocksdb.so" --num "$num" --rounds "$rounds" \
        --db "$work/compare" --json "$results/$1" "${@:2}" "${more[@]}"
}

# Memtables of 16 MiB, so that flushes and compactions take part.
run_rocksdb() {
    local workloads=fillseq,fillrandom,fillbatch,fillsync,overwrite,readrandom,readmissing,multireadrandom,readseq,seekrandom
    compare rocksdb.jsonl --write_buffer_size $((16 << 20)) --ingest_seconds 3 --ingest_interval_ms 300 \
        --workloads $workloads,readwhilewriting,readrandomwriterandom,compact,ingest,load,restart,space
}

# What the page calls trie, image and log.
run_mechanisms() {
    local image='memtable_factory=trie:{"convert_to_sst":"kFileMmap"}' lib
    local sides=()
    for lib in trie image log; do sides+=(--lib "$lib=$built/librocksdb.so"); done
    compare mechanisms.jsonl "${sides[@]}" --options trie=memtable_factory=trie --options "image=$image" \
        --options "log=$image;memtable_as_log_index=true" --workloads overlap,flush,restart
}

run_operations() {
    rm -f "$results/operations.jsonl"
    ROCKSDB_LIB=$rocksdb ./scripts/op-cost.sh --json "$results/operations.jsonl"
}

# Entries of 17 bytes, as memtablerep_bench is run with --item_size=0.
run_memtables() {
    "$built/spillway-bench" memtable --memtablerep=skip_list,trie,sorted_hash,vector --num_operations=$((num * 10)) --num_scans=1 \
        --benchmarks=fillrandom,firstread,readrandom,multireadrandom,seekrandom,readseq,readreverse --item_size=0 --rounds=3 \
        --json="$results/memtables.jsonl"
}

run_writers() {
    "$built/spillway-bench" ingest --db="$work/ingest" --rounds="$rounds" --json="$results/ingest-writers.jsonl"
}

if [ -z "${ROCKSDB_LIB:-}" ]; then
    ./scripts/setup.sh compare
    ROCKSDB_LIB=$(echo "${CARGO_TARGET_DIR:-target}"/rocksdb-*/librocksdbjni-linux64.so)
fi
rocksdb=$ROCKSDB_LIB
say "building (release; the first time takes some minutes)"
cargo build --release --package spillway-capi --package spillway-bench
mkdir -p "$results"
for part in ${*:-rocksdb}; do
    say "$part"
    "run_$part"
done
if [ "$results" = bench/results ]; then
    say "drawing docs/benchmarks.md"
    "$built/spillway-bench" report
fi
