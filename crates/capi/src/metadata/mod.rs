//! What tables a database consists of.

pub mod exported;
pub mod levels;
pub mod live_files;
