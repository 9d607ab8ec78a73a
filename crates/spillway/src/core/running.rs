//! Running jobs: what each works on, since when, how far it is. For readings of a live database; and each is a span of
//! `tracing`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::observe::{ObservedEnds, ObservedJob, ObservedJobKind};

/// A job's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobBytes {
    pub done: u64,
    pub total: u64,
}

type Measure = Box<dyn Fn() -> JobBytes + Send + Sync>;

/// What is known of a job from its beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobPlan {
    pub kind: ObservedJobKind,
    pub family: String,
    pub level: Option<usize>,
    pub output_level: Option<usize>,
    pub reason: &'static str,
}

struct Registered {
    plan: JobPlan,
    /// By the vfs's clock.
    since: Duration,
    measure: Measure,
}

/// The register of running jobs. Its lock is a leaf.
#[derive(Default)]
pub(crate) struct RunningJobs {
    jobs: Mutex<Vec<Arc<Registered>>>,
    ended: [AtomicU64; 3],
}

/// A running job; it ends when this is dropped.
pub(crate) struct RunningJob<'a> {
    register: &'a RunningJobs,
    job: Arc<Registered>,
    _span: tracing::Span,
}

impl Drop for RunningJob<'_> {
    fn drop(&mut self) {
        self.register.jobs.lock().retain(|job| !Arc::ptr_eq(job, &self.job));
        if let Some(ended) = self.register.ended.get(self.job.plan.kind as usize) {
            ended.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl RunningJobs {
    /// Registers a job begun `now`. `measure` says how far it is, and takes no lock.
    #[must_use = "the job ends when it is dropped"]
    pub fn begin(
        &self,
        plan: JobPlan,
        now: Duration,
        measure: impl Fn() -> JobBytes + Send + Sync + 'static,
    ) -> RunningJob<'_> {
        let JobPlan { kind, family, level, output_level, reason } = &plan;
        let _span = tracing::info_span!("job", ?kind, %family, ?level, ?output_level, reason);
        let job = Arc::new(Registered { plan, since: now, measure: Box::new(measure) });
        self.jobs.lock().push(job.clone());
        RunningJob { register: self, job, _span }
    }

    /// The running jobs, oldest first.
    pub fn observe(&self, now: Duration) -> Vec<ObservedJob> {
        let jobs: Vec<_> = self.jobs.lock().clone();
        jobs.iter().map(|job| job.observe(now)).collect()
    }

    pub fn ended(&self) -> ObservedEnds {
        let [flushes, compactions, ingests] = self.ended.each_ref().map(|count| count.load(Ordering::Relaxed));
        let mut ends = ObservedEnds::default();
        (ends.flushes, ends.compactions, ends.ingests) = (flushes, compactions, ingests);
        ends
    }
}

impl Registered {
    fn observe(&self, now: Duration) -> ObservedJob {
        let JobPlan { kind, family, level, output_level, reason } = &self.plan;
        let JobBytes { done, total } = (self.measure)();
        ObservedJob {
            kind: *kind,
            family: family.clone(),
            level: level.map(|level| level as u32),
            output_level: output_level.map(|level| level as u32),
            reason: (*reason).to_owned(),
            done_bytes: done.min(total),
            total_bytes: total,
            running_us: now.saturating_sub(self.since).as_micros() as u64,
        }
    }
}

/// Entries done by a job that may run on several threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct EntriesDone(Arc<AtomicU64>);

impl EntriesDone {
    pub fn add(&self, entries: u64) {
        self.0.fetch_add(entries, Ordering::Relaxed);
    }

    /// The part done of `total_bytes`, if all bytes have `total_entries`.
    pub fn bytes(&self, total_bytes: u64, total_entries: u64) -> JobBytes {
        let part = self.0.load(Ordering::Relaxed) as f64 / total_entries.max(1) as f64;
        JobBytes { done: (total_bytes as f64 * part.min(1.0)) as u64, total: total_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_there_until_it_ends() {
        let (register, done) = (RunningJobs::default(), EntriesDone::default());
        let measured = done.clone();
        let plan = JobPlan { kind: ObservedJobKind::Compaction, family: "one".to_owned(), ..JobPlan::default() };
        let running = register.begin(plan, Duration::from_micros(10), move || measured.bytes(1000, 4));
        done.add(1);
        let jobs = register.observe(Duration::from_micros(15));
        let [job] = jobs.as_slice() else { panic!("{jobs:?}") };
        assert_eq!((job.done_bytes, job.total_bytes, job.running_us), (250, 1000, 5));
        done.add(64); // counted in steps: more than there are
        assert_eq!(register.observe(Duration::ZERO)[0].done_bytes, 1000);
        drop(running);
        assert!(register.observe(Duration::ZERO).is_empty());
        assert_eq!((register.ended().compactions, register.ended().flushes), (1, 0));
    }
}
