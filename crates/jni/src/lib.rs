//! RocksDB's Java library over Spillway: `librocksdbjni.so`, for the jars of RocksDB 9.7 to 11.8 and of Flink (8.10).
//!
//! Names, descriptors and behaviour of natives are those of RocksDB's jars; `natives.tsv` lists them. All unsafe code is
//! in `boundary`, with its assumptions J1 to J5. The other modules are grouped by Java's classes, over the handles of the
//! C library. Natives that are not there throw `NotSupported` with their name (`absent`).

mod batch;
mod boundary;
mod callbacks;
mod collections;
mod database;
mod extend;
mod fault;
mod files;
mod held;
mod iterator;
mod lives;
mod loading;
mod objects;
mod options;
mod perf;
mod statistics;
mod transactions;

#[cfg(not(test))]
mod absent;
#[cfg(test)]
mod natives;
