//! Memtable switch: a full mutable memtable is sealed and its spare becomes mutable. Without a spare the writer makes a
//! memtable here, at admission, counted as a stall.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::extend::Event;
use base::metrics::{Histogram, record};
use base::{FamilyId, Result, SeqNo};

use crate::batch::options::WriteOptions;
use crate::core::family::Family;
use crate::core::space::Needs;
use crate::core::{CommitState, FamilyState, OldViews};
use crate::memtables::Memtables;
use crate::memtables::staged::{MemtableBoundary, Staged};
use crate::order::stall::StallCause;
use crate::order::stall::stalled;
use crate::queue::flushable::{Flushable, QueuedMemtable};

impl Memtables {
    pub(crate) fn has_full_queue(&self, family: &Family) -> bool {
        self.core.state.lock().families.get(&family.id()).is_some_and(FamilyState::has_full_queue)
    }

    /// Waits while the family's queue is full; with `full_id`, only while this is the mutable memtable.
    pub(crate) fn wait_for_queue_room(
        &self,
        family: &Arc<Family>,
        full_id: Option<u64>,
        options: &WriteOptions,
    ) -> Result<()> {
        let mut waiting = None;
        let mut state = self.core.state.lock();
        loop {
            self.core.check_writable()?;
            let full = self.core.family_state(&mut state, family.id())?;
            let replaced = full_id.is_some_and(|id| full.mutable.id() != id);
            // On a full disk only deletions come here: they may make room for the flush.
            if replaced || !full.has_full_queue() || self.core.reserve.is_spent() {
                break;
            }
            if options.no_slowdown {
                return Err(stalled());
            }
            let wanted = full.newest_sealed();
            let raised = wanted > full.flush_wanted_through;
            full.flush_wanted_through = wanted.max(full.flush_wanted_through);
            if waiting.is_none() {
                let wait = self.core.stall.wait(StallCause::Memtables);
                waiting = Some((wait, family.writer_waits(), self.core.context.throttle.await_flushes()));
                self.core.upkeep.raise(); // notifies listeners
            }
            if self.core.context.vfs.runs_inline() {
                drop(state);
                self.core.drive();
                self.core.space.check(Needs::Flush)?; // no other thread makes room
                state = self.core.state.lock();
            } else {
                if raised {
                    self.core.state_changed.notify_all(); // once: waiters here would wake each other for ever
                }
                self.core.state_changed.wait(&mut state);
            }
        }
        drop(state);
        if waiting.take().is_some() {
            self.core.upkeep.raise();
        }
        Ok(())
    }

    /// Installs a new mutable memtable, if the present one is still `old_id`, and queues the old one.
    pub(crate) fn replace_memtable(&self, family: &Arc<Family>, old_id: u64, need_bytes: usize) -> Result<()> {
        let start = self.core.context.vfs.now();
        let spare = self.take_spare(family.id(), need_bytes);
        let made = match spare {
            Some(spare) => spare,
            None => {
                let _wait = self.core.stall.wait(StallCause::MemtableSwitch);
                self.make_memtable(family, need_bytes)?
            }
        };
        let mut state = self.core.state.lock();
        let switched = self.core.family_state(&mut state, family.id())?;
        if switched.mutable.id() != old_id {
            let mut made = Some(made);
            switched.spare.get_or_insert_with(|| made.take().expect("given to one place")); // for the next switch
            drop(state);
            drop(made); // another writer was faster
            return Ok(());
        }
        self.core.context.throttle.record_filled(switched.mutable.used_bytes());
        let sealed = switched.mutable.clone();
        let replaced = self.install_memtable(switched, made);
        if switched.is_behind() {
            self.core.context.throttle.set_debt(1.0); // until a new version sets it
        }
        drop(state);
        drop(replaced);
        self.tell_sealed(family, &sealed);
        self.core.state_changed.notify_all();
        self.core.upkeep.raise();
        let micros = self.core.context.vfs.now().saturating_sub(start).as_micros() as u64;
        record(&self.core.context.statistics, Histogram::MemtableSwitch, micros);
        Ok(())
    }

