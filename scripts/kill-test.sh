#!/usr/bin/env bash
# Kills processes that write, thousands of times, and compares what they leave with what they were told was done.
#
#     scripts/kill-test.sh [KILLS]      3000 where it is not said; about 15 a second on two processors
#
# SPILLWAY_KILL_SEED has the same databases tried again, though not the same moments. TMPDIR is where they lie: a disk, or,
# for more writes between the kills, a file system in memory. What fails is kept there, and said.
set -euo pipefail
cd "$(dirname "$0")/.."

SPILLWAY_KILLS=${1:-3000} cargo test --package spillway-testkit --test kill -- --nocapture
