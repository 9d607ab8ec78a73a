#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "sockets are the real file system's")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::*;
use crate::internal::{Database, OpenOptions, WriteOptions};
use crate::observe::ObservedEventKind;

fn options(changes: bool) -> OpenOptions {
    let mut options = OpenOptions::create_if_missing();
    (options.db.observe_socket, options.db.observe_changes) = (true, changes);
    options
}

fn refusal<T>(result: Result<T>) -> String {
    result.err().expect("refused").to_string()
}

#[test]
fn requests_have_one_form_each() {
    for line in ["observation", "metrics", "events 7", r#"set {"family":"a b","name":"n","value":"1 2"}"#] {
        assert_eq!(Request::parse(line).expect(line).line(), line);
    }
    let change = OptionChange { family: None, name: "n".to_owned(), value: "a b".to_owned() };
    assert_eq!(Request::parse("set n  a b ").expect("plain"), Request::Set(change));
    for bad in ["", "observe", "events", "events -1", "set n", "set {", "observation now"] {
        Request::parse(bad).expect_err(bad);
    }
}

#[test]
fn a_client_sees_the_database_and_its_close() {
    let dir = tempfile::tempdir().expect("made");
    let db = Database::open(dir.path(), &options(false)).expect("opened");
    db.put(&db.default_family(), b"key", b"value", &WriteOptions::default()).expect("put");
    db.flush(&[&db.default_family()]).expect("flushed");
    let mut client = Attached::connect(dir.path()).expect("attached");
    let seen = client.observe().expect("answered");
    assert_eq!((seen.writes.map(|writes| writes.keys), seen.process.pid), (Some(1), std::process::id()));
    let events = client.events(0).expect("answered");
    assert_eq!(events.events[0].kind, ObservedEventKind::Flush);
    assert!(client.events(events.last).expect("answered").events.is_empty());
    let refused = refusal(client.set(None, "max_background_jobs", "3"));
    assert!(refused.contains("observe_changes=true"), "{refused}");
    db.close().expect("closed");
    assert!(!dir.path().join(SOCKET_NAME).exists());
    assert_eq!(client.observe().expect_err("closed").kind(), base::ErrorKind::InvalidArgument);
    let gone = refusal(Attached::connect(dir.path()));
    assert!(gone.contains("observe_socket=true"), "{gone}");
}

#[test]
fn options_change_where_that_is_allowed() {
    let dir = tempfile::tempdir().expect("made");
    let db = Database::open(dir.path(), &options(true)).expect("opened");
    let mut client = Attached::connect(dir.path()).expect("attached");
    client.set(None, "max_background_jobs", "3").expect("the database's");
    client.set(None, "write_buffer_size", "1M").expect("the default family's");
    assert_eq!((db.options().max_background_jobs, db.default_family().options().write_buffer_size), (3, 1 << 20));
    for (family, name, value) in
        [(None, "wal_dir", "/x"), (Some("no\"ne"), "write_buffer_size", "1M"), (None, "max_background_jobs", "-1")]
    {
        let refused = refusal(client.set(family, name, value));
        assert!(refused.contains(name) || refused.contains("no\\\"ne"), "{refused}");
    }
}

fn ask(stream: &UnixStream, line: &str) -> String {
    let mut answer = String::new();
    (&*stream).write_all(format!("{line}\n").as_bytes()).expect("sent");
    BufReader::new(stream).read_line(&mut answer).expect("answered");
    answer
}

#[test]
fn bad_clients_are_bounded_and_told() {
    let dir = tempfile::tempdir().expect("made");
    let _db = Database::open(dir.path(), &options(false)).expect("opened");
    let connect = || UnixStream::connect(dir.path().join(SOCKET_NAME)).expect("connected");
    let stranger = connect();
    assert!(ask(&stranger, "GET / HTTP/1.1").starts_with(r#"{"error":"#));
    assert!(ask(&stranger, "observation").starts_with(r#"{"observation":{"process""#), "it may go on");
    let flood = connect();
    let _ = (&flood).write_all(&vec![b'x'; 1 << 20]);
    let mut left = String::new();
    let _ = BufReader::new(&flood).read_line(&mut left); // reset, perhaps
    assert_eq!(left, "", "let go");
    let clients: Vec<_> = (0..CLIENTS_MAX).map(|_| connect()).collect();
    let refused = refusal(Attached::connect(dir.path()).and_then(|mut client| client.observe()));
    assert!(refused.contains("clients are attached"), "{refused}");
    drop((clients, stranger));
    let again = || Attached::connect(dir.path()).and_then(|mut client| client.observe());
    while again().is_err() {
        std::thread::yield_now(); // until the server has seen them go
    }
}

#[test]
fn a_dead_process_s_socket_is_replaced() {
    let dir = tempfile::tempdir().expect("made");
    drop(Database::open(dir.path(), &OpenOptions::create_if_missing()).expect("opened"));
    let stale = |dir: &Path| drop(std::os::unix::net::UnixListener::bind(dir.join(SOCKET_NAME)).expect("bound"));
    stale(dir.path());
    let died = refusal(Attached::connect(dir.path()));
    assert!(died.contains("has died"), "{died}");
    let db = Database::open(dir.path(), &options(false)).expect("opened");
    Attached::connect(dir.path()).and_then(|mut client| client.observe()).expect("the new one");
    drop(db);
    stale(dir.path());
    drop(Database::open(dir.path(), &OpenOptions::create_if_missing()).expect("opened"));
    assert!(!dir.path().join(SOCKET_NAME).exists(), "removed by an open without the option, too");
}

#[test]
fn an_open_without_a_socket_is_an_open() {
    let dir = tempfile::tempdir().expect("made");
    std::fs::create_dir_all(dir.path().join(SOCKET_NAME).join("in the way")).expect("made");
    let db = Database::open(dir.path(), &options(false)).expect("opened");
    db.put(&db.default_family(), b"key", b"value", &WriteOptions::default()).expect("put");
    db.close().expect("closed");
    let log = std::fs::read_to_string(dir.path().join("LOG")).expect("a log");
    assert!(log.contains("no socket for observations"), "{log}");
}
