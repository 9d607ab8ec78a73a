//! Puts and gets through Rust's API, as `tests/c/cost.c` does them through C's: `scripts/capi-cost.sh` compares the two.
//!
//!     cost DIRECTORY put|get|none COUNT

use std::error::Error;

use spillway::internal::{Database as Db, OpenOptions, ReadOptions, WriteOptions};

/// Bytes of a value.
const VALUE_BYTES: usize = 100;

/// Keys of 16 digits in a scattered order.
fn key(number: u64) -> String {
    const ODD: u64 = 2_654_435_761;
    format!("{:016}", number.wrapping_mul(ODD) % 1_000_000_007)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, dir, what, count] = &arguments[..] else { return Err("cost DIRECTORY put|get|none COUNT".into()) };
    let count: u64 = count.parse()?;
    let db = Db::open(dir, &OpenOptions::create_if_missing())?;
    let family = db.default_family();
    let (read, write) = (ReadOptions::default(), WriteOptions::default());
    let mut bytes = 0;
    for number in 0..count {
        let key = key(number);
        match what.as_str() {
            "put" => db.put(&family, key.as_bytes(), &[b'v'; VALUE_BYTES], &write)?,
            "get" => bytes += db.get(&family, key.as_bytes(), &read)?.map_or(0, |value| value.len()),
            _ => bytes += key.len(),
        }
    }
    println!("{bytes}");
    Ok(())
}
