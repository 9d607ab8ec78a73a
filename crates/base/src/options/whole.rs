//! Whether an OPTIONS file is whole.
//!
//! Files for Spillway end with a checksum of all lines before it, and their first line says so. In files without one,
//! RocksDB's and older ones of ours, only missing sections and a cut last line are noticed.

use crate::error::{Error, Result};
use crate::{checksum, name};

/// Longest file read: 16 KiB for each family that a file may have. What is longer is no OPTIONS file.
pub const BYTES_MAX: u64 = 1 << 30;

/// The first line of a file that ends with a checksum.
pub(super) const CHECKED_TITLE: &str = "# Options in RocksDB's format, written by Spillway, with a checksum at the end. \
                                        After a change by hand remove both lines.";

/// The checksum line without its digits.
const CHECKSUM: &str = "# crc32c=";

/// Appends the checksum line to the text of a file that begins with [`CHECKED_TITLE`].
pub(super) fn seal(text: &mut String) {
    let line = checksum_line(text);
    text.push_str(&line);
    text.push('\n');
}

fn checksum_line(text: &str) -> String {
    format!("{CHECKSUM}{:08x}", checksum::crc32c(&name::bytes(text)))
}

/// The text with another value of a database option in its first `[DBOptions]` section. All other lines stay. A checksum
/// is made anew.
pub fn with_database_option(text: &str, name: &str, value: &str) -> String {
    let is_checked = text.lines().next() == Some(CHECKED_TITLE);
    let (mut changed, mut is_inside) = (String::with_capacity(text.len() + value.len()), false);
    for line in text.lines().filter(|line| !(is_checked && line.starts_with(CHECKSUM))) {
        let line_trimmed = line.trim();
        if line_trimmed.starts_with('[') {
            is_inside = line_trimmed == "[DBOptions]";
        }
        if is_inside && line_trimmed.split_once('=').is_some_and(|(key, _)| key.trim() == name) {
            continue;
        }
        changed.push_str(line);
        changed.push('\n');
        if is_inside && line_trimmed.starts_with('[') {
            changed.push_str(&format!("  {name}={}\n", super::string::escape(value)));
        }
    }
    if is_checked {
        seal(&mut changed);
    }
    changed
}

/// The lines that follow the first one: the id of the file's database, and the number in the file's name.
const DATABASE: &str = "# database=";
const FILE: &str = "# file=";

/// The text of a file for Spillway, with the id of its database and its number in place of others.
pub fn of_database(text: &str, id: &str, number: u64) -> String {
    let Some((title, rest)) = text.split_once('\n').filter(|(title, _)| *title == CHECKED_TITLE) else {
        return text.to_owned();
    };
    let mut named = format!("{title}\n{DATABASE}{}\n{FILE}{number}\n", id.escape_default());
    let is_made_anew = |line: &&str| [DATABASE, FILE, CHECKSUM].iter().any(|start| line.starts_with(start));
    rest.lines().filter(|line| !is_made_anew(line)).for_each(|line| named.extend([line, "\n"]));
    seal(&mut named);
    named
}

/// A line of the same place: families were made or dropped one after another when the file was written. It may lack a family, and
/// name one that is dropped.
const CHANGING: &str = "# families=changing";

/// The text of a file for Spillway with that line. [`of_database`] makes its checksum anew.
pub fn marked(text: &str) -> String {
    text.replacen('\n', &format!("\n{CHANGING}\n"), 1)
}

/// Whether the file has that line.
pub fn is_marked(text: &[u8]) -> bool {
    noted(text, CHANGING).is_some()
}

/// Whether the file names another database than this one. RocksDB's files, and those of earlier versions, name none.
pub fn is_of_another(text: &[u8], id: &str) -> bool {
    noted(text, DATABASE).is_some_and(|named| named != id.escape_default().to_string().as_bytes())
}

/// Whether the file was written under another number than this one. Where it names no database, it tells none.
pub fn has_another_number(text: &[u8], number: u64) -> bool {
    noted(text, FILE).is_some_and(|named| named != number.to_string().as_bytes())
}

/// The rest of the line of comment that begins so, above all sections.
fn noted<'t>(text: &'t [u8], start: &str) -> Option<&'t [u8]> {
    let mut comments = text.split(|byte| *byte == b'\n').take_while(|line| line.starts_with(b"#"));
    comments.find_map(|line| line.strip_prefix(start.as_bytes()))
}

/// Whether the file says that it has a checksum, as ours do.
pub fn has_checksum(text: &[u8]) -> bool {
    text.starts_with(CHECKED_TITLE.as_bytes())
}

