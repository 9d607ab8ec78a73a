//! Processes killed in the midst of inserting, by several threads: their memtables' files are read unchecked, cut at the
//! watermark found, and hold exactly the writes up to it. What each write is follows from its number, so that nothing but
//! the file is needed to tell.

extern crate spillway_db_memtable as memtable;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::tombstone::{FragmentedTombstones, RangeTombstone};
use base::{FamilyId, InternalOrder, LookupKey, SeqNo, UserOrder, ValueKind, key};
use memtable::image::{HEADER_BYTES, Header, ImageIdentity, LazyImage};
use memtable::{Entry, ImageFile, Memtable, MemtableConfig, factory_from_option_string};
use vfs::{IoClass, RealVfs, Vfs};

const OPTIONS: [&str; 2] = ["trie", "skip_list"];
const CAPACITY_BYTES: usize = 32 << 20;
const THREADS: u64 = 3;
const ROUNDS: u64 = 4;

const OPTION_VARIABLE: &str = "SPILLWAY_KILLED_OPTION";
const PATH_VARIABLE: &str = "SPILLWAY_KILLED_PATH";

fn mix(i: u64) -> u64 {
    let x = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 31)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

/// Write number `seq`.
fn write(seq: u64) -> (Vec<u8>, ValueKind, Vec<u8>) {
    let random = mix(seq);
    let key = |n: u64| match n % 3 {
        0 => format!("{:x}", n % 5000).into_bytes(),
        1 => format!("a prefix that many keys share {:04}", n % 2000).into_bytes(),
        _ => (n as u32).to_be_bytes().to_vec(),
    };
    if random.is_multiple_of(500) {
        let (start, end) = (key(random >> 10), key(random >> 20));
        return (start, ValueKind::RangeDeletion, end);
    }
    let kind = match (random >> 40) % 8 {
        0 => ValueKind::Deletion,
        1 => ValueKind::Merge,
        _ => ValueKind::Value,
    };
    let value_bytes = if kind == ValueKind::Deletion { 0 } else { (random >> 50) as usize % 60 };
    (key(random >> 8), kind, vec![seq as u8; value_bytes])
}

/// Numbers whose writes are done, and through which number all are.
#[derive(Default)]
struct Done {
    through: u64,
    ahead: BTreeSet<u64>,
}

impl Done {
    fn add(&mut self, range: std::ops::RangeInclusive<u64>) -> u64 {
        self.ahead.extend(range);
        while self.ahead.remove(&(self.through + 1)) {
            self.through += 1;
        }
        self.through
    }
}

/// Inserts until the memtable is full; some writes alone, some in batches.
fn insert_all(memtable: &dyn Memtable, next: &AtomicU64, done: &Mutex<Done>) {
    loop {
        let count = 1 + mix(next.load(Ordering::Relaxed)) % 12;
        let first = next.fetch_add(count, Ordering::Relaxed);
        let writes: Vec<_> = (first..first + count).map(|seq| (seq, write(seq))).collect();
        let payload = writes.iter().map(|(_, (key, _, value))| key.len() + value.len()).sum();
        if !memtable.try_reserve(memtable.worst_case_bytes(writes.len(), payload)) {
            return;
        }
        let entry = |(seq, (key, kind, value)): &'_ (u64, (Vec<u8>, ValueKind, Vec<u8>))| {
            (SeqNo(*seq), key.clone(), *kind, value.clone())
        };
        let owned: Vec<_> = writes.iter().map(entry).collect();
        memtable.insert_all(&mut owned.iter().map(|(seq, user_key, kind, value)| Entry {
            user_key,
            seq: *seq,
            kind: *kind,
            value,
        }));
        let through = done.lock().expect("no panic").add(first..=first + count - 1);
        memtable.mark(SeqNo(through), through * 10);
    }
}

/// By the directory: the file is not there when its identity is made.
fn page_cache(vfs: &dyn Vfs, path: impl AsRef<Path>) -> u128 {
    let dir = path.as_ref().parent().expect("a file in a directory");
    ImageIdentity::number_of(&vfs.page_cache_id(dir).unwrap_or_default())
}

/// What the killed process does; nothing where it is run as a test.
#[test]
fn child() {
    let (Ok(option), Ok(path)) = (std::env::var(OPTION_VARIABLE), std::env::var(PATH_VARIABLE)) else { return };
    let vfs = RealVfs::new();
    let mut config = MemtableConfig::new(InternalOrder::default(), FamilyId(5), CAPACITY_BYTES);
    let identity = ImageIdentity { page_cache: page_cache(&*vfs, &path), family: FamilyId(5), ..Default::default() };
    config.image = Some(ImageFile { identity, ..ImageFile::new(vfs.clone(), path) });
    let memtable = factory_from_option_string(&option).expect("known").create(&config).expect("created");
    let (next, done) = (Arc::new(AtomicU64::new(1)), Arc::new(Mutex::default()));
    for _ in 0..THREADS {
        let (memtable, next, done) = (Arc::clone(&memtable), Arc::clone(&next), Arc::clone(&done));
        vfs.spawn("writer", Box::new(move || insert_all(&*memtable, &next, &done))).expect("spawned");
    }
    vfs.sleep(Duration::from_secs(60));
}

