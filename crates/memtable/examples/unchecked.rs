//! What reading an image costs, opened unchecked, opened checked, and in the live memtable:
//! `cargo run --release --example unchecked -- live|checked|unchecked [option string [MiB [reads]]]`.
//!
//! Fills a memtable in a file with entries of 16 B / 100 B, then opens its image and does as many gets, in random order,
//! and a walk. One way a run, so that `perf stat -e instructions:u` can tell them apart; 0 reads is what all else takes.

extern crate spillway_db_memtable as memtable;

use std::path::Path;
use std::sync::Arc;

use base::{FamilyId, InternalOrder, LookupKey, Result, SeqNo, UserOrder, ValueKind};
use memtable::image::{LazyImage, reopen};
use memtable::{Entry, ImageFile, Memtable, MemtableConfig, factory_from_option_string};
use vfs::{RealVfs, Vfs};

fn mix(i: u64) -> u64 {
    let x = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 31)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

fn key(i: u64) -> [u8; 16] {
    (u128::from(mix(i)) << 64 | u128::from(mix(!i))).to_be_bytes()
}

/// Inserts until the memtable is full; returns how many.
fn fill(memtable: &dyn Memtable) -> u64 {
    let value = [7; 100];
    for i in 0.. {
        if !memtable.try_reserve(memtable.worst_case_bytes(1, 116)) {
            return i;
        }
        memtable.insert(Entry { user_key: &key(i), seq: SeqNo(i + 1), kind: ValueKind::Value, value: &value });
    }
    0
}

fn read(get: impl Fn(&LookupKey) -> Result<u64>, entries: u64, reads: u64) -> Result<u64> {
    let mut lookup = LookupKey::default();
    let mut found = 0;
    for i in 0..reads {
        lookup.set(&key(mix(i) % entries), SeqNo::MAX);
        found += get(&lookup)?;
    }
    Ok(found)
}

fn get_live(memtable: &dyn Memtable, key: &LookupKey) -> Result<u64> {
    let mut bytes = 0;
    memtable.get(key, &mut |_, _, value| {
        bytes += value.len() as u64;
        false
    });
    Ok(bytes)
}

fn walk(mut cursor: Box<dyn base::Cursor>) -> Result<u64> {
    let mut count = 0;
    let mut more = cursor.seek_to_first();
    while more {
        count += 1;
        more = cursor.next();
    }
    cursor.status()?;
    Ok(count)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |i: usize, default: &str| arguments.get(i).map_or(default, String::as_str).to_owned();
    let (way, option) = (argument(1, "unchecked"), argument(2, "trie"));
    let number = |i: usize, default: &str| argument(i, default).parse::<u64>().unwrap_or(0);
    let (mib, reads) = (number(3, "64"), number(4, "1000000"));
    let vfs = RealVfs::new();
    let path = std::env::temp_dir().join(format!("spillway-unchecked-{}", std::process::id()));
    let mut config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, (mib << 20) as usize);
    config.image = Some(ImageFile::new(vfs.clone(), path.as_path()));
    let memtable = factory_from_option_string(&option)?.create(&config)?;
    let entries = fill(&*memtable);
    memtable.mark(SeqNo(entries), 0);
    memtable.seal();
    let start = vfs.now();
    let opened = opened(&way, &*vfs, &path, &memtable)?;
    let open_us = (vfs.now() - start).as_micros();
    let start = vfs.now();
    let (found, walked) = match &opened {
        Opened::Live(live) => (
            read(|key| get_live(&**live, key), entries, reads)?,
            if reads > 0 { walk(Arc::clone(live).cursor())? } else { 0 },
        ),
        Opened::Unchecked(image) => (
            read(
                |key| {
                    let mut bytes = 0;
                    image.get(key, &mut |_, _, value| {
                        bytes += value.len() as u64;
                        false
                    })?;
                    Ok(bytes)
                },
                entries,
                reads,
            )?,
            if reads > 0 { walk(Arc::clone(image).cursor())? } else { 0 },
        ),
    };
    let ms = (vfs.now() - start).as_millis();
    println!("{way} {option}: {entries} entries, opened in {open_us} us; {found} bytes read, {walked} walked, {ms} ms");
    Ok(())
}

enum Opened {
    Live(Arc<dyn Memtable>),
    Unchecked(Arc<LazyImage>),
}

fn opened(way: &str, vfs: &dyn Vfs, path: &Path, live: &Arc<dyn Memtable>) -> Result<Opened> {
    let order = UserOrder::default();
    Ok(match way {
        "live" => Opened::Live(Arc::clone(live)),
        "checked" => {
            let bytes = live.image().map_or(0, |image| image.bytes.len() as u64);
            Opened::Live(reopen(vfs.map_read(path)?, bytes, &order)?.memtable)
        }
        _ => Opened::Unchecked(Arc::new(LazyImage::open(vfs.map_read(path)?, path, &order, SeqNo::MAX)?)),
    })
}
