//! The operating system's files, mappings, clock and threads.
pub struct AnonymousMapping;
