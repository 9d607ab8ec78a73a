#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
use super::*;

fn parse(line: &str) -> Result<IngestFlags> {
    IngestFlags::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
}

/// Runs it; returns the text and the records, each as it was read back.
fn run_small(dir: &Path, line: &str) -> Result<(String, Vec<IngestRecord>)> {
    let line = format!("--db={} {line}", dir.display());
    let (mut text, mut records) = (Vec::new(), Vec::new());
    run_parts(&parse(&line)?, &vfs::RealVfs::new(), &mut text, &mut |line| {
        check_fields(line);
        records.push(serde_json::from_str(line).expect("a record"));
        Ok(())
    })?;
    Ok((String::from_utf8(text).expect("text"), records))
}

/// Programs that read the lines count on these fields.
fn check_fields(line: &str) {
    let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let fields: &[&str] = match value["part"].as_str() {
        Some("overlap") => &["mode", "store", "memtables", "ingest_us", "flush_us"],
        Some("writers") => {
            &["mode", "sync", "writers", "rate", "ingests", "p50_us", "p99_us", "p999_us", "p9999_us", "max_us"]
        }
        Some("load") => &["way", "rows_per_s", "mb_per_s"],
        part => panic!("part {part:?}"),
    };
    for field in fields.iter().chain(&["kind", "flags", "machine", "commit", "unix_time_s"]) {
        assert!(!value[*field].is_null(), "{field} is missing: {line}");
    }
    assert_eq!(value["kind"], KIND);
}

#[test]
fn a_call_is_timed_over_just_so_many_memtables_in_both_stores() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let line = "--part=overlap --mode=flushable --memtables=1,3 --repeats=2 --verify";
    let (text, records) = run_small(dir.path(), line)?;
    let cells: Vec<(String, usize, String)> = records
        .iter()
        .map(|record| match record {
            IngestRecord::Overlap(cell) => (cell.store.clone(), cell.memtables, cell.mode.clone()),
            _ => panic!("{record:?}"),
        })
        .collect();
    let cell = |store: &str, memtables, mode: &str| (store.to_owned(), memtables, mode.to_owned());
    let of_store = |store| [1, 3].map(|k| ["none", "flushable"].map(|mode| cell(store, k, mode))).concat();
    assert_eq!(cells, [of_store("memory"), of_store("disk")].concat());
    for record in &records {
        let IngestRecord::Overlap(cell) = record else { panic!("{record:?}") };
        assert!(cell.flush_us > 0.0 && (cell.ingest_us > 0.0) == (cell.mode != NONE), "{cell:?}");
        assert!(cell.ingest_min_us <= cell.ingest_us && cell.ingest_us <= cell.ingest_max_us.max(0.0), "{cell:?}");
        assert_eq!(cell.verifies.contains("checksums"), cell.mode != NONE, "{cell:?}");
    }
    assert!(text.contains("| memtables | flushable |") && text.contains("checksums"), "{text}");
    assert_eq!(dir.path().read_dir().unwrap().count(), 0, "the databases are destroyed");
    Ok(())
}

