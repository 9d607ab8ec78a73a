//! `spillway families`.

use std::io::Write;

use clap::Subcommand;
use serde_json::json;
use spillway::internal::FamilyOptions;
use spillway::internal::options::apply_string;

use crate::database::{Access, AdoptArgs, DatabaseArgs, FamilyArgs, name_parser};
use crate::failure::Outcome;
use crate::json;
use base::name;

/// Lists, creates and drops column families.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway families list --db /tmp/people
  spillway families create archive --with \"compression=kZSTD\" --db /tmp/people
  spillway families drop archive --db /tmp/people")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Prints the names, in order of family ids.
    List {
        #[command(flatten)]
        database: DatabaseArgs,
        /// Prints JSON: one line, described in docs/cli.md.
        #[arg(long)]
        json: bool,
    },
    /// Creates an empty family.
    Create {
        /// Name of the family.
        #[arg(value_parser = name_parser())]
        name: String,
        /// Options of the family, as an option string. Default: the defaults of all options.
        #[arg(long, value_name = "STRING")]
        with: Option<String>,
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        adopt: AdoptArgs,
    },
    /// Drops a family and everything in it.
    Drop {
        /// Name of the family.
        #[arg(value_parser = name_parser())]
        name: String,
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        adopt: AdoptArgs,
    },
}

impl Args {
    pub fn is_json(&self) -> bool {
        matches!(self.action, Action::List { json: true, .. })
    }
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    match &args.action {
        Action::List { database, json } => {
            let families = database.open(Access::Read)?.families();
            if *json {
                let shown = families.iter().map(|family| json!({ "id": family.id().0, "name": family.name() }));
                return json::print(&json!({ "families": shown.collect::<Vec<_>>() }), out);
            }
            for family in families {
                out.write_all(&name::bytes(family.name()))?;
                writeln!(out)?;
            }
            Ok(())
        }
        Action::Create { name, with, database, adopt } => {
            let mut options = FamilyOptions::default();
            if let Some(text) = with {
                for warning in apply_string(&mut options, text)? {
                    eprintln!("warning: {warning}");
                }
            }
            let db = database.open(Access::Write { adopt: adopt.adopt, create: false })?;
            db.create_family(name, options)?;
            Ok(db.close()?)
        }
        Action::Drop { name, database, adopt } => {
            let db = database.open(Access::Write { adopt: adopt.adopt, create: false })?;
            let family = FamilyArgs { family: name.clone(), ttl: false }.of(&db)?;
            db.drop_family(&family)?;
            drop(family);
            Ok(db.close()?)
        }
    }
}
