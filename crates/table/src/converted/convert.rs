//! Converts a sealed memtable to a table: writes its image, unless the file is the memtable's own, then the tail.

use std::path::PathBuf;
use std::sync::Arc;

use base::key::TRAILER_BYTES;
use base::{Error, InternalOrder, Result, SeqNo};
use memtable::Memtable;
use memtable::image::SealedImage;
use vfs::{AppendFile, IoClass};

use super::footer::{FORMAT, Footer};
use super::{LEAVES_VALUES, no_image, point_bounds};
use crate::private::{ExtentSums, encode_tail};
use crate::{Properties, TableOrigin, TableSummary};

/// The tail begins at a page boundary, so writing it rewrites no page of the image.
const PAGE_BYTES: u64 = 4096;

const ZEROS: [u8; PAGE_BYTES as usize] = [0; PAGE_BYTES as usize];

/// Metadata of the table, and how to write it.
#[derive(Clone)]
pub struct ConvertConfig {
    /// The order of keys.
    pub order: InternalOrder,
    /// The family's merge operator, by name; empty for none.
    pub merge_operator: String,
    /// What the properties say of the table's origin.
    pub origin: TableOrigin,
    /// Bounds of the entries' sequence numbers, as far as the caller knows.
    pub smallest_seq: SeqNo,
    /// The largest sequence number.
    pub largest_seq: SeqNo,
    /// What the values refer to in the WAL, for the properties; `None` if the image has all values.
    pub references: Option<String>,
    /// Whether to sync the file.
    pub sync: bool,
    /// For error messages.
    pub path: PathBuf,
    /// The purpose of the writes.
    pub class: IoClass,
}

/// Converts the sealed `memtable` to a table in `file`. An empty `file` gets the image first. Otherwise `file` must be
/// the memtable's own, opened for append.
///
/// A failure leaves an invalid table in `file`, and the memtable unchanged.
///
/// # Errors
/// `InvalidArgument`: the memtable has no image, or `file` is neither. Errors of the file; after a failed sync it must
/// not be relied on (D4).
pub fn convert(
    memtable: &Arc<dyn Memtable>,
    file: Box<dyn AppendFile>,
    config: &ConvertConfig,
) -> Result<TableSummary> {
    let image = memtable.image().ok_or_else(|| no_image(memtable))?;
    let properties = properties_of(&image, config);
    let file_bytes = append(&image, file, &properties, config).map_err(|e| e.at_path(&config.path))?;
    Ok(TableSummary {
        file_bytes,
        point_bounds: point_bounds(memtable),
        smallest_seq: config.smallest_seq,
        largest_seq: config.largest_seq,
        properties,
    })
}

fn properties_of(image: &SealedImage<'_>, config: &ConvertConfig) -> Properties {
    let totals = image.totals;
    let mut properties = Properties {
        data_bytes: image.bytes.len() as u64,
        // RocksDB counts trailers as bytes of keys.
        raw_key_bytes: totals.key_bytes + totals.entries * TRAILER_BYTES as u64,
        raw_value_bytes: totals.payload_bytes - totals.key_bytes,
        entries: totals.entries,
        deletions: totals.deletions,
        merge_operands: totals.merge_operands,
        range_deletions: totals.range_deletions,
        compression: "NoCompression".to_owned(),
        ..Properties::default()
    };
    if let Some(references) = &config.references {
        properties.other.insert(LEAVES_VALUES.to_owned(), references.clone().into_bytes());
    }
    properties.set_origin(&config.origin, &config.order.user, &config.merge_operator);
    properties
}

/// Appends the image, unless the file has it, and the tail. Returns the file's bytes.
fn append(
    image: &SealedImage<'_>,
    mut file: Box<dyn AppendFile>,
    properties: &Properties,
    config: &ConvertConfig,
) -> Result<u64> {
    let lies_here = image.file.as_ref().is_some_and(|place| place.file_bytes() == file.len());
    if !lies_here && !file.is_empty() {
        return Err(Error::invalid_argument("neither an empty file nor the one that the memtable lies in"));
    }
    let mut sums = ExtentSums::new(FORMAT.extent_bytes);
    for extent in image.bytes.chunks(FORMAT.extent_bytes) {
        sums.add(extent);
        if !lies_here {
            file.append(extent, config.class)?;
        }
    }
    let padding = file.len().next_multiple_of(PAGE_BYTES) - file.len();
    if let Some(zeros) = ZEROS.get(..padding as usize).filter(|zeros| !zeros.is_empty()) {
        file.append(zeros, config.class)?;
    }
    let (image_bytes, checksums_at) = (image.bytes.len() as u64, file.len());
    let footer = |properties_bytes| Footer { image_bytes, checksums_at, properties_bytes };
    file.append(&encode_tail(sums.finish(), properties, footer)?, config.class)?;
    if config.sync {
        // Also writes back stores through a mapping of the file.
        file.sync(config.class)?;
    }
    Ok(file.len())
}
