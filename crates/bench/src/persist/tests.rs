use super::*;

fn parse(line: &str) -> Result<PersistFlags> {
    PersistFlags::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
}

#[test]
fn every_side_persists_every_batch() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let line = format!(
        "--db={} --sides=skip_list+flush,vector+eager,vector+unlogged --keys=500 --repeats=3",
        dir.path().display()
    );
    let (mut text, mut records) = (Vec::new(), Vec::new());
    run_sides(&parse(&line)?, &vfs::RealVfs::new(), &mut text, &mut |line| {
        records.push(serde_json::from_str::<PersistRecord>(line).expect("a record"));
        Ok(())
    })?;
    let order: Vec<(u32, String)> = records.iter().map(|record| (record.nth, record.side())).collect();
    let sides = ["skip_list+flush", "vector+eager", "vector+unlogged"];
    let expected: Vec<(u32, String)> = (0..3).flat_map(|nth| sides.map(|side| (nth, side.to_owned()))).collect();
    assert_eq!(order, expected);
    for record in &records {
        assert!(record.keys == 500 && record.batch_bytes > 500 * 116, "{record:?}");
        assert!(record.write_ms > 0.0 && (record.flush_ms > 1e-3) == (record.way == "flush"), "{record:?}");
        assert!((record.blocked_ms - record.write_ms - record.flush_ms).abs() < 1e-6, "{record:?}");
    }
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("persist   2  vector+eager ") && text.contains("1.00x"), "{text}");
    assert_eq!(dir.path().read_dir().unwrap().count(), 0, "the databases are destroyed");
    Ok(())
}

#[test]
fn what_cannot_be_honoured_is_an_error_that_names_it() {
    for (line, named) in [
        ("--keys=1", "--db"),
        ("--db=/x --keys=0", "--keys"),
        ("--db=/x --sides=skip_list", "--sides"),
        ("--db=/x --sides=skip_list+slowly", "--sides"),
    ] {
        let message = parse(line).unwrap_err().to_string();
        assert!(message.contains(named), "{line}: {message}");
    }
}
