//! `spillway scan`.

mod format;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use spillway::internal::ttl::{Times, timed};
use spillway::internal::{DbIterator, Error, Family, PassedOver, ReadOptions, SkippedDamage, UserOrder, shell};

use crate::bytes::{Notation, after_prefix};
use crate::database::{Access, FamilyArgs, PlaceArgs};
use crate::failure::{Failure, Outcome, found_damage};
use crate::interrupt::Interrupt;
use crate::long::{Long, Reached};
use crate::{human, json};

use self::format::{Format, Printer};

/// Prints keys and values in order.
///
/// `load` reads the output again without loss, except for --format values: kv with --format kv, csv with --format csv --value
/// value, ndjson with --format ndjson --key key --value value. On a terminal control characters are shown as escapes; in
/// files and pipes csv and values have all bytes unchanged.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway scan --db /tmp/unicode --from 0041 --to 005B
  spillway scan --db /tmp/unicode --prefix 1F6 --keys-only --reverse --limit 5
  spillway scan --db /tmp/unicode --count
  spillway scan --db /tmp/unicode --format csv > unicode.csv
  spillway scan --db /tmp/a | spillway load - --db /tmp/b --format kv
  spillway scan --db /tmp/events --format values > events.json    # lines of load --format ndjson")]
pub struct Args {
    /// First key.
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// End of the range, exclusive.
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
    /// Prints only keys with this prefix.
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Number of keys to print at most.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Prints keys from the last to the first.
    #[arg(long)]
    reverse: bool,
    /// Format of the output.
    #[arg(long, value_enum, default_value_t = Format::Kv)]
    format: Format,
    /// Prints no values.
    #[arg(long)]
    keys_only: bool,
    /// Prints the time at which each value was written, of a family whose values carry times (a ttl). `load` does not read it.
    #[arg(long)]
    times: bool,
    /// Prints only the number of keys, and the bytes of keys and values.
    #[arg(long, conflicts_with_all = ["format", "keys_only", "times"])]
    count: bool,
    /// Skips damaged blocks, tables and logs; lists them on standard error, and exits with status 1 if there are any. Older
    /// values and deleted keys may appear in skipped ranges.
    #[arg(long)]
    skip_damaged: bool,
    /// Prints JSON, described in docs/cli.md: a line for each key, as --format ndjson, or the result of --count.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    family: FamilyArgs,
    #[command(flatten)]
    notation: Notation,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let database = args.place.database();
    let parse = |text: &Option<String>| text.as_deref().map(|text| args.notation.parse(text)).transpose();
    let prefix = parse(&args.prefix)?;
    let (from, to) = (parse(&args.from)?, parse(&args.to)?);
    let (db, unopened) = match args.skip_damaged {
        true => database.open_damaged(&args.family)?,
        false => (database.open_family(Access::Read, &args.family)?.0, None),
    };
    let family = args.family.of(&db)?;
    let times = Times::of(db.vfs(), &family.options());
    if args.times && times.is_none() {
        return Err(Failure::refused(format!(
            "values of column family \"{}\" carry no times; --ttl says that they do, though nothing notes it",
            family.name()
        )));
    }
    let damage = args.skip_damaged.then(SkippedDamage::new);
    let options = ReadOptions { skip_damaged: damage.clone(), ..bounds(&family, from, to, prefix.as_deref()) };
    let walk = Walk { entries: db.iter(&family, &options)?, reverse: args.reverse, times };
    let printed = print(args, walk, prefix.as_deref(), out).and_then(tell_untimed);
    // Also where the reader of the output has gone.
    let told = tell_skipped(db.path(), args.notation, unopened, damage.map(|damage| damage.list()).unwrap_or_default());
    printed.and(told)
}

/// Prints the entries, or their number. Returns how many should have a time and have none.
fn print(args: &Args, mut walk: Walk, prefix: Option<&[u8]>, out: &mut dyn Write) -> Outcome<u64> {
    let format = if args.json { Format::Ndjson } else { args.format };
    let (notation, keys_only) = (args.notation, args.keys_only);
    let mut printer = Printer { out, format, notation, keys_only, times: args.times };
    if !args.count {
        printer.begin()?;
    }
    let (mut keys, mut key_bytes, mut value_bytes, mut untimed) = (0u64, 0u64, 0u64, 0u64);
    let counted = Arc::new(AtomicU64::new(0));
    let long = args.count.then(|| watch(&counted)).transpose()?;
    let interrupt = Interrupt::default();
    if !args.count {
        interrupt.listen()?; // a count is ended by `long`
    }
    let mut valid = walk.start();
    while valid && args.limit.is_none_or(|limit| keys < limit) {
        let (key, (value, time_s)) = (walk.entries.key(), walk.value());
        let is_untimed = walk.times.is_some() && time_s.is_none();
        // In orders other than bytewise the bounds can also hold keys without the prefix.
        if prefix.is_none_or(|prefix| key.starts_with(prefix)) {
            keys += 1;
            key_bytes += key.len() as u64;
            value_bytes += value.len() as u64;
            untimed += u64::from(is_untimed);
            match args.count {
                true => counted.store(keys, Ordering::Relaxed),
                false => printer.entry(key, value, time_s)?,
            }
        }
        if interrupt.is_asked() {
            out.flush()?;
            let keys = human::counted(keys, "key", "keys");
            return Err(Failure::Interrupted(format!("{keys} were printed, and nothing was changed")));
        }
        valid = walk.step();
    }
    drop(long);
    walk.entries.status()?;
    if args.count && args.json {
        json::print(&json!({ "keys": keys, "key_bytes": key_bytes, "value_bytes": value_bytes }), out)?;
    } else if args.count {
        let (keys_size, values_size) = (human::bytes(key_bytes), human::bytes(value_bytes));
        writeln!(out, "{}, {keys_size} of keys, {values_size} of values", human::counted(keys, "key", "keys"))?;
    }
    out.flush()?;
    Ok(untimed)
}

