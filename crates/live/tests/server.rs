//! The live page by plain sockets: what viewers get, who is refused, and what nobody can do to the database.
#![allow(clippy::disallowed_methods, reason = "a test has threads, a clock and files of its own")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use live::{Server, Settings};
use serde_json::Value;
use spillway::{Db, ErrorKind, Options};

struct Opened {
    db: Db,
    server: Server,
    _dir: tempfile::TempDir,
}

const TOKEN: &str = "0123456789abcdef0123";

fn opened(change: impl FnOnce(&mut Settings)) -> Opened {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path().join("db"), &Options::new().statistics(true)).unwrap();
    let mut settings = Settings::default();
    change(&mut settings);
    let server = Server::start(db.clone(), settings).unwrap();
    Opened { db, server, _dir: dir }
}

impl Opened {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Status and body of a request with these headers.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect();
        let len = body.len();
        write!(stream, "{method} {path} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {len}\r\n\r\n{body}")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, "host: localhost\r\n", "")
    }

    /// The events of the stream: names and JSON.
    fn stream(&self) -> impl Iterator<Item = (String, Value)> {
        let mut stream = self.connect();
        write!(stream, "GET /stream HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines().map(|line| line.unwrap());
        std::iter::from_fn(move || {
            let name = lines.find_map(|line| line.strip_prefix("event: ").map(str::to_string))?;
            let data = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_string))?;
            Some((name, serde_json::from_str(&data).unwrap()))
        })
    }
}

#[test]
fn a_viewer_gets_the_page_and_a_frame_each_second() {
    let opened = opened(|_| {});
    let (status, page) = opened.get("/");
    assert!(status == 200 && page.contains("Is it well?") && page.contains("content-security-policy"), "{page}");
    for file in ["app.js", "charts.js", "lanes.js", "levels.js", "panels.js", "text.js", "style.css", "icon.svg"] {
        assert_eq!(opened.get(&format!("/page/{file}")).0, 200, "{file}");
    }
    assert_eq!(opened.get("/page/../Cargo.toml").0, 404);
    assert_eq!(opened.get("/else").0, 404);
    let hostile = "</script><img src=x onerror=alert(1)>\"'\r\nevent: frame";
    let family = opened.db.family(hostile).unwrap();
    let mut stream = opened.stream();
    assert_eq!(stream.next().unwrap().0, "history");
    let frame = stream.find(|(_, frame)| !frame["point"].is_null()).unwrap().1;
    assert_eq!(frame["verdict"]["level"], "good");
    family.put("key", "value").unwrap();
    opened.db.flush().unwrap();
    let frame = stream.find(|(_, frame)| frame["point"]["writes"].as_f64() > Some(0.0)).unwrap().1;
    assert_eq!(frame["observation"]["families"][1]["name"], hostile, "text, not an event or markup");
    assert!(frame["point"]["write_p99_us"].is_u64() && frame["point"]["write_max_us"].is_u64());
    let option = |frame: &Value, name: &str| {
        let options = frame["options"].as_array().unwrap().clone();
        options.into_iter().find(|option| option["name"] == name)
    };
    assert_eq!(option(&frame, "statistics").unwrap()["is_changed"], false);
    opened.db.set_options([("max_total_wal_size", "33554432")]).unwrap();
    let changed = stream.find_map(|(_, frame)| option(&frame, "max_total_wal_size")).unwrap();
    assert_eq!((&changed["text"], &changed["is_changed"]), (&"32 MiB".into(), &true.into()));
    let (status, whole) = opened.get("/observation");
    assert!(status == 200 && whole.contains("\"tickers\""), "{whole}");
    let (status, metrics) = opened.get("/metrics");
    assert!(status == 200 && metrics.contains("application/openmetrics-text; version=1.0.0"), "{metrics}");
    assert!(metrics.contains("\nspillway_writes_total 1\n") && metrics.contains("\n# EOF\n"), "{metrics}");
}

