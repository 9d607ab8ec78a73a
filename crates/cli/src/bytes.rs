//! Keys and values as text or hexadecimal digits.

use std::io::{self, Write};

use crate::failure::{Failure, Outcome};

/// Notation of keys and values on the command line and in the output.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Notation {
    /// Writes keys and values as hexadecimal digits, on the command line and in the output. Example: 0x00ff.
    #[arg(long)]
    pub hex: bool,
}

impl Notation {
    /// Parses an argument into bytes.
    pub fn parse(self, text: &str) -> Outcome<Vec<u8>> {
        if self.hex { parse_hex(text) } else { Ok(text.as_bytes().to_vec()) }
    }

    /// Writes bytes on one line, with a distinct text for distinct bytes.
    pub fn write(self, out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
        if self.hex { write_hex(out, bytes) } else { write_text(out, bytes) }
    }
}

impl Notation {
    /// A key for messages, in quotes.
    pub fn quoted(self, key: &[u8]) -> String {
        let mut text = Vec::with_capacity(key.len() + 2);
        text.push(b'\'');
        let _ = self.write(&mut text, key); // memory does not fail
        text.push(b'\'');
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// Parses hexadecimal digits, two for each byte, with an optional `0x`.
pub fn parse_hex(text: &str) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    append_hex(text.as_bytes(), &mut bytes).map(|()| bytes).map_err(Failure::Refused)
}

/// Appends the bytes of hexadecimal digits.
///
/// # Errors
/// Not hexadecimal digits; the text says so.
pub fn append_hex(shown: &[u8], to: &mut Vec<u8>) -> Result<(), String> {
    let digits = shown.strip_prefix(b"0x").unwrap_or(shown);
    let (pairs, odd) = digits.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(format!("\"{}\" has an odd number of hexadecimal digits; each byte takes two", beginning(shown)));
    }
    for [high, low] in pairs {
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else {
            let shown = beginning(shown);
            return Err(format!("\"{shown}\" holds something else than hexadecimal digits (0-9, a-f)"));
        };
        to.push(high << 4 | low);
    }
    Ok(())
}

/// The first bytes, for messages.
fn beginning(bytes: &[u8]) -> String {
    const SHOWN_BYTES: usize = 64;
    match bytes.split_at_checked(SHOWN_BYTES) {
        Some((shown, [_, ..])) => text(shown) + "...",
        _ => text(bytes),
    }
}

pub fn write_hex(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes text as it is. Escapes (`\\`, `\t`, `\n`, `\r`, `\xNN`) replace backslashes, control characters, byte order
/// marks and invalid UTF-8. [`unescape`] is the inverse.
pub fn write_text(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        // A byte order mark at the start of a file would be taken for the file's own.
        while let Some(at) = rest.find(|c: char| matches!(c, '\\' | '\u{feff}') || c.is_control()) {
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

/// The output of [`write_text`] as a string.
pub fn text(bytes: &[u8]) -> String {
    let mut shown = Vec::new();
    let _ = write_text(&mut shown, bytes); // memory does not fail
    String::from_utf8_lossy(&shown).into_owned()
}

/// Appends the bytes of `text`: the inverse of [`write_text`]. Bytes without an escape stand for themselves.
///
/// # Errors
/// A backslash begins no escape; `to` holds the bytes before it.
pub fn unescape(text: &[u8], to: &mut Vec<u8>) -> Result<(), String> {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(at);
        to.extend_from_slice(plain);
        let (byte, len) = match escape {
            [_, b'\\', ..] => (b'\\', 2),
            [_, b't', ..] => (b'\t', 2),
            [_, b'n', ..] => (b'\n', 2),
            [_, b'r', ..] => (b'\r', 2),
            [_, b'x', high, low, ..] => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 4),
                _ => return Err(no_escape(escape)),
            },
            _ => return Err(no_escape(escape)),
        };
        to.push(byte);
        rest = escape.get(len..).unwrap_or_default();
    }
    to.extend_from_slice(rest);
    Ok(())
}

#[cold]
fn no_escape(escape: &[u8]) -> String {
    let shown = escape.get(..4).unwrap_or(escape).escape_ascii().to_string().replace("\\\\", "\\");
    format!(
        "{shown} begins with a backslash and is no escape (\\\\, \\t, \\n, \\r, \\xNN); --raw takes backslashes as they stand"
    )
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// The first key after all keys with this prefix, bytewise; `None` if there is none.
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
    use proptest::prelude::*;

    use super::*;

    fn back(text: &str) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        unescape(text.as_bytes(), &mut bytes).map(|()| bytes)
    }

    proptest! {
        #[test]
        fn escapes_are_undone(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\\'), Just(b'\t'), Just(b'x')], 0..40)) {
            let text = text(&bytes);
            prop_assert!(!text.contains(char::is_control));
            prop_assert_eq!(back(&text), Ok(bytes));
        }
    }

    #[test]
    fn a_backslash_that_begins_no_escape_is_refused() {
        assert_eq!(back("a\\x5Cb\\xfF"), Ok(b"a\\b\xff".to_vec()));
        for (bad, shown) in [
            ("C:\\dir", "\\dir"),
            ("\\", "\\"),
            ("\\x", "\\x"),
            ("\\x1", "\\x1"),
            ("\\xg0", "\\xg0"),
            ("\\\u{1b}[m", "\\\\x1b[m"),
        ] {
            let what = back(bad).expect_err("no escape");
            assert!(what.starts_with(shown) && what.contains("--raw"), "{what}");
        }
    }

    #[test]
    fn text_stays_on_one_line() {
        assert_eq!(text("Grüße".as_bytes()), "Grüße");
        assert_eq!(text(b"a\tb\nc\\d\x00\xff\xc2\x85"), "a\\tb\\nc\\\\d\\x00\\xff\\xc2\\x85");
        assert_eq!(text("\u{feff}a".as_bytes()), "\\xef\\xbb\\xbfa");
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
