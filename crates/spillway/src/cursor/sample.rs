//! The sample: times of one operation in 64, and where its lookups were answered. It is what observers have without
//! statistics, so it is always on; the other operations pay a countdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use base::Result;
use base::metrics::{Distribution, RareDistribution, is_sampled};
use vfs::Vfs;

use crate::cursor::search::{Found, Source};

/// The sample of a database.
pub struct Sample {
    vfs: Arc<dyn Vfs>,
    writes: RareDistribution,
    gets: RareDistribution,
    seeks: RareDistribution,
    /// By [`Place`].
    answers: [AtomicU64; Place::COUNT],
}

/// Where a lookup was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Queue,
    Answer,
    Level0,
    Level1,
    Deeper,
    Nowhere,
}

impl Place {
    const COUNT: usize = Place::Nowhere as usize + 1;

    /// As statistics count: a deletion in a memtable is answered there, one in a table nowhere.
    fn of(found: &Found) -> Place {
        match found.source {
            Some(Source::Queue) => Place::Queue,
            Some(Source::Answer) => Place::Answer,
            Some(Source::Level(level)) if found.value.is_some() => match level {
                0 => Place::Level0,
                1 => Place::Level1,
                _ => Place::Deeper,
            },
            _ => Place::Nowhere,
        }
    }
}

impl Sample {
    pub fn new(vfs: Arc<dyn Vfs>) -> Arc<Self> {
        let [writes, gets, seeks] = Default::default();
        Arc::new(Sample { vfs, writes, gets, seeks, answers: Default::default() })
    }

    /// Start time of an operation that is in the sample.
    #[inline]
    pub fn start(&self) -> Option<Duration> {
        is_sampled().then(|| self.vfs.now())
    }

    #[cold]
    pub fn end_write(&self, start: Duration) {
        self.writes.record(self.micros_since(start));
    }

    #[cold]
    pub fn end_seek(&self, start: Duration) {
        self.seeks.record(self.micros_since(start));
    }

    /// Runs a lookup that is in the sample.
    #[cold]
    pub fn get(&self, look_up: impl FnOnce() -> Result<Found>) -> Result<Found> {
        let start = self.vfs.now();
        let found = look_up()?;
        self.gets.record(self.micros_since(start));
        self.count(&found);
        Ok(found)
    }

    /// Counts a lookup by the source of its answer.
    pub fn count(&self, found: &Found) {
        if let Some(answers) = self.answers.get(Place::of(found) as usize) {
            answers.fetch_add(1, Relaxed);
        }
    }

    fn micros_since(&self, start: Duration) -> u64 {
        self.vfs.now().saturating_sub(start).as_micros() as u64
    }

    /// Times in microseconds: of writes, lookups, seeks.
    pub fn times(&self) -> [Distribution; 3] {
        [&self.writes, &self.gets, &self.seeks].map(RareDistribution::read)
    }

    /// Lookups answered at a place.
    pub fn answered(&self, place: Place) -> u64 {
        self.answers.get(place as usize).map_or(0, |answers| answers.load(Relaxed))
    }
}
