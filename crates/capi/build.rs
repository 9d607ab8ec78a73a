//! Gives the shared library the name that programs linked against RocksDB 11 look for, and leaves that name beside it.
#![allow(clippy::disallowed_methods, reason = "a build script has no vfs")]

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const SONAME: &str = "librocksdb.so.11";
/// The SONAME of RocksDB 11.1 where its own Makefile built it.
const OF_MAKEFILE: &str = "librocksdb.so.11.1";

/// The folder that Cargo puts the library into, `target/PROFILE`: this script's is `target/PROFILE/build/NAME/out`.
fn library_dir() -> Option<PathBuf> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR")?);
    Some(out.ancestors().nth(3)?.to_owned())
}

/// Leads a name to the library, which Cargo makes after this script has run.
fn link(dir: &Path, name: &str) -> io::Result<()> {
    match symlink("librocksdb.so", dir.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
    println!("cargo:rerun-if-changed=build.rs");
    for name in [SONAME, OF_MAKEFILE] {
        if let Some(Err(error)) = library_dir().map(|dir| link(&dir, name)) {
            println!("cargo:warning={name} is not there beside the library: {error}");
        }
    }
}
