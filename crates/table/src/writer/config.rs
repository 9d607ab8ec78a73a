//! What a table is written with.

use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;

use base::extend::PrefixExtractor;
use base::key::{self, ParsedKey};
use base::limits;
use base::options::{ChecksumKind, CompressionKind, CompressionOptions, FilterPolicy, IndexType, TableOptions};
use base::{Error, FamilyId, FileNumber, InternalOrder, Result, SeqNo, UserOrder, ValueKind};
use vfs::IoClass;

use crate::footer::{FORMAT_VERSION_MIN, FORMAT_VERSION_WRITTEN_MAX};
use crate::index::IndexFormat;
use crate::properties::{ExternalFile, Properties};

/// Everything a table builder is told.
#[derive(Clone)]
pub struct TableBuilderConfig {
    pub order: InternalOrder,
    pub options: TableOptions,
    pub compression: CompressionKind,
    pub compression_options: CompressionOptions,
    pub prefix_extractor: Option<Arc<dyn PrefixExtractor>>,
    /// The family's merge operator, by name; empty for none.
    pub merge_operator: String,
    pub origin: TableOrigin,
    /// The table is made to be ingested: its keys all have sequence number 0, and the database that takes it in gives
    /// them their number.
    pub ingestable: bool,
    /// For error messages.
    pub path: PathBuf,
    pub class: IoClass,
    /// Write-back is started whenever that many bytes were written; 0 never.
    pub bytes_per_sync: u64,
}