    /// Tells listeners of a sealed memtable, a moment later: the caller may be a writer.
    fn tell_sealed(&self, family: &Family, sealed: &QueuedMemtable) {
        if self.core.context.listeners.is_empty() {
            return;
        }
        let counts = sealed.memtable().counts();
        self.core.tell_later(Event::MemtableSealed {
            family: family.name().to_owned(),
            first_seq: SeqNo(sealed.created_at().0 + 1),
            entries: counts.entries,
            deletions: counts.deletions,
        });
    }

    /// Seals the mutable memtable and makes `made` mutable. Called under the state lock; takes the commit lock.
    #[must_use = "drop what was replaced off the lock"]
    fn install_memtable(&self, family: &mut FamilyState, made: Arc<QueuedMemtable>) -> (Staged, Option<OldViews>) {
        let mut staged = Staged::new(family, std::iter::empty(), Some(&made));
        let commit = self.core.commit.lock();
        staged.install(&family.family, &self.boundary(&commit));
        drop(commit);
        staged.follow(family);
        (staged, family.exchange_view())
    }

    /// The boundary of memtables switched now: writes up to the last number may be in the old ones, later ones are not.
    fn boundary(&self, commit: &CommitState) -> MemtableBoundary {
        let (last, logged_through) = (commit.last_seq, self.core.pipeline.entered_log());
        let replay_from = self.core.logs.prepared.replay_from(last, self.core.next_record(commit));
        MemtableBoundary { before: last, last, logged_through, replay_from: Some(replay_from) }
    }

    /// Seals the mutable memtables of all families at one number, and returns it: all writes up to it are in the queues,
    /// no later one is.
    ///
    /// # Errors
    /// As making a memtable.
    pub(crate) fn seal_all(&self) -> Result<SeqNo> {
        let mut made = BTreeMap::new();
        let sealed = loop {
            let lacks_next =
                |family: &FamilyState| !family.mutable.is_unused() && !made.contains_key(&family.family.id());
            let lacking = self.core.state.lock().families_where(lacks_next);
            for family in lacking {
                let spare = self.take_spare(family.id(), 0);
                made.insert(family.id(), spare.map_or_else(|| self.make_memtable(&family, 0), Ok)?);
            }
            if let Some(sealed) = self.install_all(&mut made) {
                break sealed;
            }
        };
        self.core.state_changed.notify_all();
        self.core.upkeep.raise();
        Ok(sealed)
    }

    /// Switches to the memtables made; those of families without writes stay in `made`. `None` if a family got its first
    /// writes before the commit lock was taken: it needs a memtable, too.
    fn install_all(&self, made: &mut BTreeMap<FamilyId, Arc<QueuedMemtable>>) -> Option<SeqNo> {
        let mut switched = Vec::new();
        let mut state = self.core.state.lock();
        for (id, family) in state.families.iter_mut().filter(|(_, family)| !family.mutable.is_unused()) {
            let Some(next) = made.get(id) else { continue };
            self.core.context.throttle.record_filled(family.mutable.used_bytes());
            switched.push((*id, Staged::new(family, std::iter::empty(), Some(next)), None));
        }
        let commit = self.core.commit.lock();
        // Room is reserved before the lock, so a memtable found unused under it holds nothing up to the last number.
        let written = state.families.values().filter(|family| !family.mutable.is_unused()).count();
        let is_whole = written == switched.len();
        let boundary = self.boundary(&commit);
        for (id, staged, _) in switched.iter_mut().filter(|_| is_whole) {
            state.families.get(id).into_iter().for_each(|family| staged.install(&family.family, &boundary));
        }
        drop(commit);
        let mut sealed = Vec::with_capacity(switched.len());
        for (id, staged, old) in switched.iter_mut().filter(|_| is_whole) {
            made.remove(id);
            if let Some(family) = state.families.get_mut(id) {
                sealed.push((family.family.clone(), family.mutable.clone()));
                staged.follow(family);
                *old = family.exchange_view();
            }
        }
        drop(state);
        drop(switched); // off the locks
        sealed.iter().for_each(|(family, memtable)| self.tell_sealed(family, memtable));
        is_whole.then_some(boundary.last)
    }

