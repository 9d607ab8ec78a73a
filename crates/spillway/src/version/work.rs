//! Work of jobs on a family since open, by output level, for `rocksdb.stats`. Always counted, once per job.

use std::ops::AddAssign;

use parking_lot::Mutex;

use crate::version::version::LEVELS_MAX;

/// Jobs with output in one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LevelWork {
    pub jobs: u64,
    pub micros: u64,
    /// Bytes read from levels above, and from the level itself.
    pub read_above_bytes: u64,
    pub read_level_bytes: u64,
    pub written_bytes: u64,
    pub moved_bytes: u64,
    pub entries_read: u64,
    pub entries_dropped: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct WorkDone {
    pub flushes: LevelWork,
    /// By output level.
    pub compactions: [LevelWork; LEVELS_MAX],
    /// Ingested tables, by the level that they were given.
    pub ingested: [u64; LEVELS_MAX],
    pub ingested_bytes: u64,
}

impl Default for WorkDone {
    fn default() -> Self {
        WorkDone {
            flushes: LevelWork::default(),
            compactions: [LevelWork::default(); LEVELS_MAX],
            ingested: [0; LEVELS_MAX],
            ingested_bytes: 0,
        }
    }
}

/// A family's work. A leaf lock.
#[derive(Default)]
pub(crate) struct FamilyWork(Mutex<WorkDone>);

impl FamilyWork {
    pub fn flushed(&self, work: LevelWork) {
        self.0.lock().flushes += work;
    }

    pub fn compacted(&self, output_level: usize, work: LevelWork) {
        if let Some(done) = self.0.lock().compactions.get_mut(output_level) {
            *done += work;
        }
    }

    /// Counts an ingested table placed in `level`.
    pub fn ingested(&self, level: usize, bytes: u64) {
        let mut work = self.0.lock();
        if let Some(tables) = work.ingested.get_mut(level) {
            *tables += 1;
        }
        work.ingested_bytes += bytes;
    }

    pub fn done(&self) -> WorkDone {
        *self.0.lock()
    }
}

impl WorkDone {
    /// Ingested tables that were given a level.
    pub fn ingested(&self, level: usize) -> u64 {
        self.ingested.get(level).copied().unwrap_or(0)
    }

    /// All work with output in a level; level 0 includes flushes.
    pub fn of_level(&self, level: usize) -> LevelWork {
        let mut work = self.compactions.get(level).copied().unwrap_or_default();
        if level == 0 {
            work += self.flushes;
        }
        work
    }

    pub fn of_compactions(&self) -> LevelWork {
        self.compactions.iter().fold(LevelWork::default(), |sum, work| sum.and(*work))
    }

    pub fn all(&self) -> LevelWork {
        self.of_compactions().and(self.flushes)
    }
}

impl LevelWork {
    pub fn and(mut self, more: LevelWork) -> LevelWork {
        self += more;
        self
    }

    pub fn read_bytes(&self) -> u64 {
        self.read_above_bytes + self.read_level_bytes
    }

    /// Work after `before`.
    pub fn since(&self, before: &LevelWork) -> LevelWork {
        LevelWork {
            jobs: self.jobs.saturating_sub(before.jobs),
            micros: self.micros.saturating_sub(before.micros),
            read_above_bytes: self.read_above_bytes.saturating_sub(before.read_above_bytes),
            read_level_bytes: self.read_level_bytes.saturating_sub(before.read_level_bytes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            moved_bytes: self.moved_bytes.saturating_sub(before.moved_bytes),
            entries_read: self.entries_read.saturating_sub(before.entries_read),
            entries_dropped: self.entries_dropped.saturating_sub(before.entries_dropped),
        }
    }
}

impl AddAssign for LevelWork {
    fn add_assign(&mut self, more: LevelWork) {
        self.jobs += more.jobs;
        self.micros += more.micros;
        self.read_above_bytes += more.read_above_bytes;
        self.read_level_bytes += more.read_level_bytes;
        self.written_bytes += more.written_bytes;
        self.moved_bytes += more.moved_bytes;
        self.entries_read += more.entries_read;
        self.entries_dropped += more.entries_dropped;
    }
}
