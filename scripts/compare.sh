#!/usr/bin/env bash
# Spillway beside RocksDB's release library, both through RocksDB's C API, on one machine and by turns, and beside engines of other
# kinds: what docs/benchmarks.md has of them. Draws the page.
#
#     scripts/compare.sh [rocksdb|universal|reads|transactions|mechanisms|operations|memtables|writers|sources|peers|ycsb|builds ...]      rocksdb where none is named
#
# builds sets another build of Spillway (BEFORE=its librocksdb.so) beside this one and RocksDB; it prints a page and keeps nothing.
# peers and ycsb set LMDB, redb and fjall beside both, each in a memory group of MEMORY_MIB (1024; ycsb 2048): run them as root. They compile those
# engines. ycsb takes 15 GB of the disk.
# sources takes 12 minutes, and draws "The five sources"; its parts are pebble (which go fetches and builds), tikv, topling, speedb (which Maven
# fetches) and nimbus. Where Pebble or Speedb cannot be had, it says so and goes on without it.
# rocksdb takes 5 minutes, universal 3, reads 15, transactions 4, mechanisms 3, operations 25, memtables 8, writers 2, peers 10, ycsb 10, builds 10. NUM, ROUNDS: how much and how often
# (peers: a million entries, 3 rounds; ycsb: 10 million, 1 round). FLAGS: more flags of bench-compare or bench-peers. ROCKSDB_LIB: another library than RocksDB's release. WORK: a folder on the file system to be measured. RESULTS is
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

# Universal compaction: small memtables, so that there are some thirty sorted runs to merge; then each key is written again.
run_universal() {
    num=$((num * 10 / 3)) rounds=3 compare universal.jsonl --write_buffer_size $((4 << 20)) \
        --options all=compaction_style=kCompactionStyleUniversal --workloads fillrandom,overwrite,space,readrandom,seekrandom
}

# Reads, by calls and of mapped tables: all in the block cache (memory, of which one in two may be mapped instead), and with a block
# cache of a fifth. Filters, and hash indexes in blocks of four keys between restart points, for both libraries.
run_reads() {
    local options='all=block_based_table_factory={data_block_index_type=kDataBlockBinaryAndHash;block_restart_interval=4}'
    local reads=readrandom,readhot,multireadrandom,seekrandom,readseq,readwhilewriting,seekrandomwhilewriting
    local mapped=(--lib "rocksdb-mapped=$rocksdb" --lib "spillway-mapped=$built/librocksdb.so" --options
        rocksdb-mapped=allow_mmap_reads=true --options spillway-mapped=allow_mmap_reads=true)
    rm -f "$results/reads.jsonl" "$results/reads-fifth.jsonl"
    num=$((num * 2)) compare reads.jsonl "${mapped[@]}" --options "$options" --workloads $reads --reads $((num * 2))
    rm -f "$results/queue.jsonl"
    # A million deletions; RocksDB's scans end after five seconds.
    num=1000000 compare queue.jsonl --options rocksdb=min_tombstones_for_range_conversion=64 --workloads queue --reads 100000
    num=$((num * 10)) rounds=3 compare reads-fifth.jsonl "${mapped[@]}" --options "$options" \
        --workloads readrandom,multireadrandom,seekrandom --reads $((num * 2)) --cache_bytes $((num * 10 * 116 / 5))
}

