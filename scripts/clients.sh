#!/usr/bin/env bash
# Programs that were written for RocksDB, unchanged, on our librocksdb.so: fetches each from its package registry, runs what
# clients/ has for it, and prints a table.
#
#     scripts/clients.sh [balboa|python|rust|suite|kvdb|go|gosuite|nim ...]      all of them where none is named
#
# LIBROCKSDB=PATH is the library, without it the release build of the crate capi. Any librocksdb will do: Debian's 7.8 shows
# that the programs are right. RECORD=yes writes the table into docs/compat.md. CLIENTS_CACHE=DIR keeps what was fetched,
# target/clients without it. CLIENTS_PATIENCE_S=SECONDS is how long a registry may take for what is asked of it, 180 without it.
# NIM_ROCKSDB=DIR is a checkout of nim-rocksdb, where it cannot be cloned.
#
# A client that cannot be had is skipped, loudly. Ends with 1 where a check failed, and where a client could not be built.
#
# Most clients bind more functions than they call: the table says how many, how many of them our library has only to refuse
# what they are for, and how many a library lacks. Those are given to the linker as functions that end the process (`stubs`),
# so that the rest of the client can be checked.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C # one order for sort and comm

root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cache=$(realpath -m "${CLIENTS_CACHE:-$target/clients}")
work=$(mktemp -d "${TMPDIR:-/tmp}/clients.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$cache"

# Versions that fit RocksDB's newest C interface; those for the one of Debian are below.
rust_version=0.25.0 go_version=v1.11.1 python_version=0.2.0 nim_rocksdb_version=v10.7.5.0
kvdb_version=0.21.0 kvdb_tests_version=0.11.0

say() { printf '\n== %s\n' "$*"; }

if [ -z "${LIBROCKSDB:-}" ]; then
    say "Building the library"
    cargo build --release --quiet --package spillway-db-capi
    LIBROCKSDB=$target/release/librocksdb.so
fi
library=$(readlink -f "$LIBROCKSDB")
soname=$(objdump -p "$library" | sed -n 's/^ *SONAME *//p')
include=${ROCKSDB_INCLUDE:-$root/crates/capi/include}
is_7_8=no
if [ "$soname" = librocksdb.so.7.8 ]; then is_7_8=yes go_version=v1.7.14; fi
nm -D --defined-only "$library" | sed -n 's/.* \(rocksdb_[A-Za-z0-9_]*\)$/\1/p' | sort >"$work/exported"

# Of our library, what is there so that clients link, and is refused.
touch "$work/refused"
if grep -q 'librocksdb (Spillway)' "$library"; then
    grep -ohE 'rocksdb_[A-Za-z0-9_]+\(' crates/capi/include/rocksdb/c/absent.h | tr -d '(' | sort -u >"$work/refused"
fi

# The names under which clients look for it.
mkdir "$work/lib"
for name in librocksdb.so librocksdb.so.7.8 "$soname"; do ln -sf "$library" "$work/lib/$name"; done
export LD_LIBRARY_PATH=$work/lib

# A registry that does not answer is one that cannot be reached.
patience_s=${CLIENTS_PATIENCE_S:-180}
soon() { timeout --kill-after=5 "$patience_s" "$@"; }

exports() { grep -qx "$1" "$work/exported"; }

# unpack PACKAGE...: Debian packages, into a folder of the cache; nothing is installed.
unpack() {
    local package
    for package in "$@"; do
        [ ! -d "$cache/debian/$package" ] || continue
        (cd "$work" && soon apt-get download -qq "$package")
        dpkg -x "$work/$package"_*.deb "$work/unpacked"
        mkdir -p "$cache/debian"
        mv "$work/unpacked" "$cache/debian/$package"
    done
}

debian_version() { apt-cache policy "$1" | sed -n 's/^ *Candidate: //p'; }

# undefined FILE: the functions of RocksDB's that a program is linked with.
undefined() { nm -D --undefined-only "$1" | sed -n 's/.* \(rocksdb_[A-Za-z0-9_]*\)$/\1/p'; }

# stubs NEEDED: makes $dir/libstubs.a of the functions in the list NEEDED that the library lacks, each of which ends the
# process, so that a program links and its other checks run. That they are missing is a failure of its own.
stubs() {
    comm -23 <(sort -u "$1") "$work/exported" >"$dir/missing"
    {
        echo '#include <stdio.h>'
        echo '#include <stdlib.h>'
        sed 's/.*/void &(void) { fputs("& is not in the library\\n", stderr); abort(); }/' "$dir/missing"
    } >"$dir/stubs.c"
    gcc -c -fPIC -o "$dir/stubs.o" "$dir/stubs.c"
    rm -f "$dir/libstubs.a"
    ar rc "$dir/libstubs.a" "$dir/stubs.o"
    if [ -s "$dir/missing" ]; then
        echo "FAILED every_function_is_there: the library lacks $(wc -l <"$dir/missing")," \
            "such as $(head -n 4 "$dir/missing" | paste -sd ' ' | sed 's/ /, /g')"
    fi
}

# --- Each client: fetch_NAME says its version in $dir/version, and fails where the client cannot be had. run_NAME builds what
# is to be built and runs the checks.

fetch_balboa() {
    unpack balboa-backend-rocksdb
    echo "$(debian_version balboa-backend-rocksdb) (Debian's binary)" >"$dir/version"
}

run_balboa() {
    local binary=$cache/debian/balboa-backend-rocksdb/usr/bin/balboa-rocksdb
    undefined "$binary" >"$dir/needed"
    stubs "$dir/needed"
    if [ -s "$dir/missing" ]; then
        gcc -shared -o "$dir/stubs.so" "$dir/stubs.o"
        export STUBS=$dir/stubs.so
    fi
    python3 clients/balboa/balboa_client.py "$binary"
}

fetch_python() {
    local at=$cache/python
    if [ ! -x "$at/bin/python" ] || ! "$at/bin/python" -c 'import rockstore'; then
        rm -rf "$at"
        python3 -m venv "$at"
        soon "$at/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check "rockstore==$python_version"
    fi
    echo "rockstore $python_version (PyPI)" >"$dir/version"
}

run_python() {
    # It looks functions up by their names.
    grep -rhoE 'lib\.rocksdb_[A-Za-z0-9_]+' "$cache/python/lib" --include='*.py' | sed 's/^lib\.//' >"$dir/needed"
    "$cache/python/bin/python" clients/python/rockstore_client.py
}

# bindgen, which the crate's build runs, wants a libclang and the compiler's own headers.
fetch_clang() {
    if [ -z "${LIBCLANG_PATH:-}" ] && [ -z "$(find /usr/lib -name 'libclang.so*' -print -quit 2>/dev/null)" ]; then
        unpack libclang1-14
        ln -sf libclang-14.so.13 "$cache/debian/libclang1-14/usr/lib/x86_64-linux-gnu/libclang.so"
    fi
}

fetch_rust() {
    fetch_clang
    cp -r clients/rust "$dir/crate"
    sed -i "s/^rocksdb = { version = \"[^\"]*\"/rocksdb = { version = \"=$rust_version\"/" "$dir/crate/Cargo.toml"
    soon cargo fetch --quiet --manifest-path "$dir/crate/Cargo.toml"
    echo "rocksdb $rust_version (crates.io)" >"$dir/version"
}

set_rust() {
    if [ -d "$cache/debian/libclang1-14" ]; then
        export LIBCLANG_PATH=${LIBCLANG_PATH:-$cache/debian/libclang1-14/usr/lib/x86_64-linux-gnu}
        export BINDGEN_EXTRA_CLANG_ARGS="-I$(gcc -print-file-name=include)"
    fi
    # The folder has another name each time, and so would be built anew: the cached one always is the same.
    mkdir -p "$cache/rust"
    ln -sfn "$work/lib" "$cache/rust/lib"
    export ROCKSDB_LIB_DIR=$cache/rust/lib CARGO_TARGET_DIR=$cache/rust/target CARGO_INCREMENTAL=0
}

run_rust() {
    set_rust
    link_rust -Wl,--warn-unresolved-symbols
    undefined "$CARGO_TARGET_DIR/debug/rocksdb-client" >"$dir/needed"
    stubs "$dir/needed"
    [ ! -s "$dir/missing" ] || link_rust "$dir/libstubs.a"
    "$CARGO_TARGET_DIR/debug/rocksdb-client"
}

link_rust() {
    cargo rustc --quiet --manifest-path "$dir/crate/Cargo.toml" -- -C link-arg="$1" >&2
}

# package NAME VERSION: a crate's package, which has its own tests, at $cache/NAME.
package() {
    rm -rf "${cache:?}/$1"
    cp -r "$(echo "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1-$2")" "$cache/$1"
    rm -f "$cache/$1/rust-toolchain.toml" # the compiler that is here
    printf '\n[workspace]\n' >>"$cache/$1/Cargo.toml" # the cache may lie in ours
}

# The crate's own tests, unchanged.
fetch_suite() {
    fetch_rust
    package rocksdb "$rust_version"
    (cd "$cache/rocksdb" && soon cargo fetch --quiet --locked)
    echo "rocksdb $rust_version's own tests (crates.io)" >"$dir/version"
}

run_suite() {
    cd "$cache/rocksdb"
    run_crate rust-suite --locked --tests --no-default-features --features bindgen-runtime
}

# The store of Parity's nodes. Its tests are in a crate of their own.
fetch_kvdb() {
    fetch_clang
    cargo init --quiet --lib --vcs none --name fetch "$dir/crate"
    printf 'kvdb-rocksdb = "=%s"\n[workspace]\n' "$kvdb_version" >>"$dir/crate/Cargo.toml"
    soon cargo fetch --quiet --manifest-path "$dir/crate/Cargo.toml"
    package kvdb-rocksdb "$kvdb_version"
    cd "$cache/kvdb-rocksdb"
    # Our library has the compressions.
    sed -i 's/^features = \["snappy"\]/features = ["bindgen-runtime"]/' Cargo.toml
    printf '[dev-dependencies.kvdb-shared-tests]\nversion = "=%s"\n' "$kvdb_tests_version" >>Cargo.toml
    soon cargo fetch --quiet
    echo "kvdb-rocksdb $kvdb_version's own tests (crates.io)" >"$dir/version"
}

run_kvdb() {
    cd "$cache/kvdb-rocksdb"
    run_crate kvdb --lib
}

# run_crate LIST ARGUMENT...: the tests of the crate here. LIST is a folder of clients/, with those that cannot pass.
run_crate() {
    local program name test listed=$root/clients/$1/not-here.txt
    shift
    set_rust
    CARGO_PROFILE_DEV_DEBUG=false cargo test --no-run "$@" >"$dir/build" 2>&1 || { tail -n 20 "$dir/build" >&2; return 1; }
    sed -n 's/^ *Executable .*(\(.*\))$/\1/p' "$dir/build" >"$dir/programs"
    while read -r program; do
        undefined "$program" >>"$dir/needed"
        name=$(basename "$program")
        name=${name%-*}
        for test in $("$program" --list 2>/dev/null | sed -n 's/: test$//p'); do
            judge "$name::$test" "$program" --exact "$test" --test-threads=1
        done
    done <"$dir/programs"
}

# judge TEST COMMAND...: one test, in a process of its own: some things that a library lacks end the process. The file
# $listed has those that cannot pass, with reasons.
judge() {
    local test=$1 passes=no
    shift
    if timeout 300 "$@" >"$dir/test" 2>&1 </dev/null; then passes=yes; fi
    case $passes-$(grep -c "^$test  " "$listed" || true) in
        yes-0) echo "ok $test" ;;
        no-1) echo "not here $(grep "^$test  " "$listed")" ;;
        yes-1) echo "FAILED $test: it passes, and is listed in ${listed#"$root/"}" ;;
        *) echo "FAILED $test: $(sed -n '/panicked/{n;p;q}; /^ *\tError: /{p;q}' "$dir/test" | cut -c 1-120)" ;;
    esac
}

