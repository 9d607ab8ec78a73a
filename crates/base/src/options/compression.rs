//! How hard to compress, and the list of compressions by level.

use crate::error::{Error, Result};
use crate::options::choices::CompressionKind;
use crate::options::known;
use crate::options::row::{ANY, Load, Setting, nested_group, option_table, within};
use crate::options::string;

/// Longest per-level list.
const LEVELS_MAX: usize = 64;

option_table! {
    for_each: ($) for_each_compression_option;
    /// How hard to compress.
    struct CompressionOptions = "compression_opts", unhonoured: known::COMPRESSION;

    /// Window of zlib as a power of two; negative for raw deflate. RocksDB reads -14 to -9, and the nearest of them counts.
    window_bits: i32 = -14, within(-15.0, 15.0), RocksDb, Mutable;
    /// The compressor's own level; 32767 for its default.
    level: i32 = CompressionOptions::DEFAULT_LEVEL, ANY, RocksDb, Mutable;
    /// Bytes of dictionary made for each table of the last level; 0 for none.
    max_dict_bytes: u32 = 0, ANY, RocksDb, Mutable;
    /// Bytes of samples that ZSTD trains the dictionary on; 0 uses the samples themselves.
    zstd_max_train_bytes: u32 = 0, ANY, RocksDb, Mutable;
}

nested_group!(CompressionOptions);

impl CompressionOptions {
    /// Stands for the compressor's default level.
    pub const DEFAULT_LEVEL: i32 = 32767;

    /// Members in the order of RocksDB's colon form; at least the first three are required.
    const COLON_FORM: [&str; 9] = [
        "window_bits",
        "level",
        "strategy",
        "max_dict_bytes",
        "zstd_max_train_bytes",
        "parallel_threads",
        "enabled",
        "max_dict_buffer_bytes",
        "use_zstd_dict_trainer",
    ];

    /// Zlib's window as a power of two, for raw deflate.
    pub fn raw_window_bits(&self) -> u8 {
        self.window_bits.unsigned_abs().clamp(9, 14) as u8
    }

    /// The level, or `None` for the compressor's default.
    pub fn level(&self) -> Option<i32> {
        (self.level != Self::DEFAULT_LEVEL).then_some(self.level)
    }

    /// Accepts `{level=3;...}` and RocksDB's older `-14:3:0:0`.
    fn set_nested(&mut self, text: &str, load: &mut Load) -> Result<()> {
        if text.contains('=') || !text.contains(':') {
            return string::apply(self, text, load);
        }
        let parts: Vec<&str> = text.split(':').collect();
        if parts.len() < 3 || parts.len() > Self::COLON_FORM.len() {
            let members = Self::COLON_FORM.join(":");
            return Err(Error::invalid_argument(format!("`{text}` has {} members of {members}", parts.len())));
        }
        for (name, part) in Self::COLON_FORM.iter().zip(parts) {
            string::set(self, name, part, load)?;
        }
        Ok(())
    }
}

/// Compressions by level, from level 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompressionList(pub Vec<CompressionKind>);

impl CompressionList {
    /// The compression of `level`; the last entry applies to deeper levels. `None` if the list is empty.
    pub fn at(&self, level: usize) -> Option<CompressionKind> {
        self.0.get(level).or(self.0.last()).copied()
    }
}

impl Setting for CompressionList {
    fn kind(&self) -> String {
        "list of compressions".to_string()
    }

    fn text(&self) -> String {
        self.0.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(":")
    }

    fn set(&mut self, text: &str, _load: &mut Load) -> Result<()> {
        let names = text.split(':').map(str::trim).filter(|name| !name.is_empty());
        let list = names.map(CompressionKind::by_name).collect::<Result<Vec<_>>>()?;
        if list.len() > LEVELS_MAX {
            return Err(Error::invalid_argument(format!("{} levels; {LEVELS_MAX} at most", list.len())));
        }
        self.0 = list;
        Ok(())
    }
}
