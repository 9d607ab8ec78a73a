#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
use std::path::Path;

use clap::Parser;

use super::*;

fn parse(line: &str) -> Result<IngestFlags> {
    let flags = IngestFlags::try_parse_from(line.split(' ')).map_err(|e| Error::invalid_argument(e.to_string()))?;
    flags.check().map(|()| flags)
}

/// Runs it; returns the text and the records, each as it was read back.
fn run_small(dir: &Path, line: &str) -> Result<(String, Vec<WritersRecord>)> {
    let (mut text, vfs) = (Vec::new(), vfs::RealVfs::new() as Arc<dyn Vfs>);
    let mut out = Output::new(&mut text, vfs.as_ref(), None)?;
    run(&parse(&format!("--db={} {line}", dir.display()))?, &vfs, &mut out)?;
    let records = out.records.into_iter().map(|record| serde_json::from_value(record).expect("a record")).collect();
    Ok((String::from_utf8(text).expect("text"), records))
}

#[test]
fn writers_run_with_and_without_ingests_by_turns() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let line = "--mode=blocking,flushable --seconds=0.2 --warmup=0.05 --rounds=2 --rate=1000 --interval_ms=50 --table_keys=100 \
                --key_range=10000";
    let (text, runs) = run_small(dir.path(), line)?;
    let order: Vec<&str> = runs.iter().map(|run| run.mode.as_str()).collect();
    assert_eq!(order, ["none", "blocking", "flushable", "blocking", "flushable", "none"], "another begins each round");
    for run in &runs {
        assert_eq!((run.rate, run.latency.count), (1000, 200), "every write of the schedule is there once: {run:?}");
        assert!((run.ingests > 0) == (run.mode != "none") && run.ingests <= 4, "{run:?}");
        let times = run.latency;
        assert!(times.p50_us > 0.0 && times.p50_us <= times.p99_us && times.p9999_us <= times.max_us, "{run:?}");
        assert!(run.ingest_wait_max_us == 0.0 || run.mode != "none", "{run:?}");
        assert_eq!(run.setting.kind, KIND);
    }
    assert!(text.contains("| mode | p50 | p99 |") && text.contains("medians of 2 rounds"), "{text}");
    assert_eq!(dir.path().read_dir().unwrap().count(), 0, "databases and tables are removed");
    Ok(())
}

#[test]
fn generated_tables_have_numbers_as_keys_whatever_the_writers_write() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let line = "--mode=flushable --keys=codepoints --seconds=0.1 --warmup=0 --rounds=1 --rate=500 --table_keys=100";
    let (_, runs) = run_small(dir.path(), line)?; // which looks up the keys of both
    assert!(runs.iter().any(|run| run.ingests > 0), "{runs:?}");
    Ok(())
}

#[test]
fn databases_can_be_kept_to_be_looked_at() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("given.sst");
    let mut writer = spillway::internal::TableWriter::create(vfs::RealVfs::new(), &table, &family_options(1 << 20))?;
    writer.put(b"0041", b"LATIN CAPITAL LETTER A")?;
    writer.put(b"10FFFF", b"the last")?;
    writer.finish()?;
    let line = format!(
        "--mode=flushable --tables={} --keys=codepoints --keep --seconds=0.2 --warmup=0 --rounds=1 --rate=500",
        table.display()
    );
    run_small(&dir.path().join("db"), &line)?;
    let kept = Database::open(dir.path().join("db/flushable"), &OpenOptions::default())?;
    let mut cursor = kept.iter(&kept.default_family(), &ReadOptions::default())?;
    let mut keys = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        keys.push(String::from_utf8(cursor.key().to_vec()).unwrap());
        cursor.next();
    }
    let (written, ingested): (Vec<&String>, Vec<&String>) = keys.iter().partition(|key| key.contains('/'));
    assert_eq!((written.len(), ingested), (100, vec![&"0041".to_owned(), &"10FFFF".to_owned()]));
    assert!(table.exists(), "a given table stays");
    Ok(())
}

#[test]
fn what_cannot_be_honoured_is_an_error_that_names_it() {
    for (line, named) in [
        ("--rounds=1", "--db"),
        ("--db=/x --mode=slowly", "--mode"),
        ("--db=/x --writers=0", "--writers"),
        ("--db=/x --key_range=100", "--key_range"),
        ("--db=/x --seconds=NaN", "--seconds"),
    ] {
        let message = parse(line).unwrap_err().to_string();
        assert!(message.contains(named), "{line}: {message}");
    }
    assert_eq!(parse("--db=/x").unwrap().modes().len(), 5);
}