#[test]
fn strangers_are_refused() {
    let by_name = opened(|_| {});
    assert_eq!(by_name.ask("GET", "/", "host: evil.example\r\n", "").0, 403, "another site's name for this machine");
    for host in ["localhost:80", "LocalHost", "127.0.0.1:7700", "127.8.0.1", "[::1]:7700", "[::1]"] {
        assert_eq!(by_name.ask("GET", "/", &format!("host: {host}\r\n"), "").0, 200, "{host}");
    }
    let evil =
        ["[::1]evil.example", "[::1]:80@evil.example", "[::1", "[127.0.0.1]", "::1", "", "127.0.0.1.evil.example"];
    let evil =
        evil.into_iter().chain(["localhost:80@evil.example", "localhost:evil.example", "localhost, evil.example"]);
    for host in evil.chain(["localhost\r\nhost: evil.example"]) {
        let status = by_name.ask("GET", "/", &format!("host: {host}\r\n"), "").0;
        assert!([400, 403].contains(&status), "{host}: {status}");
    }
    let by_token = opened(|settings| settings.token = Some(TOKEN.into()));
    let port = by_token.server.address().port();
    for (headers, status) in [
        ("", 401),
        ("authorization: Bearer 0123456789abcdef0124\r\n", 401),
        ("cookie: other=1; spillway_token_PORT=0123\r\n", 401),
        ("cookie: other=1; spillway_token_1=0123456789abcdef0123\r\n", 401),
        ("authorization: Bearer 0123456789abcdef0123\r\n", 200),
        ("authorization: bearer 0123456789abcdef0123\r\n", 200),
        ("authorization: Basic 0123456789abcdef0123\r\n", 401),
        ("cookie: other=1; spillway_token_PORT=0123456789abcdef0123\r\n", 200),
        ("cookie: spillway_token_PORT=0123; spillway_token_PORT=0123456789abcdef0123\r\n", 200),
        ("cookie: spillway_token_PORT=0123\r\ncookie: spillway_token_PORT=0123456789abcdef0123\r\n", 200),
        ("authorization: Bearer old\r\ncookie: spillway_token_PORT=0123456789abcdef0123\r\n", 200),
    ] {
        let headers = headers.replace("PORT", &port.to_string());
        for path in ["/observation", "/page/app.js"] {
            let host = "host: db.example\r\n";
            assert_eq!(by_token.ask("GET", path, &format!("{host}{headers}"), "").0, status, "{path} {headers}");
        }
    }
    assert_eq!(by_token.get("/?token=wrong").0, 401);
    assert!(by_token.server.url().ends_with(TOKEN));
}

/// Beside a cookie of an earlier token, and with a wrong one in the address beside the right cookie.
#[test]
fn the_printed_address_lets_in_and_leaves_the_right_cookie() {
    let opened = opened(|settings| settings.token = Some(TOKEN.into()));
    let name = format!("spillway_token_{}", opened.server.address().port());
    for (path, cookie) in [(format!("/?token={TOKEN}"), "old"), ("/?token=x;Domain=evil.example".into(), TOKEN)] {
        let headers = format!("host: db.example\r\ncookie: {name}={cookie}\r\n");
        let (status, answer) = opened.ask("GET", &path, &headers, "");
        assert_eq!(status, 303, "{answer}");
        assert!(answer.contains(&format!("set-cookie: {name}={TOKEN}; HttpOnly; SameSite=Lax\r\n")), "{answer}");
    }
}

/// A proxy that serves the page below a path passes the rest on: no address in an answer may begin with the root.
#[test]
fn a_page_below_a_path_finds_its_parts() {
    let opened = opened(|settings| settings.token = Some(TOKEN.into()));
    let (_, answer) = opened.get(&format!("/?token={TOKEN}"));
    assert!(answer.contains("location: ./\r\n") && !answer.contains("Path="), "{answer}");
    for file in ["", "page/app.js", "page/charts.js", "page/lanes.js", "page/panels.js", "page/style.css"] {
        let headers = format!("host: db.example\r\nauthorization: Bearer {TOKEN}\r\n");
        let (status, answer) = opened.ask("GET", &format!("/{file}"), &headers, "");
        assert_eq!(status, 200, "{file}");
        for rooted in ["\"/", "'/", "`/"] {
            assert!(!answer.contains(rooted), "{file}: {rooted}");
        }
    }
}

