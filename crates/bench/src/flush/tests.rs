use super::*;

fn parse(line: &str) -> Result<FlushFlags> {
    FlushFlags::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
}

#[test]
fn every_memtable_is_flushed_in_every_way_as_asked() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let line = format!("--db={} --bytes=500000 --value_sizes=1000 --rounds=2", dir.path().display());
    let (mut text, mut records) = (Vec::new(), Vec::new());
    run_cases(&parse(&line)?, &vfs::RealVfs::new(), &mut text, &mut |line| {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        for field in ["part", "way", "memtable", "bytes", "cpu_ms", "wall_ms", "written_bytes", "kind", "flags"] {
            assert!(!value[field].is_null(), "{field} is missing: {line}");
        }
        records.push(serde_json::from_str::<FlushRecord>(line).expect("a record"));
        Ok(())
    })?;
    // For each memtable: one rewrite, and three ways with two places for values; a pass for each that was synced.
    let count = |part: &str| records.iter().filter(|record| record.part == part).count();
    assert_eq!((count(FLUSH), count(CHECKSUM)), (2 * 2 * 7, 2 * 2 * 2));
    for record in &records {
        assert!(record.entries == 493 && record.bytes == 493 * 1016 && record.wall_ms > 0.0, "{record:?}");
    }
    for record in records.iter().filter(|record| record.part == FLUSH) {
        assert_eq!(record.written_bytes, record.log_bytes + record.table_bytes);
        assert!((record.bytes..record.bytes * 11 / 10).contains(&record.log_bytes), "{record:?}");
        // A table that refers to the log holds no values.
        assert_eq!(record.table_bytes < record.bytes / 2, record.values == "log", "{record:?}");
    }
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("| skip_list | log | convert-unsynced |"), "{text}");
    assert_eq!(dir.path().read_dir().unwrap().count(), 0, "the databases are destroyed");
    Ok(())
}

#[test]
fn a_rewrite_is_measured_once_wherever_values_are() -> Result<()> {
    for (values, expected) in [("all", 1), ("log", 1), ("memtable", 1)] {
        let cases =
            cases(&parse(&format!("--db=/x --ways=rewrite --memtables=trie --value_sizes=9 --values={values}"))?);
        assert_eq!(cases.len(), expected);
        assert!(cases.iter().all(|case| case.values == ValuesIn::Memtable));
    }
    Ok(())
}

#[test]
fn what_cannot_be_honoured_is_an_error_that_names_it() {
    for (line, named) in [
        ("--bytes=1", "--db"),
        ("--db=/x --bytes=0", "--bytes"),
        ("--db=/x --rounds=0", "--rounds"),
        ("--db=/x --ways=melt", "--ways"),
        ("--db=/x --memtables=vector", "--memtables"),
        ("--db=/x --values=nowhere", "--values"),
    ] {
        let message = parse(line).unwrap_err().to_string();
        assert!(message.contains(named), "{line}: {message}");
    }
}