    /// Seals a family's mutable memtable if it holds anything. Returns the number to flush through: everything written
    /// before the call is in tables then.
    pub(crate) fn seal_for_flush(&self, family: &Arc<Family>) -> Result<SeqNo> {
        let (id, empty) = {
            let mut state = self.core.state.lock();
            let current = self.core.family_state(&mut state, family.id())?;
            (current.mutable.id(), current.mutable.is_unused())
        };
        if !empty {
            self.replace_memtable(family, id, 0)?;
        }
        let mut state = self.core.state.lock();
        let sealed = self.core.family_state(&mut state, family.id())?;
        let through = sealed.newest_sealed();
        sealed.flush_wanted_through = sealed.flush_wanted_through.max(through);
        drop(state);
        self.core.state_changed.notify_all();
        Ok(through)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use base::key::ParsedKey;
    use vfs::MemoryVfs;

    use super::*;
    use crate::internal::{Database, FamilyOptions, OpenOptions, WriteBatch};

    fn first_number(memtable: &QueuedMemtable) -> Option<SeqNo> {
        let mut cursor = memtable.memtable().clone().cursor();
        let mut all = Vec::new();
        let mut valid = cursor.seek_to_first();
        while valid {
            all.push(ParsedKey::parse(cursor.key()).expect("an entry").seq);
            valid = cursor.next();
        }
        all.into_iter().min()
    }

    /// Ends the writers, however the test ends.
    struct Ends<'a>(&'a AtomicBool);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Some of the families get their first write since the last seal at any moment.
    #[test]
    fn all_families_are_sealed_at_one_number_beside_writers() {
        const SEALS: usize = 300;
        let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).expect("a new database");
        let of = || FamilyOptions { max_write_buffer_number: 1000, ..FamilyOptions::default() };
        let families = ["a", "b", "c"].map(|name| db.create_family(name, of()).expect("made"));
        let (ends, memtables) = (AtomicBool::new(false), &db.engine().memtables);
        let write = |of_writer: usize| {
            for n in 0.. {
                let mut batch = WriteBatch::new();
                let written = families.iter().skip(if n % 16 == of_writer { 0 } else { 1 });
                written.for_each(|family| batch.put(family.id(), format!("{of_writer}-{n}").as_bytes(), b""));
                db.write(&batch, &WriteOptions::default()).expect("written");
                if ends.load(Ordering::Relaxed) {
                    break;
                }
            }
        };
        std::thread::scope(|scope| {
            let _ends = Ends(&ends);
            (0..2).for_each(|writer| drop(scope.spawn(move || write(writer))));
            for _ in 0..SEALS {
                let last_seq = || db.core().commit.lock().last_seq;
                let before = last_seq();
                while last_seq().0 < before.0 + 4 {
                    std::thread::yield_now(); // writers are at work
                }
                let sealed = memtables.seal_all().expect("memtables are made");
                db.core().pipeline.wait_visible(sealed).expect("nothing fails");
                let state = db.core().state.lock();
                for family in state.families.values() {
                    let last = family.queue.first().and_then(|entry| entry.largest_seq());
                    assert!(last.is_none_or(|last| last <= sealed), "{last:?} is in the queue, beyond {sealed:?}");
                    let first = first_number(&family.mutable);
                    assert!(first.is_none_or(|first| first > sealed), "{first:?} was left in memory, by {sealed:?}");
                }
            }
        });
    }
}