# What Go fetches and builds stays in the cache, where it can be removed.
set_go() {
    export GOFLAGS='-mod=mod -modcacherw' GOMODCACHE=$cache/go/modules GOCACHE=$cache/go/build
}

fetch_go() {
    if [ "$is_7_8" = yes ]; then unpack librocksdb-dev; fi
    cp -r clients/go "$dir/module"
    set_go
    (cd "$dir/module" && soon bash -c 'go get "$1" && go mod tidy' get "github.com/linxGnu/grocksdb@$go_version") 2>&1
    echo "grocksdb $go_version (Go module proxy)" >"$dir/version"
}

# link_go: sets what cgo needs, and $sources.
link_go() {
    local headers=$include
    set_go
    export GOPROXY=off # all is there
    if [ "$is_7_8" = yes ]; then headers=$cache/debian/librocksdb-dev/usr/include; fi
    cd "$dir/module"
    sources=$(go list -m -f '{{.Dir}}' github.com/linxGnu/grocksdb)
    # All that it binds is linked into every program; what only builds for jemalloc have is not.
    find "$sources" -maxdepth 1 -name '*.go' ! -name '*_test.go' ! -name jemalloc.go -exec sed 's://.*::' {} + |
        grep -o 'C\.rocksdb_[A-Za-z0-9_]*(' | sed 's/^C\.//; s/($//' >"$dir/needed"
    grep -o '\brocksdb_[A-Za-z0-9_]*(' "$sources/grocksdb.c" | sed 's/($//' >>"$dir/needed"
    stubs "$dir/needed"
    if [ -s "$dir/missing" ]; then
        # Our header does not declare what we lack; the module brings RocksDB's own.
        mkdir -p "$dir/include/rocksdb"
        cp "$sources/c.h" "$dir/include/rocksdb/c.h"
        headers=$dir/include
    fi
    export CGO_CFLAGS=-I$headers CGO_LDFLAGS="-L$work/lib -lrocksdb -L$dir -lstubs"
}

