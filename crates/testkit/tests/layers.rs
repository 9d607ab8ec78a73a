//! Rules beyond the compiler: imports only go down the layers, and the functions named in ARCHITECTURE.md exist.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Who may use whom; the order is from the bottom to the top. Dependencies for tests may also be the test kit.
const LAYERS: [(&str, &[&str]); 12] = [
    ("base", &[]),
    ("vfs", &["base"]),
    ("memtable", &["base", "vfs"]),
    ("wal", &["base", "vfs"]),
    ("table", &["base", "vfs", "memtable"]),
    ("spillway", &["base", "vfs", "memtable", "wal", "table"]),
    ("capi", &["spillway"]),
    ("jni", &["spillway", "capi"]),
    ("live", &["spillway"]),
    ("cli", &["base", "vfs", "memtable", "wal", "table", "spillway", "bench", "live"]),
    ("testkit", &["base", "vfs", "memtable", "wal", "table", "spillway"]),
    ("bench", &["base", "vfs", "memtable", "wal", "table", "spillway", "testkit"]),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Our crates in a manifest's dependencies, each with its section.
fn dependencies(manifest: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_owned();
        } else if section.ends_with("dependencies") {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            if LAYERS.iter().any(|(layer, _)| *layer == name) {
                found.push((section.clone(), name.to_owned()));
            }
        }
    }
    found
}

#[test]
fn imports_go_down_only() {
    let found: BTreeSet<String> = std::fs::read_dir(crates())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    let known: BTreeSet<String> = LAYERS.iter().map(|(layer, _)| (*layer).to_owned()).collect();
    assert_eq!(found, known, "every crate has its place among the layers");
    for (layer, allowed) in LAYERS {
        let manifest = std::fs::read_to_string(crates().join(layer).join("Cargo.toml")).unwrap();
        for (section, used) in dependencies(&manifest) {
            let may = allowed.contains(&used.as_str())
                || section.ends_with("dev-dependencies")
                    && (used == "testkit" || used == layer || allowed.contains(&"spillway"));
            assert!(may, "{layer} may not use {used} ({section})");
        }
    }
}

/// Where `unsafe` may stand in a crate that is mostly without: what it is for, in one module or file.
const UNSAFE_ONLY_IN: [(&str, &[&str]); 3] =
    [("capi", &["boundary"]), ("jni", &["boundary"]), ("bench", &["bin/library", "bin/bench-peers/peers/lmdb.rs"])];

/// Rust files of a folder, recursively.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let nested = entries.map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    nested.flatten().filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Whether a line of code begins something unsafe. Comments and attributes do not count.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern \"C\" {"].iter().any(|start| code.contains(start))
}

#[test]
fn unsafe_code_stays_in_its_module() {
    for (layer, modules) in UNSAFE_ONLY_IN {
        let dir = crates().join(layer).join("src");
        let has_unsafe = |path: &PathBuf| std::fs::read_to_string(path).unwrap().lines().any(is_unsafe);
        let mut outside: Vec<_> = sources(&dir).into_iter().filter(has_unsafe).collect();
        for module in modules {
            let before = outside.len();
            outside.retain(|path| !path.starts_with(dir.join(module)));
            assert!(outside.len() < before, "{module} of {layer} has moved");
        }
        assert!(outside.is_empty(), "{layer} may not be unsafe in {outside:?}");
    }
}

/// The crates that may hold `unsafe`: `vfs` and `memtable` all over, the others in [`UNSAFE_ONLY_IN`].
const UNSAFE: [&str; 5] = ["vfs", "memtable", "capi", "jni", "bench"];

/// Root files of a crate: its library and its single-file programs.
fn roots(layer: &str) -> Vec<PathBuf> {
    ["lib.rs", "main.rs"]
        .map(|root| crates().join(layer).join("src").join(root))
        .into_iter()
        .filter(|p| p.exists())
        .collect()
}

#[test]
fn crates_without_unsafe_code_forbid_it() {
    for (layer, _) in LAYERS {
        for root in roots(layer) {
            let forbids = std::fs::read_to_string(&root).unwrap().lines().any(|line| line == "#![forbid(unsafe_code)]");
            assert!(forbids || UNSAFE.contains(&layer), "{root:?} does not forbid unsafe code");
        }
    }
    let bench = roots("bench");
    let forbid = |root: &PathBuf| std::fs::read_to_string(root).unwrap().contains("\n#![forbid(unsafe_code)]\n");
    assert!(bench.iter().all(forbid), "of bench, only programs of their own are allowed to: {bench:?}");
}

#[test]
fn dependencies_are_found() {
    let manifest = "[dependencies]\nbase.workspace = true\nwal = { workspace = true }\n[lib]\nname = \"vfs\"\n\
                    [dev-dependencies]\ntestkit.workspace = true\n";
    let found = dependencies(manifest);
    let found: Vec<_> = found.iter().map(|(section, name)| (section.as_str(), name.as_str())).collect();
    assert_eq!(found, [("dependencies", "base"), ("dependencies", "wal"), ("dev-dependencies", "testkit")]);
}

/// Functions named in a document as `path/file.rs::function`; paths start below the engine's sources, or with a crate.
fn named_functions(text: &str) -> Vec<(String, String)> {
    let quoted = text.split('`').skip(1).step_by(2);
    let places = quoted.filter_map(|quoted| quoted.split_once(".rs::"));
    places.map(|(file, function)| (format!("{file}.rs"), function.to_owned())).collect()
}

#[test]
fn functions_that_the_architecture_names_exist() {
    let text = std::fs::read_to_string(crates().parent().unwrap().join("ARCHITECTURE.md")).unwrap();
    let places = named_functions(&text);
    assert!(places.len() > 20, "only {} functions are named", places.len());
    let mut gone = Vec::new();
    for (file, function) in places {
        let of_engine = std::fs::read_to_string(crates().join("spillway/src").join(&file));
        let source = of_engine.or_else(|_| std::fs::read_to_string(crates().join(&file))).unwrap_or_default();
        let name = function.rsplit("::").next().unwrap_or_default();
        let defined = [format!("fn {name}("), format!("fn {name}<")].iter().any(|start| source.contains(start));
        if !defined {
            gone.push(format!("{file}::{function}"));
        }
    }
    assert!(gone.is_empty(), "ARCHITECTURE.md names what is not there: {gone:#?}");
}
