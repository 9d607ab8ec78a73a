//! Gives the shared library the name that programs linked against RocksDB 11 look for.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librocksdb.so.11");
    println!("cargo:rerun-if-changed=build.rs");
}
