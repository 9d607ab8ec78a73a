//! Tables of a database.

pub mod exported;
pub mod levels;
pub mod live_files;
