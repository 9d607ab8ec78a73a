//! Words for a shell, in messages that name a command.

use std::path::Path;

/// Characters that mean nothing to a shell, beside letters and digits.
const PLAIN: &str = "/._-+=:,@%";

/// The path as one word of a command line: quoted if a shell would take it for anything else.
pub fn word(path: impl AsRef<Path>) -> String {
    let text = path.as_ref().display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || PLAIN.contains(letter);
    match text.chars().all(is_plain) && !text.is_empty() {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_or_expand_them() {
        let cases =
            [("/a/b-1.d", "/a/b-1.d"), ("/größe", "/größe"), ("my db", "'my db'"), ("a'b", r"'a'\''b'"), ("", "''")];
        cases.iter().for_each(|(path, expected)| assert_eq!(word(path), *expected));
        ["$HOME", "~x", "a;b", "a&b", "a*", "a\\b", "a#b", "(a)"]
            .iter()
            .for_each(|path| assert_eq!(word(path), format!("'{path}'")));
    }
}
