//! Values left in the WAL by a memtable: references to them, and the logs holding them.
//!
//! A short value is stored in place, and so is a value written without WAL. Referenced bytes are counted per log, as
//! the needed part of each log must be known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use base::checksum::crc32c;
use base::value_source::{REFERENCE_BYTES_MAX, ReferenceForm, ValueRef, ValueSource, put_here, put_reference};
use base::{Error, Pinned, Result};
use memtable::Entry;
use parking_lot::Mutex;
use smallvec::SmallVec;
use table::values::may_lie_elsewhere;

use crate::log_files::logs::ActiveLog;
use crate::version::log_life::{LogLife, LogLives, LogSet, ValueLog};

/// Entries prepared at a time: as many as memtables insert together.
const CHUNK: usize = 16;

/// WAL position of the entries' batch.
#[derive(Clone, Copy)]
pub(crate) struct Logged<'a> {
    pub log: &'a Arc<ActiveLog>,
    /// Offset of `body` in the log.
    pub offset: u64,
    /// The entries' keys and values are slices of it.
    pub body: &'a [u8],
}

impl Logged<'_> {
    /// Offset in the log of `part`, a slice of the body.
    fn offset_of(&self, part: &[u8]) -> Option<u64> {
        let before = part.as_ptr().addr().checked_sub(self.body.as_ptr().addr())?;
        (before + part.len() <= self.body.len()).then_some(self.offset + before as u64)
    }
}

/// A log, and what one memtable refers to there.
struct UsedLog {
    life: Arc<LogLife>,
    log: Arc<ActiveLog>,
    values: AtomicU64,
    /// Of these values.
    bytes: AtomicU64,
}

/// The logs holding values of one memtable.
pub struct ValueLogs {
    form: ReferenceForm,
    lives: Arc<LogLives>,
    /// Oldest first; grows only.
    used: ArcSwap<Vec<Arc<UsedLog>>>,
    adding: Mutex<()>,
}

impl ValueLogs {
    pub fn new(form: ReferenceForm, lives: Arc<LogLives>) -> Self {
        ValueLogs { form, lives, used: ArcSwap::default(), adding: Mutex::new(()) }
    }

    /// Passes the entries to `insert` in their stored form.
    pub(crate) fn store<'a>(
        &self,
        entries: &mut dyn Iterator<Item = Entry<'a>>,
        logged: Option<Logged<'_>>,
        insert: &mut dyn FnMut(&mut dyn Iterator<Item = Entry<'_>>),
    ) {
        let used = logged.map(|logged| self.used(logged.log));
        loop {
            let chunk: SmallVec<[Entry<'a>; CHUNK]> = entries.take(CHUNK).collect();
            if chunk.is_empty() {
                return;
            }
            let (mut stored, mut ends) =
                (Vec::with_capacity(CHUNK * REFERENCE_BYTES_MAX), SmallVec::<[usize; CHUNK]>::new());
            let (mut referred, mut referred_bytes) = (0, 0);
            for entry in &chunk {
                let bytes = self.store_value(&mut stored, entry, logged);
                referred += u64::from(bytes > 0);
                referred_bytes += bytes;
                ends.push(stored.len());
            }
            if let Some(used) = used.as_ref().filter(|_| referred > 0) {
                used.values.fetch_add(referred, Ordering::Relaxed);
                used.bytes.fetch_add(referred_bytes, Ordering::Relaxed);
            }
            let mut rest = &stored[..];
            let mut from = 0;
            insert(&mut chunk.iter().zip(&ends).map(|(entry, &end)| {
                let (value, later) = rest.split_at(end - from);
                (rest, from) = (later, end);
                Entry { value: if may_lie_elsewhere(entry.kind) { value } else { entry.value }, ..*entry }
            }));
        }
    }

    /// Appends the stored form of an entry's value. Returns the bytes left in the log.
    fn store_value(&self, out: &mut Vec<u8>, entry: &Entry<'_>, logged: Option<Logged<'_>>) -> u64 {
        if !may_lie_elsewhere(entry.kind) {
            return 0;
        }
        let is_long = entry.value.len() > self.form.inline_max_bytes();
        let place = logged.filter(|_| is_long).and_then(|at| Some((at.log.number(), at.offset_of(entry.value)?)));
        match place {
            Some((log, offset)) => {
                let len = entry.value.len() as u32; // a batch is below 4 GiB
                put_reference(out, &ValueRef { log, offset, len, crc: crc32c(entry.value) }, self.form);
                u64::from(len)
            }
            None => {
                put_here(out, entry.value);
                0
            }
        }
    }

    /// The log's entry in `used`, pinned for the memtable's lifetime.
    fn used(&self, log: &Arc<ActiveLog>) -> Arc<UsedLog> {
        let find = |used: &[Arc<UsedLog>]| used.iter().rev().find(|used| used.life.number() == log.number()).cloned();
        if let Some(found) = find(&self.used.load()) {
            return found;
        }
        let _adding = self.adding.lock();
        let mut all = Vec::clone(&self.used.load());
        if let Some(found) = find(&all) {
            return found;
        }
        let life = self.lives.of_log(log.number());
        life.read_values_from(|| log.clone());
        let added = Arc::new(UsedLog { life, log: log.clone(), values: AtomicU64::new(0), bytes: AtomicU64::new(0) });
        all.push(added.clone());
        self.used.store(Arc::new(all));
        added
    }

    /// Referenced bytes by log, for a table made of the memtable. Called after all its writers are done.
    pub fn shares(&self) -> Vec<ValueLog> {
        let used = self.used.load();
        let shares =
            used.iter().map(|used| ValueLog { log: used.life.number(), bytes: used.bytes.load(Ordering::Relaxed) });
        let mut shares: Vec<ValueLog> = shares.filter(|share| share.bytes > 0).collect();
        shares.sort_by_key(|share| share.log); // a writer of one log may come after a writer of the next
        shares
    }

    /// What a table made of the memtable refers to, in ToplingDB's words: `LogRef:Short;7:7:12:3456,8:8:1:100`, with the
    /// log's number twice, values and bytes of each log. Called after all its writers are done.
    pub fn description(&self) -> String {
        let form = match self.form {
            ReferenceForm::Plain => "Plain",
            ReferenceForm::Short => "Short",
        };
        let used = self.used.load();
        let told = |used: &Arc<UsedLog>| {
            let (log, values) = (used.life.number(), used.values.load(Ordering::Relaxed));
            (values > 0).then(|| (log.0, values, used.bytes.load(Ordering::Relaxed)))
        };
        let mut logs: Vec<_> = used.iter().filter_map(told).collect();
        logs.sort_unstable();
        let logs: Vec<_> = logs.iter().map(|(log, values, bytes)| format!("{log}:{log}:{values}:{bytes}")).collect();
        format!("LogRef:{form};{}", logs.join(","))
    }

    /// The logs as a value source for a table made of the memtable.
    pub fn as_set(&self) -> LogSet {
        LogSet::new(self.used.load().iter().map(|used| used.life.clone()).collect())
    }
}

impl ValueSource for ValueLogs {
    fn resolve(&self, value: ValueRef) -> Result<Pinned> {
        let used = self.used.load();
        match used.iter().rev().find(|used| used.life.number() == value.log) {
            Some(used) => used.log.file.resolve(value),
            None => Err(Error::corruption(format!("a memtable refers to log {}, which it does not know", value.log))),
        }
    }
}

/// Values in a log of this process.
impl ValueSource for ActiveLog {
    fn resolve(&self, value: ValueRef) -> Result<Pinned> {
        self.file.resolve(value)
    }
}
