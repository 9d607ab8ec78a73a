//! The known name nearest to a misspelt one.

/// The name in `known` with the fewest edits from `name`, if few enough for a typo.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let edits_max = (name.len() / 3).clamp(2, 6);
    let scored = known.map(|candidate| (edits(name.as_bytes(), candidate.as_bytes()), candidate));
    scored.filter(|(edits, _)| *edits <= edits_max).min().map(|(_, candidate)| candidate)
}

/// Levenshtein's distance, row by row.
fn edits(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let (mut diagonal, mut left) = (i, i + 1);
        for (cell, y) in row.iter_mut().skip(1).zip(b) {
            let above = *cell;
            *cell = (above.min(left) + 1).min(diagonal + usize::from(x != y));
            (diagonal, left) = (above, *cell);
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        assert_eq!(edits(b"kitten", b"sitting"), 3);
        assert_eq!(edits(b"", b"abc"), 3);
        assert_eq!(edits(b"abc", b""), 3);
    }

    #[test]
    fn suggests_only_what_is_near() {
        let known = || ["block_size", "block_cache", "checksum"].into_iter();
        assert_eq!(nearest("blok_size", known()), Some("block_size"));
        assert_eq!(nearest("write_buffer_size", known()), None);
    }
}
