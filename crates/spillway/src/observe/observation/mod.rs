//! One reading of a database as plain data. With the feature `observe` it is JSON, too: names of fields are names of
//! keys. Unknown keys are passed over and missing ones are defaults, so that two versions understand each other.

mod family;
mod histogram;
mod parts;

/// Derives what every part of a reading has.
macro_rules! plain {
    ($($item:item)+) => { $(
        #[derive(Clone, Debug, Default, PartialEq)]
        #[cfg_attr(feature = "observe", derive(serde::Serialize, serde::Deserialize), serde(default))]
        #[non_exhaustive]
        $item
    )+ };
}
pub(in crate::observe) use plain;

/// Derives what every choice in a reading has. The first variant is the default.
macro_rules! plain_choice {
    ($($item:item)+) => { $(
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "observe", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
        #[non_exhaustive]
        $item
    )+ };
}
pub(in crate::observe) use plain_choice;

pub use self::family::*;
pub use self::histogram::*;
pub use self::parts::*;

plain! {
    /// One reading of a database.
    ///
    /// Counters and histograms count since the open: two readings give rates. `None` is "not measured", never zero:
    /// what needs the option `statistics` is `None` without it (then there is a [sample](Self::sample)), and what only a writer has is `None` on a reader. Figures
    /// are read one after the other, without stopping writers: two of them may be of different instants.
    pub struct Observation {
        /// Which database, seen by whom, when.
        pub process: ObservedProcess,
        /// Whether writes go on, and what is in their way.
        pub health: ObservedHealth,
        /// Writes and their waits; `None` if the database is open for reading only.
        pub writes: Option<ObservedWrites>,
        /// Lookups and iterators; `None` without `statistics`.
        pub reads: Option<ObservedReads>,
        /// Times of one operation in 64; `None` with `statistics`, which time all.
        pub sample: Option<ObservedSample>,
        /// The families, by id.
        pub families: Vec<ObservedFamily>,
        /// Running flushes, compactions and ingests, oldest first.
        pub jobs: Vec<ObservedJob>,
        /// Jobs that have ended since the open.
        pub ended: ObservedEnds,
        /// Tables that jobs write, and files that they delete.
        pub disk: ObservedDisk,
        /// The write-ahead log.
        pub logs: ObservedLogs,
        /// Ingested tables.
        pub ingests: ObservedIngests,
        /// The block cache.
        pub cache: ObservedCache,
        /// Memory by owner.
        pub memory: ObservedMemory,
        /// Snapshots.
        pub snapshots: ObservedSnapshots,
        /// What old iterators keep alive, by family, oldest first.
        pub kept: Vec<ObservedKept>,
        /// Options that differ from their defaults: the database's, then each family's.
        pub options: Vec<ObservedOption>,
        /// All counters and distributions by RocksDB's names; `None` without `statistics`.
        pub statistics: Option<ObservedStatistics>,
    }
}

#[cfg(feature = "observe")]
impl Observation {
    /// The reading as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }

    /// Reads what [`to_json`](Self::to_json) wrote, in this version or another.
    ///
    /// # Errors
    /// `InvalidArgument`: not the JSON of a reading.
    pub fn from_json(text: &str) -> base::Result<Observation> {
        let invalid = |error| base::Error::invalid_argument(format!("not an observation in JSON: {error}"));
        serde_json::from_str(text).map_err(invalid)
    }
}

impl Observation {
    /// Seconds from `before` to this reading; 0 if it is none of the same open.
    pub fn seconds_since(&self, before: &Observation) -> f64 {
        self.process.uptime_us.saturating_sub(before.process.uptime_us) as f64 / 1e6
    }

    /// The family of a name.
    pub fn family(&self, name: &str) -> Option<&ObservedFamily> {
        self.families.iter().find(|family| family.name == name)
    }
}
