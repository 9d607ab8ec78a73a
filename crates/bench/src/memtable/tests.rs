use super::record::MemtableRecord;
use super::*;
use base::ErrorKind;

/// Runs benchmarks on small memtables. Returns the text and the records, each as it was read back.
fn run_small(benchmarks: &str, more: &str) -> Result<(String, Vec<MemtableRecord>)> {
    run_given(&format!("--benchmarks={benchmarks} --num_operations=3000 --num_scans=2 --item_size=10 {more}"))
}

fn run_given(line: &str) -> Result<(String, Vec<MemtableRecord>)> {
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
        ("fillsquare", "", "known are fillrandom, fillseq, "),
        ("readrandom", "", "fillrandom or fillseq before"),
        ("fillseq", "--memtablerep=no_such_list", "no_such_list"),
    ] {
        let error = run_small(benchmarks, more).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(named), "{benchmarks}: {error}");
    }
}

/// As printed in the texts of ToplingDB, apart from the number of entries.
const TOPLINGS: [&str; 2] = [
    "-benchmarks=fillrandom,readrandom,readwrite -memtablerep=skiplist -huge_page_tlb_size=2097152 \
     -write_buffer_size=536870912 -item_size=0 -num_operations=10000000",
    r#"-benchmarks=fillrandom,readrandom,readwrite -memtablerep=cspp:{"mem_cap":"16G","use_hugepage":true} -write_buffer_size=536870912 -item_size=0 -num_operations=10000000"#,
];

#[test]
fn toplingdbs_lines_run_as_they_are_printed() -> Result<()> {
    for line in TOPLINGS {
        let (text, records) = run_given(&line.replace("=10000000", "=20000"))?;
        let benches: Vec<&str> = records.iter().map(|record| record.bench.as_str()).collect();
        assert_eq!(benches, ["fillrandom", "readrandom"], "readwrite does nothing with one thread, as there");
        assert!(text.contains("readwrite: nothing to do; readwrite has readers with --num_threads=2"), "{text}");
        let [filled, read] = &records[..] else { panic!("{records:?}") };
        assert_eq!((filled.write_us_per_op, filled.read_us_per_op), (Some(filled.us_per_op), None));
        assert_eq!((read.write_us_per_op, read.read_us_per_op), (None, Some(read.us_per_op)));
        assert_eq!((read.ops, read.found), (20_000, Some(20_000)));
        assert_eq!((text.matches("\nwrite us/op: ").count(), text.matches("\nread us/op: ").count()), (1, 1), "{text}");
        assert!(text.contains("--write_buffer_size changes nothing"), "{text}");
    }
    Ok(())
}

#[test]
fn a_writer_writes_until_the_readers_end() -> Result<()> {
    for memtables in ["skiplist,cspp", "hashskiplist,hashlinklist -bucket_count=1000", "vector"] {
        let line =
            format!("-benchmarks=readwrite,readseq -num_threads=3 -num_operations=4000 -memtablerep={memtables}");
        let (text, records) = run_given(&line)?;
        for record in records.iter().filter(|record| record.bench == "readwrite") {
            assert_eq!((record.threads, record.ops), (2, 4000), "two threads look up: {record:?}");
            assert!(record.entries > 0 && record.entries <= 8000, "{record:?}");
            assert!(record.write_us_per_op > Some(0.0) && record.read_us_per_op > Some(0.0), "{record:?}");
        }
        assert!(text.contains("\nwrite us/op: ") && text.contains("\nread us/op: "), "{text}");
    }
    Ok(())
}

#[test]
fn lookups_are_shared_by_the_threads() -> Result<()> {
    let (_, records) = run_small("fillrandom,readrandom", "--num_threads=4")?;
    let [filled, read] = &records[..] else { panic!("{records:?}") };
    assert_eq!((filled.threads, read.threads), (1, 4), "one thread fills");
    assert_eq!((read.ops, read.found), (3000, Some(3000)));
    Ok(())
}

#[test]
fn memtablerep_benchs_name_of_the_skiplist_is_known() -> Result<()> {
    let (_, records) = run_small("fillseq", "--memtablerep=skiplist")?;
    assert_eq!(records.first().map(|record| record.memtable.as_str()), Some("skiplist"));
    Ok(())
}