#[test]
fn writers_run_with_and_without_ingests_by_turns_and_are_pictured() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let plot = dir.path().join("plot.svg");
    let line = format!(
        "--part=writers --mode=flushable --loads=all --tables={} --seconds=0.2 --warmup=0.05 --rounds=2 --rate=1000 --sync_rate=20 \
         --sync=all --copy --interval_ms=50 --big_table_mib=1 --big_interval_ms=100 --table_keys=100 --key_range=10000 --plot={}",
        given_table(dir.path())?.display(),
        plot.display()
    );
    let (text, records) = run_small(&dir.path().join("db"), &line)?;
    let runs: Vec<&WritersRecord> = records
        .iter()
        .map(|record| match record {
            IngestRecord::Writers(run) => run,
            _ => panic!("{record:?}"),
        })
        .collect();
    assert_eq!(runs.len(), 3 * 2 * 2 * 3, "loads, rounds, sync, modes");
    let order: Vec<&str> = runs.iter().take(12).map(|run| run.mode.as_str()).collect();
    assert_eq!(order[..3], ["none", "copy alone", "flushable"], "round 0");
    assert_eq!(order[6..9], ["copy alone", "flushable", "none"], "round 1 begins with another");
    for run in &runs {
        let (rate, writes) = if run.sync { (20, 4) } else { (1000, 200) };
        assert!((run.rate, run.writes) == (rate, writes), "every write of the schedule is there once: {run:?}");
        assert_eq!(run.ingests > 0, run.mode != NONE, "{run:?}");
        assert!(run.ingests <= if run.tables == "big" { 2 } else { 4 }, "{run:?}");
        assert!(run.p50_us > 0.0 && run.p50_us <= run.p99_us && run.p9999_us <= run.max_us, "{run:?}");
        assert_eq!(run.ingest_window_max_us > 0.0, run.mode == "flushable", "{run:?}");
        assert!(run.ingest_wait_max_us == 0.0 || run.mode == "flushable", "{run:?}");
        assert!(run.repeats == 0 && (0.0..=100.0).contains(&run.stolen_percent), "{run:?}");
        assert!(run.cpu_percent > 0.0 && run.tables_bytes > 0, "{run:?}");
    }
    assert!(text.contains("20 writes/s, synced; tables: big"), "{text}");
    let picture = std::fs::read_to_string(&plot).unwrap();
    assert!(picture.starts_with("<svg") && picture.matches(">longest</text>").count() == 6, "a panel for each load");
    assert_eq!(dir.path().join("db").read_dir().unwrap().count(), 0, "databases and tables are removed");
    Ok(())
}

#[test]
fn databases_can_be_kept_to_be_looked_at() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let table = given_table(dir.path())?;
    let line = format!(
        "--part=writers --mode=flushable --loads=given --tables={} --keys=codepoints --keep --seconds=0.2 --warmup=0 --rounds=1 \
         --rate=500 --sync=no",
        table.display()
    );
    run_small(&dir.path().join("db"), &line)?;
    let kept = spillway::Db::open(dir.path().join("db/given-flushable"), &spillway::OpenOptions::default())?;
    let mut cursor = kept.iter(&kept.default_family(), &spillway::ReadOptions::default())?;
    let mut keys = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        keys.push(String::from_utf8(cursor.key().to_vec()).unwrap());
        cursor.next();
    }
    assert_eq!(keys.iter().filter(|key| key.contains('/')).count(), 100, "what the writers wrote");
    assert_eq!(keys.iter().filter(|key| !key.contains('/')).collect::<Vec<_>>(), ["0041", "10FFFF"]);
    assert!(table.exists(), "a given table stays");
    Ok(())
}

fn given_table(dir: &Path) -> Result<std::path::PathBuf> {
    let path = dir.join("given.sst");
    let family = spillway::FamilyOptions::default();
    let mut table = spillway::TableWriter::create(vfs::RealVfs::new(), &path, &family)?;
    table.put(b"0041", b"LATIN CAPITAL LETTER A")?;
    table.put(b"10FFFF", b"the last")?;
    table.finish()?;
    Ok(path)
}

#[test]
fn what_cannot_be_honoured_is_an_error_that_names_it() {
    for (line, named) in [
        ("--part=load", "--db"),
        ("--db=/x --part=everything", "--part"),
        ("--db=/x --mode=slowly", "--mode"),
        ("--db=/x --memtables=1,x", "--memtables"),
        ("--db=/x --memtables=0", "--memtables"),
        ("--db=/x --writers=0", "--writers"),
        ("--db=/x --loads=given", "--tables"),
        ("--db=/x --tables=a.sst", "--loads"),
        ("--db=/x --key_range=100", "--key_range"),
        ("--db=/x --seconds=0", "--seconds"),
        ("--db=/x --seconds=NaN", "--seconds"),
    ] {
        let message = parse(line).unwrap_err().to_string();
        assert!(message.contains(named), "{line}: {message}");
    }
    let all = parse("--db=/x --part=all --mode=all --stores=all --sync=all").unwrap();
    assert_eq!((all.part.0.len(), all.mode.0.len(), all.stores.0.len(), all.sync.0.len()), (3, 4, 2, 2));
}

#[test]
fn a_picture_of_nothing_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let line =
        format!("--part=overlap --stores=memory --memtables=1 --repeats=1 --plot={}/x.svg", dir.path().display());
    assert!(run_small(&dir.path().join("db"), &line).unwrap_err().to_string().contains("--plot"));
}
