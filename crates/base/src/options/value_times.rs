//! The value of `value_times`: whether a family's values end with times, as far as an open says so.

use std::ops::Deref;

use crate::error::{Error, Result};
use crate::options::row::{Load, Setting};

/// Whether the values of a family end with times. `false` is a claim that the open checks, and not stored: the MANIFEST tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueTimes(Option<bool>);

impl ValueTimes {
    /// As the MANIFEST notes.
    pub const AUTO: ValueTimes = ValueTimes(None);

    /// True if the caller says that values end with no times.
    pub fn is_denied(self) -> bool {
        self.0 == Some(false)
    }

    /// What holds for a family of which the MANIFEST notes times if `is_noted`.
    ///
    /// # Errors
    /// `InvalidArgument`: the caller denies what is noted.
    pub fn beside_note(self, is_noted: bool) -> Result<ValueTimes> {
        if is_noted && self.is_denied() {
            let what =
                "value_times=false is given, but the family's values end with times: the MANIFEST notes that for good";
            let remedy = "leave value_times out: reads then take the times off; `spillway scan --times` shows them";
            return Err(Error::invalid_argument(what).advise(remedy));
        }
        Ok(if is_noted { true.into() } else { self })
    }
}

impl From<bool> for ValueTimes {
    fn from(value: bool) -> Self {
        ValueTimes(Some(value))
    }
}

impl Deref for ValueTimes {
    type Target = bool;

    fn deref(&self) -> &bool {
        if self.0 == Some(true) { &true } else { &false }
    }
}

impl Setting for ValueTimes {
    fn kind(&self) -> String {
        "auto, true, false".to_owned()
    }

    fn text(&self) -> String {
        if **self { "true" } else { "auto" }.to_owned()
    }

    fn set(&mut self, text: &str, load: &mut Load) -> Result<()> {
        let mut given = false;
        *self = match text {
            "auto" => ValueTimes::AUTO,
            _ => given.set(text, load).map(|()| given.into())?,
        };
        Ok(())
    }
}
