//! Statistics by RocksDB's numbers: the places of its enums `Tickers` and `Histograms`, version 11.

use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use spillway::internal::metrics::{Distribution, Histogram, Statistics, Ticker};

use crate::boundary::{export, handles};

/// Statistics made before the databases that count in them.
#[derive(Clone, Default)]
pub struct SharedStatistics {
    pub statistics: Arc<Statistics>,
    /// The requested level. Every level counts everything here.
    pub level: Arc<AtomicI32>,
}

/// The tickers counted here. RocksDB's others are 0.
const TICKERS: &[(u32, Ticker)] = &[
    (0, Ticker::BlockCacheMiss),
    (1, Ticker::BlockCacheHit),
    (2, Ticker::BlockCacheAdd),
    (3, Ticker::BlockCacheAddFailures),
    (4, Ticker::BlockCacheIndexMiss),
    (5, Ticker::BlockCacheIndexHit),
    (6, Ticker::BlockCacheIndexAdd),
    (7, Ticker::BlockCacheIndexBytesInsert),
    (8, Ticker::BlockCacheFilterMiss),
    (9, Ticker::BlockCacheFilterHit),
    (10, Ticker::BlockCacheFilterAdd),
    (11, Ticker::BlockCacheFilterBytesInsert),
    (12, Ticker::BlockCacheDataMiss),
    (13, Ticker::BlockCacheDataHit),
    (14, Ticker::BlockCacheDataAdd),
    (15, Ticker::BlockCacheDataBytesInsert),
    (16, Ticker::BlockCacheBytesRead),
    (17, Ticker::BlockCacheBytesWrite),
    (35, Ticker::BloomFilterUseful),
    (36, Ticker::BloomFilterFullPositive),
    (37, Ticker::BloomFilterFullTruePositive),
    (38, Ticker::BloomFilterPrefixChecked),
    (39, Ticker::BloomFilterPrefixUseful),
    (45, Ticker::MemtableHit),
    (46, Ticker::MemtableMiss),
    (47, Ticker::GetHitL0),
    (48, Ticker::GetHitL1),
    (49, Ticker::GetHitL2AndUp),
    (50, Ticker::CompactionKeyDropNewerEntry),
    (51, Ticker::CompactionKeyDropObsolete),
    (52, Ticker::CompactionKeyDropRangeDel),
    (53, Ticker::CompactionKeyDropUser),
    (58, Ticker::NumberKeysWritten),
    (59, Ticker::NumberKeysRead),
    (61, Ticker::BytesWritten),
    (62, Ticker::BytesRead),
    (63, Ticker::NumberDbSeek),
    (64, Ticker::NumberDbNext),
    (65, Ticker::NumberDbPrev),
    (66, Ticker::NumberDbSeekFound),
    (67, Ticker::NumberDbNextFound),
    (68, Ticker::NumberDbPrevFound),
    (69, Ticker::IterBytesRead),
    (70, Ticker::NumberIterSkip),
    (71, Ticker::NumberReseeksInIteration),
    (72, Ticker::IteratorCreated),
    (73, Ticker::IteratorDeleted),
    (74, Ticker::FileOpens),
    (75, Ticker::FileErrors),
    (76, Ticker::StallMicros),
    (78, Ticker::NumberMultigetCalls),
    (79, Ticker::NumberMultigetKeysRead),
    (80, Ticker::NumberMultigetBytesRead),
    (81, Ticker::NumberMultigetKeysFound),
    (82, Ticker::NumberMergeFailures),
    (84, Ticker::WalFileSynced),
    (85, Ticker::WalFileBytes),
    (91, Ticker::WriteDoneBySelf),
    (92, Ticker::WriteDoneByOther),
    (93, Ticker::WriteWithWal),
    (94, Ticker::CompactReadBytes),
    (95, Ticker::CompactWriteBytes),
    (96, Ticker::FlushWriteBytes),
    (108, Ticker::NumberBlockDecompressed),
    (176, Ticker::FilesDeletedImmediately),
    (177, Ticker::BackgroundErrors),
    (183, Ticker::MemtablePayloadBytesAtFlush),
    (215, Ticker::BlockChecksumComputed),
    (216, Ticker::BlockChecksumMismatch),
];

const HISTOGRAMS: &[(u32, Histogram)] = &[
    (0, Histogram::DbGet),
    (1, Histogram::DbWrite),
    (2, Histogram::CompactionTime),
    (7, Histogram::WalFileSync),
    (9, Histogram::TableOpenIo),
    (10, Histogram::DbMultiget),
    (14, Histogram::NumFilesInSingleCompaction),
    (15, Histogram::DbSeek),
    (16, Histogram::WriteStall),
    (17, Histogram::SstRead),
    (30, Histogram::NumSubcompactions),
    (31, Histogram::BytesPerRead),
    (32, Histogram::BytesPerWrite),
    (33, Histogram::BytesPerMultiget),
    (36, Histogram::ReadNumMergeOperands),
    (50, Histogram::FlushTime),
];

/// `rocksdb_statistics_histogram_data_t`.
#[derive(Default)]
pub struct HistogramData(Distribution);

handles!(HistogramData);

pub fn ticker(statistics: &Statistics, number: u32) -> u64 {
    let known = TICKERS.iter().find(|(known, _)| *known == number);
    known.map_or(0, |&(_, ticker)| statistics.count(ticker))
}

impl HistogramData {
    pub fn of(statistics: &Statistics, number: u32) -> HistogramData {
        let known = HISTOGRAMS.iter().find(|(known, _)| *known == number);
        HistogramData(known.map_or_else(Distribution::default, |&(_, histogram)| statistics.distribution(histogram)))
    }
}

export! {
    fn rocksdb_statistics_histogram_data_create() -> Box<HistogramData> {
        Box::default()
    }

    fn rocksdb_statistics_histogram_data_destroy(data: Option<Box<HistogramData>>) {
        drop(data);
    }

    fn rocksdb_statistics_histogram_data_get_median(data: &HistogramData) -> f64 {
        data.0.percentile(50.0)
    }

    fn rocksdb_statistics_histogram_data_get_p95(data: &HistogramData) -> f64 {
        data.0.percentile(95.0)
    }

    fn rocksdb_statistics_histogram_data_get_p99(data: &HistogramData) -> f64 {
        data.0.percentile(99.0)
    }

    fn rocksdb_statistics_histogram_data_get_average(data: &HistogramData) -> f64 {
        data.0.average()
    }

    fn rocksdb_statistics_histogram_data_get_std_dev(data: &HistogramData) -> f64 {
        data.0.standard_deviation()
    }

    fn rocksdb_statistics_histogram_data_get_max(data: &HistogramData) -> f64 {
        data.0.max() as f64
    }

    fn rocksdb_statistics_histogram_data_get_count(data: &HistogramData) -> u64 {
        data.0.count()
    }

    fn rocksdb_statistics_histogram_data_get_sum(data: &HistogramData) -> u64 {
        data.0.sum()
    }

    fn rocksdb_statistics_histogram_data_get_min(data: &HistogramData) -> f64 {
        data.0.min() as f64
    }
}
