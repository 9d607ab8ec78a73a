// A bank of 200 branches, each a database of its own, with one number for the memory of all. Clerks move money between the
// accounts of a branch, in transactions: half of the branches lock what they change, in the others the commit finds out
// whether somebody came between. Whatever happens, a branch's sum stays. Run it with
//
//     BRANCHES_SECONDS=3 cargo run --release --example branches

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use spillway::{BlockCache, Db, ErrorKind, Options, Result, TransactionOptions, WriteBufferManager};

const BRANCHES: u64 = 200;
const ACCOUNTS: u64 = 1000;
/// In cents, at the beginning.
const BALANCE: u64 = 100_000;
const CLERKS: u64 = 4;
/// Of a hundred transfers, so many are between two of eight accounts of one branch: there clerks meet.
const BUSY_PERCENT: u64 = 20;
const BUSY_BRANCH: u64 = 1;
/// Of blocks and memtables together, and of memtables alone.
const MEMORY_BYTES: usize = 64 << 20;
const MEMTABLE_BYTES: usize = 32 << 20;

#[derive(Default)]
struct Counts {
    transfers: [AtomicU64; 2],
    conflicts: AtomicU64,
    deadlocks: AtomicU64,
    memtables_most: AtomicU64,
    memory_most: AtomicU64,
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn balance(value: Option<impl AsRef<[u8]>>) -> u64 {
    let value = value.expect("an account that is there");
    u64::from_le_bytes(value.as_ref().try_into().expect("eight bytes"))
}

/// Moves a tenth of one account to another.
fn transfer(branch: &Db, from: u64, to: u64, options: &TransactionOptions) -> Result<()> {
    let accounts = branch.default_family();
    let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
    let mut transaction = branch.transaction_with(options);
    let ours = balance(transaction.get_for_update(accounts, from)?);
    let theirs = balance(transaction.get_for_update(accounts, to)?);
    transaction.put(accounts, from, (ours - ours / 10).to_le_bytes())?;
    transaction.put(accounts, to, (theirs + ours / 10).to_le_bytes())?;
    transaction.commit()
}

#[allow(clippy::disallowed_methods, clippy::indexing_slicing, reason = "a program has clocks and arrays of its own")]
fn clerk(branches: &[Db], seed: u64, until: Instant, counts: &Counts) -> Result<()> {
    let kinds = [TransactionOptions::new(), TransactionOptions::new().pessimistic(true)];
    let mut random = Random(seed);
    while Instant::now() < until {
        let is_busy = random.below(100) < BUSY_PERCENT;
        let (branch, accounts) = if is_busy { (BUSY_BRANCH, 8) } else { (random.below(BRANCHES), ACCOUNTS) };
        let from = random.below(accounts);
        let to = (from + 1 + random.below(accounts - 1)) % accounts;
        // One kind a branch: an optimistic commit does not look at locks.
        let kind = (branch % 2) as usize;
        loop {
            match transfer(&branches[branch as usize], from, to, &kinds[kind]) {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::Conflict => counts.conflicts.fetch_add(1, Relaxed),
                Err(error) if error.kind() == ErrorKind::Deadlock => counts.deadlocks.fetch_add(1, Relaxed),
                Err(error) => return Err(error),
            };
        }
        counts.transfers[kind].fetch_add(1, Relaxed);
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, clippy::indexing_slicing, reason = "a program has clocks and arrays of its own")]
fn main() -> Result<()> {
    let seconds = std::env::var("BRANCHES_SECONDS").map_or(1.0, |text| text.parse().expect("a number of seconds"));
    let dir = std::env::temp_dir().join(format!("spillway-branches-{}", std::process::id()));
    let cache = BlockCache::new(MEMORY_BYTES);
    let memtables = WriteBufferManager::in_cache(MEMTABLE_BYTES, &cache);
    let options = Options::new().write_buffer_manager(memtables.clone()).shared_block_cache(cache.clone());

    let begun = Instant::now();
    let open = |branch: u64| -> Result<Db> {
        let db = Db::open_with(dir.join(branch.to_string()), &options)?;
        for account in 0..ACCOUNTS {
            db.put(account.to_be_bytes(), BALANCE.to_le_bytes())?;
        }
        Ok(db)
    };
    let branches = (0..BRANCHES).map(open).collect::<Result<Vec<Db>>>()?;
    println!("{BRANCHES} branches with {ACCOUNTS} accounts each, opened in {:.1} s", begun.elapsed().as_secs_f64());

    let counts = Counts::default();
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    std::thread::scope(|scope| {
        let clerks: Vec<_> = (1..=CLERKS)
            .map(|seed| {
                scope.spawn({
                    let (branches, counts) = (&branches, &counts);
                    move || clerk(branches, seed, until, counts)
                })
            })
            .collect();
        while Instant::now() < until {
            counts.memtables_most.fetch_max(memtables.memory_usage() as u64, Relaxed);
            counts.memory_most.fetch_max(cache.usage() as u64, Relaxed);
            std::thread::sleep(Duration::from_millis(5));
        }
        clerks.into_iter().try_for_each(|clerk| clerk.join().expect("no panic"))
    })?;

    let [optimistic, pessimistic] = counts.transfers.map(AtomicU64::into_inner);
    println!("{CLERKS} clerks made {} transfers a second:", ((optimistic + pessimistic) as f64 / seconds) as u64);
    println!("  {optimistic} optimistic ones, {} begun again after a conflict", counts.conflicts.into_inner());
    println!("  {pessimistic} with locks, {} begun again after a deadlock", counts.deadlocks.into_inner());
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let (held, memory) = (counts.memtables_most.into_inner(), counts.memory_most.into_inner());
    println!("memtables of all branches: {:.1} MiB at most, limit {}", mib(held), MEMTABLE_BYTES >> 20);
    println!("with blocks: {:.1} MiB at most, limit {}", mib(memory), MEMORY_BYTES >> 20);

    let mut wrong = 0;
    for branch in &branches {
        let sum: u64 = branch.iter().map(|entry| entry.map(|(_, value)| balance(Some(value)))).sum::<Result<u64>>()?;
        wrong += u64::from(sum != ACCOUNTS * BALANCE);
    }
    println!("branches whose sum is not what it was: {wrong}");
    branches.into_iter().try_for_each(|branch| branch.close())?;
    (0..BRANCHES).try_for_each(|branch| Db::destroy(dir.join(branch.to_string())))?;
    let _ = std::fs::remove_dir(&dir); // empty
    assert!(wrong == 0 && held <= MEMTABLE_BYTES as u64 && memory <= MEMORY_BYTES as u64);
    Ok(())
}
