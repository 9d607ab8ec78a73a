//! Structure of the engine: dependencies between rooms (files and folders directly below `spillway/src`), the size of
//! their largest cycle, and the number of files with a type's methods. `crates/spillway/rooms.txt` lists the edges;
//! `UPDATE=1` rewrites it for review. Of the C interface the cycle only. The limits only go down.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Rooms of the C interface that need each other, at the most. Of the engine none do.
const CYCLE_OF_C_MAX: usize = 6;

/// Files with methods of one type, or with free functions that take it first, at the most.
const FILES_OF_A_TYPE_MAX: usize = 4;

type Edges = BTreeMap<String, BTreeSet<String>>;

/// A file of the engine that is no test.
struct Source {
    /// Modules from the crate's root to it.
    module: Vec<String>,
    /// Its code, without comments and without tests at its end.
    code: String,
}

/// The engine's crate, by its folder.
const ENGINE: &str = "spillway";

/// Folder of a crate.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(name)
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        let stem = name.trim_end_matches(".rs");
        stem == "tests" || stem == "testing" || stem.ends_with("_tests")
    })
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

/// Code of a file without comments and without the tests at its end.
fn code_of(text: &str) -> String {
    let before_tests = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    before_tests.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn sources(name: &str) -> Vec<Source> {
    let root = folder(name).join("src");
    let mut files = files_in(&root);
    files.sort();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let relative = |path: &PathBuf| path.strip_prefix(&root).unwrap().to_owned();
    let kept = files.iter().filter(|path| !is_test(&relative(path)));
    kept.map(|path| {
        let relative = relative(path).with_extension("");
        let mut module: Vec<_> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.last().is_some_and(|last| last == "mod" || last == "lib") {
            module.pop();
        }
        Source { module, code: code_of(&std::fs::read_to_string(path).unwrap()) }
    })
    .collect()
}

/// First path segments after `start` in code.
fn words_behind<'a>(code: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    let word = |rest: &'a str| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    };
    code.split(start).skip(1).map(word)
}

/// Rooms reached from `source` through `super`.
fn rooms_above(source: &Source) -> Vec<String> {
    let mut rooms = Vec::new();
    for ups in 1..=source.module.len() {
        let start = "super::".repeat(ups);
        let base = source.module.len() - ups;
        // Below the root the path stays in its room.
        if base == 0 {
            rooms.extend(words_behind(&source.code, &start).map(str::to_owned));
        }
    }
    rooms
}

/// Dependencies between a crate's rooms. `crate::Name` counts for the room `lib.rs` re-exports it from.
fn edges(name: &str) -> Edges {
    let sources = sources(name);
    let rooms: BTreeSet<String> = sources.iter().filter_map(|source| source.module.first().cloned()).collect();
    let root = sources.iter().find(|source| source.module.is_empty()).map(|root| root.code.clone()).unwrap_or_default();
    let exported = |name: &str| {
        let uses = root.split("pub use ").skip(1).filter_map(|text| text.split(';').next());
        let has_name = |text: &&str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
        uses.into_iter().find(has_name).and_then(|text| text.split("::").next().map(str::to_owned))
    };
    let mut edges = Edges::new();
    for source in &sources {
        let Some(own) = source.module.first() else { continue };
        let named = words_behind(&source.code, "crate::").map(str::to_owned).chain(rooms_above(source));
        let used = named.filter_map(|word| if rooms.contains(&word) { Some(word) } else { exported(&word) });
        edges.entry(own.clone()).or_default().extend(used.filter(|room| room != own && rooms.contains(room)));
    }
    edges
}

fn reachable(edges: &Edges, from: &str) -> BTreeSet<String> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(room) = left.pop() {
        for next in edges.get(&room).into_iter().flatten() {
            if seen.insert(next.clone()) {
                left.push(next.clone());
            }
        }
    }
    seen
}

/// Largest set of mutually dependent rooms.
fn largest_cycle(edges: &Edges) -> BTreeSet<String> {
    let reach: BTreeMap<&String, BTreeSet<String>> = edges.keys().map(|room| (room, reachable(edges, room))).collect();
    let cycle_of = |room: &String| -> BTreeSet<String> {
        let mutual = |other: &&String| reach.get(other).is_some_and(|from_other| from_other.contains(room));
        reach.get(room).into_iter().flatten().filter(mutual).cloned().collect()
    };
    edges.keys().map(cycle_of).max_by_key(BTreeSet::len).unwrap_or_default()
}

