//! Keys and values as people write and read them: text, or hexadecimal digits.

use std::io::{self, Write};

use crate::failure::{Failure, Outcome};

/// How keys and values are written on the command line and in what is printed.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Notation {
    /// Keys and values are hexadecimal digits, on the command line and in what is printed.
    #[arg(long)]
    pub hex: bool,
}

impl Notation {
    /// The bytes that an argument stands for.
    pub fn parse(self, text: &str) -> Outcome<Vec<u8>> {
        if self.hex { parse_hex(text) } else { Ok(text.as_bytes().to_vec()) }
    }

    /// Writes bytes so that they stay on one line and are told apart from others.
    pub fn write(self, out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
        if self.hex { write_hex(out, bytes) } else { write_text(out, bytes) }
    }
}

/// Hexadecimal digits, two for each byte; `0x` may stand in front.
pub fn parse_hex(text: &str) -> Outcome<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    if !digits.len().is_multiple_of(2) {
        return Err(Failure::refused(format!("{text:?} has an odd number of hexadecimal digits; each byte takes two")));
    }
    let digit = |&byte: &u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    bytes.ok_or_else(|| Failure::refused(format!("{text:?} holds something else than hexadecimal digits (0-9, a-f)")))
}

pub fn write_hex(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

/// The digits as text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Text as it is; a backslash, control characters and what is not UTF-8 as escapes (`\\`, `\t`, `\n`, `\r`, `\xNN`).
pub fn write_text(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find(|c: char| c == '\\' || c.is_control()) {
            let (plain, from) = rest.split_at(at);
            out.write_all(plain.as_bytes())?;
            let mut characters = from.chars();
            match characters.next() {
                Some('\\') => out.write_all(b"\\\\")?,
                Some('\t') => out.write_all(b"\\t")?,
                Some('\n') => out.write_all(b"\\n")?,
                Some('\r') => out.write_all(b"\\r")?,
                Some(other) => {
                    other.encode_utf8(&mut [0; 4]).bytes().try_for_each(|byte| write!(out, "\\x{byte:02x}"))?;
                }
                None => break,
            }
            rest = characters.as_str();
        }
        out.write_all(rest.as_bytes())?;
        chunk.invalid().iter().try_for_each(|byte| write!(out, "\\x{byte:02x}"))?;
    }
    Ok(())
}

/// The first key after all that begin with `prefix`, byte by byte; `None` where there is none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        write_text(&mut out, bytes).expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn text_stays_on_one_line() {
        assert_eq!(text("Grüße".as_bytes()), "Grüße");
        assert_eq!(text(b"a\tb\nc\\d\x00\xff\xc2\x85"), "a\\tb\\nc\\\\d\\x00\\xff\\xc2\\x85");
        assert_eq!(text(b""), "");
    }

    #[test]
    fn hexadecimal_digits_are_checked() {
        assert_eq!(parse_hex("0xDEadbe").ok(), Some(vec![0xde, 0xad, 0xbe]));
        assert_eq!(parse_hex("").ok(), Some(vec![]));
        for bad in ["abc", "0x1", "zz", "é0"] {
            assert!(parse_hex(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn prefixes_end_where_the_next_one_begins() {
        assert_eq!(after_prefix(b"ab").as_deref(), Some(&b"ac"[..]));
        assert_eq!(after_prefix(b"a\xff").as_deref(), Some(&b"b"[..]));
        assert_eq!(after_prefix(b"\xff\xff"), None);
        assert_eq!(after_prefix(b""), None);
    }
}