# Transactions with one thread and with four, and batches with an index.
run_transactions() {
    local threads
    rm -f "$results/transactions.jsonl"
    for threads in 1 4; do
        compare "transactions-$threads.jsonl" --workloads transactions --threads $threads
        cat "$results/transactions-$threads.jsonl" >>"$results/transactions.jsonl"
        rm "$results/transactions-$threads.jsonl"
    done
    rm -f "$results/indexed.jsonl"
    compare indexed.jsonl --workloads indexed
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

# Entries of 17 bytes, as memtablerep_bench is run with --item_size=0; then keys of other shapes, which are longer.
run_memtables() {
    local shape benchmarks=fillrandom,firstread,readrandom,multireadrandom,seekrandom,readseq,readreverse
    for shape in le8 random16 user url; do
        "$built/spillway" bench memtable --memtablerep=skip_list,trie,sorted_hash,vector --num_operations=$((num * 10)) --num_scans=1 \
            --benchmarks=$benchmarks --item_size=0 --rounds=3 --key_shape=$shape --json="$work/$shape.jsonl"
        benchmarks=fillrandom,readrandom
    done
    cat "$work"/{le8,random16,user,url}.jsonl >"$results/memtables.jsonl"
}

run_writers() {
    "$built/spillway" bench ingest --db="$work/ingest" --rounds="$rounds" --json="$results/ingest-writers.jsonl"
}

run_sources() {
    local part
    for part in pebble tikv topling speedb nimbus; do
        say "$part"
        "run_$part"
    done
}

# Ingests over memtables, and their flush: RocksDB and Spillway by turns, then Pebble. Rows of a workload stand together.
run_pebble() {
    local workload workloads=overlap-memory,overlap-synced,overlap,overlap-bytes,ingest-flush-memory,ingest-flush,fdatasync
    results=$work rounds=${ROUNDS:-3} compare sides.jsonl --workloads $workloads
    if (cd bench/pebble && go build -o "$work/pebble" .); then
        "$work/pebble" -db "$work/pebble.run" -json "$work/sides.jsonl" -num "$num" -rounds "${ROUNDS:-3}"
        pebbles_own >>"$work/sides.jsonl"
    else
        say "SKIPPED: go cannot build Pebble; its rows are missing"
    fi
    for workload in ${workloads//,/ } "its own benchmark"; do
        grep -F "\"workload\":\"$workload\"" "$work/sides.jsonl" || true
    done >"$results/pebble.jsonl"
}

# Pebble's own benchmark of the call, from its module.
pebbles_own() {
    local bench=BenchmarkIngestOverlappingMemtable line='{"lib":"pebble","workload":"its own benchmark","mode":"%d","round":%d,"figure":%f}\n'
    cp -r "$(cd bench/pebble && go list -m -f '{{.Dir}}' github.com/cockroachdb/pebble/v2)" "$work/pebble-module"
    chmod -R u+w "$work/pebble-module"
    if ! (cd "$work/pebble-module" && go test -run '^$' -bench "^$bench\$/[1-4]\$" -benchtime 30x -count "${ROUNDS:-3}" . >"$work/own.txt"); then
        say "SKIPPED: Pebble's own benchmark does not run here" >&2
    fi
    # A line with the benchmark's name, lines that Pebble logs, a line with the figure.
    awk -v line="$line" '/^Benchmark/ { split($1, parts, /[=-]/) } / ns\/op$/ { printf line, parts[2], seen[parts[2]]++, $(NF - 1) / 1000 }' \
        "$work/own.txt"
}

# Writers beside an ingest each tenth of a second, by mode.
run_tikv() {
    rounds=${ROUNDS:-3} compare tikv.jsonl --ingest_seconds 4 --ingest_interval_ms 100 --workloads ingest-modes
}

# memtablerep_bench's lines as ToplingDB prints them; readwrite has no reader with one thread.
run_topling() {
    local line=(-memtablerep=skiplist,cspp -huge_page_tlb_size=2097152 -write_buffer_size=536870912 -item_size=0
        -num_operations=$((num * 100 / 3)))
    "$built/spillway" bench memtable -benchmarks=fillrandom,readrandom "${line[@]}" -rounds="${ROUNDS:-2}" -json="$work/one.jsonl"
    "$built/spillway" bench memtable -benchmarks=readwrite "${line[@]}" -num_threads=2 -json="$work/two.jsonl"
    cat "$work"/{one,two}.jsonl >"$results/topling.jsonl"
}

# Memtables under writes of four threads, values of 1,000 bytes.
run_speedb() {
    local sides=(--lib "sorted_hash=$built/librocksdb.so" --options sorted_hash=memtable_factory=sorted_hash)
    if ./scripts/setup.sh speedb; then
        sides+=(--lib "speedb=$(echo "${CARGO_TARGET_DIR:-target}"/speedb-*/libspeedbjni-linux64.so)"
            --options speedb=memtable_factory=speedb.HashSpdRepFactory)
    else
        say "SKIPPED: Maven cannot fetch Speedb; its column is missing"
    fi
    num=$((num * 2 / 3)) rounds=${ROUNDS:-3} compare speedb.jsonl "${sides[@]}" --threads 4 --value_size 1000 --reads $((num * 2 / 3)) \
        --workloads overwrite,half-reads,seekrandomwhilewriting
}

# Batches of a blockchain's state, under the options of nimbus-eth1.
run_nimbus() {
    local ours="$built/librocksdb.so"
    rounds=${ROUNDS:-3} compare nimbus.jsonl --key_size 32 --value_size 60 --workloads batches \
        --lib "rocksdb-vector=$rocksdb" --lib "vector-eager=$ours" --lib "trie=$ours" \
        --options "all=level0_file_num_compaction_trigger=2;max_bytes_for_level_base=536870912;max_bytes_for_level_multiplier=16" \
        --options "rocksdb-vector=memtable_factory=vector;allow_concurrent_memtable_write=false" \
        --options "vector-eager=memtable_factory=vector;eager_flush=true" --options trie=memtable_factory=trie
}

# What must not get worse from one build to the next. RocksDB has no flush by conversion: that one is of the builds alone.
run_builds() {
    local common=(--num "$num" --rounds "$rounds" --db "$work/compare" --lib "before=${BEFORE:?BEFORE is the library of the other build}"
        --lib "after=$built/librocksdb.so")
    "$built/bench-compare" "${common[@]}" --lib "rocksdb=$rocksdb" --json "$work/builds.jsonl" --ingest_interval_ms 100 --workloads \
        fillrandom,fillseq,overwrite,fillsync,readrandom,seekrandom,readwhilewriting,ingest,overlap,restart,flush "${more[@]}"
    "$built/bench-compare" "${common[@]}" --json "$work/builds-image.jsonl" --workloads flush,restart \
        --options 'all=memtable_factory=trie:{"convert_to_sst":"kFileMmap"}' "${more[@]}"
    local per_lib='"across": "lib", "base": "before", "rows": ["workload", "mode"]' figure='{"field": "figure", "digits": 0}'
    {
        marker "\"file\": \"builds.jsonl\", $per_lib, \"better\": \"unit\", \"behind_first\": true, \"figures\": [$figure]"
        marker "\"file\": \"builds-image.jsonl\", $per_lib, \"figures\": [$figure]"
        marker "\"file\": \"builds.jsonl\", $per_lib, \"figures\": [{\"field\": \"cpu_us_per_op\", \"name\": \"CPU us\", \"digits\": 2}]"
        marker "\"file\": \"builds.jsonl\", $per_lib, \"only\": {\"workload\": [\"fillrandom\", \"fillseq\", \"overwrite\"]}, \
            \"figures\": [{\"field\": \"storage_bytes\", \"per\": \"user_bytes\", \"name\": \"bytes stored\", \"digits\": 2}]"
        for tail in p999_us p9999_us; do
            marker "\"file\": \"builds.jsonl\", $per_lib, \"only\": {\"workload\": [\"ingest\"]}, \
                \"figures\": [{\"field\": \"latency.write.$tail\", \"name\": \"$tail\"}]"
        done
    } >"$work/builds.md"
    "$built/spillway" bench report --results "$work" --document "$work/builds.md"
    cat "$work/builds.md"
}

# peers FILE FLAGS...
peers() {
    "$built/bench-peers" --rocksdb "$rocksdb" --memory_mib "${MEMORY_MIB:-1024}" --db "$work/peers" --json "$1" "${@:2}" "${more[@]}"
}

# The workloads of redb's benchmark; all data in memory.
run_peers() {
    peers "$results/peers.jsonl" --num "${NUM:-1000000}" --rounds "${ROUNDS:-3}"
}

# YCSB with values of 64 bytes, in memory, and of 1,024, of which a fifth is. Each size has a file, or the second would replace the first.
run_ycsb() {
    local size MEMORY_MIB=${MEMORY_MIB:-2048}
    for size in 64 1024; do
        peers "$work/ycsb-$size.jsonl" --set ycsb --num "${NUM:-10000000}" --rounds "${ROUNDS:-1}" --value_size $size
    done
    cat "$work"/ycsb-{64,1024}.jsonl >"$results/ycsb.jsonl"
}

marker() { printf '<!-- drawn by `spillway bench report`: {%s} -->\n<!-- end -->\n' "$1"; }

if [ -z "${ROCKSDB_LIB:-}" ]; then
    ./scripts/setup.sh compare
    ROCKSDB_LIB=$(echo "${CARGO_TARGET_DIR:-target}"/rocksdb-*/librocksdbjni-linux64.so)
fi
rocksdb=$ROCKSDB_LIB
say "building (release; the first time takes some minutes)"
cargo build --release --package spillway-db-capi --package spillway-db-bench --package spillway-db-cli
case " $* " in
    *" peers "* | *" ycsb "*) cargo build --release --package spillway-db-bench --features peers --bin bench-peers ;;
esac
mkdir -p "$results"
for part in ${*:-rocksdb}; do
    say "$part"
    "run_$part"
done
if [ "$results" = bench/results ]; then
    say "drawing docs/benchmarks.md"
    "$built/spillway" bench report
fi
