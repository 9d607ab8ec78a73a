//! Microseconds of a batch of random reads, one by one and by `read_many`: cold, that is from the disk, and warm.
//!
//! `cargo run --release -p spillway-db-vfs --example read_many -- DIR [READS]`. Linux only: it drops the file's pages.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a program of one page"
)]

extern crate spillway_db_vfs as vfs;

use std::path::PathBuf;
use std::time::Instant;

use vfs::{IfExists, IoClass, RandomFile, ReadRequest, RealVfs, Vfs, read_many};

const FILE_BYTES: u64 = 1 << 30;
/// A block of 4 KiB and its trailer.
const READ_BYTES: usize = 4101;
const CLASS: IoClass = IoClass::Foreground;

fn main() {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().unwrap_or_else(|| "/tmp".to_owned())).join("read_many.bench");
    let reads: usize = args.next().map_or(16, |reads| reads.parse().unwrap());
    let vfs = RealVfs::new();
    write_file(&*vfs, &path);
    let file = vfs.open(&path).unwrap();
    let mut random = Random(1);
    for (name, is_cold, batches) in [("cold", true, 200), ("warm", false, 2000)] {
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for _ in 0..7 {
            drop_pages(&path);
            alone.push(micros(&*file, &mut random, (reads, batches, is_cold), one_by_one));
            drop_pages(&path);
            together.push(micros(&*file, &mut random, (reads, batches, is_cold), batch));
        }
        let (alone, together) = (median(alone), median(together));
        println!("{name}: {reads} reads one by one {alone:.1} us, together {together:.1} us, {:.2}x", alone / together);
    }
    vfs.remove_file(&path).unwrap();
}

fn write_file(vfs: &dyn Vfs, path: &std::path::Path) {
    let mut file = vfs.create(path, IfExists::Truncate).unwrap();
    let mut random = Random(7);
    for _ in 0..FILE_BYTES >> 20 {
        let bytes: Vec<u8> = (0..1 << 17).flat_map(|_| random.next().to_le_bytes()).collect();
        file.append(&bytes, CLASS).unwrap();
    }
    file.sync(CLASS).unwrap();
}

type Batch = fn(&dyn RandomFile, &[u64], &mut [Vec<u8>]);

fn one_by_one(file: &dyn RandomFile, offsets: &[u64], bufs: &mut [Vec<u8>]) {
    for (offset, buf) in offsets.iter().zip(bufs) {
        assert_eq!(file.read_at(*offset, buf, CLASS).unwrap(), READ_BYTES);
    }
}

fn batch(file: &dyn RandomFile, offsets: &[u64], bufs: &mut [Vec<u8>]) {
    let requests = offsets.iter().zip(bufs);
    let mut reads: Vec<_> = requests.map(|(offset, buf)| ReadRequest::new(file, *offset, buf)).collect();
    read_many(&mut reads, CLASS);
    reads.into_iter().for_each(|read| assert_eq!(read.read.unwrap(), READ_BYTES));
}

/// The mean of `(reads, batches, is_cold)`; warm reads stay within 4 MiB.
fn micros(file: &dyn RandomFile, random: &mut Random, how: (usize, usize, bool), read: Batch) -> f64 {
    let (reads, batches, is_cold) = how;
    let span = if is_cold { FILE_BYTES } else { 4 << 20 } - READ_BYTES as u64;
    let mut bufs = vec![vec![0; READ_BYTES]; reads];
    if !is_cold {
        file.read_at(0, &mut vec![0; 4 << 20], CLASS).unwrap();
    }
    let mut micros = 0.0;
    for _ in 0..batches {
        let mut offsets: Vec<u64> = (0..reads).map(|_| random.next() % span).collect();
        offsets.sort_unstable();
        let start = Instant::now();
        read(file, &offsets, &mut bufs);
        micros += start.elapsed().as_secs_f64() * 1e6;
    }
    micros / batches as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(target_os = "linux")]
fn drop_pages(path: &std::path::Path) {
    let file = std::fs::File::open(path).unwrap();
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

#[cfg(not(target_os = "linux"))]
fn drop_pages(_path: &std::path::Path) {}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
