#!/usr/bin/env bash
# What C's boundary costs: instructions of a put and of a get from a memtable through C and through Rust, by callgrind, so that
# the machine may be busy. The loop without either is taken off.
#
#     scripts/capi-cost.sh [COUNT]       20000 of each
set -euo pipefail
cd "$(dirname "$0")/.."

count=${1:-20000}
built=${CARGO_TARGET_DIR:-target}/release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --release --quiet --package spillway-db-capi --lib --example cost
ln -s "$(realpath "$built/librocksdb.so")" "$work/librocksdb.so.11"
cc -O2 -std=c11 -I crates/capi/include crates/capi/tests/c/cost.c -o "$work/c" -L "$built" -lrocksdb
ln -s "$(realpath "$built/examples/cost")" "$work/rust"

# instructions LANGUAGE WHAT: of all threads, for `count` operations on a database that has as many keys.
instructions() {
    LD_LIBRARY_PATH=$work valgrind --tool=callgrind --callgrind-out-file="$work/out" --separate-threads=yes \
        "$work/$1" "$work/db-$1" "$2" "$count" >/dev/null 2>"$work/said"
    # The first thread's file: background threads do the same for either.
    sed -n 's/^\(summary\|totals\): //p' "$work/out-01" | head -1
}

for language in rust c; do
    "$work/$language" "$work/db-$language" put "$count" >/dev/null 2>&1 || LD_LIBRARY_PATH=$work "$work/$language" "$work/db-$language" put "$count" >/dev/null
    for what in none put get; do
        declare "${language}_$what=$(instructions "$language" "$what")"
    done
done
for what in put get; do
    rust=rust_$what c=c_$what
    echo "$what: rust $(((${!rust} - rust_none) / count)) instructions, C $(((${!c} - c_none) / count))"
done
