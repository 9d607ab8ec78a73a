//! Names that are bytes, as text and back.
//!
//! RocksDB's names of families, paths in options and comparators are any bytes. Here they are text, in which one character of
//! U+10FE80 to U+10FEFF (private use) stands for each byte of 0x80 to 0xFF that is not part of UTF-8. Each sequence of bytes
//! has one text, and files hold the bytes.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

const FIRST: u32 = 0x10_FE00;

/// The first byte of such a character in UTF-8, and of few others: a search for it is faster than one through characters.
const LEAD: u8 = 0xF4;

fn byte_of(letter: char) -> Option<u8> {
    u32::from(letter).checked_sub(FIRST).and_then(|byte| u8::try_from(byte).ok()).filter(|byte| *byte >= 0x80)
}

/// The text of a name's bytes.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !bytes.contains(&LEAD)
    {
        return Cow::Borrowed(text);
    }
    let standing = |bytes: &[u8], out: &mut String| {
        out.extend(bytes.iter().filter_map(|byte| char::from_u32(FIRST + u32::from(*byte))));
    };
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match byte_of(letter) {
                // The bytes of such a character are bytes like others: no two names have one text.
                Some(_) => standing(letter.encode_utf8(&mut [0; 4]).as_bytes(), &mut out),
                None => out.push(letter),
            }
        }
        standing(chunk.invalid(), &mut out);
    }
    Cow::Owned(out)
}

/// The bytes of a name's text.
pub fn bytes(text: &str) -> Cow<'_, [u8]> {
    if !text.as_bytes().contains(&LEAD) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut out = Vec::with_capacity(text.len());
    for letter in text.chars() {
        match byte_of(letter) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(out)
}

/// Whether no other text has the same bytes: only such a text comes back from a file as it was.
pub fn is_exact(text: &str) -> bool {
    *self::text(&bytes(text)) == *text
}

/// The text of a path.
pub fn of_path(path: &Path) -> Cow<'_, str> {
    text(path.as_os_str().as_encoded_bytes())
}

/// The path of a text.
#[cfg(unix)]
pub fn path(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;

    std::ffi::OsStr::from_bytes(&bytes(text)).into()
}

/// The path of a text. Paths are no bytes here.
#[cfg(not(unix))]
pub fn path(text: &str) -> PathBuf {
    text.into()
}

/// The text with `escape` and two hexadecimal digits for each byte that is not UTF-8.
pub fn with_bytes_shown<'a>(text: &'a str, escape: &str) -> Cow<'a, str> {
    if !text.as_bytes().contains(&LEAD) {
        return Cow::Borrowed(text);
    }
    let shown = |letter| byte_of(letter).map_or_else(|| String::from(letter), |byte| format!("{escape}{byte:02x}"));
    Cow::Owned(text.chars().map(shown).collect())
}

/// A name for a message: as `{:?}` shows text, with `\xNN` for each byte that is not UTF-8.
pub fn quoted(text: &str) -> String {
    let shown = |letter: char| match byte_of(letter) {
        Some(byte) => format!("\\x{byte:02x}"),
        None if letter == '\'' => String::from(letter),
        None => letter.escape_debug().to_string(),
    };
    format!("\"{}\"", text.chars().map(shown).collect::<String>())
}

/// Whether the character stands for a byte that is not UTF-8.
pub fn is_byte(letter: char) -> bool {
    byte_of(letter).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_a_text_of_its_own_and_comes_back() {
        let stands = "\u{10FEFF}".as_bytes();
        let beside = "\u{100000}".as_bytes(); // begins with the same byte
        let names: [&[u8]; 10] = [
            b"",
            b"plain",
            "größe".as_bytes(),
            b"\xff",
            b"a\x80b\xc3",
            b"\xc3\x28",
            b"\0\x7f",
            stands,
            &stands[1..],
            beside,
        ];
        for (at, name) in names.iter().enumerate() {
            let text = text(name);
            assert_eq!(&*bytes(&text), *name);
            assert!(is_exact(&text));
            assert!(names.iter().enumerate().all(|(other, name)| other == at || *self::text(name) != *text));
            assert_eq!(of_path(&path(&text)), text);
        }
        let name = text(b"a\xff\"\n'");
        assert_eq!(quoted(&name), r#""a\xff\"\n'""#);
        assert_eq!(with_bytes_shown(&name, "%"), "a%ff\"\n'");
        assert!(!is_exact("\u{10FEC3}\u{10FEA9}"), "these are the bytes of é");
    }
}
