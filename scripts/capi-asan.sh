#!/usr/bin/env bash
# Runs the C programs of crates/capi under gcc's address and undefined-behaviour sanitizers. The library goes through their
# malloc, since its allocator is malloc: what C frees twice, reads after it was freed, or leaks is seen on both sides.
set -euo pipefail
cd "$(dirname "$0")/.."
export CAPI_TEST_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=1}
cargo test --package spillway-db-capi --test programs "$@" -- --skip the_programs_call_every_function
