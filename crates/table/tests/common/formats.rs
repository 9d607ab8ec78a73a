//! The formats of tables, as their documents describe the end of a file, and a table of each from one set of entries.

use std::path::Path;
use std::sync::Arc;

use base::checksum::{crc32c, mask};
use base::options::{CompressionKind, FilterPolicy, IndexType};
use base::tombstone::RangeTombstone;
use base::{InternalOrder, Result, SeqNo, ValueKind};
use table::{AnyTable, BlockBasedTable, ConvertedTable, FastTable, TableBuilder, TableBuilderConfig, ZipTable};

use super::conformance::orders;
use super::converted::{How, REPRESENTATIONS, TABLE, context, make};
use super::fast::{Mapped, fast_config, write_fast};
use super::zip::{write_zip, zip_config};
use super::{Bytes, Entry, key, put, write_with};

/// The file's name in errors.
pub const PATH: &str = "t.sst";

/// What a reader can know of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// The footer itself shows another number to be wrong.
    ByFooter,
    /// Another number is refused, or changes nothing.
    ByRest,
    /// The reader takes it from here: entries can change with it, in order.
    Nowhere,
}

/// A number of a footer.
pub struct Field {
    pub name: &'static str,
    /// Counted from the footer's start.
    pub at: usize,
    pub bytes: usize,
    pub known: Known,
}

const fn field(name: &'static str, at: usize, bytes: usize, known: Known) -> Field {
    Field { name, at, bytes, known }
}

/// The end of a file.
pub struct Format {
    pub name: &'static str,
    pub footer_bytes: usize,
    pub fields: &'static [Field],
    /// `None` if the tail has no checksum of its own.
    pub sums: Option<Sums>,
}

/// Checksums of extents and tail.
pub struct Sums {
    pub extent_bytes: usize,
    /// The first numbers of the footer: sections under checksums.
    pub sections: usize,
    /// Place in the footer of the tail's offset; `None` if it follows the sections.
    pub tail_at: Option<usize>,
}

use Known::{ByFooter, ByRest, Nowhere};

/// docs/format/table.md. The handles are varints: flipped bits reach them.
const BLOCK_BASED: Format = Format {
    name: "block-based",
    footer_bytes: 53,
    fields: &[
        field("checksum kind", 0, 1, ByRest),
        field("padding", 40, 1, ByFooter),
        field("version", 41, 4, ByRest),
        field("magic", 45, 8, ByFooter),
    ],
    sums: None,
};

/// docs/format/converted.md
const CONVERTED: Format = Format {
    name: "converted",
    footer_bytes: 64,
    fields: &[
        field("image", 0, 8, ByRest),
        field("checksums", 8, 8, ByFooter),
        field("properties' place", 16, 8, ByFooter),
        field("properties", 24, 8, ByFooter),
        field("file", 32, 8, ByFooter),
        field("extent", 40, 4, ByFooter),
        field("zeros", 44, 4, ByFooter),
        field("checksum", 48, 4, ByRest),
        field("version", 52, 4, ByFooter),
        field("magic", 56, 8, ByFooter),
    ],
    sums: Some(Sums { extent_bytes: 256 << 10, sections: 1, tail_at: Some(8) }),
};

/// docs/format/fast.md
const FAST: Format = Format {
    name: "fast",
    footer_bytes: 88,
    fields: &[
        field("groups", 0, 8, ByFooter),
        field("nodes", 8, 8, ByFooter),
        field("filter", 16, 8, ByFooter),
        field("tombstones", 24, 8, ByFooter),
        field("properties", 32, 8, ByFooter),
        field("file", 40, 8, ByFooter),
        field("topmost node", 48, 8, ByRest),
        field("levels", 56, 4, ByRest),
        field("heads", 60, 4, ByFooter),
        field("extent", 64, 4, ByFooter),
        field("zeros", 68, 4, ByFooter),
        field("checksum", 72, 4, ByRest),
        field("version", 76, 4, ByFooter),
        field("magic", 80, 8, ByFooter),
    ],
    sums: Some(Sums { extent_bytes: 32 << 10, sections: 4, tail_at: None }),
};

