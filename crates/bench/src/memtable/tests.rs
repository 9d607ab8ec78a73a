use super::record::MemtableRecord;
use super::*;
use base::ErrorKind;
use serde_json::Value;

/// Runs benchmarks on small memtables. Returns the text, the records, and a line of JSON.
fn run_small(benchmarks: &str, more: &str) -> Result<(String, Vec<MemtableRecord>)> {
    let line = format!("--benchmarks={benchmarks} --num_operations=3000 --num_scans=2 --item_size=10 {more}");
    let given: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (mut text, mut records) = (Vec::new(), Vec::new());
    run_benchmarks(&MemtableFlags::parse(&given)?, &vfs::RealVfs::new(), &mut text, &mut |line| {
        records.push(serde_json::from_str(line).expect("a record"));
        Ok(())
    })?;
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
    for shape in ["le8", "be8", "random16", "user", "url"] {
        let flags = format!("--memtablerep={memtables} --key_shape={shape} --batch_size=7 --multi_get=5 --reads=1000");
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
fn memtables_take_turns_and_json_has_its_keys_in_order() -> Result<()> {
    let (mut lines, mut text) = (Vec::new(), Vec::new());
    let given =
        ["--benchmarks=fillseq,readrandom", "--memtablerep=skip_list,vector:8", "--rounds=2", "--num_operations=50"];
    let flags = MemtableFlags::parse(&given.map(str::to_owned))?;
    run_benchmarks(&flags, &vfs::RealVfs::new(), &mut text, &mut |line| {
        lines.push(line.to_owned());
        Ok(())
    })?;
    let order: Vec<(String, String, u64)> = lines
        .iter()
        .map(|line| {
            let record: MemtableRecord = serde_json::from_str(line).expect("a record");
            (record.bench, record.memtable, u64::from(record.round))
        })
        .collect();
    let turns = [("fillseq", 0), ("readrandom", 0), ("fillseq", 1), ("readrandom", 1)];
    let expected: Vec<_> = turns
        .into_iter()
        .flat_map(|(bench, round)| {
            let both = if round == 0 { ["skip_list", "vector:8"] } else { ["vector:8", "skip_list"] };
            both.map(|memtable| (bench.to_owned(), memtable.to_owned(), round))
        })
        .collect();
    assert_eq!(order, expected);
    let first: Value = serde_json::from_str(&lines[0]).expect("an object");
    let keys: Vec<&str> = first.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(
        keys[..8],
        ["bench", "memtable", "keys", "threads", "entries", "us_per_op", "ops_per_s", "bytes_per_entry"]
    );
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("round 2 of 2") && text.contains("| bench | skip_list ns | vector:8 ns |"), "{text}");
    Ok(())
}

#[test]
fn threads_share_the_work() -> Result<()> {
    let flags = format!("--memtablerep={} --fill_threads=3 --num_threads=2 --batch_size=4", all_memtables());
    let (_, records) = run_small("fillrandom,readrandom,readseq", &flags)?;
    for record in records {
        let (threads, ops) = match record.bench.as_str() {
            "fillrandom" => (3, 3000),
            "readrandom" => (2, 3000),
            _ => (2, 12_000),
        };
        assert_eq!((record.threads, record.ops, record.entries), (threads, ops, 3000), "{record:?}");
        assert!((record.us_per_op * record.ops_per_s / 1e6 - threads as f64).abs() < 1e-6, "{record:?}");
    }
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
fn a_memtable_that_is_too_small_is_an_error_that_says_what_helps() {
    let error = run_small("fillseq", "--write_buffer_size=65536").unwrap_err();
    assert!(error.to_string().contains("--write_buffer_size"), "{error}");
}

#[test]
fn memtablerep_benchs_name_of_the_skiplist_is_known() -> Result<()> {
    let (_, records) = run_small("fillseq", "--memtablerep=skiplist")?;
    assert_eq!(records.first().map(|record| record.memtable.as_str()), Some("skiplist"));
    Ok(())
}
