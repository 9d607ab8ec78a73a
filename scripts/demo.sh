#!/usr/bin/env bash
# The main job, step by step: load a real file, read it back, kill a second load in the middle, show that nothing that
# was acknowledged is lost, hand the data to RocksDB, and ingest the file as a table under writers that do not wait.
# Ends with 1 at the first thing that is not as it should be.
#
# SPILLWAY=PATH uses that binary instead of building one. What the demo writes goes to a temporary directory, which is
# removed in the end; KEEP=DIR names another, which stays.
set -euo pipefail
cd "$(dirname "$0")/.."

data=testdata/UnicodeData.txt
if [ -n "${KEEP:-}" ]; then
    mkdir -p "$KEEP"
    work=$(cd "$KEEP" && pwd)
    if [ -n "$(ls -A "$work")" ]; then echo "There is something in $work already." >&2; exit 1; fi
else
    work=$(mktemp -d "${TMPDIR:-/tmp}/spillway-demo.XXXXXX")
fi
loader= server=
cleanup() {
    local job
    for job in $loader $server; do kill -KILL "$job" 2>/dev/null || true; done
    if [ -z "${KEEP:-}" ]; then rm -rf "$work"; fi
}
trap cleanup EXIT

step() { printf '\n== %s\n' "$*"; }
say() { printf '   %s\n' "$*"; }
fail() { printf '\nThe demo FAILED: %s\n' "$*" >&2; exit 1; }
# Shows a command and its output.
run() {
    printf '   $ spillway'
    for word in "$@"; do case $word in *[\;\ ]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac; done
    printf '\n'
    "$spillway" "$@" | sed 's/^/     /'
}
# The number of keys in what `scan` is told to look at.
count() { "$spillway" scan --count "$@" | sed 's/ .*//; s/,//g'; }
expect() { [ "$2" = "$3" ] || fail "$1: expected $3, found $2"; }
# Of what `scan` prints, how many writes of `bench ingest --keys=codepoints` are what they should be, each of $1 once: the key
# is CODEPOINT/NTH, and the value's 100 characters begin with the number that is made of the two, in 16 hexadecimal digits
# (crates/bench/src/ingest/entries.rs). Printed in halves: not every awk has numbers of more than 32 bits in %x.
writes_that_are_right() {
    awk -F '\t' -v written="$1" '
        function hex(text, n, i) {
            n = 0
            for (i = 1; i <= length(text); i++) n = 16 * n + index("0123456789ABCDEF", substr(text, i, 1)) - 1
            return n
        }
        index($1, "/") {
            split($1, part, "/")
            nth = part[2] + 0
            number = nth * 1114112 + hex(part[1])
            head = sprintf("%010x%06x", int(number / 16777216), number % 16777216)
            gsub(/\\\\/, "x", $2) # scan prints a backslash as two
            if (substr($2, 1, 16) == head && length($2) == 100 && nth < written && !(nth in seen)) right++
            seen[nth] = 1
        }
        END { print right + 0 }'
}

if [ -z "${SPILLWAY:-}" ]; then
    step "Building (release; the first time takes some minutes)"
    cargo build --release --quiet --package spillway-db-cli
    cargo build --release --quiet --package spillway-db --example branches
    SPILLWAY=${CARGO_TARGET_DIR:-target}/release/spillway
fi
spillway=$SPILLWAY
export SPILLWAY_DB=$work/db

step "1. Loading $data: the character database of Unicode, a line for each character"
run load "$data" --format csv --delimiter ';' --no-header --key 1
records=$(wc -l <"$data")
expect "keys in the database" "$(count)" "$records"
say "The database holds $records keys, as many as the file has lines."

step "2. Reading it back"
run get 0041
expect "the value of 0041" "$("$spillway" get 0041)" "$(grep '^0041;' "$data")"
say "By range, from 1F600 up to 1F604:"
run scan --from 1F600 --to 1F604
say "By prefix, the last three that begin with 1F9:"
run scan --prefix 1F9 --reverse --limit 3
for prefix in 1F9 00 E; do
    expect "keys that begin with $prefix" "$(count --prefix "$prefix")" "$(grep -c "^$prefix[^;]*;" "$data")"