run_go() {
    link_go
    go build -tags grocksdb_clean_link -o "$dir/client" . >&2
    "$dir/client"
}

# The module's own tests, unchanged.
fetch_gosuite() {
    fetch_go
    (cd "$dir/module" && soon go get -t "github.com/linxGnu/grocksdb@$go_version") 2>&1
    echo "grocksdb $go_version's own tests (Go module proxy)" >"$dir/version"
}

run_gosuite() {
    local test listed=$root/clients/gosuite/not-here.txt
    link_go
    go test -c -tags grocksdb_clean_link -o "$dir/suite" github.com/linxGnu/grocksdb >&2
    cd "$sources" # where they look for their files
    for test in $("$dir/suite" -test.list .); do judge "$test" "$dir/suite" -test.run "^$test\$" -test.count 1; done
}

fetch_nim() {
    unpack nim libpcre3
    local binding=${NIM_ROCKSDB:-$cache/nim-rocksdb}
    if [ ! -d "$binding" ]; then
        GIT_TERMINAL_PROMPT=0 soon git clone --quiet --depth 1 --branch "$nim_rocksdb_version" https://github.com/status-im/nim-rocksdb "$binding"
    fi
    local at=$cache/debian/nim
    # Where it looks for its configuration, being installed nowhere.
    [ -e "$at/usr/config" ] || ln -s ../etc/nim "$at/usr/config"
    echo "nim-rocksdb $(sed -n 's/^version *= *"\(.*\)"/\1/p' "$binding/rocksdb.nimble") (GitHub), Nim $(debian_version nim)" \
        >"$dir/version"
}

