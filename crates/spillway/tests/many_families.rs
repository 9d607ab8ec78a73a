//! Many column families in one database: made, written to, stored, opened and dropped. `SPILLWAY_FAMILIES=30000` is the nightly gate's
//! form.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests use the real file system")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use spillway::{Db, FamilyOptions, Options};

/// Of a run without `SPILLWAY_FAMILIES`.
const FAMILIES_FEW: usize = 300;

fn newest_options(dir: &std::path::Path) -> String {
    let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let newest = paths.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max().unwrap();
    std::fs::read_to_string(newest).unwrap()
}

/// Seconds of processor time that this process has used, where the system tells.
fn processor_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: u64 = stat.split(' ').skip(13).take(2).filter_map(|text| text.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

/// Calls `change` so many times. Calls near the end take as much processor time as those near the beginning, but for chance and
/// OPTIONS files: no change costs as much as there are families. 30,000 walks through 30,000 families take minutes.
fn linearly(count: usize, mut change: impl FnMut(usize)) {
    let mut spent = Vec::new();
    for i in 0..count {
        if i % (count / 10).max(1) == 0 {
            spent.push(processor_s());
        }
        change(i);
    }
    let mut tenths = spent.iter().zip(spent.iter().skip(1)).map(|(begun, ended)| ended - begun).skip(1);
    let (early, late) = (tenths.next().unwrap(), tenths.nth(6).unwrap());
    assert!(early.max(late) < 3.0 * early.min(late) + 5.0, "{spent:?}");
}

#[test]
fn many_families_are_made_opened_and_dropped() {
    let count = std::env::var("SPILLWAY_FAMILIES").map_or(FAMILIES_FEW, |text| text.parse().unwrap());
    let name = |i: usize| format!("family-{i}");
    let used = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
        format!("{:.1} s of processor time, {memory}", processor_s())
    };
    let dir = tempfile::tempdir().unwrap();
    let begun = std::time::Instant::now();
    let told = |what: &str| println!("{what}: {:.1} s, {}", begun.elapsed().as_secs_f64(), used());

    let db = Db::open(dir.path()).unwrap();
    linearly(count, |i| {
        let options = FamilyOptions::new().write_buffer_size(1 << 20).max_write_buffer_number(3 + i % 5);
        db.family_with(name(i), &options).unwrap().put("key", name(i)).unwrap();
    });
    drop(db);
    told("made");
    let text = newest_options(dir.path());
    assert_eq!(text.matches("[CFOptions \"family-").count(), count);
    drop(text);

    let all_kept = |db: &Db| {
        for i in (0..count).step_by(7) {
            let family = db.find_family(name(i)).unwrap();
            assert_eq!(family.get("key").unwrap().as_deref(), Some(name(i).as_bytes()));
            let of_its_own = format!("max_write_buffer_number={}", 3 + i % 5);
            assert!(family.options_text().contains(&of_its_own), "{i}");
        }
    };
    let db = Db::open(dir.path()).unwrap();
    told("opened by stored options");
    all_kept(&db);
    drop(db);
    told("closed");
    let named = (0..count).fold(Options::new(), |options, i| options.family(name(i), FamilyOptions::new()));
    let db = Db::open_with(dir.path(), &named).unwrap();
    told("opened by name");
    all_kept(&db);
    linearly(count - 1, |i| db.drop_family(&db.find_family(name(i + 1)).unwrap()).unwrap());
    told("dropped");
    drop(db);
    assert_eq!(newest_options(dir.path()).matches("[CFOptions \"family-").count(), 1);
}
