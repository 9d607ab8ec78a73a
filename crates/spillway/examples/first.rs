// Two families, four threads, a merged counter, a snapshot, a range delete, a bounded scan. Run it with
//
//     cargo run --example first

use spillway::merge::UInt64AddOperator;
use spillway::{Db, ErrorKind, FamilyOptions, Options, Result};

fn main() -> Result<()> {
    let dir = std::env::temp_dir().join("spillway-first");
    let counters = FamilyOptions::new().merge_operator(UInt64AddOperator);
    let db = Db::open_with(&dir, &Options::new().family("counters", counters))?;
    let (visits, counters) = (db.family("visits")?, db.family("counters")?);

    std::thread::scope(|scope| {
        let write = |thread: u8| -> Result<()> {
            for n in 0..1000u16 {
                let mut batch = db.batch();
                batch.put(&visits, format!("{thread}/{n:04}"), "a page");
                batch.merge(&counters, "visits", 1u64.to_le_bytes());
                batch.commit()?; // both, or neither
            }
            Ok(())
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || write(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    let count = counters.get("visits")?.and_then(|count| count.first_chunk().copied());
    println!("counted {} visits", count.map_or(0, u64::from_le_bytes));

    let before = db.snapshot();
    visits.delete_range("0/".."3/")?;
    println!("{} visits are left, the snapshot has {}", visits.iter().count(), before.iter(&visits).count());
    for entry in visits.range("3/0500".."3/0503") {
        let (key, value) = entry?;
        println!("{} = {}", key.escape_ascii(), value.escape_ascii());
    }

    db.close()?;
    match visits.put("late", "a page") {
        Err(error) if error.kind() == ErrorKind::Closed => println!("refused: {error}"),
        other => other?,
    }
    Db::destroy(&dir)
}
