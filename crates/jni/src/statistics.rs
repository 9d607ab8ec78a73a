//! `Statistics`: an object of its own, before any database and after.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use capi::statistics::SharedStatistics;
use spillway::internal::metrics::{Distribution, Histogram, Ticker};

use crate::boundary::argument::{Closed, Whole};
use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::object::Value;
use crate::boundary::reply::Made;
use crate::fault::Fault;

/// Java's names that are not those of our metrics.
const RENAMED: [(&str, &str); 12] = [
    ("NUMBER_RESEEKS_IN_ITERATION", "NUMBER_OF_RESEEKS_IN_ITERATION"),
    ("ITERATOR_CREATED", "NO_ITERATOR_CREATED"),
    ("ITERATOR_DELETED", "NO_ITERATOR_DELETED"),
    ("FILE_OPENS", "NO_FILE_OPENS"),
    ("FILE_ERRORS", "NO_FILE_ERRORS"),
    ("BACKGROUND_ERRORS", "ERROR_HANDLER_BG_ERROR_COUNT"),
    ("BLOCK_CHECKSUM_COMPUTED", "BLOCK_CHECKSUM_COMPUTE_COUNT"),
    ("BLOCK_CHECKSUM_MISMATCH", "BLOCK_CHECKSUM_MISMATCH_COUNT"),
    ("WAL_FILE_SYNC", "WAL_FILE_SYNC_MICROS"),
    ("TABLE_OPEN_IO", "TABLE_OPEN_IO_MICROS"),
    ("SST_READ", "SST_READ_MICROS"),
    ("NUM_SUBCOMPACTIONS", "NUM_SUBCOMPACTIONS_SCHEDULED"),
];

/// A metric's name in Java: the variant's name in capitals.
fn java_name(metric: impl Debug) -> String {
    let mut name = String::new();
    let mut last = '_';
    for letter in format!("{metric:?}").chars() {
        if letter.is_ascii_uppercase() && (last.is_ascii_lowercase() || last.is_ascii_digit()) {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
        last = letter;
    }
    RENAMED.iter().find(|(ours, _)| *ours == name).map_or(name, |(_, java)| (*java).to_owned())
}

/// Metrics by the numbers of the jar's enum: they differ from jar to jar, so they are read at the first use.
struct Numbered<M: 'static> {
    values: Method,
    value: Method,
    all: &'static [M],
    known: OnceLock<HashMap<i8, M>>,
}

static ENUM: Class = Class::new(c"java/lang/Enum");
static NAME: Method = Method::new(&ENUM, c"name", c"()Ljava/lang/String;");
static TICKER_TYPE: Class = Class::new(c"org/rocksdb/TickerType");
static HISTOGRAM_TYPE: Class = Class::new(c"org/rocksdb/HistogramType");

static TICKERS: Numbered<Ticker> = Numbered {
    values: Method::fixed(&TICKER_TYPE, c"values", c"()[Lorg/rocksdb/TickerType;"),
    value: Method::new(&TICKER_TYPE, c"getValue", c"()B"),
    all: Ticker::ALL,
    known: OnceLock::new(),
};

static HISTOGRAMS: Numbered<Histogram> = Numbered {
    values: Method::fixed(&HISTOGRAM_TYPE, c"values", c"()[Lorg/rocksdb/HistogramType;"),
    value: Method::new(&HISTOGRAM_TYPE, c"getValue", c"()B"),
    all: Histogram::ALL,
    known: OnceLock::new(),
};

impl<M: Copy + Debug> Numbered<M> {
    fn read(&self, env: Env<'_>) -> Result<HashMap<i8, M>, Fault> {
        let ours: HashMap<String, M> = self.all.iter().map(|&metric| (java_name(metric), metric)).collect();
        let constants = self.values.object_fixed(env, &[])?.ok_or_else(|| Fault::illegal("an enum has no values"))?;
        let mut known = HashMap::new();
        env.each_element(constants, |constant| {
            let Some(constant) = constant else { return Ok(()) };
            let Some(name) = NAME.object(env, constant, &[])? else { return Ok(()) };
            if let Some(metric) = ours.get(&env.text(name)?) {
                known.insert(self.value.byte(env, constant, &[])?, *metric);
            }
            env.delete(name);
            Ok(())
        })?;
        Ok(known)
    }

    /// `None`: not counted here.
    fn metric(&self, env: Env<'_>, number: i8) -> Result<Option<M>, Fault> {
        let known = match self.known.get() {
            Some(known) => known,
            None => {
                let read = self.read(env)?;
                self.known.get_or_init(|| read)
            }
        };
        Ok(known.get(&number).copied())
    }
}

static HISTOGRAM_DATA: Class = Class::new(c"org/rocksdb/HistogramData");
static NEW_HISTOGRAM_DATA: Method = Method::constructor(&HISTOGRAM_DATA, c"(DDDDDDJJD)V");

fn distribution(env: Env<'_>, shared: &SharedStatistics, number: i8) -> Result<Distribution, Fault> {
    let histogram = HISTOGRAMS.metric(env, number)?;
    Ok(histogram.map_or_else(Distribution::default, |histogram| shared.statistics.distribution(histogram)))
}

