//! Runs every program in `examples/` to its end, and looks at its output.
//!
//! The programs are modules here, one build and one link for all of them. Each runs as a process of its own: this test
//! program, asked for the ignored test of the module.
#![allow(clippy::disallowed_methods, reason = "programs, as users write them")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

macro_rules! examples {
    ($($name:ident)+) => { $(
        mod $name {
            include!(concat!("../examples/", stringify!($name), ".rs"));

            #[test]
            #[ignore = "a program, which the test of its name starts"]
            fn program() {
                main().unwrap();
            }
        }
    )+

        const EXAMPLES: &[&str] = &[$(stringify!($name)),+];
    };
}

examples! { quickstart first time_series queue inverted_index bulk_load web_service branches }

/// Starts an example, with a folder for temporary files.
fn start(name: &str, temporary: &TempDir) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "--quiet", &format!("{name}::program")])
        .env("TMPDIR", temporary.path())
        .env("PORT", "0")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn finish(mut child: Child, temporary: &TempDir) -> String {
    for _ in 0..60_000 {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = child.kill(); // it is over by now
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "it removes what it made");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs an example. Its output has each of these texts.
fn prints(name: &str, texts: &[&str]) {
    let temporary = tempfile::tempdir().unwrap();
    let output = finish(start(name, &temporary), &temporary);
    for text in texts {
        assert!(output.contains(text), "{name} prints {text:?}:\n{output}");
    }
}

#[test]
fn each_is_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let programs: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned())).collect();
    for program in &programs {
        assert!(EXAMPLES.contains(&program.as_str()), "{program} has a test here");
    }
}

#[test]
fn branches_keep_their_sums() {
    prints("branches", &["200 branches", "branches whose sum is not what it was: 0"]);
}

#[test]
fn quickstart_reads_a_prefix() {
    prints("quickstart", &["fruit/apple = red"]);
}

#[test]
fn first_counts_and_reads_a_snapshot() {
    prints(
        "first",
        &["counted 4000 visits", "1000 visits are left, the snapshot has 4000", "3/0502 = a page", "refused: "],
    );
}

#[test]
fn time_series_keeps_a_day() {
    prints("time_series", &["17280 points of 4 sensors", "hour 3: 60 points", "5760 points of the last day are left"]);
}

#[test]
fn queue_gives_a_task_again() {
    prints("queue", &["20000 tasks done", "given again after a restart: task 20000", "0 tasks are left"]);
}

#[test]
fn inverted_index_finds_documents() {
    prints("inverted_index", &["sorted table:\n  2. A table is sorted", "memtable\", 2"]);
}

#[test]
fn bulk_load_replaces_users() {
    prints("bulk_load", &["users there: 3", "100000 users now", "beside it: true", "user 7: loaded user 7"]);
}

/// One request, and its response.
fn request(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(stream, "{head} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
        .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn web_service_serves_until_it_is_interrupted() {
    let temporary = tempfile::tempdir().unwrap();
    let mut service = start("web_service", &temporary);
    let mut lines = BufReader::new(service.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("listening")).unwrap();
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap();

    assert!(request(address, "PUT /fruit/apple", "red").contains("204"));
    assert!(request(address, "GET /fruit/apple", "").ends_with("\r\n\r\nred"));
    assert!(request(address, "GET /fruit", "").contains("fruit/apple\t3 bytes"));
    assert!(request(address, "DELETE /fruit/apple", "").contains("204"));
    assert!(request(address, "GET /fruit/apple", "").contains("404"));

    let interrupt = Command::new("kill").args(["-INT", &service.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.starts_with("closed")), "{rest:?}");
    finish(service, &temporary);
}
