#!/usr/bin/env bash
# Installs the library with its links, its debug symbols in a file of their own, the headers and the pkg-config file.
#
# PREFIX (/usr/local), DESTDIR: as everywhere. LIBROCKSDB=PATH is the library, without it the release build is made.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
library=${LIBROCKSDB:-}
if [ -z "$library" ]; then
    cargo build --release --package spillway-capi
    library=${CARGO_TARGET_DIR:-target}/release/librocksdb.so
fi

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