natives! { "Statistics";
    "newStatistics__" => fn(_env) -> Box<SharedStatistics> {
        Ok(Box::default())
    }

    /// The other's counts are taken over with the object: a copy of its reference.
    "newStatistics__J" => fn(_env, other: Option<&SharedStatistics>) -> Box<SharedStatistics> {
        Ok(Box::new(other.cloned().unwrap_or_default()))
    }

    /// Ignored histograms are recorded too.
    "newStatistics___3B" => fn(_env, _ignored: Option<Whole>) -> Box<SharedStatistics> {
        Ok(Box::default())
    }

    "newStatistics___3BJ" =>
    fn(_env, _ignored: Option<Whole>, other: Option<&SharedStatistics>) -> Box<SharedStatistics> {
        Ok(Box::new(other.cloned().unwrap_or_default()))
    }

    "disposeInternal" | "disposeInternalJni" => fn(_env, _shared: Closed<SharedStatistics>) -> () {
        Ok(())
    }

    "statsLevel" => fn(_env, shared: &SharedStatistics) -> i8 {
        Ok(shared.level.load(Ordering::Relaxed) as i8)
    }

    "setStatsLevel" => fn(_env, shared: &SharedStatistics, level: i8) -> () {
        shared.level.store(level.into(), Ordering::Relaxed);
        Ok(())
    }

    "getTickerCount" => fn(env, shared: &SharedStatistics, number: i8) -> i64 {
        Ok(TICKERS.metric(env, number)?.map_or(0, |ticker| shared.statistics.count(ticker)) as i64)
    }

    "getAndResetTickerCount" => fn(env, shared: &SharedStatistics, number: i8) -> i64 {
        Ok(TICKERS.metric(env, number)?.map_or(0, |ticker| shared.statistics.take(ticker)) as i64)
    }

    "getHistogramData" => fn(env, shared: &SharedStatistics, number: i8) -> Made {
        let data = distribution(env, shared, number)?;
        let arguments = [
            Value::Double(data.percentile(50.0)),
            Value::Double(data.percentile(95.0)),
            Value::Double(data.percentile(99.0)),
            Value::Double(data.average()),
            Value::Double(data.standard_deviation()),
            Value::Double(data.max() as f64),
            Value::Long(data.count() as i64),
            Value::Long(data.sum() as i64),
            Value::Double(data.min() as f64),
        ];
        NEW_HISTOGRAM_DATA.make(env, &arguments).map(Made::from)
    }

    "getHistogramString" => fn(env, shared: &SharedStatistics, number: i8) -> String {
        let data = distribution(env, shared, number)?;
        Ok(format!(
            "Count: {} Average: {:.4}  StdDev: {:.2}\nMin: {}  Median: {:.4}  Max: {}\n\
             Percentiles: P50: {:.2} P75: {:.2} P99: {:.2} P99.9: {:.2} P99.99: {:.2}\n",
            data.count(),
            data.average(),
            data.standard_deviation(),
            data.min(),
            data.percentile(50.0),
            data.max(),
            data.percentile(50.0),
            data.percentile(75.0),
            data.percentile(99.0),
            data.percentile(99.9),
            data.percentile(99.99),
        ))
    }

    "reset" => fn(_env, shared: &SharedStatistics) -> () {
        shared.statistics.reset();
        Ok(())
    }

    "toString" => fn(_env, shared: &SharedStatistics) -> String {
        Ok(shared.statistics.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use capi::database::Database;
    use capi::database::open::Mode;
    use capi::env::Env as FileEnv;
    use capi::options::Options;
    use capi::write_options::WriteSettings;

    use super::*;

    #[test]
    fn databases_count_in_statistics_made_before_them() {
        let shared = SharedStatistics::default();
        let mut options = Box::<Options>::default();
        options.env = Some(FileEnv::in_memory(&FileEnv::of_process()));
        options.db.create_if_missing = true;
        options.shared_statistics = Some(shared.clone());
        for path in ["/one", "/other"] {
            let database = Database::open_at(&options, Path::new(path), Mode::Write).ok().expect("opened");
            let put = database.put(database.default_family(), b"key", b"value", &WriteSettings::default());
            assert!(put.is_ok());
        }
        assert_eq!(shared.statistics.count(Ticker::NumberKeysWritten), 2);
        assert_eq!(
            (shared.statistics.take(Ticker::NumberKeysWritten), shared.statistics.count(Ticker::NumberKeysWritten)),
            (2, 0)
        );
    }

    #[test]
    fn metrics_have_javas_names() {
        assert_eq!(java_name(Ticker::BlockCacheDataMiss), "BLOCK_CACHE_DATA_MISS");
        assert_eq!(java_name(Ticker::GetHitL2AndUp), "GET_HIT_L2_AND_UP");
        assert_eq!(java_name(Ticker::FileErrors), "NO_FILE_ERRORS");
        assert_eq!(java_name(Histogram::NumFilesInSingleCompaction), "NUM_FILES_IN_SINGLE_COMPACTION");
        let names: Vec<String> =
            Ticker::ALL.iter().map(java_name).chain(Histogram::ALL.iter().map(java_name)).collect();
        for (_, renamed) in RENAMED {
            assert!(names.iter().any(|name| name == renamed), "{renamed}");
        }
    }
}
