//! `spillway get`.

use std::io::Write;

use spillway::internal::ReadOptions;
use spillway::internal::ttl::Times;

use crate::bytes::{Notation, text, write_hex};
use crate::database::{Access, DatabaseArgs, FamilyArgs};
use crate::failure::{Failure, Outcome};

/// Prints the value of a key, and a line end. Exits with status 1 if the key is missing.
///
/// Files and pipes get the value unchanged; on a terminal control characters are shown as escapes (\xNN).
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  spillway get 0041 --db /tmp/unicode\n  spillway get --hex 0x00ff --db /tmp/binary"
)]
pub struct Args {
    /// Key to look up.
    key: String,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    family: FamilyArgs,
    #[command(flatten)]
    notation: Notation,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let key = args.notation.parse(&args.key)?;
    let (db, family) = args.database.open_family(Access::Read, &args.family)?;
    let mut found = db.get(&family, &key, &ReadOptions::default())?;
    if let Some(times) = Times::of(db.vfs(), &family.options()) {
        found = found.map(|stored| times.shown(stored)).transpose()?.flatten();
    }
    let Some(value) = found else {
        return Err(Failure::refused(format!("there is no key {}", text(args.key.as_bytes()))));
    };
    if args.notation.hex {
        write_hex(out, &value)?;
    } else {
        out.write_all(&value)?;
    }
    Ok(out.write_all(b"\n")?)
}
