//! Turns of upkeep, and their reports: stall changes and statistics dumps.

use std::collections::BTreeMap;
use std::time::Duration;

use base::FamilyId;
use base::extend::Event;
use base::note;

use crate::background::caught::caught_panic;
use crate::core::FamilyState;
use crate::jobs::Jobs;
use crate::order::stall::{Debt, StallCause};

/// Back-pressure on a family's writes, as told to listeners: a full queue or compaction debt, no other cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StallCondition {
    cause: StallCause,
    /// Stopped if true, slowed down if false.
    stopped: bool,
}

/// Stall conditions last reported to listeners, by family.
pub(crate) type ReportedStalls = BTreeMap<FamilyId, (String, StallCondition)>;

impl StallCondition {
    /// `None` if writes go freely.
    fn of(family: &FamilyState) -> Option<Self> {
        if family.family.has_waiting_writers() {
            return Some(StallCondition { cause: StallCause::Memtables, stopped: true });
        }
        let debt = Debt::of(&family.version, family.pending_compaction_bytes, &family.family.options());
        (debt.level > 0.0).then_some(StallCondition { cause: debt.cause, stopped: debt.level >= 1.0 })
    }
}

impl Jobs {
    /// Notifies listeners of unreported background errors and of their outcome.
    pub(crate) fn tell_background_errors(&self) {
        let pending = std::mem::take(&mut *self.core.pending_events.lock());
        pending.iter().for_each(|event| self.core.context.notify(event));
    }

    /// Notifies listeners of families with a changed stall condition. A change undone since the last look is not
    /// reported.
    pub(crate) fn tell_stall_changes(&self) {
        if self.reported_stalls.lock().is_empty() && !self.holds_writers_up() {
            return;
        }
        let now: ReportedStalls = {
            let state = self.core.state.lock();
            let held_up = |f: &FamilyState| Some((f.family.id(), (f.family.name().to_owned(), StallCondition::of(f)?)));
            state.families.values().filter_map(held_up).collect()
        };
        let mut told = self.reported_stalls.lock();
        let before = std::mem::replace(&mut *told, now.clone());
        drop(told);
        let freed = before.iter().filter(|(id, _)| !now.contains_key(id)).map(|(_, (family, condition))| {
            let (family, cause) = (family.clone(), condition.cause.name());
            let (was_delayed, was_stopped) = (!condition.stopped, condition.stopped);
            Event::StallChanged { family, cause, delayed: false, stopped: false, was_delayed, was_stopped }
        });
        let changed = now.iter().filter(|(id, condition)| before.get(id) != Some(condition));
        let held_up = changed.map(|(id, (family, StallCondition { cause, stopped }))| {
            let was_stopped = before.get(id).map(|(_, condition)| condition.stopped);
            Event::StallChanged {
                family: family.clone(),
                cause: cause.name(),
                delayed: !stopped,
                stopped: *stopped,
                was_delayed: was_stopped == Some(false),
                was_stopped: was_stopped == Some(true),
            }
        });
        freed.chain(held_up).for_each(|event| {
            log_stall(&event);
            self.core.context.notify(&event);
        });
    }

    /// Notes readers that have kept much for long. Each is told of once.
    pub(crate) fn tell_kept_views(&self) {
        let (look, now) = (&self.core.context.kept_look, self.core.context.vfs.now());
        if !look.takes(now) {
            return;
        }
        for family in self.core.families.load().iter() {
            let kept = family.kept_views();
            let Some(at) = kept.next_look() else { continue };
            if at <= now {
                for pinned in kept.to_tell(&family.view_full(), now) {
                    let name = family.name();
                    note::warn!("[{name}] an iterator is old, and keeps what nobody else needs: {pinned}");
                }
            }
            kept.next_look().into_iter().for_each(|at| look.note(at));
        }
    }

