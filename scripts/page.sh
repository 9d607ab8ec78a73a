#!/usr/bin/env bash
# Plays through the live page in a headless Chromium, and lets Prometheus read its metrics: a database under writes and reads, its page, keys, changes, hostile names,
# light and dark, 400 pixels. Ends with 1 at the first thing that is not as it should be.
#
#     scripts/page.sh [FOLDER]     FOLDER gets screenshots: live-light.webp, live-dark.webp, live-narrow.webp
#
# SPILLWAY=PATH uses that binary, and examples/stages beside it, instead of building them. Needs Debian's chromium, chromium-driver and prometheus: scripts/setup.sh page.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/setup.sh page
if [ -z "${SPILLWAY:-}" ]; then
    cargo build --release --quiet --package spillway-db-cli
    cargo build --release --quiet --package spillway-db-live --example stages
    SPILLWAY=${CARGO_TARGET_DIR:-target}/release/spillway
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/spillway-page.XXXXXX")
jobs=()
cleanup() {
    for job in "${jobs[@]}"; do kill "$job" 2>/dev/null || true; done
    wait
    rm -rf "$work"
}
trap cleanup EXIT

family='</td><img src=x onerror=alert(1)><b>"&amp;' # of the example
"$(dirname "$SPILLWAY")/examples/stages" well "$work/db" 600 >"$work/stages.txt" 2>&1 &
jobs+=($!)
for _ in $(seq 600); do
    [ ! -S "$work/db/OBSERVE.sock" ] || break
    sleep 0.1
done
"$SPILLWAY" serve --db "$work/db" --port 0 --allow-changes >"$work/serve.txt" 2>&1 &
jobs+=($!)
for _ in $(seq 100); do
    url=$(sed -n 's/^Look at //p' "$work/serve.txt")
    [ -z "$url" ] || break
    sleep 0.1
done
[ -n "$url" ] || { cat "$work/stages.txt" "$work/serve.txt" >&2; exit 1; }
mkdir "$work/prometheus"
python3 clients/prometheus/check.py "$url" docs/grafana/spillway.json "$work/prometheus"
python3 clients/page/player.py "$url" "$family" ${1:+"$1"}