/// Types defined by the engine.
fn types() -> BTreeSet<String> {
    let sources = sources(ENGINE);
    let of_kind = |kind| sources.iter().flat_map(move |source| words_behind(&source.code, kind).map(str::to_owned));
    let names = of_kind("struct ").chain(of_kind("enum ")).chain(of_kind("trait "));
    names.filter(|name| !name.is_empty()).collect() // a macro's have none
}

/// Files by engine type: those with its methods, or with functions taking it as the first parameter.
fn files_by_type() -> BTreeMap<String, BTreeSet<String>> {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources(ENGINE) {
        // A handle of the public API is another type than the engine's of the same name.
        let prefix = if source.module.first().is_some_and(|room| room == "api") { "api::" } else { "" };
        let mut note = |name: &str| {
            files.entry(format!("{prefix}{name}")).or_default().insert(source.module.join("/"));
        };
        for line in source.code.lines() {
            if let Some(rest) = line.strip_prefix("impl") {
                // `impl<'a> Type<'a> {`; an implementation of a trait is the trait's.
                let name = rest.trim_start_matches(|c| c != ' ').trim();
                if !name.contains(" for ") {
                    words_behind(&format!("@{name}"), "@").for_each(&mut note);
                }
            }
        }
        // What stands in another type's block, a constructor mostly, is that type's.
        let is_free = |line: &&str| line.starts_with("fn ") || (line.starts_with("pub") && line.contains("fn "));
        let free = source.code.lines().enumerate().filter(|(_, line)| is_free(line));
        let texts = free.map(|(at, _)| source.code.lines().skip(at).take(3).collect::<Vec<_>>().join(" "));
        for arguments in texts.collect::<Vec<_>>().iter().filter_map(|text| text.split_once('(')) {
            let first = arguments.1.split([',', ')']).next().unwrap_or_default();
            if let Some((_, kind)) = first.split_once(": &") {
                let kind = kind.trim_start_matches("mut ").trim_start_matches(|c: char| !c.is_uppercase());
                words_behind(&format!("@{kind}"), "@").for_each(&mut note);
            }
        }
    }
    let types = types();
    files.retain(|name, _| types.contains(name.trim_start_matches("api::")));
    files
}

#[test]
fn rooms_use_only_the_rooms_that_the_list_allows() {
    let shown = |(room, used): (&String, &BTreeSet<String>)| {
        let used: Vec<_> = used.iter().map(String::as_str).collect();
        format!("{room}: {}\n", used.join(" "))
    };
    let found: String = edges(ENGINE).iter().map(shown).collect();
    let path = folder(ENGINE).join("rooms.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let allowed = std::fs::read_to_string(&path).unwrap();
    let differs: Vec<_> = found.lines().filter(|line| !allowed.lines().any(|other| other == *line)).collect();
    assert!(allowed == found, "not as in {}; UPDATE=1 writes what is there now: {differs:#?}", path.display());
}

#[test]
fn few_rooms_need_each_other() {
    for (name, cycle_max) in [(ENGINE, 0), ("capi", CYCLE_OF_C_MAX)] {
        let edges = edges(name);
        let cycle = largest_cycle(&edges);
        println!("{name}: {} rooms, the largest cycle has {}: {cycle:?}", edges.len(), cycle.len());
        assert!(cycle.len() <= cycle_max, "{name}, {}: {cycle:?}", cycle.len());
    }
}

#[test]
fn a_type_s_methods_stand_in_few_files() {
    let files = files_by_type();
    let mut most: Vec<_> = files.iter().map(|(name, files)| (files.len(), name)).collect();
    most.sort();
    println!("{:?}", most.iter().rev().take(8).collect::<Vec<_>>());
    assert!(most.iter().all(|(count, _)| *count <= FILES_OF_A_TYPE_MAX), "{:?}", most.last());
}

#[test]
fn cycles_are_found() {
    let edges: Edges = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]
        .map(|(room, used)| (room.to_owned(), BTreeSet::from([used.to_owned()])))
        .into();
    assert_eq!(largest_cycle(&edges), BTreeSet::from(["a", "b", "c"].map(str::to_owned)));
    let source = Source { module: ["a", "b"].map(str::to_owned).to_vec(), code: "super::super::c::d".to_owned() };
    assert_eq!(rooms_above(&source), ["c"]);
}
