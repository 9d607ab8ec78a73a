//! Objects shared by databases, and values of Java's: caches, limits, envs, slices.

pub mod cache;
pub mod env;
pub mod file_manager;
pub mod limiter;
pub mod slice;
pub mod threads;
