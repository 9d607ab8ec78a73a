#!/usr/bin/env bash
# Makes the wrong calls of crates/capi/tests/c/wrong_calls.c on RocksDB's release library, and writes its answers into
# crates/capi/tests/names/wrong-calls-11.8.1.tsv. What the table says of ours (third and fourth column) stays.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/setup.sh compare
theirs=$(realpath "${CARGO_TARGET_DIR:-target}/rocksdb-11.8.1")
table=crates/capi/tests/names/wrong-calls-11.8.1.tsv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cc -std=c11 -Wall -Wextra -I crates/capi/include crates/capi/tests/c/wrong_calls.c -o "$work/wrong_calls" \
    -L "$theirs" -l rocksdbjni-linux64 -Wl,-rpath,"$theirs"
mkdir "$work/run"
"$work/wrong_calls" "$work/run" >"$work/answers"

touch "$table"
awk -F '\t' -v OFS='\t' 'FILENAME == ARGV[1] { ours[$1] = $3 OFS $4; next } { print $1, $2, ($1 in ours) ? ours[$1] : OFS }' \
    "$table" "$work/answers" >"$work/table"
mv "$work/table" "$table"
