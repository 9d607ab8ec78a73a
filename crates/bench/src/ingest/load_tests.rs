#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
use super::*;

fn flags(rows: u64) -> IngestFlags {
    IngestFlags { rows, spillway: "spillway-program".to_owned(), ..IngestFlags::default() }
}

#[test]
fn both_programs_read_the_same_rows() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (dir.path().join("a"), dir.path().join("b"));
    // More than a chunk, so that rows lie on both sides of its end.
    let flags = flags(10_000);
    let vfs: Arc<dyn Vfs> = vfs::RealVfs::new();
    write_rows(&flags, &vfs, &ours, &theirs)?;
    let read = |path, between| -> Vec<(String, String)> {
        let text = std::fs::read_to_string(path).unwrap();
        let row = |line: &str| line.split_once(between).map(|(key, value)| (key.to_owned(), value.to_owned()));
        text.lines().map(|line| row(line).unwrap()).collect()
    };
    let rows = read(&ours, "\t");
    assert_eq!(rows, read(&theirs, " ==> "));
    assert_eq!(rows.len(), 10_000);
    assert!(rows.iter().all(|(key, value)| key.len() == KEY_BYTES && value.len() == 100));
    let keys: std::collections::BTreeSet<&String> = rows.iter().map(|(key, _)| key).collect();
    assert!(keys.len() == 10_000 && !rows.is_sorted(), "all different, in no order");
    Ok(())
}

#[test]
fn every_command_has_the_same_conditions() -> Result<()> {
    let ways = ways(&flags(7), Path::new("/in.kv"), Path::new("/in.ldb"))?;
    let names: Vec<&str> = ways.iter().map(|way| way.name).collect();
    let expected = ["load", "load --via ingest", "ldb load", "ldb load --bulk_load", "db_bench fillrandom"];
    assert_eq!(names, expected);
    for way in &ways {
        let line = way.arguments.join(std::ffi::OsStr::new(" ")).into_string().unwrap();
        assert!(line.contains("write_buffer_size=67108864"), "{line}");
        assert!(["compression=kNoCompression", "compression_type=no"].iter().any(|no| line.contains(no)), "{line}");
        assert_eq!(way.ours, way.program == Path::new("spillway-program"));
        assert_eq!(way.input.is_some(), way.name.starts_with("ldb"));
    }
    Ok(())
}

#[test]
fn programs_that_are_not_here_are_named() {
    let flags = IngestFlags { ldb: "sh".to_owned(), db_bench: "/nowhere/db_bench".to_owned(), ..flags(1) };
    let [line] = &missing(&flags)[..] else { panic!("sh is here, the other is not") };
    assert!(line.contains("/nowhere/db_bench is left out"), "{line}");
}

/// A command for [`measure`]: a script, which is given `--db=DIR` as its argument.
fn script(text: &str, input: Option<PathBuf>) -> Way {
    let arguments = ["-c", text, "script"].map(OsString::from).into();
    Way { name: "script", program: "sh".into(), arguments, input, ours: false }
}

#[test]
fn a_command_is_timed_and_its_database_removed() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let (db, input) = (dir.path().join("db"), dir.path().join("input"));
    std::fs::write(&input, "rows").unwrap();
    let vfs: Arc<dyn Vfs> = vfs::RealVfs::new();
    let way = script(r#"db=${1#--db=}; test "$(cat)" = rows && echo >"$db/file" && sleep 0.05"#, Some(input));
    let (time, _) = measure(&flags(1), &vfs, &way, &db)?;
    assert!(time >= Duration::from_millis(50), "{time:?}");
    assert!(!db.exists());
    Ok(())
}

#[test]
fn a_command_that_fails_is_an_error_with_its_last_words() {
    let dir = tempfile::tempdir().unwrap();
    let vfs: Arc<dyn Vfs> = vfs::RealVfs::new();
    let way = script("echo the disk is on fire >&2; exit 3", None);
    let error = measure(&flags(1), &vfs, &way, &dir.path().join("db")).unwrap_err().to_string();
    assert!(error.contains("the disk is on fire"), "{error}");
}

#[test]
fn rows_that_are_missing_are_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let vfs: Arc<dyn Vfs> = vfs::RealVfs::new();
    let mut way = script("true", None);
    way.ours = true;
    let db = Db::open(dir.path().join("db"), &OpenOptions::create_if_missing()).unwrap();
    db.put(&db.default_family(), b"k", b"v", &spillway::WriteOptions::default()).unwrap();
    db.close().unwrap();
    drop(db);
    assert!(check_rows(&flags(1), &vfs, &way, &dir.path().join("db")).is_ok());
    let error = check_rows(&flags(2), &vfs, &way, &dir.path().join("db")).unwrap_err().to_string();
    assert!(error.contains("1 rows of 2"), "{error}");
}
