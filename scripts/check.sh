#!/usr/bin/env bash
# Form, lints, documentation, licences and unit tests: minutes once the dependencies are built. `make test` runs it first.
set -euo pipefail
cd "$(dirname "$0")/.."

# Nobody builds twice from here: incremental caches would double the 2.5 GB that the build takes on disk.
export CARGO_INCREMENTAL=0

step() { printf '\n== %s  %s\n' "$(date +%T)" "$*"; }

step "Form"
cargo fmt --all --check

step "Lints"
cargo clippy --workspace --all-targets --quiet -- -D warnings

step "The library without features, and with its default ones"
cargo clippy --package spillway-db --no-default-features --quiet -- -D warnings
cargo clippy --package spillway-db --quiet -- -D warnings

step "Documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --features spillway-db/tokio --quiet

step "Packages for the registry"
cargo package --workspace --exclude spillway-testkit --no-verify --allow-dirty --offline --quiet

step "Licences, bans and sources of dependencies"
if command -v cargo-deny >/dev/null; then
    cargo deny --all-features check licenses bans sources
else
    echo "SKIPPED: cargo-deny is not here (cargo install --locked cargo-deny); make nightly needs it"
fi

# One command of the whole workspace: a single package would have other features, and so build the engine again.
step "Unit tests, and the rules of the workspace"
cargo test --workspace --lib --bins --test layers --test rooms
