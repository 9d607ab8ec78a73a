#!/usr/bin/env bash
# Installs what is missing of the packages that the build and the tests need.
#
#     scripts/setup.sh [compare|speedb|jvm|page]  for make compare, also Maven, and RocksDB's release library, which it fetches; for
#                                                 scripts/compare.sh speedb, Speedb's; for make jvm, Maven and a JDK; for
#                                                 scripts/page.sh, Chromium
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
if [ "${1:-}" = compare ] || [ "${1:-}" = speedb ]; then
    need mvn maven "fetches the release library"
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

# fetch GROUP ARTIFACT VERSION: the jar of a Java interface holds a release build whose library has the whole C interface.
fetch() {
    local into=${CARGO_TARGET_DIR:-target}/${2%jni}-$3 library=lib$2-linux64.so
    if [ ! -e "$into/$library" ]; then
        mvn -q dependency:copy -Dartifact="$1:$2:$3" -DoutputDirectory="$PWD/$into"
        unzip -q -o "$into/$2-$3.jar" "$library" -d "$into"
    fi
}
case "${1:-}" in
    compare) fetch org.rocksdb rocksdbjni 11.8.1 ;;
    speedb) fetch io.github.speedb-io speedbjni 2.8.0 ;;
esac
