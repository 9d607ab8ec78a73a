#!/usr/bin/env bash
# Everything CI runs: form, lints, tests, programs written for RocksDB, the demo. Installs RocksDB's tools where they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."

# Nobody builds twice from here: incremental caches would double the 2.5 GB that the build takes on disk.
export CARGO_INCREMENTAL=0

step() { printf '\n== %s\n' "$*"; }

# ldb and sst_dump read what we write, and write what we read.
if ! command -v ldb >/dev/null || ! command -v sst_dump >/dev/null; then
    step "Installing rocksdb-tools"
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
    if ! { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" apt-get install -y -qq rocksdb-tools; }; then
        echo "RocksDB's tools (ldb, sst_dump) are needed and could not be installed. On Debian they are in the package" >&2
        echo "rocksdb-tools: install it as root (apt-get install rocksdb-tools), then run make test again." >&2
        exit 1
    fi
fi

# The test of make install asks it where the library is.
if ! command -v pkg-config >/dev/null; then
    step "Installing pkg-config"
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
    "${as_root[@]}" apt-get update -qq && "${as_root[@]}" apt-get install -y -qq pkg-config
fi

step "Form"
cargo fmt --all --check

step "Lints"
cargo clippy --workspace --all-targets --quiet -- -D warnings

step "Tests"
cargo test --workspace

# The cheap ones, on the library that the tests have built: about a minute with nothing cached. What no registry gives within
# its patience is skipped, loudly: that takes 3 times 20 seconds at most, and leaves 120 for what is ours to build and to run.
# What hangs or fails there is a fault of ours.
step "Programs written for RocksDB"
LIBROCKSDB=${CARGO_TARGET_DIR:-target}/debug/librocksdb.so CLIENTS_PATIENCE_S=20 \
    timeout --kill-after=10 180 ./scripts/clients.sh balboa python go

step "The demo"
spillway=${CARGO_TARGET_DIR:-target}/debug/spillway # as the tests have built it
SPILLWAY=$spillway timeout 120 ./scripts/demo.sh

step "docs/benchmarks.md against the kept figures"
"$spillway" bench report --check

step "All passed"
