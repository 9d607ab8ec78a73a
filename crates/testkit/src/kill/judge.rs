//! Checks the contents after a kill. Each thread's operations must form a prefix, at least through the last
//! acknowledged operation and at most one operation longer: a thread begins no operation before the previous one
//! returned.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::engine::check::{CheckOptions, check};
use crate::engine::{Db, ReadOptions};
use base::Result;
use vfs::Vfs;

use super::Setting;
use super::story::{FAMILIES, counter};
use crate::concurrent::read_all;
use crate::model::{Contents, Entry, Model};
use crate::ops::Durability;

/// Pairs of all families.
pub(super) type All = BTreeMap<&'static str, Contents>;

/// An opened database and its contents.
pub(super) struct Found {
    db: Db,
    pub contents: All,
    /// Memtables restored from images.
    pub restored: u64,
}

impl Found {
    /// Opens a database, from images or by replay alone, and reads it forward, backward, and key by key.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn open(vfs: Arc<dyn Vfs>, dir: &Path, setting: Setting, by_image: bool) -> Result<Found> {
        let mut options = setting.open_options(vfs);
        options.db.memtable_crash_safe_recover = by_image;
        let db = Db::open(dir, &options)?;
        let restored = db.int_property(&db.default_family(), "spillway.memtables-restored").expect("a property");
        assert!(by_image || restored == 0, "images were read though nobody asked for it");
        let contents = read(&db)?;
        Ok(Found { db, contents, restored })
    }

    pub fn flush(&self) -> Result<()> {
        let families = self.db.families();
        self.db.flush(&families.iter().collect::<Vec<_>>())
    }

    pub fn read_again(&self) -> Result<All> {
        read(&self.db)
    }
}

fn read(db: &Db) -> Result<All> {
    let mut all = All::new();
    for name in FAMILIES {
        let contents = read_all(db, name, None, false);
        assert!(contents == read_all(db, name, None, true), "{name} is another backwards");
        let family = db.family(name).expect("never dropped");
        for (key, entry) in &contents {
            let found = db.get(&family, key, &ReadOptions::default())?;
            assert!(found.as_deref() == Some(&*entry.value), "{name}: a lookup differs from a scan");
        }
        all.insert(name, contents);
    }
    Ok(all)
}

/// Describes the difference between two states in a line.
pub(super) fn difference(what: &str, a: &All, b: &All) -> String {
    for name in FAMILIES {
        let [a, b] = [a, b].map(|all| all.get(name).cloned().unwrap_or_default());
        let keys = a.keys().chain(b.keys());
        let differs: Vec<_> = keys.filter(|key| a.get(*key) != b.get(*key)).collect();
        let Some(first) = differs.first() else { continue };
        let show = |entry: Option<&Entry>| {
            let value = entry.map(|entry| entry.value.get(..24.min(entry.value.len())).unwrap_or_default());
            value.map_or("nothing".to_owned(), |value| format!("\"{}\"", value.escape_ascii()))
        };
        let (key, of_a, of_b) = (first.escape_ascii(), show(a.get(*first)), show(b.get(*first)));
        return format!("{what}: {name} differs in {} keys; {key} is {of_a} and {of_b}", differs.len());
    }
    format!("{what}: no difference")
}

/// Checks that every file of a closed database is whole.
///
/// # Errors
/// The first problem.
pub(super) fn check_files(vfs: Arc<dyn Vfs>, dir: &Path, setting: Setting) -> std::result::Result<(), String> {
    let options = CheckOptions { vfs, orders: vec![setting.profile.order.order()], ..CheckOptions::default() };
    let report = check(dir, &options, &mut |_| {}).map_err(|error| error.to_string())?;
    if report.is_whole() { Ok(()) } else { Err(format!("{:?}", report.problems)) }
}

/// Operations of one thread.
struct Thread {
    /// State after the operations found so far.
    model: Model,
    found: u64,
    /// Last acknowledged operation, and the last one that can have begun.
    acknowledged: u64,
    begun: u64,
}

/// Tracks acknowledged operations and checks the contents against them.
pub(super) struct Judge {
    setting: Setting,
    threads: Vec<Thread>,
}

impl Judge {
    pub fn new(setting: Setting) -> Judge {
        let thread = |_| {
            let mut model = Model::default().ordered(setting.profile.order.order());
            let [_, others @ ..] = FAMILIES;
            others.into_iter().for_each(|name| model.create(name));
            Thread { model, found: 0, acknowledged: 0, begun: 0 }
        };
        Judge { setting, threads: (0..setting.threads).map(thread).collect() }
    }

    /// Records the progress reported by a process.
    pub fn note(&mut self, acknowledged: &[u64]) {
        for (thread, acknowledged) in self.threads.iter_mut().zip(acknowledged) {
            thread.acknowledged = *acknowledged;
            thread.begun = acknowledged + 1;
        }
    }

    /// Compares the found contents with the expected ones and continues from them. Returns the number of new
    /// operations.
    ///
    /// # Errors
    /// A description of the difference.
    pub fn check(&mut self, found: &All) -> std::result::Result<u64, String> {
        let mut expected: All = FAMILIES.into_iter().map(|name| (name, Contents::new())).collect();
        let mut new = 0;
        for (number, thread) in (0..).zip(&mut self.threads) {
            let before = thread.found;
            thread.follow(self.setting, number, found)?;
            new += thread.found - before;
            for (name, contents) in &mut expected {
                contents.extend((*thread.model.contents(name)).clone());
            }
        }
        if *found == expected { Ok(new) } else { Err(difference("found and expected", found, &expected)) }
    }
}

impl Thread {
    /// Advances to the found operation.
    fn follow(&mut self, setting: Setting, number: u64, found: &All) -> std::result::Result<(), String> {
        let mut counts = FAMILIES.into_iter().map(|name| {
            let entry = found.get(name).and_then(|contents| contents.get(&counter(number)));
            entry.and_then(|entry| entry.value.first_chunk().copied()).map_or(0, u64::from_le_bytes)
        });
        let count = counts.next().unwrap_or(0);
        if counts.any(|other| other != count) {
            return Err(format!("of thread {number} half an operation is there"));
        }
        let Thread { acknowledged, begun, .. } = *self;
        if !(acknowledged..=begun).contains(&count) {
            return Err(format!(
                "of thread {number} {acknowledged} were acknowledged, {begun} begun; {count} are there"
            ));
        }
        let order = setting.profile.order.order();
        for n in self.found + 1..=count {
            let changes = setting.story.operation(number, n, &order).ingest.changes(&order);
            self.model.write(&changes, Durability::default());
        }
        // Earlier history is not compared again.
        let last = self.model.history().last().cloned().expect("point 0 is always there");
        self.model = Model::at(&[last], self.model.names().clone()).ordered(order);
        (self.found, self.acknowledged, self.begun) = (count, count, count);
        Ok(())
    }
}