done
expect "everything in order" "$("$spillway" scan | cksum)" "$(sed 's/^\([^;]*\);/\1\t&/' "$data" | LC_ALL=C sort | cksum)"
say "Counts by prefix agree with grep, and a scan of everything with sort: the same $records lines."

step "3. A second load, killed (SIGKILL) in the middle"
# Endless: the file's lines over and over, under keys that count up.
copies() { awk '{ line[NR] = $0 } END { for (n = 1; ; n++) printf "copy/%09d\t%s\n", n, line[(n - 1) % NR + 1] }' "$data"; }
copies 2>/dev/null | "$spillway" load - --format kv --batch 100 --acks >"$work/acks" &
loader=$!
for _ in $(seq 100); do
    sleep 0.1
    if [ "$(wc -l <"$work/acks")" -ge 500 ]; then break; fi
done
kill -KILL "$loader" || fail "the second load ended by itself"
{ wait "$loader"; } 2>/dev/null || true
loader=
acknowledged=$(grep -o '^acknowledged [0-9]*$' "$work/acks" | tail -n 1 | cut -d ' ' -f 2)
[ "${acknowledged:-0}" -gt 0 ] || fail "nothing was acknowledged before the kill"
say "Killed. The last thing the load said: acknowledged $acknowledged"

step "4. Opening it again: is everything there that was acknowledged?"
found=$(count --prefix copy/)
say "acknowledged by the second load   $acknowledged"
say "found of it                       $found (written before the kill came, acknowledged or about to be)"
[ "$found" -ge "$acknowledged" ] || fail "$((acknowledged - found)) acknowledged records are lost"
expect "records of the second load" \
    "$("$spillway" scan --prefix copy/ --limit "$acknowledged" | cksum)" \
    "$({ copies 2>/dev/null || true; } | head -n "$acknowledged" | cksum)"
say "lost                              0: all $acknowledged are there, byte for byte"
expect "keys of the first load" "$(count --to copy/)" "$records"
say "of the first load                 $records of $records"

step "5. Checking every checksum and invariant"
run check

step "6. Flushing and compacting it, and looking inside"
run compact
run stats

step "7. A checkpoint, and an export that RocksDB opens"
run checkpoint --to "$work/checkpoint"
run check --db "$work/checkpoint"
run export --to "$work/rocksdb"
total=$(count)
expect "keys in the checkpoint" "$(count --db "$work/checkpoint")" "$total"
if command -v ldb >/dev/null; then
    ours=$("$spillway" scan | cksum)
    theirs=$(ldb --db="$work/rocksdb" scan | sed 's/ : /\t/' | cksum)
    expect "what RocksDB's ldb reads" "$theirs" "$ours"
    say "RocksDB's ldb reads the same $total pairs from the export, byte for byte."
else
    say "(ldb is not here, so RocksDB is not asked; the Debian package rocksdb-tools has it.)"
fi

step "8. The same file as a table, ingested while two threads write between its keys"
run table build "$data" --format csv --delimiter ';' --no-header --key 1 --to "$work/tables" --name unicode
rate=4000 seconds=1.5 lead=0.5 interval_ms=300 rounds=3
written=8000 asked=5 # of each run: the rate for both times, the measured time in intervals
modes="blocking flush-first direct flushable"
say "$rate writes a second at fixed times, two threads. The table is ingested each $interval_ms ms, $asked times, in each mode by turns; $rounds rounds:"
"$spillway" bench ingest --db="$work/ingest" --keep --tables="$work/tables/unicode-000001.sst" --keys=codepoints \
    --mode="${modes// /,}" --rate=$rate --seconds=$seconds --warmup=$lead --rounds=$rounds --interval_ms=$interval_ms \
    --json="$work/ingest.jsonl" >"$work/ingest.txt" ||
    fail "$(tail -n 3 "$work/ingest.txt")"
