#!/usr/bin/env bash
# What a program of one put and one get takes to build with this library, and with others: packages compiled, and seconds of a
# clean debug build, of the machine and of its processors. Wants a quiet machine and the network; RocksDB is given up after a
# quarter of an hour; its bindings want libclang-dev.
#
#     scripts/first-build.sh [spillway] [redb] [fjall] [rust-rocksdb]      all where none is named
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# program NAME DEPENDENCY: a package around the program on standard input.
program() {
    mkdir -p "$work/$1/src"
    printf '[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2024"\n[dependencies]\n%s\n[workspace]\n' "$2" >"$work/$1/Cargo.toml"
    cat >"$work/$1/src/main.rs"
    cp "$root/rust-toolchain.toml" "$work/$1/"
}

program spillway "spillway-db = { path = \"$root/crates/spillway\" }" <<'RUST'
fn main() -> spillway::Result<()> {
    let db = spillway::Db::open("data")?;
    db.put("key", "value")?;
    assert_eq!(db.get("key")?.as_deref(), Some(b"value".as_slice()));
    db.close()
}
RUST
cp Cargo.lock "$work/spillway/"
program redb 'redb = "4"' <<'RUST'
use redb::{Database, ReadableDatabase, TableDefinition};
const TABLE: TableDefinition<&str, &str> = TableDefinition::new("default");
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Database::create("data")?;
    let write = db.begin_write()?;
    write.open_table(TABLE)?.insert("key", "value")?;
    write.commit()?;
    assert_eq!(db.begin_read()?.open_table(TABLE)?.get("key")?.map(|value| value.value().to_owned()).as_deref(), Some("value"));
    Ok(())
}
RUST
program fjall 'fjall = "3"' <<'RUST'
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = fjall::Database::builder("data").open()?;
    let family = db.keyspace("default", fjall::KeyspaceCreateOptions::default)?;
    family.insert("key", "value")?;
    assert_eq!(family.get("key")?.as_deref(), Some(b"value".as_slice()));
    Ok(())
}
RUST
program rust-rocksdb 'rocksdb = "0.25"' <<'RUST'
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = rocksdb::DB::open_default("data")?;
    db.put("key", "value")?;
    assert_eq!(db.get("key")?.as_deref(), Some(b"value".as_slice()));
    Ok(())
}
RUST

echo "load before: $(cut -d' ' -f1-3 /proc/loadavg); processors: $(nproc)"
echo "| | packages | seconds | processor seconds |"
echo "|---|---|---|---|"
for name in ${*:-spillway redb fjall rust-rocksdb}; do
    cd "$work/$name"
    cargo fetch --quiet
    packages=$(cargo tree --edges normal,build --prefix none --format '{p}' | sed 's/ (.*//' | sort -u | wc -l)
    TIMEFORMAT='%R %U %S'
    if taken=$({ time timeout 900 cargo build --quiet 2>build.log; } 2>&1); then
        awk -v name="$name" -v packages="$packages" '{ printf "| %s | %d | %.0f | %.0f |\n", name, packages, $1, $2 + $3 }' <<<"$taken"
        ./target/debug/hello
    else
        echo "| $name | $packages | not built: 900 s were over, or build.log says why | |"
        grep -m3 -E '^error|panicked|Unable' build.log >&2 || true
    fi
done
