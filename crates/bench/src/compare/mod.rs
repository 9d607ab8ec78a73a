//! db_bench and this program in turns, in one run, on the same flags; what they print becomes lines of JSON.
//!
//! Both are read by the same parser and timed by the same clock from outside: processor time is sampled from the kernel
//! as each line of output arrives, so that it covers background threads on both sides.

mod output;
mod record;
mod side;
mod suite;

use std::path::PathBuf;
use std::sync::Arc;

use base::{Error, Result};
use memtable::factory_from_option_string;
use vfs::{IfExists, IoClass, Vfs};

pub use record::Record;

use crate::flags::split_list;
use crate::folder;
use crate::machine::Occasion;
use crate::sinks::json_of;
use side::Side;
pub use suite::Suite;
use suite::{Scale, Step};

/// What `compare` takes.
#[derive(clap::Args, Debug)]
pub struct Comparison {
    /// An empty or new folder for the databases, on the file system to be measured. They are deleted at the end.
    #[arg(long)]
    dir: PathBuf,
    /// The file of JSON lines to write.
    #[arg(long)]
    out: PathBuf,
    /// What is run.
    #[arg(long, value_enum, default_value_t = Suite::Standard)]
    suite: Suite,
    /// Memtables of this side, as option strings separated by commas. RocksDB always has its skiplist.
    #[arg(long, default_value = "skip_list")]
    memtables: String,
    /// Keys of the fills.
    #[arg(long, default_value_t = 20_000_000)]
    num: u64,
    /// Lookups and seeks of each benchmark that reads.
    #[arg(long, default_value_t = 2_000_000)]
    reads: u64,
    /// How often everything is run on each side; the side that goes first changes.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Only the steps whose names begin so, separated by commas.
    #[arg(long)]
    steps: Option<String>,
    /// RocksDB's program.
    #[arg(long, default_value = "db_bench")]
    db_bench: PathBuf,
    /// Flags for both sides, after those of the steps, which they override.
    #[arg(last = true)]
    flags: Vec<String>,
}

/// Runs the suite and writes its records.
///
/// # Errors
/// `Unsupported`: db_bench is not installed. `Io`: a side failed; the message has its last words.
pub fn run(comparison: &Comparison, vfs: &Arc<dyn Vfs>) -> Result<()> {
    let vfs = vfs.as_ref();
    vfs.create_dir_all(&comparison.dir)?;
    let scale = Scale { num: comparison.num, reads: comparison.reads };
    let steps = comparison.suite.steps(&scale);
    let steps: Vec<Step> = steps.into_iter().filter(|step| comparison.wants(step.name)).collect();
    if steps.is_empty() {
        let names = comparison.suite.names();
        return Err(Error::invalid_argument(format!("no step's name begins so; there are: {names}")));
    }
    let sides = comparison.sides()?;
    let occasion = Occasion::now(vfs, &comparison.dir);
    let mut out = vfs.create(&comparison.out, IfExists::Truncate)?;
    for round in 0..comparison.rounds {
        for step in &steps {
            // Whoever goes first finds the disk and the page cache as another left them: they take turns.
            for turn in 0..sides.len() {
                let Some(side) = sides.get((turn + round as usize) % sides.len()) else { continue };
                for mut record in measure(vfs, comparison, step, side)? {
                    record.round = round;
                    record.suite = comparison.suite;
                    occasion.put_into(&mut record.machine, &mut record.commit, &mut record.unix_time_s);
                    println!("{}", record.summary());
                    out.append(format!("{}\n", json_of(&record)?).as_bytes(), IoClass::Other)?;
                }
            }
        }
    }
    Ok(())
}

/// Runs a step on one side, and deletes the database that it leaves.
fn measure(vfs: &dyn Vfs, comparison: &Comparison, step: &Step, side: &Side) -> Result<Vec<Record>> {
    let dir = comparison.dir.join(side.name());
    let mut flags = step.flags(&comparison.flags);
    side.choose_memtable(&mut flags);
    let sections = side.run(vfs, &dir, &flags)?;
    folder::remove(vfs, &dir)?;
    let mut records = Record::from_sections(side, step.name, sections.get(step.stage..).unwrap_or_default());
    for record in &mut records {
        record.flags = flags.join(" ");
    }
    Ok(records)
}

impl Comparison {
    /// RocksDB, and this program once for each memtable.
    fn sides(&self) -> Result<Vec<Side>> {
        let memtables = split_list(&self.memtables)
            .ok_or_else(|| Error::invalid_argument(format!("--memtables cannot be {:?}", self.memtables)))?;
        let mut sides = vec![Side::rocksdb(&self.db_bench)?];
        for memtable in &memtables {
            factory_from_option_string(memtable)?;
            sides.push(Side::spillway(memtable)?);
        }
        Ok(sides)
    }

    fn wants(&self, step: &str) -> bool {
        self.steps.as_ref().is_none_or(|names| names.split(',').any(|name| step.starts_with(name.trim())))
    }
}
