//! Words for a shell, in messages that name a command.

use std::path::Path;

/// Characters that mean nothing to a shell, beside letters and digits.
const PLAIN: &str = "/._-+=:,@%";

/// The path as one word of a command line: quoted if a shell would take it for anything else, and never an option. Bytes that
/// are not UTF-8 are written as bash and zsh read them.
pub fn word(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    let Some(text) = path.to_str() else {
        let escaped = path.as_os_str().as_encoded_bytes().iter().map(|byte| match byte {
            b'\\' | b'\'' => format!("\\{}", char::from(*byte)),
            b' '..=b'~' => char::from(*byte).to_string(),
            byte => format!("\\x{byte:02x}"),
        });
        return format!("$'{}'", escaped.collect::<String>());
    };
    let text = if text.starts_with('-') { format!("./{text}") } else { text.to_owned() };
    let is_plain = |letter: char| letter.is_alphanumeric() || PLAIN.contains(letter);
    match text.chars().all(is_plain) && !text.is_empty() {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_or_expand_them() {
        let cases = [
            ("/a/b-1.d", "/a/b-1.d"),
            ("/größe", "/größe"),
            ("my db", "'my db'"),
            ("a'b", r"'a'\''b'"),
            ("", "''"),
            ("-dash", "./-dash"),
        ];
        cases.iter().for_each(|(path, expected)| assert_eq!(word(path), *expected));
        ["$HOME", "~x", "a;b", "a&b", "a*", "a\\b", "a#b", "(a)"]
            .iter()
            .for_each(|path| assert_eq!(word(path), format!("'{path}'")));
        assert_eq!(word(OsStr::from_bytes(b"a'\xff b")), r"$'a\'\xff b'");
    }
}
