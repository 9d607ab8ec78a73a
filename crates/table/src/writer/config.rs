//! Configuration of a table builder.

use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;

use base::extend::PrefixExtractor;
use base::key::{self, ParsedKey};
use base::limits;
use base::options::{ChecksumKind, CompressionKind, CompressionOptions, FilterPolicy, IndexType, TableOptions};
use base::{Error, FamilyId, FileNumber, InternalOrder, Result, SeqNo, UserOrder, ValueKind};
use vfs::IoClass;

use crate::footer::{FORMAT_VERSION_CONTEXT, FORMAT_VERSION_MAX, FORMAT_VERSION_MIN};
use crate::index::IndexFormat;
use crate::properties::{ExternalFile, Properties};

/// Inputs of a table builder.
#[derive(Clone, Default)]
pub struct TableBuilderConfig {
    /// The order of keys.
    pub order: InternalOrder,
    /// Options of the table.
    pub options: TableOptions,
    /// The compression of blocks.
    pub compression: CompressionKind,
    /// How hard to compress.
    pub compression_options: CompressionOptions,
    /// The part of keys that filters go by.
    pub prefix_extractor: Option<Arc<dyn PrefixExtractor>>,
    /// The family's merge operator, by name; empty for none.
    pub merge_operator: String,
    /// What the properties say of the table's origin.
    pub origin: TableOrigin,
    /// The table is made for ingestion: all keys have sequence number 0. The ingesting database assigns their number.
    pub ingestable: bool,
    /// For error messages.
    pub path: PathBuf,
    /// The purpose of the writes.
    pub class: IoClass,
    /// Starts write-back after every so many bytes written; 0 never.
    pub bytes_per_sync: u64,
}

impl TableBuilderConfig {
    /// The defaults, for a table of this name.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        TableBuilderConfig { path: path.into(), ..TableBuilderConfig::default() }
    }

    /// # Errors
    /// `InvalidArgument`: the options contradict each other, or no reader would understand the table.
    pub(super) fn check(&self) -> Result<()> {
        let version = self.options.format_version;
        if !(FORMAT_VERSION_MIN..=FORMAT_VERSION_MAX).contains(&version) {
            return Err(Error::invalid_argument(format!(
                "format_version={version}: {FORMAT_VERSION_MIN} to {FORMAT_VERSION_MAX} are written"
            )));
        }
        if self.options.index_type == IndexType::HashSearch && self.prefix_extractor.is_none() {
            return Err(Error::invalid_argument("index_type=kHashSearch needs a prefix_extractor"));
        }
        let dictionary = self.compression_options.max_dict_bytes > 0 && self.compression != CompressionKind::None;
        if dictionary && self.compression != CompressionKind::Zstd {
            return Err(Error::invalid_argument("max_dict_bytes: dictionaries are written with kZSTD only"));
        }
        Ok(())
    }

    /// # Errors
    /// `InvalidArgument`: not an internal key, or a range tombstone's.
    #[inline]
    pub(crate) fn point_entry<'a>(&self, internal_key: &'a [u8]) -> Result<ParsedKey<'a>> {
        let entry = ParsedKey::parse(internal_key).filter(|entry| entry.kind != ValueKind::RangeDeletion);
        entry.ok_or_else(|| Error::invalid_argument("not the internal key of a point entry").at_path(&self.path))
    }

    /// # Errors
    /// `InvalidArgument`: this table cannot hold the entry. Writes refuse such entries at admission. The error names an
    /// entry accepted by an earlier version, so it can be deleted.
    #[inline]
    pub(crate) fn check_entry(&self, value: &[u8], entry: &ParsedKey<'_>) -> Result<()> {
        limits::check_entry(entry.user_key, value)?;
        if self.ingestable && entry.seq != SeqNo::ZERO {
            return Err(Error::invalid_argument("the keys of a table to be ingested have sequence number 0"));
        }
        Ok(())
    }

    /// # Errors
    /// `InvalidArgument`: the key is too long for tables with whole keys in their index. Only an earlier version
    /// accepted such keys.
    #[inline]
    pub(crate) fn check_short_key(&self, user_key: &[u8]) -> Result<()> {
        limits::check_key(user_key)
            .map_err(|error| error.context("this kind of table cannot hold it: set table_factory=BlockBasedTable"))
    }

    /// Compares `user_key` with the user key of `last_key`, the internal key added last. `Greater` if `last_key` is
    /// empty.
    ///
    /// # Errors
    /// `InvalidArgument`: `user_key` is before it, or a second entry has the same sequence number.
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

    /// Describes filter, origin and use of the table in `properties`.
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

    /// Mixed into block checksums, and different for each table: a block of another table fails. Not 0 from version 6 on.
    pub(super) fn base_context_checksum(&self) -> u32 {
        if self.options.format_version < FORMAT_VERSION_CONTEXT {
            return 0;
        }
        let TableOrigin { db_id, session_id, file_number, .. } = &self.origin;
        let name = format!("{db_id} {session_id} {} {}", file_number.0, self.path.display());
        ChecksumKind::Xxh3.of_buffer(name.as_bytes()).max(1)
    }

    /// The format of the data index. `needs_trailers`: its separators need their trailers.
    pub(super) fn index_format(&self, needs_trailers: bool) -> IndexFormat {
        let version = self.options.format_version;
        IndexFormat {
            user_keys: version > 2 && !needs_trailers,
            delta_values: version > 3,
            first_keys: self.options.index_type == IndexType::BinarySearchWithFirstKey,
        }
    }

    /// Bits per key of the filter; `None` if no filter is configured or nothing would go into it.
    pub(super) fn filter_bits(&self) -> Option<f64> {
        let FilterPolicy { bits_per_key } = self.options.filter_policy;
        let wanted = self.options.whole_key_filtering || self.prefix_extractor.is_some();
        bits_per_key.filter(|_| wanted)
    }
}

/// Origin of a table, for its properties. Empty texts and zero times are omitted, or written as RocksDB writes unknown
/// values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOrigin {
    /// Number of the family.
    pub family: Option<FamilyId>,
    /// Name of the family.
    pub family_name: String,
    /// Values and operands end with the times of their writes.
    pub value_times: bool,
    /// Id of the database.
    pub db_id: String,
    /// 20 base-36 characters: with `db_id` and `file_number` the table's unique id.
    pub session_id: String,
    /// Name of the host.
    pub host_id: String,
    /// Number of the file.
    pub file_number: FileNumber,
    /// Seconds since the epoch.
    pub creation_time_s: u64,
    /// When the oldest key was written, in seconds since 1970.
    pub oldest_key_time_s: u64,
    /// When the file was made, in seconds since 1970.
    pub file_creation_time_s: u64,
}
