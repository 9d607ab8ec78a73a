//! RocksDB's internal unique id of a table: computed from its origin, kept in the MANIFEST, compared at each open.

use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::Properties;

/// Characters of the part of a session's text with the lower 62 bits.
const LOWER_DIGITS: usize = 12;
const LOWER_BITS: u32 = 62;

impl Properties {
    /// The table's unique id, as two words in the MANIFEST's order. Differs for tables of other databases, sessions or
    /// numbers. `None` if the properties do not name all three.
    pub fn unique_id(&self) -> Option<(u64, u64)> {
        if self.db_id.is_empty() || self.original_file_number == 0 {
            return None;
        }
        let (upper, lower) = decode_session(&self.session_id)?;
        let of_database = (xxh3_128_with_seed(self.db_id.as_bytes(), upper) >> 64) as u64;
        Some((lower, of_database ^ self.original_file_number))
    }
}

/// The upper and lower word of a session's id: its text has 12 digits to base 36 for the lower 62 bits, and up to 12
/// before them for the rest.
fn decode_session(text: &str) -> Option<(u64, u64)> {
    if !(LOWER_DIGITS + 1..=2 * LOWER_DIGITS).contains(&text.len()) {
        return None;
    }
    let number = |digits: &str| {
        let is_plain = digits.bytes().all(|digit| digit.is_ascii_alphanumeric());
        is_plain.then(|| u64::from_str_radix(digits, 36).ok()).flatten()
    };
    let (upper, lower) = text.split_at_checked(text.len() - LOWER_DIGITS)?;
    let (upper, lower) = (number(upper)?, number(lower)?);
    Some((upper >> 2, lower & (u64::MAX >> 2) | upper << LOWER_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_need_database_session_and_number() {
        let whole = Properties {
            db_id: "5a6f0c1e-0000-4000-8000-000000000001".into(),
            session_id: "ABCDEFGH0123456789YZ".into(),
            original_file_number: 9,
            ..Properties::default()
        };
        let id = whole.unique_id().unwrap();
        let next = Properties { original_file_number: 8, ..whole.clone() }.unique_id().unwrap();
        assert_eq!((id.0, id.1 ^ 9), (next.0, next.1 ^ 8), "the number is part of the second word alone");
        for (lacking, what) in [
            (Properties { db_id: String::new(), ..whole.clone() }, "database"),
            (Properties { session_id: String::new(), ..whole.clone() }, "session"),
            (Properties { session_id: "+BCDEFGH0123456789YZ".into(), ..whole.clone() }, "digits"),
            (Properties { session_id: "É".repeat(8), ..whole.clone() }, "text of other bytes"),
            (Properties { session_id: "A".repeat(25), ..whole.clone() }, "length"),
            (Properties { original_file_number: 0, ..whole.clone() }, "number"),
        ] {
            assert_eq!(lacking.unique_id(), None, "{what}");
        }
    }

    #[test]
    fn sessions_keep_the_lower_word() {
        assert_eq!(decode_session("00000000000000000001"), Some((0, 1)));
        assert_eq!(decode_session("00000007000000000001"), Some((1, 3 << 62 | 1)));
        assert_eq!(decode_session("ZZZZZZZZZZZZZZZZZZZZ").map(|(upper, _)| upper), Some((36u64.pow(8) - 1) >> 2));
    }
}
