#!/usr/bin/env bash
# Runs the memtables' tests under the address sanitizer, with the stable toolchain's own runtime.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(rustc -vV | sed -n 's/^host: //p')
RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/asan \
    cargo test -p spillway-db-memtable --lib --target "$target" "$@"
