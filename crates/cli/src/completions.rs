//! `spillway completions`.

use std::io::Write;

use clap::ValueEnum;
use clap_complete::{Generator, Shell};

use crate::failure::Outcome;

/// Prints a completion script for a shell: names of commands, flags and their values.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway completions bash > ~/.local/share/bash-completion/completions/spillway
  spillway completions zsh > ~/.zfunc/_spillway                 # a directory of $fpath
  spillway completions fish > ~/.config/fish/completions/spillway.fish")]
pub struct Args {
    /// Shell.
    #[arg(value_enum)]
    shell: Wanted,
}

/// The shells tried by the tests.
#[derive(Clone, Copy, ValueEnum)]
enum Wanted {
    Bash,
    Zsh,
    Fish,
}

pub fn run(args: &Args, mut program: clap::Command, out: &mut dyn Write) -> Outcome {
    program.set_bin_name("spillway");
    program.build();
    let shell = match args.shell {
        Wanted::Bash => Shell::Bash,
        Wanted::Zsh => Shell::Zsh,
        Wanted::Fish => Shell::Fish,
    };
    Ok(shell.try_generate(&program, out)?)
}
