//! How a life opens its database: what stays the same all through it, and what each open draws anew.

use crate::draw::Draw;
use crate::library::whole::Kind;
use crate::step::Shape;

/// What a directory keeps from open to open.
pub struct Frame {
    /// Of most opens: a database of transactions is opened in other ways too.
    kind: Kind,
    pub backwards: bool,
    pub levels: usize,
    fifo: bool,
    prefix: usize,
    /// No write goes past the log.
    pub all_logged: bool,
}

const KINDS: [Kind; 3] = [Kind::Plain, Kind::Optimistic, Kind::Pessimistic];
const COMPRESSIONS: [&str; 4] = ["kNoCompression", "kSnappyCompression", "kLZ4Compression", "kZSTD"];
const INDEXES: [&str; 3] = ["kBinarySearch", "kTwoLevelIndexSearch", "kBinarySearchWithFirstKey"];
const CHECKSUMS: [&str; 3] = ["kCRC32c", "kxxHash64", "kXXH3"];
const FILTERS: [&str; 3] = ["nullptr", "bloomfilter:10:false", "bloomfilter:4:false"];
const DATA_INDEXES: [&str; 2] = ["kDataBlockBinarySearch", "kDataBlockBinaryAndHash"];
const MEMTABLES: [&str; 6] = [
    "skip_list",
    "trie",
    "sorted_hash",
    "vector",
    "trie:{\"convert_to_sst\":\"kFileMmap\"}",
    "skip_list:{\"convert_to_sst\":\"kFileMmap\"}",
];

impl Frame {
    pub fn draw(draw: &mut Draw<'_>) -> Frame {
        Frame {
            kind: kind(draw),
            backwards: draw.chance(20),
            levels: 2 + draw.below(6),
            fifo: draw.chance(10),
            prefix: if draw.chance(40) { 1 + draw.below(2) } else { 0 },
            all_logged: draw.chance(50),
        }
    }

    pub fn has_transactions(&self) -> bool {
        self.kind != Kind::Plain
    }

    pub fn shape(&self, draw: &mut Draw<'_>) -> Shape {
        let other = self.has_transactions() && draw.chance(30);
        let kind = if other { kind(draw) } else { self.kind };
        let mut options = vec![
            "create_if_missing=true".to_owned(),
            "create_missing_column_families=true".to_owned(),
            format!("num_levels={}", self.levels),
            format!("compression={}", draw.pick(&COMPRESSIONS)),
            format!("write_buffer_size={}", 1 << (16 + draw.below(5))),
            format!("target_file_size_base={}", 1 << (12 + draw.below(6))),
            format!("max_bytes_for_level_base={}", 1 << (14 + draw.below(6))),
            format!("level0_file_num_compaction_trigger={}", 2 + draw.below(6)),
            // Transactions: see `World::compact`.
            format!("disable_auto_compactions={}", draw.chance(20) || kind != Kind::Plain),
            format!("level_compaction_dynamic_level_bytes={}", draw.chance(50)),
            format!("max_sequential_skip_in_iterations={}", draw.below(10)),
            format!("optimize_filters_for_hits={}", draw.chance(20)),
            format!("memtable_whole_key_filtering={}", draw.chance(20)),
            format!("memtable_prefix_bloom_size_ratio={}", if draw.chance(40) { "0.1" } else { "0" }),
            // RocksDB's optimistic transactions need it to find conflicts; ours do not.
            "max_write_buffer_size_to_maintain=67108864".to_owned(),
            self.style(draw),
            tables(draw),
        ];
        if self.prefix > 0 {
            options.push(format!("prefix_extractor=rocksdb.FixedPrefix.{}", self.prefix));
        }
        Shape {
            kind,
            options: options.join(";"),
            own: format!("memtable_factory={};memtable_as_log_index={}", draw.pick(&MEMTABLES), draw.chance(30)),
            prefix: self.prefix,
            backwards: self.backwards,
        }
    }

    /// FIFO deletes nothing here: its limit is far away.
    fn style(&self, draw: &mut Draw<'_>) -> String {
        if self.fifo {
            let merges = draw.chance(50);
            return format!(
                "compaction_style=kCompactionStyleFIFO;ttl=0;\
                 compaction_options_fifo={{max_table_files_size=1073741824;allow_compaction={merges}}}"
            );
        }
        let style = if draw.chance(60) { "kCompactionStyleLevel" } else { "kCompactionStyleUniversal" };
        format!("compaction_style={style}")
    }
}

fn kind(draw: &mut Draw<'_>) -> Kind {
    KINDS.get(draw.below(KINDS.len())).copied().unwrap_or(Kind::Plain)
}

fn tables(draw: &mut Draw<'_>) -> String {
    let index = draw.pick(&INDEXES);
    let filter = draw.pick(&FILTERS);
    // Without a filter there is nothing to partition.
    let partitioned = index == "kTwoLevelIndexSearch" && filter != "nullptr" && draw.chance(50);
    let own = [
        format!("block_size={}", 64 << draw.below(7)),
        format!("block_restart_interval={}", 1 + draw.below(16)),
        format!("format_version={}", 2 + draw.below(6)),
        format!("filter_policy={filter}"),
        format!("index_type={index}"),
        format!("partition_filters={partitioned}"),
        format!("checksum={}", draw.pick(&CHECKSUMS)),
        format!("data_block_index_type={}", draw.pick(&DATA_INDEXES)),
        format!("whole_key_filtering={}", draw.chance(70)),
        format!("cache_index_and_filter_blocks={}", draw.chance(30)),
        format!("enable_index_compression={}", draw.chance(50)),
    ];
    format!("block_based_table_factory={{{}}}", own.join(";"))
}
