//! Enum options under RocksDB's names and numbers.

/// Defines an enum with RocksDB's names. Names after `refused` are RocksDB's too, but unsupported: choosing one is an
/// error with the reason. A variant may also be refused: valid in files, but not as an option.
macro_rules! named_enum {
    (
        $(#[$about:meta])+
        enum $Enum:ident { $( $(#[$variant_meta:meta])* $Variant:ident = $number:literal => $name:literal, )+ }
        refused { $( $refused:literal => $reason:literal, )* }
    ) => {
        $(#[$about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $Enum {
            $( $(#[$variant_meta])* #[doc = concat!("\n\nIn texts: `", $name, "`.")] $Variant = $number, )+
        }

        impl $Enum {
            /// All choices, refused ones included.
            pub const ALL: &'static [$Enum] = &[$( $Enum::$Variant ),+];

            const REFUSED: &'static [(&'static str, &'static str)] = &[$( ($refused, $reason) ),*];

            /// RocksDB's name.
            pub fn name(self) -> &'static str {
                match self { $( $Enum::$Variant => $name, )+ }
            }

            /// RocksDB's number, as stored in files.
            pub fn number(self) -> u8 {
                self as u8
            }

            /// The choice with RocksDB's number.
            pub fn from_number(number: u8) -> Option<$Enum> {
                Self::ALL.iter().copied().find(|choice| choice.number() == number)
            }

            /// The choice called `name`.
            ///
            /// # Errors
            /// `InvalidArgument`: unknown. `Unsupported`: known and refused, with the reason.
            pub fn by_name(name: &str) -> $crate::error::Result<$Enum> {
                if let Some((_, reason)) = Self::REFUSED.iter().find(|(refused, _)| *refused == name) {
                    return Err($crate::error::Error::unsupported(format!("`{name}`: {reason}")));
                }
                Self::ALL.iter().copied().find(|choice| choice.name() == name).ok_or_else(|| {
                    let names = Self::choosable();
                    $crate::error::Error::invalid_argument(format!("`{name}` is none of {names}"))
                })
            }

            fn choosable() -> String {
                let refused = |name: &str| Self::REFUSED.iter().any(|(refused, _)| *refused == name);
                let names = Self::ALL.iter().map(|choice| choice.name()).filter(|name| !refused(name));
                names.collect::<Vec<_>>().join(", ")
            }
        }

        #[doc(hidden)]
        impl $crate::options::row::Setting for $Enum {
            fn kind(&self) -> String {
                Self::choosable()
            }

            fn text(&self) -> String {
                self.name().to_string()
            }

            fn number(&self) -> Option<f64> {
                Some(f64::from(*self as u8))
            }

            fn set(&mut self, text: &str, _load: &mut $crate::options::row::Load) -> $crate::error::Result<()> {
                *self = Self::by_name(text)?;
                Ok(())
            }
        }
    };
}

named_enum! {
    /// How a block's bytes are compressed.
    #[derive(Default)]
    enum CompressionKind {
        #[default]
        None = 0 => "kNoCompression",
        Snappy = 1 => "kSnappyCompression",
        Zlib = 2 => "kZlibCompression",
        /// Known by its number; neither read nor written.
        Bzip2 = 3 => "kBZip2Compression",
        Lz4 = 4 => "kLZ4Compression",
        /// LZ4's format, written as `Lz4` writes it.
        Lz4hc = 5 => "kLZ4HCCompression",
        Zstd = 7 => "kZSTD",
        /// `bottommost_compression` only: the last level is compressed like the others.
        Disable = 0xff => "kDisableCompressionOption",
    }
    refused {
        "kBZip2Compression" => "bzip2 is not written; kZSTD compresses better and faster",
        "kXpressCompression" => "Xpress exists on Windows only",
        "kZSTDNotFinalCompression" => "the format from before ZSTD was final is not supported; use kZSTD",
    }
}

named_enum! {
    /// Recovery's handling of a damaged WAL.
    #[derive(Default)]
    enum WalRecoveryMode {
        /// An incomplete record at the WAL's end is dropped; damage elsewhere fails the open.
        TolerateCorruptedTailRecords = 0 => "kTolerateCorruptedTailRecords",
        /// Any damage fails the open.
        AbsoluteConsistency = 1 => "kAbsoluteConsistency",
        /// Replay stops before the first damage. Damage below the known frontier of a Spillway WAL still fails the open:
        /// ending there could drop an acknowledged synced write (D1).
        #[default]
        PointInTime = 2 => "kPointInTimeRecovery",
        /// Every readable record is kept: the result may have holes.
        SkipAnyCorruptedRecords = 3 => "kSkipAnyCorruptedRecords",
    }
    refused {}
}

named_enum! {
    /// Write method for WAL files.
    enum LogBacking {
        /// Chosen at open by probing the file system.
        Auto = 0 => "auto",
        Mapped = 1 => "mapped",
        Pwrite = 2 => "pwrite",
    }
    refused {}
}

named_enum! {
    /// Severity of an event log line.
    enum InfoLogLevel {
        Debug = 0 => "DEBUG_LEVEL",
        Info = 1 => "INFO_LEVEL",
        Warn = 2 => "WARN_LEVEL",
        Error = 3 => "ERROR_LEVEL",
        Fatal = 4 => "FATAL_LEVEL",
        /// The head of an event log: the version, and the options in force.
        Header = 5 => "HEADER_LEVEL",
    }
    refused {}
}

named_enum! {
    /// CPU priority of threads, with RocksDB's names.
    enum CpuPriority {
        Low = 1 => "kLow",
        Normal = 2 => "kNormal",
    }
    refused {
        "kIdle" => "threads that only idle processors run are not implemented; use kLow",
        "kHigh" => "threads above all others are not implemented; use kNormal",
    }
}

named_enum! {
    /// How tables are arranged.
    enum CompactionStyle {
        /// Levels grow by a factor; each is one sorted run.
        Level = 0 => "kCompactionStyleLevel",
        /// Sorted runs of similar size are merged.
        Universal = 1 => "kCompactionStyleUniversal",
        /// The oldest tables are deleted, entries and all.
        Fifo = 2 => "kCompactionStyleFIFO",
    }
    refused {
        "kCompactionStyleNone" => "compaction by the user is not implemented; set disable_auto_compactions",
    }
}

named_enum! {
    /// Which table of a level is compacted first, with compaction by level.
    enum CompactionPri {
        /// The largest, those with mostly deletions before all others.
        ByCompensatedSize = 0 => "kByCompensatedSize",
        /// The one whose newest entry is the oldest: hot ranges of keys stay above.
        OldestLargestSeqFirst = 1 => "kOldestLargestSeqFirst",
        /// The one whose oldest entry is the oldest: its range was not compacted for the longest time.
        OldestSmallestSeqFirst = 2 => "kOldestSmallestSeqFirst",
        /// The one with the fewest bytes to rewrite below for its size.
        MinOverlappingRatio = 3 => "kMinOverlappingRatio",
        /// The next one in the order of keys, and from the last on to the first.
        RoundRobin = 4 => "kRoundRobin",
    }
    refused {}
}

named_enum! {
    /// What universal compaction compares the next older sorted run with.
    enum CompactionStopStyle {
        /// The run before it.
        SimilarSize = 0 => "kCompactionStopStyleSimilarSize",
        /// All newer runs taken so far.
        TotalSize = 1 => "kCompactionStopStyleTotalSize",
    }
    refused {}
}

named_enum! {
    /// A table's index.
    #[derive(Default)]
    enum IndexType {
        #[default]
        BinarySearch = 0 => "kBinarySearch",
        HashSearch = 1 => "kHashSearch",
        TwoLevel = 2 => "kTwoLevelIndexSearch",
        BinarySearchWithFirstKey = 3 => "kBinarySearchWithFirstKey",
    }
    refused {}
}

named_enum! {
    /// Optional hash index of data blocks for point lookups.
    enum DataBlockIndexType {
        BinarySearch = 0 => "kDataBlockBinarySearch",
        BinaryAndHash = 1 => "kDataBlockBinaryAndHash",
    }
    refused {}
}

named_enum! {
    /// The checksum of every block.
    enum ChecksumKind {
        None = 0 => "kNoChecksum",
        Crc32c = 1 => "kCRC32c",
        XxHash32 = 2 => "kxxHash",
        XxHash64 = 3 => "kxxHash64",
        Xxh3 = 4 => "kXXH3",
    }
    refused {}
}
