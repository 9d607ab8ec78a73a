#!/usr/bin/env bash
# What make test runs behind setup and check: all tests of whole crates, programs written for RocksDB, the demo.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0 # as check.sh

step() { printf '\n== %s  %s\n' "$(date +%T)" "$*"; }

step "Tests"
cargo test --workspace --test '*' --examples
cargo test --workspace --doc

# The cheap ones, on the library that the tests have built: about a minute with nothing cached. What no registry gives within
# its patience is skipped, loudly: that takes 3 times 20 seconds at most, and leaves 120 for what is ours to build and to run.
# What hangs or fails there is a fault of ours.
step "Programs written for RocksDB"
LIBROCKSDB=${CARGO_TARGET_DIR:-target}/debug/librocksdb.so CLIENTS_PATIENCE_S=20 \
    timeout --kill-after=10 180 ./scripts/clients.sh balboa python go

step "The demo"
SPILLWAY=${CARGO_TARGET_DIR:-target}/debug/spillway timeout 120 ./scripts/demo.sh # as the tests have built it

step "All passed"