/// docs/format/zip.md
const ZIP: Format = Format {
    name: "zip",
    footer_bytes: 112,
    fields: &[
        field("groups", 0, 8, ByFooter),
        field("index", 8, 8, ByFooter),
        field("codes and dictionary", 16, 8, ByFooter),
        field("filter", 24, 8, ByFooter),
        field("tombstones", 32, 8, ByFooter),
        field("properties", 40, 8, ByFooter),
        field("entries", 48, 8, Nowhere),
        field("entries of a group", 56, 8, Nowhere),
        field("smallest sequence number", 64, 8, Nowhere),
        field("shortest key", 72, 4, Nowhere),
        field("longest key", 76, 4, Nowhere),
        field("longest value", 80, 4, ByRest),
        field("compression of the index", 84, 1, ByRest),
        field("compression of codes", 85, 1, ByRest),
        field("more zeros", 86, 2, ByFooter),
        field("extent", 88, 4, ByFooter),
        field("zeros", 92, 4, ByFooter),
        field("checksum", 96, 4, ByRest),
        field("version", 100, 4, ByFooter),
        field("magic", 104, 8, ByFooter),
    ],
    sums: Some(Sums { extent_bytes: 32 << 10, sections: 5, tail_at: None }),
};

/// The file of a table, and its reader.
pub struct Sample {
    pub name: String,
    pub format: &'static Format,
    pub order: InternalOrder,
    pub entries: Vec<Entry>,
    pub bytes: Vec<u8>,
    /// So many keys that nodes lie above nodes.
    pub is_large: bool,
}

impl Sample {
    /// Opens `bytes` as a file of `said` bytes, whatever its magic number.
    pub fn open(&self, bytes: &[u8], said: usize) -> Result<AnyTable> {
        let (file, mapping) = (Arc::new(Bytes(bytes.to_vec())), Arc::new(Mapped(bytes.to_vec())));
        let (path, said, context) = (Path::new(PATH), said as u64, context(&self.order));
        Ok(match self.format.name {
            "block-based" => AnyTable::BlockBased(BlockBasedTable::open(file, path, said, &context)?),
            "converted" => AnyTable::Converted(ConvertedTable::open(file, mapping, path, said, &context)?),
            "fast" => AnyTable::Fast(FastTable::open(mapping, path, said, &context)?),
            _ => AnyTable::Zip(ZipTable::open(mapping, path, said, &context)?),
        })
    }

    pub fn footer_at(&self) -> usize {
        self.bytes.len() - self.format.footer_bytes
    }

    fn number(&self, bytes: &[u8], at: usize) -> usize {
        let at = self.footer_at() + at;
        u64::from_le_bytes(*bytes[at..].first_chunk().expect("a number")) as usize
    }

    /// Bytes under the checksums of extents, and where these checksums begin, as a footer in `bytes` has it.
    pub fn tail_of(&self, bytes: &[u8], sums: &Sums) -> (usize, usize) {
        let covered = (0..sums.sections).map(|nth| self.number(bytes, 8 * nth)).fold(0, usize::wrapping_add);
        (covered, sums.tail_at.map_or(covered, |at| self.number(bytes, at)))
    }

    /// Bytes of the first section.
    pub fn first_section_bytes(&self) -> usize {
        self.number(&self.bytes, 0)
    }

    /// Bits of the filter: the last section but one, without its five bytes of metadata.
    pub fn filter_bits(&self, sums: &Sums) -> std::ops::Range<usize> {
        let section = |from_end: usize| self.number(&self.bytes, 8 * (sums.sections - from_end));
        let end = self.tail_of(&self.bytes, sums).0 - section(1);
        end - section(2)..end - 5
    }

    /// Bytes that mean nothing: between an image and its tail.
    pub fn padding(&self) -> std::ops::Range<usize> {
        self.format.sums.as_ref().map_or(0..0, |sums| {
            let (covered, tail) = self.tail_of(&self.bytes, sums);
            covered..tail
        })
    }