run_nim() {
    local at=$cache/debian/nim/usr flags=()
    # RocksDB 7.8 flushes families one by one.
    exports rocksdb_flush_cfs || flags+=(-d:flush_one_by_one)
    HOME=$dir LD_LIBRARY_PATH=$cache/debian/libpcre3/lib/x86_64-linux-gnu:$cache/debian/libpcre3/usr/lib/x86_64-linux-gnu \
        "$at/bin/nim" c --hints:off --lib:"$at/lib/nim/lib" --path:"${NIM_ROCKSDB:-$cache/nim-rocksdb}" \
        --nimcache:"$dir/nimcache" -d:rocksdb_dynamic_linking ${flags[@]+"${flags[@]}"} -o:"$dir/client" \
        clients/nim/nimbus.nim >&2
    # It looks functions up when it starts.
    strings "$dir/client" | grep -xE "rocksdb_[A-Za-z0-9_]+" >"$dir/needed"
    "$dir/client"
}

# --- Running them.

# part FUNCTION: runs it in a process of its own and leaves in $status how it ended. Not to be called in a condition: there
# bash goes on after what fails.
part() {
    set +e
    (set -e; "$1")
    status=$?
    set -e
}

# try NAME: prints the checks' lines, and adds a row to the table.
try() {
    local name=$1
    dir=$work/$name
    mkdir "$dir"
    say "$name"
    part "fetch_$name" >"$dir/fetch.log" 2>&1
    if [ "$status" != 0 ]; then
        [ "$status" != 124 ] || echo "no answer within $patience_s s" >>"$dir/fetch.log"
        echo "SKIPPED: $name cannot be had here: $(tail -n 1 "$dir/fetch.log" | cut -c 1-200)"
        printf '| %s | - | - | - | - | - | - | skipped: it could not be fetched |\n' "$name" >>"$work/table"
        return
    fi
    part "run_$name" >"$dir/out" 2>"$dir/err"
    if [ "$status" != 0 ] && ! grep -q '^FAILED' "$dir/out"; then
        echo "FAILED the_program_ends_well: $(tail -n 1 "$dir/err" | cut -c 1-200)" >>"$dir/out"
    fi
    cat "$dir/out"
    local passed failed why binds refused lacks
    touch "$dir/needed"
    sort -u -o "$dir/needed" "$dir/needed"
    binds=$(wc -l <"$dir/needed")
    refused=$(comm -12 "$dir/needed" "$work/refused" | wc -l)
    lacks=$(comm -23 "$dir/needed" "$work/exported" | wc -l)
    passed=$(grep -c '^ok ' "$dir/out" || true)
    failed=$(grep -c '^FAILED ' "$dir/out" || true)
    why=$(sed -n 's/^FAILED //p' "$dir/out" | tr '|' '/' | paste -sd ';' | sed 's/;/; /g')
    if [ "$passed" = 0 ] || [ "$failed" != 0 ]; then
        tail -n 20 "$dir/err" >&2
        failures=yes
    fi
    printf '| %s | %s | %s | %s | %s | %s | %s | %s |\n' "$name" "$(cat "$dir/version")" "$binds" "$refused" "$lacks" \
        "$passed" "$failed" "$why" >>"$work/table"
}

failures=no
{
    echo '| client | version | functions it binds | refused | missing | checks passed | failed | why |'
    echo '|---|---|---|---|---|---|---|---|'
} >"$work/table"
for name in ${*:-balboa python rust suite kvdb go gosuite nim}; do try "$name"; done

say "On $soname"
cat "$work/table"
if [ "${RECORD:-no}" = yes ]; then
    sed -i -e "/^<!-- clients -->\$/,/^<!-- end of clients -->\$/{/^<!--/!d}" -e "/^<!-- clients -->\$/r $work/table" docs/compat.md
    say "docs/compat.md has the table"
fi
[ "$failures" = no ]
