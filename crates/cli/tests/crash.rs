//! A load that is killed loses nothing that it acknowledged.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use common::{Place, SPILLWAY};

const KILLS: u64 = 4;
const BATCH: u64 = 50;

/// Record `n`, as a line of the input.
fn line(n: u64) -> String {
    format!("{n:09}\tvalue of {n}, {}\n", "x".repeat((n % 300) as usize))
}

/// Feeds an endless load, kills it (SIGKILL) after `acks_wanted` acknowledgements, and returns the last one seen.
fn load_and_kill(place: &Place, sync: bool, acks_wanted: u64) -> u64 {
    let mut args = vec!["load", "-", "--db", "db", "--format", "kv", "--acks", "--batch", "50"];
    args.extend(["--options", "write_buffer_size=256K;log_file_bytes=256K"]);
    args.extend(sync.then_some("--sync"));
    let mut child = place.command(SPILLWAY, &args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || (0..).map(line).try_for_each(|line| stdin.write_all(line.as_bytes()))); // ends with the pipe
        let mut acknowledged = 0;
        let mut killed = false;
        for line in stdout.lines().map_while(Result::ok) {
            acknowledged = line.strip_prefix("acknowledged ").unwrap().parse().unwrap();
            if acknowledged >= acks_wanted * BATCH && !killed {
                child.kill().unwrap(); // what it had printed by then is read on
                killed = true;
            }
        }
        assert!(killed, "the load ended by itself");
        child.wait().unwrap();
        acknowledged
    })
}

fn run(sync: bool) {
    let place = Place::new();
    let mut kept = 0;
    for kill in 1..=KILLS {
        // Each run starts over and comes farther: flushes, log switches and compactions lie under the later kills.
        let acknowledged = load_and_kill(&place, sync, kill * kill * if sync { 10 } else { 60 });
        kept = kept.max(acknowledged);
        let check = place.spillway(&["check", "--db", "db"]).ok();
        assert!(check.ends_with("the database is whole\n"), "{check}");
        let found = place.spillway(&["scan", "--db", "db"]).ok();
        let expected: Vec<String> = (0..kept).map(line).collect();
        let found: Vec<&str> = found.split_inclusive('\n').collect();
        assert!(found.len() as u64 >= kept, "{kept} acknowledged, {} found", found.len());
        assert!(found.iter().zip(&expected).all(|(found, expected)| found == expected), "another value");
        // Nothing but a prefix of the input, in whole batches.
        assert_eq!(found.len() as u64 % BATCH, 0);
        assert_eq!(found.last().unwrap(), &line(found.len() as u64 - 1));
    }
}

#[test]
fn a_killed_load_loses_nothing_acknowledged() {
    run(false);
}

#[test]
fn a_killed_synced_load_loses_nothing_acknowledged() {
    run(true);
}
