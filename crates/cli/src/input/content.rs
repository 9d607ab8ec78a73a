//! Detects an input's format by its first bytes. Text is passed on; gzip and Zstandard are decompressed; other known
//! formats are refused with a remedy.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::GzDecoder;

use crate::failure::Failure;

/// Bytes inspected.
const HEAD_BYTES: usize = 512;

const READ_BYTES: usize = 128 << 10;

/// Largest window of a Zstandard frame, as a power of two: `zstd --long=31` writes it. A frame takes its window in memory.
const WINDOW_LOG_MAX: u32 = 31;

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
        match behind_skippable(head) {
            [0x1f, 0x8b, 0x08, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            // lz4's skippable frames are the same: what the head does not show is taken for Zstandard's.
            _ if is_skippable(head) && other(head).is_none() => Some(Compression::Zstd),
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
            Compression::Gzip => Box::new(Members { member: Some(GzDecoder::new(rest)) }),
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(rest)?;
                decoder.window_log_max(WINDOW_LOG_MAX)?;
                Box::new(decoder)
            }
        })
    }
}

/// All members of a gzip file. Zeros behind the last one are padding, as tapes and some writers leave it.
struct Members {
    /// `None` at the end.
    member: Option<GzDecoder<Rest>>,
}

impl Members {
    /// Begins the next member, if there is one.
    fn begin_next(&mut self) -> io::Result<()> {
        let Some(mut rest) = self.member.take().map(GzDecoder::into_inner) else { return Ok(()) };
        let mut is_padded = false;
        loop {
            let bytes = rest.fill_buf()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            match (bytes.len(), zeros) {
                (0, _) => return Ok(()),
                (_, 0) if is_padded => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "data behind the zeros that end it"));
                }
                (_, 0) => break,
                _ => is_padded = true,
            }
            rest.consume(zeros);
        }
        self.member = Some(GzDecoder::new(rest));
        Ok(())
    }
}

impl Read for Members {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buf)?;
            if read > 0 || buf.is_empty() {
                return Ok(read);
            }
            self.begin_next()?;
        }
        Ok(0)
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
    while head.len() < HEAD_BYTES && (is_skippable(&head) || !head.contains(&b'\n')) {
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

/// Whether a skippable frame, of Zstandard or of lz4, comes first.
fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// What comes behind all skippable frames; empty if the head does not show it.
fn behind_skippable(mut head: &[u8]) -> &[u8] {
    while let [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, rest @ ..] = head {
        let bytes = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        head = rest.get(bytes..).unwrap_or_default();
    }
    head
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
    let shown = behind_skippable(head);
    let known = OTHERS.iter().find(|(magic, ..)| shown.starts_with(magic)).map(|(_, what, command)| (*what, *command));
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
    fn members_zeros_and_long_windows_are_read() {
        let zip = |text: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut encoder, text).unwrap();
            encoder.finish().unwrap()
        };
        let (a, b) = (zip(b"a\n"), zip(b"b\n"));
        assert_eq!(read(&[&a[..], &b].concat()).ok().unwrap(), b"a\nb\n");
        assert_eq!(read(&[&a[..], &b, &[0; 10_240]].concat()).ok().unwrap(), b"a\nb\n");
        for behind in [&[&[0; 512][..], &b].concat()[..], b"rubbish"] {
            let content = open("in", Cursor::new([&a[..], behind].concat())).ok().unwrap();
            assert!(std::io::read_to_string(content.bytes).is_err(), "{behind:?}");
        }
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(28).unwrap(); // one more than decoders take unasked
        std::io::Write::write_all(&mut encoder, b"long\n").unwrap();
        assert_eq!(read(&encoder.finish().unwrap()).ok().unwrap(), b"long\n");
    }

    #[test]
    fn frames_that_are_skipped_hide_no_format() {
        let skipped =
            |bytes: usize| [b"\x5a\x2a\x4d\x18", &(bytes as u32).to_le_bytes()[..], &vec![b'\n'; bytes]].concat();
        let frame = zstd::encode_all(&b"text\n"[..], 1).unwrap();
        for bytes in [0, 20, 2000] {
            assert_eq!(read(&[skipped(bytes), frame.clone()].concat()).ok().unwrap(), b"text\n");
        }
        let lz4 = [&skipped(20)[..], &skipped(3), b"\x04\x22\x4d\x18\x64\x40\xa7\x05\0\0\x80text\n\0\0\0\0"].concat();
        let message = read(&lz4).err().unwrap().message().unwrap();
        assert!(message.contains("lz4 -dc in"), "{message}");
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