/// Compares the checksum, if the file says that it has one.
///
/// # Errors
/// `Corruption`, with the line: the checksum is missing, or another.
pub fn check_sum(text: &str) -> Result<()> {
    let at = text.trim_end_matches('\n').rfind('\n').map_or(0, |newline| newline + 1);
    let (before, last) = text.split_at(at);
    let says_so = text.lines().next() == Some(CHECKED_TITLE);
    if last.trim_end_matches('\n') == checksum_line(before) || !(says_so || last.starts_with(CHECKSUM)) {
        return Ok(());
    }
    let what = match last.starts_with(CHECKSUM) {
        true => {
            "the lines above do not match this checksum: the file is damaged, or was changed by hand; after a change by hand \
                 remove the first line and this one"
        }
        false => "the checksum is missing that the first line announces: the end of the file is lost",
    };
    Err(at_line(text.lines().count(), what))
}

/// Checks a file that was stored with a database: its checksum, else that no section and no end of a line is missing.
///
/// # Errors
/// `Corruption`, with the line. As [`check_sections`].
pub fn check_whole(text: &str) -> Result<()> {
    check_sum(text)?;
    if let Some(line) = text.lines().position(|line| line.contains('\0') && !is_title_with_zeros(line)) {
        return Err(at_line(line + 1, "zero bytes stand in the text"));
    }
    let headers = || text.lines().map(str::trim).filter(|line| line.starts_with('['));
    let lines = text.lines().count();
    check_sections(text)?;
    let mut open = None;
    for header in headers() {
        if header.starts_with("[TableOptions/") {
            open = None;
        } else if header.starts_with("[CFOptions ")
            && let Some(family) = open.replace(header)
        {
            return Err(at_line(lines, &format!("the table options after {family} are missing")));
        }
    }
    if let Some(family) = open {
        return Err(at_line(lines, &format!("the file ends before the table options after {family}")));
    }
    if !text.ends_with('\n') {
        return Err(at_line(lines, "the last line is cut off"));
    }
    Ok(())
}

/// Whether the line is the title of a family whose name has zero bytes. Lost blocks leave more of them than a name has.
fn is_title_with_zeros(line: &str) -> bool {
    const LOST: &str = "\0\0\0\0\0\0\0\0";
    let is_title = |title: &str| line.starts_with(title);
    ["[CFOptions \"", "[TableOptions/", "[Spillway/"].into_iter().any(is_title)
        && line.ends_with("\"]")
        && !line.contains(LOST)
}

/// Checks that the sections are there that RocksDB insists on.
///
/// # Errors
/// RocksDB's: `Corruption`: the database's or the default family's options are missing. `InvalidArgument`: another family's come
/// first.
pub fn check_sections(text: &str) -> Result<()> {
    const DEFAULT: &str = "[CFOptions \"default\"]";
    let missing = |section: &str| {
        Error::corruption(format!("A RocksDB Option file must have a single {section} section, and this one has none"))
    };
    let headers = || text.lines().map(str::trim).enumerate().filter(|(_, line)| line.starts_with('['));
    if !headers().any(|(_, header)| header == "[DBOptions]") {
        return Err(missing("DBOptions"));
    }
    match headers().find(|(_, header)| header.starts_with("[CFOptions ")) {
        Some((_, DEFAULT)) => Ok(()),
        Some((line, other)) => Err(Error::invalid_argument(format!(
            "[RocksDBOptionsParser Error] : Default column family must be the first CFOptions section in the option config file \
             (at line {}), not {other}",
            line + 1
        ))),
        None => Err(missing("CFOptions:default")),
    }
}

