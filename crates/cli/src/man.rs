//! `spillway man`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap_mangen::Man;
use spillway::internal::vfs::{IfExists, IoClass, RealVfs, Vfs};

use crate::failure::Outcome;

/// Prints the manual page, or writes one page per command into a directory.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway man | man -l -
  spillway man --to ~/.local/share/man/man1")]
pub struct Args {
    /// Directory for the pages spillway.1, spillway-load.1 and so on; created if missing.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

pub fn run(args: &Args, program: clap::Command, out: &mut dyn Write) -> Outcome {
    let program = program.disable_help_subcommand(true);
    let Some(dir) = &args.to else { return Ok(Man::new(program).render(out)?) };
    let vfs = RealVfs::new();
    vfs.create_dir_all(dir)?;
    let mut program = program;
    program.build();
    write_pages(&*vfs, dir, &program)
}

/// Writes a page for a command and its subcommands.
fn write_pages(vfs: &dyn Vfs, dir: &Path, command: &clap::Command) -> Outcome {
    let man = Man::new(command.clone());
    let name = man.get_filename();
    let mut page = Vec::new();
    man.render(&mut page)?;
    vfs.create(&dir.join(name), IfExists::Truncate)?.append(&page, IoClass::Other)?;
    command.get_subcommands().filter(|under| !under.is_hide_set()).try_for_each(|under| write_pages(vfs, dir, under))
}