# Of each mode: a figure of every round in milliseconds, and their median.
figures() {
    sed -n "s/.*\"mode\":\"$1\".*\"$2\":\([0-9.]*\).*/\1/p" "$work/ingest.jsonl" | awk '
        { shown = shown sprintf("%9.3f", $1 / 1000); at[NR] = $1 / 1000 }
        END {
            for (i = 1; i <= NR; i++) for (j = i + 1; j <= NR; j++) if (at[j] < at[i]) { x = at[i]; at[i] = at[j]; at[j] = x }
            printf "%s   median%9.3f", shown, at[int((NR + 1) / 2)]
        }'
}
say ""
say "mode          the longest that a writer waited for an ingest, ms, by round"
for mode in $modes; do printf '     %-12s%s\n' "$mode" "$(figures "$mode" ingest_wait_max_us)"; done
say "mode          99.9 % of the writes took less than, ms, by round: with what the machine itself costs, as without ingests"
for mode in none $modes; do printf '     %-12s%s\n' "$mode" "$(figures "$mode" p999_us)"; done
say "What to see: in the first three modes writers wait while what is in memory is flushed. With flushable, the default, no flush is"
say "waited for, and its waits (the engine counts them) stay near 0 in every round."

step "9. Is everything in all five databases?"
for mode in none $modes; do
    found=$work/ingest/$mode
    ingested=0 expected=$(printf '' | cksum)
    taken=$(grep "\"mode\":\"$mode\"" "$work/ingest.jsonl" | sed -n '$s/.*"ingests":\([0-9]*\).*/\1/p')
    also=
    if [ "$mode" != none ]; then
        ingested=$records
        expected=$(sed 's/^\([^;]*\);/\1\t&/' "$data" | LC_ALL=C sort | cksum)
        # On a slow machine the last ones are not begun: they would come after the writers.
        if [ "$taken" -gt "$asked" ] || [ "$taken" -lt $(((asked + 1) / 2)) ]; then
            fail "$mode: $taken ingests, and $asked were asked for"
        fi
        also=", $ingested lines of the file, $taken of $asked ingests"
    else
        expect "$mode: ingests" "$taken" 0
    fi
    "$spillway" check --db "$found" >/dev/null || fail "$mode: the check found damage"
    expect "$mode: keys" "$(count --db "$found")" $((written + ingested))
    expect "$mode: the file's lines" \
        "$({ "$spillway" scan --db "$found" | LC_ALL=C grep -v "^[0-9A-F]*/"; } | cksum)" "$expected"
    expect "$mode: writes whose value is their key's" \
        "$("$spillway" scan --db "$found" | LC_ALL=C writes_that_are_right "$written")" "$written"
    say "$mode: $written writes$also; every checksum holds"
done
say "Every write is there once, and its value is one of its key: it begins with the key's number. The lines are the file's, byte for byte."

step "10. Transactions in 200 databases, with one limit on their memory"
branches=${SPILLWAY%/*}/examples/branches
if [ -x "$branches" ]; then
    BRANCHES_SECONDS=2 "$branches" | sed 's/^/   /' || fail "a branch lost money, or took more memory than its share"
else
    say "($branches is not built: cargo build --example branches makes it.)"
fi

step "11. Ingests again, seen live"
"$spillway" bench ingest --db="$work/live" --live --tables="$work/tables/unicode-000001.sst" --keys=codepoints --mode=flushable --rounds=1 \
    --rate=$rate --seconds=10 --warmup=0.1 --interval_ms=$interval_ms >"$work/live.txt" 2>&1 &
loader=$!
for _ in $(seq 300); do
    [ ! -S "$work/live/flushable/OBSERVE.sock" ] || break
    sleep 0.1
done
"$spillway" serve --db "$work/live/flushable" --port 0 >"$work/serve.txt" 2>&1 &
server=$!
for _ in $(seq 50); do
    url=$(sed -n 's/^Look at //p' "$work/serve.txt")
    [ -z "$url" ] || break
    sleep 0.1
done
[ -n "$url" ] || fail "$(cat "$work/live.txt" "$work/serve.txt")"
say "The page is at $url while this step runs."
"$spillway" top --db "$work/live/flushable" --count 3 | tail -n 18 | sed 's/^/     /'
if command -v chromedriver >/dev/null && command -v chromium >/dev/null; then
    picture=${TMPDIR:-/tmp}/spillway-live.png
    if python3 clients/page/shot.py "$url" "$picture" 4; then say "Its picture: $picture"; fi
else
    say "(A picture of it needs Debian's chromium and chromium-driver.)"
fi
wait "$loader" || fail "$(tail -n 3 "$work/live.txt")"
loader=
kill "$server"
wait "$server" || true
server=

step "Done: $records records loaded and read back, $acknowledged acknowledged before a SIGKILL, 0 lost."
