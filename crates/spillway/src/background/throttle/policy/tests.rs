//! Rates as text: what is known of a database in, MiB a second out. `UPDATE=1 cargo test -p spillway-db throttle::policy`
//! writes the expected parts anew.

use std::fmt::Write;
use std::path::Path;

use vfs::{IfExists, IoClass};

use super::*;

const MIB: u64 = 1 << 20;

/// A line: the user's limit, then what is known. The rates of flushes, compactions and deletions.
fn outcome(line: &str) -> String {
    let mut allowed = Allowed { bytes_per_s: None, is_automatic: true };
    let mut load = Load::default();
    for word in line.split_whitespace() {
        let (name, number) = word.split_once('=').unwrap_or((word, "0"));
        let number: f64 = number.parse().unwrap();
        let bytes = (number * MIB as f64) as u64;
        match name {
            "limit" => allowed = Allowed { bytes_per_s: Some(bytes), is_automatic: false },
            "at-most" => allowed = Allowed { bytes_per_s: Some(bytes), is_automatic: true },
            "syncs" => load.has_syncs = true,
            "fill" => load.fill_bytes_per_s = bytes,
            "debt" => load.debt = number,
            "awaited" => load.is_awaited = true,
            "idle" => {}
            other => panic!("{other}"),
        }
    }
    let rates = [Work::Flush, Work::Compaction, Work::Deletion].map(|work| match bytes_per_s(work, allowed, &load) {
        None => "-".to_owned(),
        Some(rate) => (rate / MIB).to_string(),
    });
    format!("flush {} compaction {} deletion {}", rates[0], rates[1], rates[2])
}

#[test]
fn rates() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/background/throttle/testdata/rates.txt");
    let real = vfs::RealVfs::new();
    let text = String::from_utf8(vfs::read_all(&*real, &path, 1 << 20, IoClass::Other).unwrap()).unwrap();
    let mut written = String::new();
    for case in text.split("\n\n").filter(|case| !case.trim().is_empty()) {
        let input = case.split_once("----").map_or(case, |(input, _)| input).trim();
        let lines = input.lines().filter(|line| !line.starts_with('#')).map(outcome);
        writeln!(written, "{input}\n----\n{}\n", lines.collect::<Vec<_>>().join("\n")).unwrap();
    }
    if std::env::var_os("UPDATE").is_some() {
        let mut file = real.create(&path, IfExists::Truncate).unwrap();
        file.append(written.as_bytes(), IoClass::Other).unwrap();
        return;
    }
    assert_eq!(text, written, "UPDATE=1 rewrites it");
}
