#!/usr/bin/env bash
# What takes too long for the gate: every interleaving, Miri, the sanitizers, thousands of kills, crashes and failures at every
# operation, long seeds, a million calls beside RocksDB, advisories. Goes on after a failure, and ends with 1 where there was one.
#
#     scripts/nightly.sh [PART ...]      all parts where none is named; CONTRIBUTING.md says what each is
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
# part NAME COMMAND...
part() {
    printf '\n== %s  %s\n' "$(date +%T)" "$1"
    "${@:2}" || failed+=("$1")
}

run_loom() {
    RUSTFLAGS="--cfg loom" cargo test -p spillway-db -p spillway-db-table --lib loom_ --target-dir target/loom &&
        RUSTFLAGS="--cfg loom" cargo test -p spillway-db-memtable --release loom_ --target-dir target/loom
}
run_miri() { MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p spillway-db-memtable; }
run_asan() { ./scripts/asan.sh; }
run_capi-asan() { ./scripts/capi-asan.sh; }
run_kills() {
    ./scripts/kill-test.sh "${SPILLWAY_KILLS:-3000}" &&
        SPILLWAY_SECONDARY_SECONDS=${SPILLWAY_SECONDARY_SECONDS:-300} cargo test -p spillway-db --test secondary killed
}
run_effort() { SPILLWAY_EFFORT=1 cargo test --release -p spillway-testkit --test crash --test faults --test ingest_stress; }
run_seeds() {
    SPILLWAY_SEEDS=${SPILLWAY_SEEDS:-500} cargo test --release -p spillway-testkit --test random &&
        SPILLWAY_SEEDS=${SPILLWAY_SEEDS:-500} cargo test --release -p spillway-db --test secondary &&
        SPILLWAY_SEEDS=${SPILLWAY_SEEDS:-50} cargo test --release -p spillway-testkit --test full_disk
}
# Ten thousand lives, other ones every day.
run_rescue() {
    SPILLWAY_SAMPLE=${SPILLWAY_SAMPLE:-$(date +%Y%m%d)} SPILLWAY_SEEDS=${SPILLWAY_SEEDS:-10000} \
        cargo test --release -p spillway-testkit --test rescue -- --nocapture
}
# A hundred databases under one limit on memory.
run_memory() {
    MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=32768 SPILLWAY_MEMORY_SECONDS=${SPILLWAY_MEMORY_SECONDS:-600} cargo test --release -p spillway-db --test many_databases -- --nocapture
}
# Thirty thousand column families in one database.
run_families() { SPILLWAY_FAMILIES=${SPILLWAY_FAMILIES:-30000} cargo test --release -p spillway-db --test many_families -- --nocapture; }
# A million calls on RocksDB's library and ours, every answer compared: other histories every day.
run_differential() {
    local theirs=${CARGO_TARGET_DIR:-target}/rocksdb-11.8.1/librocksdbjni-linux64.so
    if [ ! -e "$theirs" ]; then
        echo "SKIPPED: $theirs is not there: scripts/setup.sh compare"
        return
    fi
    local work
    work=$(mktemp -d)
    cargo build --release --quiet -p spillway-db-capi -p spillway-db-bench --lib --bin differential &&
        "${CARGO_TARGET_DIR:-target}/release/differential" --ours "${CARGO_TARGET_DIR:-target}/release/librocksdb.so" --theirs "$theirs" \
            --dir "$work/differential" --seed "${SPILLWAY_DIFFERENTIAL_SEED:-$(date +%Y%m%d)0000}" --seeds 1000 --ops 1000 --keep_going --verbose
    local ended=$?
    rm -rf "$work"
    return $ended
}
run_mutations() {
    SPILLWAY_MUTATIONS=10000 cargo test --release -p spillway-testkit --test mutated_images &&
        SPILLWAY_FUZZ_SECONDS=600 cargo test --release -p spillway-db-memtable random_damage
}
# What the JVM's engines test, and jobs with kills: an hour.
run_jvm() { make jvm; }
# The live page in a browser.
run_page() { ./scripts/page.sh; }
run_clients() { ./scripts/clients.sh; }
# The comparison with other engines, in small: no ordinary build compiles them.
run_peers() {
    cargo clippy --package spillway-db-bench --features peers --all-targets --quiet -- -D warnings &&
        cargo test --release --package spillway-db-bench --features peers --bin bench-peers --test peers
}
# Each feature alone, and what a build without features says.
run_features() {
    local feature
    for feature in config lz4 observe snappy tokio topling zlib zstd; do
        cargo clippy --package spillway-db --no-default-features --features "$feature" --quiet -- -D warnings || return
    done
    cargo test --package spillway-db-table --no-default-features --test features
}
# The library with the oldest compiler that Cargo.toml promises.
run_msrv() {
    local version features
    version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    rustup toolchain install "$version" --profile minimal --no-self-update || return
    for features in --all-features --no-default-features; do
        cargo "+$version" check --package spillway-db "$features" --target-dir target/msrv || return
    done
}
# The library for systems beside Linux, without the compressions in C: that takes no compiler but ours.
run_platforms() {
    local target
    for target in aarch64-apple-darwin x86_64-apple-darwin x86_64-pc-windows-gnu x86_64-pc-windows-msvc; do
        if ! rustup target list --installed | grep -qx "$target"; then
            echo "SKIPPED: rustup target add $target"
            continue
        fi
        cargo clippy --package spillway-db --no-default-features --features config,lz4,snappy,tokio,zlib --target "$target" \
            --target-dir target/platforms --quiet -- -D warnings || return
    done
}
# Builds each package as the registry would. Cargo keeps what it unpacks by version, and would build the last run's sources.
run_publish() {
    rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/{src,cache}/-*/spillway-db*
    cargo publish --workspace --dry-run
}
# Advisories need a database from the network.
run_deny() { cargo deny --all-features check; }

for name in ${*:-loom miri asan capi-asan kills effort seeds rescue memory families differential mutations clients page jvm peers features msrv platforms publish deny}; do
    part "$name" "run_$name"
done
if [ ${#failed[@]} -gt 0 ]; then
    printf '\nFAILED: %s\n' "${failed[*]}" >&2
    exit 1
fi
