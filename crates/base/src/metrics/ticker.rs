//! Tickers and histograms under RocksDB's names; our own names begin with `spillway.`.

/// Defines an enum of metrics with their names, numbered from 0.
macro_rules! named_metrics {
    ($(#[$about:meta])+ enum $Enum:ident { $( $(#[$variant_meta:meta])* $Variant:ident => $name:literal, )+ }) => {
        $(#[$about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $Enum { $( $(#[$variant_meta])* #[doc = concat!("\n\n`", $name, "`")] $Variant, )+ }

        impl $Enum {
            /// All of them, in RocksDB's order.
            pub const ALL: &'static [$Enum] = &[$( $Enum::$Variant ),+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// RocksDB's name, or ours with `spillway.` in front.
            pub fn name(self) -> &'static str {
                match self { $( $Enum::$Variant => $name, )+ }
            }

            /// The metric called `name`.
            pub fn by_name(name: &str) -> Option<$Enum> {
                Self::ALL.iter().copied().find(|metric| metric.name() == name)
            }
        }
    };
}

named_metrics! {
    /// A counter.
    enum Ticker {
        BlockCacheMiss => "rocksdb.block.cache.miss",
        BlockCacheHit => "rocksdb.block.cache.hit",
        BlockCacheAdd => "rocksdb.block.cache.add",
        BlockCacheAddFailures => "rocksdb.block.cache.add.failures",
        BlockCacheIndexMiss => "rocksdb.block.cache.index.miss",
        BlockCacheIndexHit => "rocksdb.block.cache.index.hit",
        BlockCacheIndexAdd => "rocksdb.block.cache.index.add",
        BlockCacheIndexBytesInsert => "rocksdb.block.cache.index.bytes.insert",
        BlockCacheFilterMiss => "rocksdb.block.cache.filter.miss",
        BlockCacheFilterHit => "rocksdb.block.cache.filter.hit",
        BlockCacheFilterAdd => "rocksdb.block.cache.filter.add",
        BlockCacheFilterBytesInsert => "rocksdb.block.cache.filter.bytes.insert",
        BlockCacheDataMiss => "rocksdb.block.cache.data.miss",
        BlockCacheDataHit => "rocksdb.block.cache.data.hit",
        BlockCacheDataAdd => "rocksdb.block.cache.data.add",
        BlockCacheDataBytesInsert => "rocksdb.block.cache.data.bytes.insert",
        BlockCacheBytesRead => "rocksdb.block.cache.bytes.read",
        BlockCacheBytesWrite => "rocksdb.block.cache.bytes.write",
        BloomFilterUseful => "rocksdb.bloom.filter.useful",
        BloomFilterFullPositive => "rocksdb.bloom.filter.full.positive",
        BloomFilterFullTruePositive => "rocksdb.bloom.filter.full.true.positive",
        BloomFilterPrefixChecked => "rocksdb.bloom.filter.prefix.checked",
        BloomFilterPrefixUseful => "rocksdb.bloom.filter.prefix.useful",
        MemtableHit => "rocksdb.memtable.hit",
        MemtableMiss => "rocksdb.memtable.miss",
        GetHitL0 => "rocksdb.l0.hit",
        GetHitL1 => "rocksdb.l1.hit",
        GetHitL2AndUp => "rocksdb.l2andup.hit",
        /// A newer entry of the same key hid it.
        CompactionKeyDropNewerEntry => "rocksdb.compaction.key.drop.new",
        /// A deletion with no older entry below it.
        CompactionKeyDropObsolete => "rocksdb.compaction.key.drop.obsolete",
        CompactionKeyDropRangeDel => "rocksdb.compaction.key.drop.range_del",
        /// The compaction filter dropped it.
        CompactionKeyDropUser => "rocksdb.compaction.key.drop.user",
        NumberKeysWritten => "rocksdb.number.keys.written",
        NumberKeysRead => "rocksdb.number.keys.read",
        BytesWritten => "rocksdb.bytes.written",
        BytesRead => "rocksdb.bytes.read",
        NumberDbSeek => "rocksdb.number.db.seek",
        NumberDbNext => "rocksdb.number.db.next",
        NumberDbPrev => "rocksdb.number.db.prev",
        NumberDbSeekFound => "rocksdb.number.db.seek.found",
        NumberDbNextFound => "rocksdb.number.db.next.found",
        NumberDbPrevFound => "rocksdb.number.db.prev.found",
        IterBytesRead => "rocksdb.db.iter.bytes.read",
        NumberIterSkip => "rocksdb.number.iter.skip",
        NumberReseeksInIteration => "rocksdb.number.reseeks.iteration",
        IteratorCreated => "rocksdb.num.iterator.created",
        IteratorDeleted => "rocksdb.num.iterator.deleted",
        FileOpens => "rocksdb.no.file.opens",
        FileErrors => "rocksdb.no.file.errors",
        StallMicros => "rocksdb.stall.micros",
        NumberMultigetCalls => "rocksdb.number.multiget.get",
        NumberMultigetKeysRead => "rocksdb.number.multiget.keys.read",
        NumberMultigetBytesRead => "rocksdb.number.multiget.bytes.read",
        NumberMultigetKeysFound => "rocksdb.number.multiget.keys.found",
        NumberMergeFailures => "rocksdb.number.merge.failures",
        WalFileSynced => "rocksdb.wal.synced",
        WalFileBytes => "rocksdb.wal.bytes",
        WriteDoneBySelf => "rocksdb.write.self",
        /// A synced write covered by another writer's sync. All remaining writes count as self.
        WriteDoneByOther => "rocksdb.write.other",
        WriteWithWal => "rocksdb.write.wal",
        CompactReadBytes => "rocksdb.compact.read.bytes",
        CompactWriteBytes => "rocksdb.compact.write.bytes",
        FlushWriteBytes => "rocksdb.flush.write.bytes",
        NumberBlockDecompressed => "rocksdb.number.block.decompressed",
        /// Lookups answered before the tables.
        RowCacheHit => "rocksdb.row.cache.hit",
        /// Lookups that asked tables, with a cache of answers.
        RowCacheMiss => "rocksdb.row.cache.miss",
        FilesDeletedImmediately => "rocksdb.files.deleted.immediately",
        BackgroundErrors => "rocksdb.error.handler.bg.error.count",
        BlockChecksumComputed => "rocksdb.block.checksum.compute.count",
        BlockChecksumMismatch => "rocksdb.block.checksum.mismatch.count",
        /// Keys and values in flushed memtables, including deleted and shadowed entries.
        MemtablePayloadBytesAtFlush => "rocksdb.memtable.payload.bytes.at.flush",
        /// Writers' waits by cause; each is part of `rocksdb.stall.micros`.
        StallMemtablesMicros => "spillway.stall.memtables.micros",
        StallL0Micros => "spillway.stall.l0.micros",
        StallPendingCompactionMicros => "spillway.stall.pending.compaction.micros",
        /// The next WAL file or memtable was not ready.
        StallSpareMicros => "spillway.stall.spare.micros",
        /// Total memtable memory was at its limit.
        StallMemoryMicros => "spillway.stall.memory.micros",
        /// Too many writes were in flight.
        StallPipelineMicros => "spillway.stall.pipeline.micros",
        /// A range latch of an ingest.
        StallIngestMicros => "spillway.stall.ingest.micros",
        LargeBatches => "spillway.large.batches",
        /// Flushes by method.
        FlushesRewritten => "spillway.flush.rewritten",
        FlushesConverted => "spillway.flush.converted",
        FlushesLinked => "spillway.flush.linked",
        /// Memtables rewritten because they could not be converted to tables.
        FlushesFallenBack => "spillway.flush.fallen.back",
        /// Ingests per family: queued under the mutable memtable, or above it with a fresh memtable on top.
        IngestUnder => "spillway.ingest.under",
        IngestAbove => "spillway.ingest.above",
        /// Ingests with immediate level placement, by mode, and ingests behind.
        IngestBlocking => "spillway.ingest.blocking",
        IngestFlushFirst => "spillway.ingest.flush.first",
        IngestDirect => "spillway.ingest.direct",
        IngestBehind => "spillway.ingest.behind",
        /// Memtable flushes requested and awaited by ingests.
        IngestFlushes => "spillway.ingest.flushes",
        BackgroundRestMicros => "spillway.background.rest.micros",
        IngestTables => "spillway.ingest.tables",
        IngestBytes => "spillway.ingest.bytes",
        /// Ingested tables by assigned level: 0, the last, or one between.
        IngestPlacedL0 => "spillway.ingest.placed.l0",
        IngestPlacedMiddle => "spillway.ingest.placed.middle",
        IngestPlacedLast => "spillway.ingest.placed.last",
        /// Ingested tables merged with the memtable below into one level-0 table. Part of `spillway.ingest.placed.l0`.
        IngestMerged => "spillway.ingest.merged",
    }
}

named_metrics! {
    /// A measured distribution.
    enum Histogram {
        DbGet => "rocksdb.db.get.micros",
        DbWrite => "rocksdb.db.write.micros",
        CompactionTime => "rocksdb.compaction.times.micros",
        WalFileSync => "rocksdb.wal.file.sync.micros",
        TableOpenIo => "rocksdb.table.open.io.micros",
        DbMultiget => "rocksdb.db.multiget.micros",
        NumFilesInSingleCompaction => "rocksdb.numfiles.in.singlecompaction",
        DbSeek => "rocksdb.db.seek.micros",
        WriteStall => "rocksdb.db.write.stall",
        SstRead => "rocksdb.sst.read.micros",
        NumSubcompactions => "rocksdb.num.subcompactions.scheduled",
        BytesPerRead => "rocksdb.bytes.per.read",
        BytesPerWrite => "rocksdb.bytes.per.write",
        BytesPerMultiget => "rocksdb.bytes.per.multiget",
        ReadNumMergeOperands => "rocksdb.read.num.merge_operands",
        FlushTime => "rocksdb.db.flush.micros",
        /// Time a writer spent replacing a full memtable.
        MemtableSwitch => "spillway.memtable.switch.micros",
        IngestPrepare => "spillway.ingest.prepare.micros",
        /// From the call to the return, including the WAL sync.
        IngestCommit => "spillway.ingest.commit.micros",
        /// Time an ingest held the commit lock, in nanoseconds.
        IngestCommitLock => "spillway.ingest.commit.lock.nanos",
        IngestLogSync => "spillway.ingest.log.sync.micros",
        /// Preparation and commit.
        IngestTotal => "spillway.ingest.total.micros",
        IngestLink => "spillway.ingest.link.micros",
        /// Time from an ingest's arrival in a family's queue until its tables are in levels.
        IngestQueued => "spillway.ingest.queued.micros",
    }
}