/// Tells of values that should have a time and have none.
///
/// # Errors
/// There are some.
fn tell_untimed(count: u64) -> Outcome {
    if count == 0 {
        return Ok(());
    }
    found_damage();
    let values = human::counted(count, "value was", "values were");
    let _ = writeln!(
        io::stderr(),
        "error: {values} written without a time, by an open without a ttl, and taken as stored; `spillway put` of the key writes \
         a value with a time"
    );
    Err(Failure::Told)
}

/// Shows the number of counted keys.
fn watch(counted: &Arc<AtomicU64>) -> Outcome<Long> {
    let (now, then) = (counted.clone(), counted.clone());
    let keys = |counted: &AtomicU64| human::counted(counted.load(Ordering::Relaxed), "key", "keys");
    Long::begin(
        move || Reached { what: format!("counting, {}", keys(&now)), ..Reached::default() },
        move || format!("{} were counted, and nothing was changed; a count begins from the start again", keys(&then)),
    )
}

/// Lists skipped damage.
///
/// # Errors
/// Something was skipped.
fn tell_skipped(dir: &Path, notation: Notation, unopened: Option<Error>, skipped: Vec<PassedOver>) -> Outcome {
    let count = skipped.len() as u64 + u64::from(unopened.is_some());
    if count == 0 {
        return Ok(());
    }
    found_damage();
    if let Some(error) = unopened {
        let _ = writeln!(io::stderr(), "skipped: damage in the logs, {error}");
    }
    for PassedOver { error, from, through, .. } in skipped {
        let edge =
            |key: Option<Vec<u8>>, unknown: &str| key.map_or_else(|| unknown.to_owned(), |key| notation.quoted(&key));
        let (from, through) = (edge(from, "the first key"), edge(through, "the last key"));
        let _ = writeln!(io::stderr(), "skipped: {error}: from {from} through {through}");
    }
    let places = human::counted(count, "damaged place", "damaged places");
    let dir = shell::word(dir);
    let _ = writeln!(
        io::stderr(),
        "{places} skipped: what is printed can lack keys in these ranges, and show older values there, or deleted keys; \
         `spillway check --db {dir}` lists all damage, `spillway repair --db {dir}` mends what it can"
    );
    Err(Failure::Told)
}

/// The narrowest bounds around all requested keys.
fn bounds(family: &Family, from: Option<Vec<u8>>, to: Option<Vec<u8>>, prefix: Option<&[u8]>) -> ReadOptions {
    let order = family.options().order.clone();
    let (mut lower, mut upper) = (from, to);
    if let (Some(prefix), UserOrder::Bytewise) = (prefix, &order) {
        lower = Some(lower.map_or_else(|| prefix.to_vec(), |from| from.max(prefix.to_vec())));
        upper = match (upper, after_prefix(prefix)) {
            (Some(to), Some(end)) => Some(to.min(end)),
            (to, end) => to.or(end),
        };
    }
    ReadOptions {
        iterate_lower_bound: lower,
        iterate_upper_bound: upper,
        total_order_seek: true,
        ..ReadOptions::default()
    }
}

struct Walk {
    entries: DbIterator,
    reverse: bool,
    /// If values end with times.
    times: Option<Times>,
}

impl Walk {
    fn start(&mut self) -> bool {
        let found = if self.reverse { self.entries.seek_to_last() } else { self.entries.seek_to_first() };
        self.pass_expired(found)
    }

    fn step(&mut self) -> bool {
        let found = self.go_on();
        self.pass_expired(found)
    }

    fn go_on(&mut self) -> bool {
        if self.reverse { self.entries.prev() } else { self.entries.next() }
    }

    fn pass_expired(&mut self, mut found: bool) -> bool {
        while found && self.times.as_ref().is_some_and(|times| times.is_expired(self.entries.value())) {
            found = self.go_on();
        }
        found
    }

    /// The value, and the seconds of its time if it ends with one; all of it, if it should and does not.
    fn value(&self) -> (&[u8], Option<u32>) {
        let stored = self.entries.value();
        match self.times.as_ref().and_then(|_| timed(stored).ok()) {
            Some((value, time_s)) => (value, u32::try_from(time_s).ok()),
            None => (stored, None),
        }
    }
}