impl TableBuilderConfig {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        TableBuilderConfig {
            order: InternalOrder::default(),
            options: TableOptions::default(),
            compression: CompressionKind::None,
            compression_options: CompressionOptions::default(),
            prefix_extractor: None,
            merge_operator: String::new(),
            origin: TableOrigin::default(),
            ingestable: false,
            path: path.into(),
            class: IoClass::Other,
            bytes_per_sync: 0,
        }
    }

    /// # Errors
    /// `InvalidArgument`: options that contradict each other or that no reader would understand.
    pub(super) fn check(&self) -> Result<()> {
        let version = self.format_version();
        if version < FORMAT_VERSION_MIN {
            return Err(Error::invalid_argument(format!("format_version={version}: 2 to 5 are written")));
        }
        if self.options.index_type == IndexType::HashSearch && self.prefix_extractor.is_none() {
            return Err(Error::invalid_argument("index_type=kHashSearch needs a prefix_extractor"));
        }
        if self.options.partition_filters && self.options.index_type != IndexType::TwoLevel {
            return Err(Error::invalid_argument("partition_filters needs index_type=kTwoLevelIndexSearch"));
        }
        let dictionary = self.compression_options.max_dict_bytes > 0 && self.compression != CompressionKind::None;
        if dictionary && self.compression != CompressionKind::Zstd {
            return Err(Error::invalid_argument("max_dict_bytes: dictionaries are written with kZSTD only"));
        }
        Ok(())
    }

    /// # Errors
    /// `InvalidArgument`: no internal key, or a range tombstone's.
    #[inline]
    pub(crate) fn point_entry<'a>(&self, internal_key: &'a [u8]) -> Result<ParsedKey<'a>> {
        let entry = ParsedKey::parse(internal_key).filter(|entry| entry.kind != ValueKind::RangeDeletion);
        entry.ok_or_else(|| Error::invalid_argument("not the internal key of a point entry").at_path(&self.path))
    }

    /// # Errors
    /// `InvalidArgument`: an entry that this table cannot hold. Writes refuse such at admission; one that an earlier version
    /// took is named, for whoever deletes it.
    #[inline]
    pub(crate) fn check_entry(&self, value: &[u8], entry: &ParsedKey<'_>) -> Result<()> {
        limits::check_entry(entry.user_key, value)?;
        if self.ingestable && entry.seq != SeqNo::ZERO {
            return Err(Error::invalid_argument("the keys of a table to be ingested have sequence number 0"));
        }
        Ok(())
    }

    /// # Errors
    /// `InvalidArgument`: a key too long for the kinds of tables that keep keys whole in their indexes. An earlier version took
    /// it.
    #[inline]
    pub(crate) fn check_short_key(&self, user_key: &[u8]) -> Result<()> {
        limits::check_key(user_key)
            .map_err(|error| error.context("this kind of table cannot hold it: set table_factory=BlockBasedTable"))
    }

    /// Where `user_key` stands to that of `last_key`, the internal key added last; empty before the first.
    ///
    /// # Errors
    /// `InvalidArgument`: before it, or a second entry of the same number.
    #[inline]
    pub(crate) fn check_order(&self, last_key: &[u8], user_key: &[u8], trailer: u64) -> Result<Ordering> {
        let Some((last_user, last_trailer)) = key::split(last_key) else {
            return Ok(Ordering::Greater);
        };
        let ordering = match &self.order.user {
            UserOrder::Bytewise => user_key.cmp(last_user),
            order => order.compare(user_key, last_user),
        };
        match ordering {
            Ordering::Greater => Ok(ordering),
            Ordering::Equal if trailer < last_trailer => Ok(ordering),
            _ => Err(Error::invalid_argument("keys were not added in order").at_path(&self.path)),
        }
    }

    /// Notes what the configuration says of filter, origin and use of the table.
    pub(crate) fn describe(&self, properties: &mut Properties) {
        let is_filtered = self.filter_bits().is_some();
        properties.whole_key_filtering = self.options.whole_key_filtering;
        properties.prefix_filtering = self.prefix_extractor.is_some() && is_filtered;
        properties.prefix_extractor = self.prefix_extractor.as_ref().map_or_else(String::new, |e| e.name());
        if is_filtered {
            properties.filter_policy = "bloomfilter".to_string();
        }
        properties.set_origin(&self.origin, &self.order.user, &self.merge_operator);
        if self.ingestable {
            properties.external = Some(ExternalFile { version: ExternalFile::VERSION, global_seqno: 0 });
        }
    }

    /// The version that is written, whichever was asked for.
    pub(super) fn format_version(&self) -> u32 {
        self.options.format_version.min(FORMAT_VERSION_WRITTEN_MAX)
    }

    /// The format of the data index, once it is known whether separators need their trailers.
    pub(super) fn index_format(&self, needs_trailers: bool) -> IndexFormat {
        let version = self.format_version();
        IndexFormat {
            user_keys: version > 2 && !needs_trailers,
            delta_values: version > 3,
            first_keys: self.options.index_type == IndexType::BinarySearchWithFirstKey,
        }
    }

    pub(super) fn checksum(&self) -> base::checksum::ChecksumKind {
        use base::checksum::ChecksumKind as Stored;
        match self.options.checksum {
            ChecksumKind::None => Stored::None,
            ChecksumKind::Crc32c => Stored::Crc32c,
            ChecksumKind::XxHash32 => Stored::XxHash,
            ChecksumKind::XxHash64 => Stored::XxHash64,
            ChecksumKind::Xxh3 => Stored::Xxh3,
        }
    }

    /// Bits per key of the filter, where one is wanted and something goes into it.
    pub(super) fn filter_bits(&self) -> Option<f64> {
        let FilterPolicy { bits_per_key } = self.options.filter_policy;
        let wanted = self.options.whole_key_filtering || self.prefix_extractor.is_some();
        bits_per_key.filter(|_| wanted)
    }
}

/// Where a table comes from: written into its properties. Empty texts and zero times are left out or written as
/// RocksDB writes the unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOrigin {
    pub family: Option<FamilyId>,
    pub family_name: String,
    pub db_id: String,
    /// 20 base-36 characters: with `db_id` and `file_number` the table's unique id.
    pub session_id: String,
    pub host_id: String,
    pub file_number: FileNumber,
    /// Seconds since the epoch.
    pub creation_time_s: u64,
    pub oldest_key_time_s: u64,
    pub file_creation_time_s: u64,
}