fn start(option: &str, path: &Path) -> Child {
    let this = std::env::current_exe().expect("known");
    let mut command = Command::new(this);
    command.args(["--exact", "child"]).env(OPTION_VARIABLE, option).env(PATH_VARIABLE, path);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
}

/// Kills the process once its memtable is `enough` writes complete; the header found then, or `None` where no file
/// system here can map files.
fn kill(mut child: Child, vfs: &dyn Vfs, path: &Path, enough: u64) -> Option<Header> {
    let watermark = || {
        let mut page = vec![0; HEADER_BYTES];
        let read = vfs.open(path).and_then(|file| file.read_at(0, &mut page, IoClass::Other)).ok()?;
        Header::read(page.get(..read)?).ok()
    };
    let mut waited = 0;
    while watermark().is_none_or(|header| header.watermark.complete_through.0 < enough) && waited < 20_000 {
        vfs.sleep(Duration::from_millis(1));
        waited += 1;
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    watermark()
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Point entries of writes 1 to `through`, by internal key in the order of bytes, and range deletions.
fn model(through: u64) -> (Entries, FragmentedTombstones) {
    let (mut points, mut ranges) = (Vec::new(), Vec::new());
    for seq in 1..=through {
        let (user_key, kind, value) = write(seq);
        if kind == ValueKind::RangeDeletion {
            ranges.push(RangeTombstone { start: user_key, end: value, seq: SeqNo(seq) });
        } else {
            points.push((key::encode(&user_key, SeqNo(seq), kind), value));
        }
    }
    points.sort_by(|a, b| InternalOrder::default().compare(&a.0, &b.0));
    (points, FragmentedTombstones::build(UserOrder::Bytewise, ranges))
}

fn check(image: &Arc<LazyImage>, through: u64) {
    let (points, ranges) = model(through);
    let found = image.tombstones();
    assert_eq!(found.as_ref().map(|all| all.fragments()).unwrap_or_default(), ranges.fragments());
    let mut cursor = Arc::clone(image).cursor();
    let mut more = cursor.seek_to_first();
    for (key, value) in &points {
        assert!(more && cursor.key() == key && cursor.value() == value, "{key:?}: {:?}", cursor.status());
        more = cursor.next();
    }
    assert!(!more && cursor.status().is_ok());
    let mut more = cursor.seek_to_last();
    for (key, value) in points.iter().rev() {
        assert!(more && cursor.key() == key && cursor.value() == value, "{key:?}: {:?}", cursor.status());
        more = cursor.prev();
    }
    assert!(!more && cursor.status().is_ok());
    let mut by_key: BTreeMap<&[u8], Vec<(u64, &[u8])>> = BTreeMap::new();
    for (internal, value) in &points {
        let parsed = key::ParsedKey::parse(internal).expect("whole");
        by_key.entry(parsed.user_key).or_default().push((parsed.seq.0, value));
    }
    for (user_key, versions) in by_key {
        let seen = versions.get(versions.len() / 2).map_or(0, |(seq, _)| *seq);
        let mut expected = versions.iter().filter(|(seq, _)| *seq <= seen);
        let visit = &mut |seq: SeqNo, _, value: &[u8]| {
            assert_eq!(expected.next(), Some(&(seq.0, value)));
            true
        };
        image.get(&LookupKey::new(user_key, SeqNo(seen)), visit).expect("whole");
        assert!(expected.next().is_none());
    }
}

#[test]
fn what_killed_writers_left_is_read_up_to_the_watermark() {
    let vfs = RealVfs::new();
    for (option, round) in OPTIONS.into_iter().flat_map(|option| (0..ROUNDS).map(move |round| (option, round))) {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("made");
        let path = dir.path().join("image");
        let enough = [1, 300, 4_000, 30_000][round as usize];
        let Some(header) = kill(start(option, &path), &*vfs, &path, enough) else {
            println!("skipped: no file can be mapped here");
            continue;
        };
        assert_eq!(header.identity.page_cache, page_cache(&*vfs, &path));
        assert_eq!(header.file, vfs.metadata(&path).expect("there").identity);
        let watermark = header.watermark;
        assert!(watermark.complete_through.0 >= enough && header.sealed.is_none(), "{header:?}");
        assert!(watermark.position <= watermark.complete_through.0 * 10);
        let mapping = vfs.map_read(&path).expect("mapped");
        let order = UserOrder::default();
        let image = LazyImage::open(mapping.clone(), &path, &order, watermark.complete_through).expect("an image");
        check(&Arc::new(image), watermark.complete_through.0);
        let report = memtable::image::check((*mapping).as_ref(), &order).expect("whole");
        assert!(report.largest_seq >= watermark.complete_through);
    }
}
