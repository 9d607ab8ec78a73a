use super::record::MemtableRecord;
use super::*;
use base::ErrorKind;

/// Runs benchmarks on small memtables. Returns the text and the records, each as it was read back.
fn run_small(benchmarks: &str, more: &str) -> Result<(String, Vec<MemtableRecord>)> {
    let line = format!("--benchmarks={benchmarks} --num_operations=3000 --num_scans=2 --item_size=10 {more}");
    let given: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (mut text, vfs) = (Vec::new(), vfs::RealVfs::new() as Arc<dyn Vfs>);
    let mut out = Output::new(&mut text, vfs.as_ref(), None)?;
    run(&crate::flags::parse(&given).expect("flags"), &vfs, &mut out)?;
    let records = out.records.into_iter().map(|record| serde_json::from_value(record).expect("a record")).collect();
    Ok((String::from_utf8(text).expect("text"), records))
}

/// Every representation that there is.
fn all_memtables() -> String {
    ::memtable::names().collect::<Vec<_>>().join(",")
}

#[test]
fn every_benchmark_does_what_it_says_on_every_memtable_and_shape() -> Result<()> {
    let benchmarks = "fillrandom,firstread,readrandom,multireadrandom,seekrandom,readseq,readreverse,fillseq";
    let memtables = all_memtables();
    for shape in ["le8", "random16", "user", "url"] {
        let flags = format!("--memtablerep={memtables} --key_shape={shape} --reads=1000");
        let (_, records) = run_small(benchmarks, &flags)?;
        assert_eq!(records.len(), 8 * ::memtable::names().count());
        for record in &records {
            assert_eq!((record.keys.as_str(), record.threads, record.entries), (shape, 1, 3000), "{record:?}");
            let (ops, found) = match record.bench.as_str() {
                "fillrandom" | "fillseq" => (3000, None),
                "readseq" | "readreverse" => (6000, None),
                "firstread" => (1, None),
                _ => (1000, Some(1000)),
            };
            assert_eq!((record.ops, record.found), (ops, found), "{record:?}");
            assert!(record.us_per_op > 0.0 && record.ops_per_s > 0.0 && record.bytes_per_entry > 18.0, "{record:?}");
        }
    }
    Ok(())
}

#[test]
fn bytes_are_counted_as_memtablerep_bench_counts_them() -> Result<()> {
    let (_, records) = run_small("fillrandom,readrandom,readseq", "--item_size=0")?;
    for record in records {
        // One byte of length, eight of key, eight of sequence number.
        let bytes = record.mb_per_s * f64::from(1 << 20) * record.wall_s;
        assert!((bytes - 17.0 * record.ops as f64).abs() < 1.0, "{record:?}");
    }
    Ok(())
}

#[test]
fn memtables_take_turns() -> Result<()> {
    let (text, records) = run_small("fillseq,readrandom", "--memtablerep=skip_list,vector:8 --rounds=2")?;
    let order: Vec<_> = records.into_iter().map(|record| (record.bench, record.memtable, record.round)).collect();
    let turns = [("fillseq", 0), ("readrandom", 0), ("fillseq", 1), ("readrandom", 1)];
    let expected: Vec<_> = turns
        .into_iter()
        .flat_map(|(bench, round)| {
            let both = if round == 0 { ["skip_list", "vector:8"] } else { ["vector:8", "skip_list"] };
            both.map(|memtable| (bench.to_owned(), memtable.to_owned(), round))
        })
        .collect();
    assert_eq!(order, expected);
    assert!(text.contains("round 2 of 2") && text.contains("| bench | skip_list ns | vector:8 ns |"), "{text}");
    Ok(())
}

#[test]
fn lists_that_make_no_sense_are_refused_before_anything_runs() {
    for (benchmarks, more, named) in [
        ("fillsquare", "", "fillsquare"),
        ("readrandom", "", "fillrandom or fillseq before"),
        ("fillseq", "--memtablerep=no_such_list", "no_such_list"),
    ] {
        let error = run_small(benchmarks, more).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(named), "{benchmarks}: {error}");
    }
}

#[test]
fn memtablerep_benchs_name_of_the_skiplist_is_known() -> Result<()> {
    let (_, records) = run_small("fillseq", "--memtablerep=skiplist")?;
    assert_eq!(records.first().map(|record| record.memtable.as_str()), Some("skiplist"));
    Ok(())
}
