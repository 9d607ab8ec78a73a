//! What is measured on: tables of user keys in order and their values, each made from a seed or of a file of this
//! repository.

use std::path::Path;

use base::{Error, Result};

/// User keys, ascending, and their values.
pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

pub const NAMES: [&str; 6] = ["json", "urls", "unicode", "source", "half", "counters"];

/// The rows of the corpus `name`, about `count` of them where it is made from a seed.
pub fn rows(name: &str, count: u64) -> Result<Rows> {
    let mut rows = match name {
        "json" => json(count),
        "urls" => urls(count),
        "unicode" => unicode()?,
        "source" => source()?,
        "half" => half(count),
        "counters" => counters(count),
        other => return Err(Error::invalid_argument(format!("no corpus is called {other}"))),
    };
    rows.sort();
    rows.dedup_by(|a, b| a.0 == b.0);
    Ok(rows)
}

/// A generator that one seed decides.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// One of `from`, the first ones more often, as words and names are.
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let n = from.len() as u64;
        let at = self.below(n).min(self.below(n));
        from.get(at as usize).copied().unwrap_or_default()
    }
}

const FIRST: [&str; 24] = [
    "maria", "john", "wei", "anna", "mohammed", "jose", "li", "sarah", "david", "fatima", "ivan", "laura", "peter",
    "yuki", "elena", "omar", "nina", "carlos", "emma", "lucas", "sofia", "hans", "amina", "noah",
];
const LAST: [&str; 24] = [
    "smith",
    "garcia",
    "wang",
    "mueller",
    "nguyen",
    "kim",
    "silva",
    "johnson",
    "rossi",
    "ivanov",
    "tanaka",
    "khan",
    "brown",
    "martin",
    "lopez",
    "schmidt",
    "ali",
    "chen",
    "jones",
    "novak",
    "kowalski",
    "andersson",
    "haddad",
    "okafor",
];
const CITIES: [&str; 16] = [
    "London",
    "New York",
    "Shanghai",
    "Paris",
    "Sao Paulo",
    "Berlin",
    "Tokyo",
    "Madrid",
    "Lagos",
    "Mumbai",
    "Toronto",
    "Cairo",
    "Seoul",
    "Mexico City",
    "Istanbul",
    "Sydney",
];
const PLANS: [&str; 4] = ["free", "basic", "professional", "enterprise"];
const WORDS: [&str; 32] = [
    "products",
    "search",
    "category",
    "blog",
    "articles",
    "users",
    "profile",
    "settings",
    "news",
    "2023",
    "2024",
    "shop",
    "electronics",
    "books",
    "reviews",
    "images",
    "static",
    "download",
    "api",
    "v1",
    "v2",
    "orders",
    "cart",
    "checkout",
    "help",
    "support",
    "archive",
    "tags",
    "music",
    "video",
    "sports",
    "travel",
];
const HOSTS: [&str; 12] = [
    "www.example.com",
    "shop.example.org",
    "cdn.images.example.net",
    "news.daily.example",
    "api.service.example",
    "m.example.com",
    "blog.travel.example",
    "static.assets.example.net",
    "forum.games.example",
    "wiki.project.example",
    "mail.example.com",
    "video.stream.example",
];

/// Records of users as services keep them: 300 bytes or so.
fn json(count: u64) -> Rows {
    let mut random = Random(1);
    let mut row = |i: u64| {
        let (first, last) = (random.pick(&FIRST), random.pick(&LAST));
        let text = format!(
            "{{\"id\":{i},\"uuid\":\"{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}\",\"name\":\"{first} {last}\",\
             \"email\":\"{first}.{last}{}@{}\",\"city\":\"{}\",\"plan\":\"{}\",\"balance\":{}.{:02},\
             \"created_at\":\"20{:02}-{:02}-{:02}T{:02}:{:02}:{:02}Z\",\"active\":{},\"tags\":[\"{}\",\"{}\"],\"logins\":{}}}",
            random.next() as u32,
            random.below(1 << 16),
            random.below(1 << 12),
            random.below(1 << 12),
            random.below(1 << 48),
            random.below(1000),
            random.pick(&HOSTS),
            random.pick(&CITIES),
            random.pick(&PLANS),
            random.below(10_000),
            random.below(100),
            15 + random.below(10),
            1 + random.below(12),
            1 + random.below(28),
            random.below(24),
            random.below(60),
            random.below(60),
            random.below(5) > 0,
            random.pick(&WORDS),
            random.pick(&WORDS),
            random.below(500),
        );
        (format!("user:{i:012}").into_bytes(), text.into_bytes())
    };
    (0..count).map(&mut row).collect()
}