    /// Whether some family may be held up.
    fn holds_writers_up(&self) -> bool {
        let waiting = || self.core.stall.under_way(StallCause::Memtables, Duration::ZERO).0;
        !self.core.stall.is_free() || waiting() > 0
    }

    /// Runs one turn of upkeep; turns never overlap. `is_over`: the wait returned by the last turn has elapsed. Returns
    /// the time until something is due.
    pub(crate) fn turn_of_upkeep(&self, is_over: bool) -> Option<Duration> {
        if self.core.is_closing() {
            return None;
        }
        let now = || self.core.context.vfs.now();
        let waits = std::mem::take(&mut *self.upkeep_waits.lock());
        let mut next_dump = waits.next_dump;
        let kept_up = caught_panic("upkeep", || {
            self.end_due_waits(&waits, is_over);
            self.keep_up();
            if takes_dump(&mut next_dump, self.dump_period(), now())
                && let Some(statistics) = &self.core.context.statistics
            {
                note::info!(path = %self.core.context.dir.display(), "statistics\n{statistics}");
            }
            self.core.context.info_log.write_out();
        });
        if let Err(error) = kept_up {
            self.core.fail(&error);
        }
        self.wait_for_next_turn(next_dump)
    }

    fn dump_period(&self) -> Duration {
        let period_s = if self.core.context.statistics.is_some() {
            self.core.context.options_now.load().stats_dump_period_sec
        } else {
            0
        };
        Duration::from_secs(period_s.into())
    }

    /// Ends the last turn's waits, as far as they are due.
    fn end_due_waits(&self, waits: &UpkeepWaits, is_over: bool) {
        // `is_over` also counts: a clock in memory stands still while the thread waits.
        let has_waited = is_over && waits.limit == waits.until_flush;
        if let Some(due) = waits.flush_at.filter(|due| has_waited || *due <= self.core.context.vfs.now()) {
            self.core.state.lock().end_flush_waits(due);
            self.core.state_changed.notify_all();
        }
        let has_aged = is_over && waits.limit == waits.until_age;
        if waits.age_due_s.is_some_and(|due_s| has_aged || due_s <= self.core.context.now_s()) {
            self.core.state_changed.notify_all(); // queues the compaction
        }
        self.look_for_space(is_over && waits.limit == waits.until_look);
    }

    /// Notes upkeep's waits. Returns the shortest.
    fn wait_for_next_turn(&self, next_dump: Option<Duration>) -> Option<Duration> {
        let now = || self.core.context.vfs.now();
        let now_s = self.core.context.now_s();
        let (flush_at, age_due_s) = {
            let mut state = self.core.state.lock();
            (state.next_flush_at(), state.next_age_due_s(now_s))
        };
        let until_age = age_due_s.map(|due_s| Duration::from_secs(due_s - now_s));
        let [until_flush, until_dump] = [flush_at, next_dump].map(|at| at.map(|due| due.saturating_sub(now())));
        let until_step = self.core.removals.until_next(now());
        let until_look = self.core.space.until_next_look(now());
        let until_tell = self.core.context.kept_look.at().map(|at| at.saturating_sub(now()));
        let until_archive = self.core.archive.until_next_look(&self.core.context.options_now.load());
        let until_store = self.options_file.until_due();
        let waits =
            [until_flush, until_dump, until_step, until_look, until_tell, until_age, until_archive, until_store];
        let limit = waits.into_iter().flatten().min();
        *self.upkeep_waits.lock() =
            UpkeepWaits { next_dump, limit, flush_at, until_flush, until_look, age_due_s, until_age };
        limit
    }
}

/// Upkeep's waits between two turns.
#[derive(Default)]
pub(crate) struct UpkeepWaits {
    /// `None` before the first turn, and if statistics are not dumped.
    next_dump: Option<Duration>,
    limit: Option<Duration>,
    flush_at: Option<Duration>,
    until_flush: Option<Duration>,
    until_look: Option<Duration>,
    /// When the next table becomes due for compaction by its age, in seconds since the epoch.
    age_due_s: Option<u64>,
    until_age: Option<Duration>,
}

