#!/usr/bin/env bash
# Installs the library with its links, its debug symbols in a file of their own, the headers and the pkg-config file; and the
# command `spillway` with its manual pages and completions.
#
# PREFIX (/usr/local), DESTDIR: as everywhere. LIBROCKSDB=PATH is the library, without it the release builds of library and
# command are made. The command is the one beside the library, if there is one, or SPILLWAY=PATH.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
library=${LIBROCKSDB:-}
if [ -z "$library" ]; then
    cargo build --release --package spillway-db-capi --package spillway-db-cli
    library=${CARGO_TARGET_DIR:-target}/release/librocksdb.so
fi

command=${SPILLWAY:-$(dirname "$library")/spillway}
[ -r "$library" ] || { echo "install: there is no library $library" >&2; exit 1; }
[ -z "${SPILLWAY:-}" ] || [ -x "$command" ] || { echo "install: there is no command $command" >&2; exit 1; }

# The version of the C interface, as in the library's SONAME.
version=11.1.0
lib=${DESTDIR:-}$prefix/lib
include=${DESTDIR:-}$prefix/include
real=librocksdb.so.$version

install -d "$lib/pkgconfig" "$include/rocksdb/c"
install -m 644 crates/capi/include/rocksdb/c.h "$include/rocksdb/"
install -m 644 crates/capi/include/rocksdb/c/*.h "$include/rocksdb/c/"

# Under other names first: programs that run keep the library that they have.
objcopy --only-keep-debug "$library" "$lib/$real.debug.new"
mv -f "$lib/$real.debug.new" "$lib/$real.debug"
(
    library=$(realpath "$library")
    cd "$lib"
    objcopy --strip-unneeded --add-gnu-debuglink="$real.debug" "$library" "$real.new"
)
chmod 644 "$lib/$real.debug"
chmod 755 "$lib/$real.new"
mv -f "$lib/$real.new" "$lib/$real"
for link in librocksdb.so.11.1 librocksdb.so.11 librocksdb.so; do ln -sfn "$real" "$lib/$link"; done

cat >"$lib/pkgconfig/rocksdb.pc" <<EOF
prefix=$prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: rocksdb
Description: RocksDB's C interface over Spillway, an embedded key-value store
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lrocksdb
EOF
echo "installed $real, its links, headers and rocksdb.pc under ${DESTDIR:-}$prefix"

if [ -x "$command" ]; then
    bin=${DESTDIR:-}$prefix/bin
    share=${DESTDIR:-}$prefix/share
    bash=$share/bash-completion/completions
    zsh=$share/zsh/site-functions
    fish=$share/fish/vendor_completions.d
    install -d "$bin" "$share/man/man1" "$bash" "$zsh" "$fish"
    objcopy --strip-unneeded "$command" "$bin/spillway.new"
    chmod 755 "$bin/spillway.new"
    mv -f "$bin/spillway.new" "$bin/spillway"
    "$command" man --to "$share/man/man1" >/dev/null
    "$command" completions bash >"$bash/spillway"
    "$command" completions zsh >"$zsh/_spillway"
    "$command" completions fish >"$fish/spillway.fish"
    echo "installed the command spillway, its manual pages and completions"
fi
if [ -z "${DESTDIR:-}" ]; then
    echo "programs find the library after ldconfig, where $prefix/lib is one of the loader's folders, or by LD_LIBRARY_PATH"
fi
