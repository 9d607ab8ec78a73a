//! Terminals get plain text only. Escape sequences in a database or an input could move the cursor, change the title,
//! or answer for the user.

use std::io::{self, IsTerminal, Write};

use base::{Error, name};
use spillway::internal::vfs::standard_output_takes_nothing;

use crate::failure::{Failure, Outcome};

/// Replaces control characters, except line ends, by escapes (`\xNN`).
pub fn printable(text: &str) -> String {
    let mut shown = Vec::with_capacity(text.len());
    let _ = write_printable(&mut shown, text.as_bytes()); // memory does not fail
    String::from_utf8_lossy(&shown).into_owned()
}

/// Writer that passes bytes on: unchanged to files and pipes, printable to a terminal.
pub struct Shown<'a> {
    out: &'a mut dyn Write,
    is_terminal: bool,
}

impl<'a> Shown<'a> {
    /// `out` writes to standard output.
    pub fn new(out: &'a mut dyn Write) -> Shown<'a> {
        Shown { out, is_terminal: io::stdout().is_terminal() }
    }
}

/// Standard output. One that the process was started without, or may only read, is an error.
pub struct Output;

impl Output {
    /// # Errors
    /// Nothing can be written.
    pub fn check(&self) -> io::Result<()> {
        match standard_output_takes_nothing() {
            true => Err(rustix::io::Errno::BADF.into()),
            false => Ok(()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        io::stdout().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Keeps the first error of a writer whose caller makes another one of it.
struct Watched<'a> {
    out: &'a mut dyn Write,
    failed: Option<io::Error>,
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write_all(bytes);
        self.told(written).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.told(flushed)
    }
}

impl Watched<'_> {
    fn told(&mut self, done: io::Result<()>) -> io::Result<()> {
        done.map_err(|error| {
            let kind = error.kind();
            self.failed.get_or_insert(error);
            kind.into()
        })
    }
}

/// Runs what writes to `out`, and has errors of its own.
///
/// # Errors
/// The writer's, or else those of `run`.
pub fn watched(out: &mut dyn Write, run: impl FnOnce(&mut dyn Write) -> Result<(), Error>) -> Outcome {
    let mut watched = Watched { out, failed: None };
    let ran = run(&mut watched);
    match watched.failed {
        Some(error) => Err(Failure::Output(error)),
        None => Ok(ran?),
    }
}

impl Write for Shown<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.is_terminal {
            true => write_printable(self.out, bytes)?,
            false => self.out.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Tabs only move to the right: they stay, like line ends.
fn write_printable(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    let escape = |out: &mut dyn Write, bytes: &[u8]| bytes.iter().try_for_each(|byte| write!(out, "\\x{byte:02x}"));
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find(|c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || name::is_byte(c)) {
            let (plain, from) = rest.split_at(at);
            out.write_all(plain.as_bytes())?;
            let len = from.chars().next().map_or(0, char::len_utf8);
            let (control, after) = from.split_at(len);
            escape(out, &name::bytes(control))?;
            rest = after;
        }
        out.write_all(rest.as_bytes())?;
        escape(out, chunk.invalid())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_escapes_on_a_terminal_and_themselves_in_a_pipe() {
        let bytes = b"a\x1b[2Jb\tc\r\nd\x7f\xff \xc2\x9b \\";
        let written = |is_terminal| {
            let mut out = Vec::new();
            Shown { out: &mut out, is_terminal }.write_all(bytes).expect("memory");
            out
        };
        assert_eq!(written(false), bytes);
        assert_eq!(written(true), b"a\\x1b[2Jb\tc\\x0d\nd\\x7f\\xff \\xc2\\x9b \\");
        assert_eq!(printable("Gr\u{fc}n\u{1b}"), "Gr\u{fc}n\\x1b");
    }
}
