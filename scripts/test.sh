#!/usr/bin/env bash
# What make test runs behind setup and check: all tests of whole crates, programs written for RocksDB, the demo.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0 # as check.sh

step() { printf '\n== %s  %s\n' "$(date +%T)" "$*"; }

# All of it in one build, the C library and the demo's example included. Clippy has seen that the others compile.
step "Building the tests"
cargo build --workspace --lib --bins --test '*' --example branches

# Another part of the crashes and failures with each commit; make nightly tries all of them.
commit=$(git rev-parse HEAD 2>/dev/null || echo 0)
export SPILLWAY_SAMPLE=${SPILLWAY_SAMPLE:-$((16#${commit:0:7}))}

# Two halves beside each other, by name: a program that runs its last test, or waits, leaves a processor to the other half.
step "Tests (SPILLWAY_SAMPLE=$SPILLWAY_SAMPLE)"
log=$(mktemp)
other=
# Ctrl-C reaches the half in front only. The half behind has a process group of its own, so that its tests end too.
stop() {
    [ -z "$other" ] || kill -- "-$other" 2>/dev/null || true
    rm -f "$log"
}
trap stop EXIT
trap 'exit 130' INT TERM
setsid cargo test --workspace --test '[!a-e]*' >"$log" 2>&1 &
other=$!
failed=0
cargo test --workspace --test '[a-e]*' || failed=1
wait "$other" || failed=1
other=
cat "$log"
[ "$failed" = 0 ]
cargo test --workspace --doc

# The cheap ones, on the library that the tests have built: about a minute with nothing cached. What no registry gives within
# its patience is skipped, loudly: that takes 3 times 20 seconds at most, and leaves 120 for what is ours to build and to run.
# What hangs or fails there is a fault of ours.
step "Programs written for RocksDB"
LIBROCKSDB=${CARGO_TARGET_DIR:-target}/debug/librocksdb.so CLIENTS_PATIENCE_S=20 \
    timeout --kill-after=10 180 ./scripts/clients.sh balboa python go

# RocksDB's own Java tests and a Kafka topology, in 90 s at most once the jars are fetched. Skipped, loudly, where they are not to be
# had within the patience.
step "The JVM"
status=0
LIBROCKSDBJNI=${CARGO_TARGET_DIR:-target}/debug/librocksdbjni.so JVM_PATIENCE_S=60 timeout --kill-after=10 300 ./scripts/jvm.sh quick || status=$?
[ "$status" = 0 ] || [ "$status" = 3 ]

step "The demo"
SPILLWAY=${CARGO_TARGET_DIR:-target}/debug/spillway timeout 120 ./scripts/demo.sh # as the tests have built it

step "All passed"
