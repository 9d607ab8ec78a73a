#!/usr/bin/env bash
# Installs what is missing of the packages that the build and the tests need.
#
#     scripts/setup.sh [compare|jvm|page]  for make compare, also Maven, and RocksDB's release library, which it fetches; for make
#                                          jvm, Maven and a JDK; for scripts/page.sh, Chromium
set -euo pipefail
cd "$(dirname "$0")/.."

as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi

# need COMMAND PACKAGE WHY
missing=()
need() {
    if ! command -v "$1" >/dev/null; then
        echo "setup: $1 is missing ($3): installing $2"
        missing+=("$2")
    fi
}
need cc gcc "compiles C code that crates bring, and the C programs of the tests"
need ldb rocksdb-tools "RocksDB's ldb and sst_dump read our files"
need pkg-config pkg-config "the test of make install asks it for the library"
if [ "${1:-}" = compare ]; then
    need mvn maven "fetches RocksDB's release library"
    need unzip unzip "takes it out of its archive"
fi
if [ "${1:-}" = jvm ]; then
    need mvn maven "fetches jars"
    need javac default-jdk-headless "compiles jobs and runners, and runs them"
    need curl curl "fetches rocksdbjni's tests"
fi
if [ "${1:-}" = page ]; then
    need chromium chromium "shows the live page"
    need chromedriver chromium-driver "plays through it"
    need prometheus prometheus "reads its metrics"
fi
if [ ${#missing[@]} -gt 0 ] &&
    ! { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" apt-get install -y -qq "${missing[@]}"; }; then
    echo "setup: install these packages as root, then try again: ${missing[*]}" >&2
    exit 1
fi

# The jar of RocksDB's Java interface holds a release build whose library has the whole C interface.
version=11.8.1
library=${CARGO_TARGET_DIR:-target}/rocksdb-$version/librocksdbjni-linux64.so
if [ "${1:-}" = compare ] && [ ! -e "$library" ]; then
    mvn -q dependency:copy -Dartifact=org.rocksdb:rocksdbjni:$version -DoutputDirectory="$PWD/$(dirname "$library")"
    unzip -q -o "$(dirname "$library")/rocksdbjni-$version.jar" "$(basename "$library")" -d "$(dirname "$library")"
fi