    /// Makes the checksums right again, if the numbers allow it.
    pub fn mend(&self, bytes: &mut [u8]) {
        let Some(sums) = &self.format.sums else { return };
        let (covered, tail) = self.tail_of(bytes, sums);
        let footer = self.footer_at();
        let place = covered.div_ceil(sums.extent_bytes).checked_mul(4).and_then(|len| tail.checked_add(len));
        if covered <= tail && place.is_some_and(|end| end <= footer) {
            let extents = bytes[..covered].chunks(sums.extent_bytes);
            let crcs: Vec<u8> = extents.flat_map(|extent| mask(crc32c(extent)).to_le_bytes()).collect();
            bytes[tail..tail + crcs.len()].copy_from_slice(&crcs);
        }
        if tail <= footer {
            let end = bytes.len() - 16;
            let crc = mask(crc32c(&bytes[tail..end]));
            bytes[end..end + 4].copy_from_slice(&crc.to_le_bytes());
        }
    }
}

/// Versions, a deletion, operands, and `fan` keys that differ late.
pub fn entries(order: &InternalOrder, fan: u64) -> Vec<Entry> {
    let mut entries = vec![put("", 7, "empty"), (key("ab", 4, ValueKind::Merge), b"+".to_vec())];
    entries.extend((5..30).map(|seq| put("ab", seq, "version")));
    entries.push((key("ab", 2, ValueKind::Deletion), Vec::new()));
    entries.extend((0..fan).map(|i| put(&format!("xy{i:04}"), 20, "fan")));
    entries.sort_by(|a, b| order.compare(&a.0, &b.0));
    entries
}

fn block_based(index: IndexType, compression: CompressionKind, entries: &[Entry]) -> Vec<u8> {
    let mut config = TableBuilderConfig::new(PATH);
    config.compression = compression;
    config.options.block_size = 128;
    config.options.metadata_block_size = 64;
    config.options.index_type = index;
    config.options.filter_policy = FilterPolicy::bloom(10.0);
    config.options.partition_filters = index == IndexType::TwoLevel;
    write_with(config, entries, |builder| builder.add_tombstone(&tombstone())).expect("written").bytes
}

fn tombstone() -> RangeTombstone {
    RangeTombstone { start: b"a".to_vec(), end: b"abb".to_vec(), seq: SeqNo(9) }
}

fn filtered(mut config: TableBuilderConfig) -> TableBuilderConfig {
    config.options.filter_policy = FilterPolicy::bloom(10.0);
    config
}

/// A table of each format in each of its forms.
pub fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    let mut sample =
        |format: &'static Format, form: &str, order: &InternalOrder, fan, make: &dyn Fn(&[Entry]) -> Vec<u8>| {
            let (name, entries) = (format!("{} {form}", format.name), entries(order, fan));
            let bytes = make(&entries);
            all.push(Sample { name, format, order: order.clone(), entries, bytes, is_large: fan > 100 });
        };
    let order = InternalOrder::default();
    for (index, compression) in [
        (IndexType::BinarySearch, CompressionKind::None),
        (IndexType::TwoLevel, CompressionKind::Zstd),
        (IndexType::BinarySearchWithFirstKey, CompressionKind::Snappy),
    ] {
        sample(&BLOCK_BASED, index.name(), &order, 20, &|entries| block_based(index, compression, entries));
    }
    for representation in REPRESENTATIONS {
        sample(&CONVERTED, representation, &order, 6, &|entries| {
            let made = make((representation, How::Dump), &order, entries, &[tombstone()]);
            made.vfs.read_file(Path::new(TABLE)).expect("there")
        });
    }
    for order in orders() {
        for fan in [20, 2200] {
            sample(&FAST, order.user.name(), &order, fan, &|entries| {
                write_fast(filtered(fast_config(&order)), entries, &[tombstone()]).expect("written").bytes
            });
        }
        sample(&ZIP, order.user.name(), &order, 20, &|entries| {
            write_zip(filtered(zip_config(&order)), entries, &[tombstone()]).expect("written").bytes
        });
    }
    all
}