fn at_line(line: usize, what: &str) -> Error {
    Error::corruption(format!("line {line}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ini::{Audience, write};
    use crate::options::{DbOptions, FamilyOptions, OptionsFile};

    fn written(audience: Audience) -> String {
        let family = FamilyOptions::default();
        write(&DbOptions::default(), &[("default", &family), ("other", &family)], audience)
    }

    #[test]
    fn a_database_option_is_changed_and_all_else_stays() {
        for audience in [Audience::Spillway, Audience::RocksDb] {
            let whole = written(audience);
            let once = with_database_option(&whole, "wal_dir", "/one");
            let twice = with_database_option(&once, "wal_dir", "/other");
            check_whole(&twice).unwrap();
            let read = OptionsFile::read(&twice, DbOptions::default(), &|_| FamilyOptions::default(), false).unwrap();
            assert_eq!(read.0.db.wal_dir, "/other");
            assert_eq!(twice.lines().count(), whole.lines().count() + 1);
        }
    }

    #[test]
    fn a_file_may_hold_any_bytes_and_its_checksum_is_of_them() {
        let options = DbOptions { wal_dir: name::text(b"/logs\xff").into_owned(), ..DbOptions::default() };
        let family = name::text(b"\xfe\xc3");
        let families = [("default", &FamilyOptions::default()), (&family, &FamilyOptions::default())];
        let text = crate::options::ini::write(&options, &families, Audience::Spillway);
        let stored = name::bytes(&text);
        assert!(stored.windows(6).any(|bytes| bytes == b"logs\xff\n") && str::from_utf8(&stored).is_err());
        let end = stored.len() - "\n".len();
        let (lines, sum) = stored[..end].split_at(end - "# crc32c=01234567".len());
        assert_eq!(sum, format!("{CHECKSUM}{:08x}", checksum::crc32c(lines)).as_bytes());
        let read = name::text(&stored);
        check_whole(&read).unwrap();
        let (read, _) = OptionsFile::read(&read, DbOptions::default(), &|_| FamilyOptions::default(), false).unwrap();
        assert_eq!((read.db.wal_dir, &*read.families[1].0), (options.wal_dir, &*family));
    }

    #[test]
    fn a_family_may_have_zero_bytes_in_its_name() {
        for audience in [Audience::Spillway, Audience::RocksDb] {
            let family = FamilyOptions::default();
            let text = write(&DbOptions::default(), &[("default", &family), ("z\0ero\0", &family)], audience);
            check_whole(&text).unwrap();
            let read = OptionsFile::read(&text, DbOptions::default(), &|_| FamilyOptions::default(), false).unwrap();
            assert_eq!(read.0.families[1].0, "z\0ero\0");
        }
    }

    #[test]
    fn sections_are_there_and_the_default_family_is_first() {
        let (db, default, other) = ("[DBOptions]\n", "[CFOptions \"default\"]\n", "[CFOptions \"x\"]\n");
        assert!(check_sections(&[db, default, other].concat()).is_ok());
        for (text, beginning) in [
            (String::new(), "A RocksDB Option file must have a single DBOptions section"),
            (default.to_owned(), "A RocksDB Option file must have a single DBOptions section"),
            (db.to_owned(), "A RocksDB Option file must have a single CFOptions:default section"),
            ([db, other, default].concat(), "[RocksDBOptionsParser Error] : Default column family must be the first"),
        ] {
            let error = check_sections(&text).unwrap_err().to_string();
            assert!(error.starts_with(beginning), "{error}");
        }
    }

    #[test]
    fn a_file_names_its_database_and_its_number_under_its_checksum() {
        let named = of_database(&written(Audience::Spillway), "one", 7);
        check_whole(&named).unwrap();
        assert!(!is_of_another(named.as_bytes(), "one") && is_of_another(named.as_bytes(), "other"));
        assert!(!has_another_number(named.as_bytes(), 7) && has_another_number(named.as_bytes(), 70));
        check_whole(&named.replace("=one", "=two")).unwrap_err();
        assert_eq!(of_database(&named, "other", 8), of_database(&written(Audience::Spillway), "other", 8));
        let moved = with_database_option(&named, "wal_dir", "/logs");
        assert!(check_whole(&moved).is_ok() && is_of_another(moved.as_bytes(), "other"));
        for audience in [Audience::Spillway, Audience::RocksDb] {
            assert!(!is_of_another(written(audience).as_bytes(), "other"), "it names none");
            assert!(!has_another_number(written(audience).as_bytes(), 1), "it names none");
        }
        let exported = written(Audience::RocksDb);
        assert_eq!(of_database(&exported, "one", 7), exported);
    }

    #[test]
    fn every_cut_and_every_changed_byte_of_our_file_is_noticed() {
        let whole = written(Audience::Spillway);
        assert!(check_whole(&whole).is_ok());
        for end in 0..whole.len() - 1 {
            assert!(check_whole(&whole[..end]).is_err(), "cut at byte {end}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(check_whole(&String::from_utf8(bytes).unwrap()).is_err(), "byte {at}");
        }
        let error = check_whole(&whole.replace("write_buffer_size", "write_buffer_sizes")).unwrap_err().to_string();
        assert!(error.starts_with("line ") && error.contains("changed by hand"), "{error}");
    }

    #[test]
    fn a_cut_of_rocksdbs_file_is_noticed_by_its_sections_and_lines() {
        let whole = written(Audience::RocksDb);
        assert!(check_whole(&whole).is_ok());
        for end in 0..whole.len() {
            let cut = &whole[..end];
            // At the end of a line of table options the file could have ended.
            let could_end = cut.ends_with('\n') && cut.rfind("\n[TableOptions") > cut.rfind("\n[CFOptions");
            assert!(check_whole(cut).is_err() || could_end, "cut at byte {end}");
        }
    }

    #[test]
    fn zeros_in_rocksdbs_file_are_noticed() {
        let whole = written(Audience::RocksDb);
        for at in (0..whole.len() - 512).step_by(512) {
            let mut bytes = whole.clone().into_bytes();
            bytes[at..at + 512].fill(0);
            assert!(check_whole(&String::from_utf8(bytes).unwrap()).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_change_by_hand_needs_the_first_and_the_last_line_removed() {
        let whole = written(Audience::Spillway);
        let lines: Vec<&str> = whole.lines().collect();
        let mut by_hand = lines[1..lines.len() - 1].join("\n") + "\n";
        by_hand = by_hand.replace("compaction_style=kCompactionStyleLevel", "compaction_style=kCompactionStyleFIFO");
        assert!(check_whole(&by_hand).is_ok());
        OptionsFile::read(&by_hand, DbOptions::default(), &|_| FamilyOptions::default(), false).unwrap();
    }
}
