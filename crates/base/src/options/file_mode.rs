//! The value of `file_mode`: permissions of files, as digits to base 8.

use crate::error::{Error, Result};
use crate::options::row::{Load, Setting};

/// Permissions of the files that a database makes. The process's umask takes from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMode(u32);

impl FileMode {
    /// The owner's alone.
    pub const DEFAULT: FileMode = FileMode(0o600);

    /// The bits.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl Setting for FileMode {
    fn kind(&self) -> String {
        "permissions".to_owned()
    }

    fn text(&self) -> String {
        format!("{:04o}", self.0)
    }

    fn set(&mut self, text: &str, _load: &mut Load) -> Result<()> {
        let mode = u32::from_str_radix(text.trim(), 8).ok();
        let usable = mode.filter(|mode| mode & !0o666 == 0 && mode & 0o600 == 0o600);
        *self = FileMode(usable.ok_or_else(|| {
            Error::invalid_argument(format!(
                "permissions are octal digits from 0600 to 0666, such as 0640, in which the owner reads and writes: not \"{text}\""
            ))
        })?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{DbOptions, apply_string};

    #[test]
    fn permissions_are_octal_and_the_owners_at_least() {
        let mut options = DbOptions::default();
        assert_eq!((options.file_mode.text().as_str(), options.file_mode.bits()), ("0600", 0o600));
        for (text, bits) in [("0640", 0o640), ("644", 0o644), ("0666", 0o666)] {
            apply_string(&mut options, &format!("file_mode={text}")).unwrap();
            assert_eq!(options.file_mode.bits(), bits);
        }
        for wrong in ["0400", "0755", "1666", "rw-r-----", "", "416"] {
            let error = apply_string(&mut options, &format!("file_mode={wrong}")).unwrap_err().to_string();
            assert!(error.contains("file_mode") && error.contains("such as 0640"), "{wrong}: {error}");
        }
    }
}
