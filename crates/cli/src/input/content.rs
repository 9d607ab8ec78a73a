//! Detects an input's format by its first bytes. Text is passed on; gzip and Zstandard are decompressed; other known
//! formats are refused with a remedy.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use crate::failure::Failure;

/// Bytes inspected.
const HEAD_BYTES: usize = 512;

const READ_BYTES: usize = 128 << 10;

/// UTF-8 byte order mark, written by some editors. Not part of any record.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Known unsupported formats: first bytes, name, and a command to convert them to text.
const OTHERS: [(&[u8], &str, &str); 9] = [
    (b"\xff\xfe\0\0", "UTF-32", "iconv -f UTF-32 -t UTF-8"),
    (b"\xff\xfe", "UTF-16", "iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "UTF-16", "iconv -f UTF-16 -t UTF-8"),
    (b"BZh", "compressed by bzip2", "bzip2 -dc"),
    (b"\xfd7zXZ\0", "compressed by xz", "xz -dc"),
    (b"\x04\x22\x4d\x18", "compressed by lz4", "lz4 -dc"),
    (b"PK\x03\x04", "a zip archive", "unzip -p"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x -so"),
    (b"PAR1", "Parquet", "a program that writes it as csv"),
];

type Bytes = Box<dyn Read>;

/// A decompressed input, and its compression.
pub struct Content {
    pub bytes: Bytes,
    pub compression: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    fn of(head: &[u8]) -> Option<Compression> {
        match head {
            [0x1f, 0x8b, 0x08, ..] => Some(Compression::Gzip),
            // A frame, or a skippable frame first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "Zstandard",
        }
    }

    fn command(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
    }

    /// Decodes all members or frames, one after the other.
    fn decoder(self, rest: Rest) -> io::Result<Bytes> {
        Ok(match self {
            Compression::Gzip => Box::new(MultiGzDecoder::new(rest)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(rest)?),
        })
    }
}

/// Why an input cannot be read.
pub enum Refusal {
    /// I/O error; with the compression if compressed data was read.
    Io(io::Error, Option<&'static str>),
    /// Not a file of records; the text says how to convert it.
    Other(Failure),
}

/// Detects the format of an input and returns the decompressed text.
pub fn open(name: &str, input: impl Read + 'static) -> Result<Content, Refusal> {
    let of_file = |error| Refusal::Io(error, None);
    let (head, rest) = look(BufReader::with_capacity(READ_BYTES, Box::new(input) as Bytes)).map_err(of_file)?;
    let Some(compression) = Compression::of(&head) else {
        return Ok(Content { bytes: text(name, &head, rest)?, compression: None });
    };
    let compressed = |error| Refusal::Io(error, Some(compression.name()));
    let bytes = compression.decoder(rest).map_err(compressed)?;
    let (head, rest) = look(BufReader::with_capacity(READ_BYTES, bytes)).map_err(compressed)?;
    if Compression::of(&head).is_some() {
        return Err(Refusal::Other(Failure::refused(format!(
            "{name} is compressed twice; decompress it once: `{} -dc {name} | spillway ...` with - as the file",
            compression.command()
        ))));
    }
    Ok(Content { bytes: text(name, &head, rest)?, compression: Some(compression.name()) })
}

type Rest = io::Chain<Cursor<Vec<u8>>, BufReader<Bytes>>;

/// Returns the first bytes, and the whole input including them.
fn look(mut input: BufReader<Bytes>) -> io::Result<(Vec<u8>, Rest)> {
    let mut head = Vec::new();
    // A pipe may return less at first. Magic numbers are short: a line is enough.
    while head.len() < HEAD_BYTES && !head.contains(&b'\n') {
        let more = input.fill_buf()?;
        let taken = more.len().min(HEAD_BYTES - head.len());
        if taken == 0 {
            break;
        }
        head.extend_from_slice(more.get(..taken).unwrap_or_default());
        input.consume(taken);
    }
    Ok((head.clone(), Cursor::new(head).chain(input)))
}

/// Returns the text without a byte order mark, or refuses it.
fn text(name: &str, head: &[u8], mut rest: Rest) -> Result<Bytes, Refusal> {
    if let Some((what, command)) = other(head) {
        let so = format!(
            "{name} is {what}, not text in UTF-8; convert it first: `{command} {name} | spillway ...` with - as the file"
        );
        return Err(Refusal::Other(Failure::refused(so)));
    }
    if head.starts_with(BYTE_ORDER_MARK) {
        rest.read_exact(&mut [0; BYTE_ORDER_MARK.len()]).map_err(|error| Refusal::Io(error, None))?;
    }
    Ok(Box::new(rest))
}

/// Name and command of a known format. Its magic number does not count if all of `head` is text.
fn other(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let is_text = || {
        let is_control = |&byte: &u8| byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
        let is_cut_off = |error: std::str::Utf8Error| error.error_len().is_none();
        !head.iter().any(is_control) && std::str::from_utf8(head).err().is_none_or(is_cut_off)
    };
    let known = OTHERS.iter().find(|(magic, ..)| head.starts_with(magic)).map(|(_, what, command)| (*what, *command));
    match known {
        Some(known) if !is_text() => Some(known),
        Some(_) => None,
        None => byte_pairs(head),
    }
}

/// Detects UTF-16 without a byte order mark: in every pair of bytes the same one is zero.
fn byte_pairs(head: &[u8]) -> Option<(&'static str, &'static str)> {
    const PAIRS_MIN: usize = 2;
    let (pairs, _) = head.as_chunks::<2>();
    let all = |is_one: fn(&[u8; 2]) -> bool| pairs.len() >= PAIRS_MIN && pairs.iter().all(is_one);
    if all(|[low, high]| *low != 0 && *high == 0) {
        return Some(("UTF-16", "iconv -f UTF-16LE -t UTF-8"));
    }
    all(|[high, low]| *high == 0 && *low != 0).then_some(("UTF-16", "iconv -f UTF-16BE -t UTF-8"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::failure::Outcome;

    fn read(bytes: &[u8]) -> Outcome<Vec<u8>> {
        let mut text = Vec::new();
        match open("in", Cursor::new(bytes.to_vec())) {
            Ok(mut content) => content.bytes.read_to_end(&mut text).unwrap(),
            Err(Refusal::Other(failure)) => return Err(failure),
            Err(Refusal::Io(error, _)) => panic!("{error}"),
        };
        Ok(text)
    }

    #[test]
    fn text_is_handed_on_without_its_mark() {
        for text in
            [&b""[..], b"a", b"k\tv\n", "Gr\u{fc}n".as_bytes(), b"BZh91AY&SY\tis a key\n", b"\0\x01\tkv\n", b"PAR1"]
        {
            assert_eq!(read(text).ok().unwrap(), text);
            assert_eq!(read(&[BYTE_ORDER_MARK, text].concat()).ok().unwrap(), text);
        }
    }

    #[test]
    fn what_is_no_text_is_refused_with_the_remedy() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        for (bytes, remedy) in [
            (utf16("\u{feff}id,name\n"), "`iconv -f UTF-16 -t UTF-8 in | spillway ..."),
            (utf16("id,name\n"), "iconv -f UTF-16LE"),
            (utf16("id,name\n").chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect(), "iconv -f UTF-16BE"),
            (b"BZh91AY&SY\x8f\x1d\0\0".to_vec(), "bzip2 -dc in"),
            (b"\xfd7zXZ\0\0".to_vec(), "xz -dc in"),
        ] {
            let message = read(&bytes).err().unwrap().message().unwrap();
            assert!(message.contains(remedy), "{message}");
        }
    }
}
