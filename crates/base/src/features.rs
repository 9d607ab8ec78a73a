//! Cargo features of the library, by which a build leaves out what it does not need. The crates below `spillway-db` have
//! features of the same names.

use crate::error::{Error, Result};
use crate::options::CompressionKind;

/// The compression of families whose options name none. RocksDB chooses so too.
pub const COMPRESSION_DEFAULT: CompressionKind =
    if cfg!(feature = "snappy") { CompressionKind::Snappy } else { CompressionKind::None };

/// Tables under ToplingDB's names: fast, zip and sorting ones.
pub const TOPLING: &str = "topling";

/// Documents of options and databases. YAML needs a parser.
pub const CONFIG: &str = "config";

/// `Unsupported`: `what` needs `feature`.
pub fn missing(what: &str, feature: &str) -> Error {
    Error::unsupported(format!("{what} needs the Cargo feature `{feature}` of spillway-db, which this build lacks"))
}

/// Checks that this build reads and writes tables under ToplingDB's names.
///
/// # Errors
/// `Unsupported`, with the feature.
pub fn check_topling(what: &str) -> Result<()> {
    if cfg!(feature = "topling") { Ok(()) } else { Err(missing(what, TOPLING)) }
}

/// Checks that this build compresses and decompresses by `kind`.
///
/// # Errors
/// `Unsupported`, with the feature.
pub fn check_compression(kind: CompressionKind) -> Result<()> {
    let (feature, is_there) = match kind {
        CompressionKind::Snappy => ("snappy", cfg!(feature = "snappy")),
        CompressionKind::Zlib => ("zlib", cfg!(feature = "zlib")),
        CompressionKind::Lz4 | CompressionKind::Lz4hc => ("lz4", cfg!(feature = "lz4")),
        CompressionKind::Zstd => ("zstd", cfg!(feature = "zstd")),
        CompressionKind::None | CompressionKind::Bzip2 | CompressionKind::Disable => return Ok(()),
    };
    if is_there { Ok(()) } else { Err(missing(kind.name(), feature)) }
}