fn log_stall(event: &Event) {
    let Event::StallChanged { family, cause, delayed, stopped, .. } = event else { return };
    match (stopped, delayed) {
        (true, _) => note::info!("[{family}] writers are stopped: {cause}"),
        (false, true) => note::info!("[{family}] writers are slowed down: {cause}"),
        (false, false) => note::info!("[{family}] writers go freely again: {cause} is over"),
    }
}

/// Whether a statistics dump is due. If so, the next is one `period` from `now`, however late this one was. A period of
/// zero is never.
fn takes_dump(next: &mut Option<Duration>, period: Duration, now: Duration) -> bool {
    if period.is_zero() {
        return false;
    }
    let next = next.get_or_insert(now + period);
    let is_due = now >= *next;
    if is_due {
        *next = now + period;
    }
    is_due
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use vfs::{MemoryVfs, Vfs};

    use super::*;
    use crate::internal::{Database, FamilyOptions, IngestOptions, OpenOptions, TableWriter};

    /// Upkeep is woken all the time where there is much to do.
    #[test]
    fn a_flush_that_waited_long_enough_is_not_put_off_by_whoever_wakes_upkeep() {
        let vfs = MemoryVfs::new(1);
        let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).expect("a new database, without threads");
        let table = PathBuf::from("/one.sst");
        let mut writer = TableWriter::create(vfs.clone(), &table, &FamilyOptions::default()).expect("new");
        writer.put(b"key", b"ingested").expect("a key");
        writer.finish().expect("a table");
        vfs.set_runs_inline(false); // or its flush would not wait
        db.ingest(&db.default_family(), &[table], &IngestOptions::default()).expect("ingested");
        let (jobs, state) = (&db.engine().jobs, &db.core().state);
        jobs.turn_of_upkeep(false);
        assert!(state.lock().next_flush_at().is_some(), "it is not due");
        vfs.sleep(Duration::from_secs(10));
        jobs.turn_of_upkeep(false);
        assert_eq!(state.lock().next_flush_at(), None);
        vfs.set_runs_inline(true);
    }

    #[test]
    fn an_old_iterator_that_keeps_much_is_noted_once() {
        let vfs = MemoryVfs::new(1);
        let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).expect("a new database, without threads");
        let family = db.default_family();
        for i in 0..17u8 {
            db.put(&family, &[i], &vec![i; 1 << 20], &Default::default()).expect("put");
        }
        let held = db.iter(&family, &Default::default()).expect("an iterator");
        db.flush(&[&family]).expect("flushed");
        let limit = db.engine().jobs.turn_of_upkeep(false).expect("upkeep looks again");
        assert!(limit <= Duration::from_secs(300), "{limit:?}");
        assert!(family.kept_views().next_look().is_some(), "it is young");
        vfs.sleep(Duration::from_secs(301));
        let told = family.kept_views().to_tell(&family.view_full(), vfs.now());
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].memtable_bytes > 16 << 20 && told[0].age.as_secs() == 301, "{told:?}");
        assert_eq!(family.kept_views().next_look(), None, "once");
        drop(held);
    }

    #[test]
    fn dumps_come_once_a_period() {
        let (at, mut next) = (Duration::from_secs, None);
        let mut is_due = |now| takes_dump(&mut next, at(10), at(now));
        assert!(!is_due(5), "the first");
        assert!(!is_due(14));
        assert!(is_due(32), "late");
        assert!(!is_due(33), "missed ones are not made up for");
        assert!(is_due(42));
        assert_eq!(next, Some(at(52)));
    }

    #[test]
    fn a_period_of_zero_is_never() {
        let mut next = None;
        assert!(!takes_dump(&mut next, Duration::ZERO, Duration::from_secs(1_000_000)));
        assert_eq!(next, None);
    }
}