/// Addresses by a hash: 70 bytes or so.
fn urls(count: u64) -> Rows {
    let mut random = Random(2);
    let mut row = |_| {
        let mut url = format!("https://{}", random.pick(&HOSTS));
        for _ in 0..1 + random.below(4) {
            url.push('/');
            url.push_str(random.pick(&WORDS));
        }
        match random.below(3) {
            0 => url.push_str(&format!(
                "/{}-{}-{}.html",
                random.pick(&WORDS),
                random.pick(&WORDS),
                random.below(100_000)
            )),
            1 => url.push_str(&format!(
                "?id={}&page={}&session={:016x}",
                random.below(1_000_000),
                random.below(50),
                random.next()
            )),
            _ => url.push_str(&format!("/{}", random.below(10_000_000))),
        }
        (random.next().to_be_bytes().to_vec(), url.into_bytes())
    };
    (0..count).map(&mut row).collect()
}

/// The lines of testdata/UnicodeData.txt by code point.
fn unicode() -> Result<Rows> {
    let text = read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/UnicodeData.txt")))?;
    let lines = text.lines().filter_map(|line| line.split_once(';'));
    Ok(lines.map(|(point, rest)| (format!("{point:0>6}").into_bytes(), rest.as_bytes().to_vec())).collect())
}

/// Paragraphs of this repository's sources and pages, by file and number.
fn source() -> Result<Rows> {
    let mut rows = Rows::new();
    let mut folders = vec![Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).to_path_buf()];
    while let Some(folder) = folders.pop() {
        let unreadable = |e: std::io::Error| Error::invalid_argument(format!("cannot list {}: {e}", folder.display()));
        #[allow(clippy::disallowed_methods, reason = "sources lie outside every database")]
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
            if path.is_dir() && !path.ends_with(".git") && !path.ends_with("target") {
                folders.push(path);
            } else if ["rs", "md"].contains(&extension) {
                let text = read(&path)?;
                let name = path.strip_prefix(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap_or(&path);
                let paragraphs = text.split("\n\n").filter(|p| !p.trim().is_empty()).enumerate();
                rows.extend(
                    paragraphs.map(|(i, p)| (format!("{}#{i:05}", name.display()).into_bytes(), p.as_bytes().to_vec())),
                );
            }
        }
    }
    Ok(rows)
}

fn read(path: &Path) -> Result<String> {
    #[allow(clippy::disallowed_methods, reason = "sources lie outside every database")]
    std::fs::read_to_string(path).map_err(|e| Error::invalid_argument(format!("cannot read {}: {e}", path.display())))
}

/// 100 bytes, the second half a repeat of the first, which is noise among printable characters: what db_bench makes at
/// `--compression_ratio=0.5`, but never the same twice.
fn half(count: u64) -> Rows {
    let mut random = Random(3);
    let mut row = |_| {
        let half: Vec<u8> = (0..50).map(|_| b' ' + random.below(95) as u8).collect();
        (format!("{:016}", random.below(10_000_000_000)).into_bytes(), half.repeat(2))
    };
    (0..count).map(&mut row).collect()
}

/// Numbers of eight bytes, most of them small.
fn counters(count: u64) -> Rows {
    let mut random = Random(4);
    let mut row = |i: u64| {
        let bits = random.below(24);
        (format!("counter:{:010}", i * 7).into_bytes(), random.below(1 << bits).to_le_bytes().to_vec())
    };
    (0..count).map(&mut row).collect()
}
