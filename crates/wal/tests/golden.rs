//! The hexdumps in docs/format/log.md are what the code writes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests are tests")]

extern crate spillway_db_wal as wal;

mod common;

use std::path::Path;

use base::FileNumber;
use base::options::LogBacking;
use vfs::memory::MemoryVfs;
use vfs::{IfExists, IoClass, Vfs};
use wal::framed::FramedWriter;
use wal::{DatabaseId, Frontiers, LogConfig, LogFile, Position, RecordKind};

const PAGE: &str = include_str!("../../../docs/format/log.md");

/// Offset, sixteen bytes, the same as text; equal lines of zeros once.
fn hexdump(bytes: &[u8]) -> String {
    let mut dump = String::new();
    let mut zeros = false;
    for (index, line) in bytes.chunks(16).enumerate() {
        if line == [0; 16] {
            if !zeros {
                dump.push_str("*\n");
            }
            zeros = true;
            continue;
        }
        zeros = false;
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let text: String =
            line.iter().map(|&b| if b.is_ascii_graphic() || b == b' ' { char::from(b) } else { '.' }).collect();
        dump.push_str(&format!("{:06x}  {:47}  |{text}|\n", index * 16, hex.join(" ")));
    }
    dump
}

fn assert_on_page(bytes: &[u8]) {
    let dump = hexdump(bytes);
    assert!(PAGE.contains(&format!("```text\n{dump}```")), "docs/format/log.md does not show:\n{dump}");
}

#[test]
fn the_page_shows_a_log() {
    let vfs = MemoryVfs::new(1);
    let position = |offset| Position { log: FileNumber(6), offset };
    let earlier = Frontiers { synced: position(0x1000), published: position(0x1080) };
    let predecessor = Some(FileNumber(6));
    let database = DatabaseId::new("5a6f0c1e-0000-4000-8000-000000000001");
    let config = LogConfig { backing: LogBacking::Mapped, earlier, predecessor, database, ..LogConfig::default() };
    let log = LogFile::create(&*vfs, Path::new("/7"), FileNumber(7), config).unwrap();
    let append = |kind, payload: &[u8]| {
        let reservation = log.try_reserve(payload.len()).unwrap();
        log.append(&reservation, kind, &[payload]).unwrap();
        log.publish(reservation.end());
    };
    append(RecordKind::Batch, b"first batch");
    log.sync().unwrap();
    append(RecordKind::Batch, b"second batch");
    append(RecordKind::Ingest, b"ingest");
    append(RecordKind::IngestAndLargeBatch, b"ingest, its batch's file");
    common::seal(&log);
    drop(log);
    assert_on_page(&vfs.read_file(Path::new("/7")).unwrap());
}

#[test]
fn the_page_shows_rocksdbs_framing() {
    let vfs = MemoryVfs::new(1);
    let mut writer = FramedWriter::new(vfs.create(Path::new("/7"), IfExists::Fail).unwrap(), IoClass::Manifest);
    writer.append(&[0; 32 * 1024 - 7 - 7 - 2]).unwrap();
    writer.append(b"cut in two").unwrap();
    writer.append(b"").unwrap();
    assert_on_page(&vfs.read_file(Path::new("/7")).unwrap());
}
