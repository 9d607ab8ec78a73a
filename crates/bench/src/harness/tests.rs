#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
use super::*;
use crate::outcome::Outcome;

/// Runs benchmarks on 2000 keys with small buffers, so that tables and compactions take part. Returns the text and the
/// outcomes.
fn run_small(dir: &Path, benchmarks: &str, more: &[&str]) -> Result<(String, Vec<Outcome>)> {
    let mut given = vec![
        format!("--benchmarks={benchmarks}"),
        format!("--db={}", dir.display()),
        "--num=2000".to_owned(),
        "--write_buffer_size=65536".to_owned(),
        "--compression_type=none".to_owned(),
        "--seed=1".to_owned(),
    ];
    given.extend(more.iter().map(|flag| (*flag).to_owned()));
    let mut text = Vec::new();
    let vfs: Arc<dyn Vfs> = vfs::RealVfs::new();
    let mut out = Output::new(&mut text, vfs.as_ref(), None)?;
    run(&Flags::parse(&given)?, &vfs, &mut out)?;
    let outcomes = out.records.into_iter().map(|record| serde_json::from_value(record).expect("an outcome")).collect();
    Ok((String::from_utf8(text).expect("text"), outcomes))
}

#[test]
fn every_benchmark_runs_and_its_json_can_be_read() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    for benchmark in BENCHMARKS {
        let fill = if benchmark.fresh { "" } else { "fillseq," };
        let names = format!("{fill}{}", benchmark.name);
        let (text, outcomes) = run_small(dir.path(), &names, &["--threads=2", "--histogram", "--batch_size=3"])?;
        let outcome = outcomes.last().unwrap();
        assert_eq!(outcome.bench, benchmark.name);
        let walks = benchmark.name == "readseq" || benchmark.name == "readreverse";
        assert_eq!(outcome.ops, 4000, "{}", benchmark.name);
        assert!(outcome.ops_per_s > 0.0 && outcome.latency.max_us >= outcome.latency.p50_us, "{outcome:?}");
        match benchmark.name {
            "readmissing" => assert_eq!(outcome.found, Some(0)),
            _ if benchmark.fresh || walks || matches!(benchmark.name, "overwrite" | "deleterandom") => {
                assert_eq!(outcome.found, None)
            }
            "readrandomwriterandom" => assert_eq!(outcome.found, Some(3600)),
            _ => assert_eq!(outcome.found, Some(4000), "{}", benchmark.name),
        }
        assert_eq!(outcome.background_writes.is_some(), benchmark.beside_a_writer);
        assert!(text.contains(&format!("{:<12} : ", benchmark.name)) && text.contains("Percentiles: P50: "), "{text}");
    }
    Ok(())
}

#[test]
fn a_filled_database_has_what_was_written() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    run_small(dir.path(), "fillseq", &[])?;
    let kept = ["--use_existing_db", "--reads=500"];
    let (text, outcomes) =
        run_small(dir.path(), "waitforcompaction,compact,levelstats,stats,readrandom,readseq", &kept)?;
    let found: Vec<_> = outcomes.iter().map(|outcome| (outcome.bench.as_str(), outcome.ops, outcome.found)).collect();
    let expected =
        [("waitforcompaction", 1, None), ("compact", 1, None), ("readrandom", 500, Some(500)), ("readseq", 500, None)];
    assert_eq!(found, expected);
    assert!(text.contains("waitforcompaction(") && text.contains("Level Files"), "{text}");
    let error = run_small(dir.path(), "fillseq", &kept).unwrap_err();
    assert!(error.to_string().contains("use_existing_db"), "{error}");
    Ok(())
}

#[test]
fn random_reads_do_not_follow_the_writes() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let (_, outcomes) = run_small(dir.path(), "fillrandom,readrandom", &["--reads=20000"])?;
    // Of n keys, n random writes leave 1/e unwritten.
    let found = outcomes.last().unwrap().found.unwrap() as f64 / 20_000.0;
    assert!((0.59..0.68).contains(&found), "{found}");
    Ok(())
}

#[test]
fn a_benchmark_can_run_for_a_time() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let (_, outcomes) = run_small(dir.path(), "readrandom", &["--duration=1"])?;
    let wall = outcomes.first().unwrap().wall_s;
    assert!((1.0..3.0).contains(&wall), "{wall}");
    Ok(())
}

#[test]
fn a_writer_keeps_to_its_rate() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    // 2000 entries of 116 bytes at 232,000 bytes a second.
    let (_, outcomes) = run_small(dir.path(), "fillrandom", &["--benchmark_write_rate_limit=232000"])?;
    let wall = outcomes.first().unwrap().wall_s;
    assert!((0.9..2.0).contains(&wall), "{wall}");
    Ok(())
}

#[test]
fn an_unknown_benchmark_is_an_error_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let error = run_small(dir.path(), "fillseq,fillsquare", &[]).unwrap_err();
    assert!(error.to_string().contains("fillsquare"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn unknown_options_are_errors_before_a_database_is_destroyed() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    run_small(dir.path(), "fillseq", &[])?;
    for flag in ["--memtablerep=no_such_list", "--no_such_option=1"] {
        let error = run_small(dir.path(), "fillseq", &[flag]).unwrap_err();
        assert!(error.to_string().contains("no_such"), "{error}");
    }
    let (_, outcomes) = run_small(dir.path(), "readrandom", &[])?;
    assert_eq!(outcomes.first().unwrap().found, Some(2000));
    Ok(())
}
