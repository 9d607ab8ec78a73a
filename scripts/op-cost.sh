#!/usr/bin/env bash
# What one operation takes of the thread that asks for it, Spillway beside RocksDB, both through RocksDB's C
# interface with RocksDB's defaults: instructions, cache misses and mispredicted branches (callgrind's simulation: 48 KiB of first
# level, and 2 MiB, beyond which a miss counts; prefetched or not), calls of the allocator, system calls. Counts, not times, so that
# the machine may be busy: what 8,000 operations more take, by the operation (a key, in multiget; a step, in walk). Prints a table, and
# with --json FILE appends a line for each row to FILE. Takes 25 minutes.
#
#     scripts/op-cost.sh [--json FILE] [put|batch|get|missing|[page|map][runs](tableget|multiget|seek|find|fresh|walk) ...]
#
# ROCKSDB_LIB is RocksDB's library: its release (make compare fetches it), or else Debian's.
set -euo pipefail
cd "$(dirname "$0")/.."

json=
if [ "${1:-}" = --json ]; then json=$2 && shift 2; fi
more=8000
few=2000
built=${CARGO_TARGET_DIR:-target}/release
rocksdb=${ROCKSDB_LIB:-$(ls /usr/lib/*/librocksdb.so.7.8 2>/dev/null | head -1)}
[ -e "$rocksdb" ] || { echo "no RocksDB to compare with: apt-get install librocksdb7.8, or ROCKSDB_LIB=PATH" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --release --quiet --package spillway-db-capi --lib
cc -O2 -std=c11 -I crates/capi/include scripts/op-cost.c -o "$work/op" -L "$built" -lrocksdb
cc -O2 -shared -fPIC scripts/op-count.c -o "$work/count.so"
mkdir "$work/rocksdb" "$work/spillway"
ln -s "$rocksdb" "$work/rocksdb/librocksdb.so.11"
ln -s "$(realpath "$built/librocksdb.so")" "$work/spillway/librocksdb.so.11"

# fresh LIB OPERATION: the folder of a database to run on.
fresh() {
    rm -rf "$work/db"
    case $2 in
        *runs*) cp -r "$work/$1.runs" "$work/db" ;;
        *tableget | *multiget | *seek | *find | *fresh | *walk | missing) cp -r "$work/$1.filled" "$work/db" ;;
    esac
    echo "$work/db"
}

# simulated|allocations|calls LIB OPERATION COUNT: of the first thread. simulated gives instructions, misses, mispredictions.
simulated() {
    LD_LIBRARY_PATH=$work/$1 valgrind --tool=callgrind --callgrind-out-file="$work/out" --separate-threads=yes --cache-sim=yes \
        --branch-sim=yes --I1=32768,8,64 --D1=49152,12,64 --LL=2097152,16,64 \
        "$work/op" "$(fresh "$1" "$2")" "$2" "$3" >/dev/null 2>"$work/said" || { cat "$work/said" >&2 && exit 1; }
    # Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim
    sed -n 's/^\(summary\|totals\): //p' "$work/out-01" | head -1 | awk '{ print $1, $7 + $8 + $9, $11 + $13 }'
}
allocations() {
    LD_LIBRARY_PATH=$work/$1 LD_PRELOAD=$work/count.so "$work/op" "$(fresh "$1" "$2")" "$2" "$3" 2>&1 >/dev/null |
        sed -n 's/^allocations //p' | tail -1
}
calls() {
    LD_LIBRARY_PATH=$work/$1 strace -qq -o "$work/strace" "$work/op" "$(fresh "$1" "$2")" "$2" "$3" >/dev/null
    wc -l <"$work/strace"
}

for lib in rocksdb spillway; do
    LD_LIBRARY_PATH=$work/$lib "$work/op" "$work/$lib.filled" fill 0 >/dev/null
    LD_LIBRARY_PATH=$work/$lib "$work/op" "$work/$lib.runs" runsfill 0 >/dev/null
done
printf '| operation | library | instructions | cache misses | mispredicted | allocations | system calls |\n|---|---|---|---|---|---|---|\n'
reads='tableget multiget seek'
for operation in ${*:-put batch get missing $reads page${reads// / page} map${reads// / map} walk fresh runswalk runsfresh}; do
    for lib in rocksdb spillway; do
        row=()
        for what in simulated allocations calls; do
            read -r -a before <<<"$("$what" "$lib" "$operation" $few)"
            read -r -a after <<<"$("$what" "$lib" "$operation" $((few + more)))"
            for i in "${!after[@]}"; do
                row+=("$(awk "BEGIN { printf \"%.2f\", (${after[i]} - ${before[i]}) / $more }")")
            done
        done
        printf '| %s | %s | %.0f | %.1f | %.1f | %s | %s |\n' "$operation" "$lib" "${row[@]}"
        if [ -n "$json" ]; then
            counts='"instructions":%s,"cache_misses":%s,"mispredicted":%s,"allocations":%s,"system_calls":%s'
            printf "{\"kind\":\"opcost\",\"operation\":\"%s\",\"lib\":\"%s\",$counts,\"commit\":\"%s\"}\n" \
                "$operation" "$lib" "${row[@]}" "$(git rev-parse --short=12 HEAD)" >>"$json"
        fi
    done
done
