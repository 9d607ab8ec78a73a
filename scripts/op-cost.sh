#!/usr/bin/env bash
# What one operation takes of the thread that asks for it, Spillway beside RocksDB, both through RocksDB's C
# interface with RocksDB's defaults: instructions (callgrind), calls of the allocator, system calls. Counts, not times, so that
# the machine may be busy: what 30,000 operations more take, by the operation. Prints a table, and with --json FILE appends a
# line for each row to FILE.
#
#     scripts/op-cost.sh [--json FILE] [put|batch|get|tableget|missing|seek ...]
#
# ROCKSDB_LIB is RocksDB's library: its release (make compare fetches it), or else Debian's.
set -euo pipefail
cd "$(dirname "$0")/.."

json=
if [ "${1:-}" = --json ]; then json=$2 && shift 2; fi
more=30000
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
    case $2 in tableget | seek | missing) cp -r "$work/$1.filled" "$work/db" ;; esac
    echo "$work/db"
}

# instructions|allocations|calls LIB OPERATION COUNT: of the first thread.
instructions() {
    LD_LIBRARY_PATH=$work/$1 valgrind --tool=callgrind --callgrind-out-file="$work/out" --separate-threads=yes \
        "$work/op" "$(fresh "$1" "$2")" "$2" "$3" >/dev/null 2>"$work/said" || { cat "$work/said" >&2 && exit 1; }
    sed -n 's/^\(summary\|totals\): //p' "$work/out-01" | head -1
}
allocations() {
    LD_LIBRARY_PATH=$work/$1 LD_PRELOAD=$work/count.so "$work/op" "$(fresh "$1" "$2")" "$2" "$3" 2>&1 >/dev/null |
        sed -n 's/^allocations //p' | tail -1
}
calls() {
    LD_LIBRARY_PATH=$work/$1 strace -c -o "$work/strace" "$work/op" "$(fresh "$1" "$2")" "$2" "$3" >/dev/null
    awk '$NF == "total" { print $(NF-2) ~ /^[0-9]+$/ && NF == 5 ? $(NF-2) : $3 }' "$work/strace"
}

for lib in rocksdb spillway; do
    LD_LIBRARY_PATH=$work/$lib "$work/op" "$work/$lib.filled" fill 0 >/dev/null
done
printf '| operation | library | instructions | allocations | system calls |\n|---|---|---|---|---|\n'
for operation in ${*:-put batch get tableget missing seek}; do
    for lib in rocksdb spillway; do
        row=()
        for what in instructions allocations calls; do
            few=$("$what" "$lib" "$operation" 10000)
            many=$("$what" "$lib" "$operation" $((10000 + more)))
            row+=("$(awk "BEGIN { printf \"%.2f\", ($many - $few) / $more }")")
        done
        printf '| %s | %s | %.0f | %s | %s |\n' "$operation" "$lib" "${row[@]}"
        if [ -n "$json" ]; then
            printf '{"kind":"opcost","operation":"%s","lib":"%s","instructions":%s,"allocations":%s,"system_calls":%s,"commit":"%s"}\n' \
                "$operation" "$lib" "${row[@]}" "$(git rev-parse --short=12 HEAD)" >>"$json"
        fi
    done
done