#[test]
fn options_change_only_where_that_is_allowed() {
    let change = r#"{"family":"default","name":"write_buffer_size","value":"8M"}"#;
    let trusted = format!("host: localhost\r\nauthorization: Bearer {TOKEN}\r\n");
    let headers = &format!("{trusted}x-spillway-change: 1\r\n");
    let closed = opened(|_| {});
    let (status, answer) = closed.ask("POST", "/options", headers, change);
    assert!(status == 403 && answer.contains("--allow-changes"), "{answer}");
    let open = opened(|settings| (settings.allow_changes, settings.token) = (true, Some(TOKEN.into())));
    assert_eq!(open.ask("POST", "/options", &trusted, change).0, 403, "a form of another site has no such header");
    let untrusted = "host: localhost\r\nx-spillway-change: 1\r\n";
    assert_eq!(open.ask("POST", "/options", untrusted, change).0, 401, "another user of this machine has no token");
    assert_eq!(open.ask("POST", "/options", headers, change).0, 204);
    let options = open.db.observe().options;
    assert!(
        options.iter().any(|option| option.name == "write_buffer_size" && option.value == "8388608"),
        "{options:?}"
    );
    for (body, why) in [
        (r#"{"family":"none","name":"write_buffer_size","value":"8M"}"#, "none"),
        (r#"{"name":"no_such_option","value":"1"}"#, "no_such_option"),
        (r#"{"name":"max_background_jobs","value":"many"}"#, "max_background_jobs"),
        ("{}", "not a change"),
    ] {
        let (status, answer) = open.ask("POST", "/options", headers, body);
        assert!(status == 400 && answer.contains(why), "{answer}");
    }
    let before = open.db.observe().options;
    for (family, name, value) in [
        (r#""default""#, "compaction_options_fifo", "{max_table_files_size=1}"),
        (r#""default""#, "compaction_options_fifo.max_table_files_size", "1"),
        (r#""default""#, "ttl", "1"),
        ("null", "ttl", "1"),
        ("null", "WAL_ttl_seconds", "1"),
        ("null", "WAL_size_limit_MB", "1"),
        ("null", "avoid_flush_during_shutdown", "true"),
    ] {
        let body = format!(r#"{{"family":{family},"name":"{name}","value":"{value}"}}"#);
        let (status, answer) = open.ask("POST", "/options", headers, &body);
        assert!(status == 403 && answer.contains("deletes data") && answer.contains("Db::set_options"), "{answer}");
    }
    assert_eq!(open.db.observe().options, before);
}

#[test]
fn what_cannot_be_served_says_so() {
    let first = opened(|_| {});
    let start = |change: &dyn Fn(&mut Settings)| {
        let mut settings = Settings::default();
        change(&mut settings);
        Server::start(first.db.clone(), settings).map(drop).unwrap_err()
    };
    let error = start(&|settings| settings.address = first.server.address());
    assert!(error.to_string().contains("choose another port"), "{error}");
    let error = start(&|settings| settings.address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("give a token"), "{error}");
    let error = start(&|settings| settings.allow_changes = true);
    assert!(
        error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("changes need a token"),
        "{error}"
    );
    for token in ["short", "0123456789abcde\r\n1", ""] {
        let error = start(&|settings| settings.token = Some(token.into()));
        assert!(error.to_string().contains("openssl rand"), "{error}");
    }
}

/// Two servers of one database, readers that never read, and more viewers than there are places.
#[test]
fn crowds_and_slow_readers_are_bounded() {
    let opened = opened(|_| {});
    let second = Server::start(opened.db.clone(), Settings::default()).unwrap();
    assert_ne!(second.address(), opened.server.address());
    let mut crowd = Vec::new();
    for _ in 0..64 {
        let mut stream = opened.connect();
        write!(stream, "GET /stream HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        crowd.push(stream); // and nothing of it is read
    }
    let (status, answer) = opened.get("/stream");
    assert!(status == 503 && answer.contains("Too many viewers"), "{answer}");
    assert_eq!(opened.get("/").0, 200);
    // Beyond the server's places and the system's queue nobody is let in.
    let patience = Duration::from_millis(1);
    let more: Vec<_> =
        (0..1000).filter_map(|_| TcpStream::connect_timeout(&opened.server.address(), patience).ok()).collect();
    assert!(more.len() < 1000, "{} connections", more.len());
    let began = Instant::now();
    for n in 0..1000u16 {
        opened.db.put(n.to_be_bytes(), "value").unwrap();
    }
    assert!(began.elapsed() < Duration::from_secs(10));
    drop((crowd, more));
    let until = Instant::now() + Duration::from_secs(20);
    while opened.get("/observation").0 != 200 {
        assert!(Instant::now() < until);
    }
    // Places are free again once the server has seen the ends: a frame that it cannot write.
    let until = Instant::now() + Duration::from_secs(20);
    while !opened.stream().any(|(name, _)| name == "frame") {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Silence, half a head, a head byte by byte, half a body, a kept connection, and answers that nobody reads: each is ended
/// after ten seconds, while one who reads the stream stays.
#[test]
fn connections_without_an_answer_end() {
    let opened = opened(|_| {});
    let sent = |text: &str| {
        let mut stream = opened.connect();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let began = Instant::now();
    let mut viewer = opened.stream();
    let waiting = [
        ("silent", sent("")),
        ("half a head", sent("GET / HTTP/1.1\r\nhost: local")),
        (
            "half a body",
            sent("POST /options HTTP/1.1\r\nhost: localhost\r\nx-spillway-change: 1\r\ncontent-length: 90\r\n\r\n{"),
        ),
        ("kept", sent("GET /page/icon.svg HTTP/1.1\r\nhost: localhost\r\n\r\n")),
    ];
    let mut slow = opened.connect();
    let mut answers = opened.connect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let is_refused = (0..60).any(|_| {
                std::thread::sleep(Duration::from_millis(500));
                slow.write_all(b"x").is_err()
            });
            assert!(is_refused, "a head byte by byte");
        });
        scope.spawn(|| {
            let request = "GET /page/charts.js HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
            answers.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
            let error = (0..10_000).find_map(|_| answers.write_all(request.as_bytes()).err());
            let kind = error.map(|error| error.kind());
            assert!(kind.is_some_and(|kind| kind != std::io::ErrorKind::WouldBlock), "nothing is read: {kind:?}");
        });
        for (what, mut stream) in waiting {
            let mut rest = Vec::new();
            let ended = stream.read_to_end(&mut rest);
            let is_reset = ended.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset);
            assert!(ended.is_ok() || is_reset, "{what}: {ended:?}");
            assert!(began.elapsed() > Duration::from_secs(9), "{what}: after {:?}", began.elapsed());
        }
    });
    let late = |frame: &Value| frame["observation"]["process"]["uptime_us"].as_u64() > Some(14_000_000);
    assert!(viewer.any(|(_, frame)| late(&frame)), "a viewer stays");
}

/// A database whose readings are large, so that few of them fill the system's buffers.
struct Large(Db);

impl live::Source for Large {
    fn observe(&self) -> spillway::Result<spillway::observe::Observation> {
        let mut now = self.0.observe();
        now.process.identity = "x".repeat(2 << 20);
        Ok(now)
    }

    fn set_option(&self, _: Option<&str>, _: &str, _: &str) -> spillway::Result<()> {
        Ok(())
    }
}

/// A program's own source that panics.
struct Broken;

impl live::Source for Broken {
    fn observe(&self) -> spillway::Result<spillway::observe::Observation> {
        panic!("of the test")
    }

    fn set_option(&self, _: Option<&str>, _: &str, _: &str) -> spillway::Result<()> {
        Ok(())
    }
}

#[test]
fn a_server_whose_source_panics_says_that_it_ended() {
    assert!(opened(|_| {}).server.is_serving());
    let server = Server::start(Broken, Settings::default()).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while server.is_serving() {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(TcpStream::connect(server.address()).is_err());
}

#[test]
fn viewers_that_do_not_read_lose_their_places() {
    let opened = opened(|_| {});
    let server = Server::start(Large(opened.db.clone()), Settings::default()).unwrap();
    let view = || {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "GET /stream HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        (stream, head == *b"HTTP/1.1 200")
    };
    let crowd: Vec<_> = (0..64).map(|_| view()).collect();
    assert!(crowd.iter().all(|(_, is_let_in)| *is_let_in));
    assert!(!view().1, "no place is left");
    let until = Instant::now() + Duration::from_secs(90);
    while !view().1 {
        assert!(Instant::now() < until, "the others are connected still, and read nothing");
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(crowd);
}

#[test]
fn a_closed_database_is_told_and_a_dropped_server_is_gone() {
    let opened = opened(|_| {});
    opened.db.close().unwrap();
    let address = opened.server.address();
    let mut stream = opened.stream();
    let (_, frame) = stream.find(|(name, _)| name == "frame").unwrap();
    assert!(frame.is_object());
    drop(stream);
    drop(opened);
    assert!(TcpStream::connect(address).is_err());
}
