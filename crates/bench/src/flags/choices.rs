//! Flags that choose among names.

use super::{FlagValue, split_list};

/// A choice of one of several, by name.
pub trait Named: Copy + PartialEq + 'static {
    const ALL: &'static [(&'static str, Self)];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    fn by_name(wanted: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == wanted).map(|(_, known)| *known)
    }
}

/// Several of them, in the order given; `all` is every one.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices<T>(pub Vec<T>);

impl<T: Named> FlagValue for Choices<T> {
    fn read(text: &str) -> Option<Self> {
        if text == "all" {
            return Some(Choices(T::ALL.iter().map(|(_, known)| *known).collect()));
        }
        split_list(text)?.iter().map(|item| T::by_name(item)).collect::<Option<Vec<T>>>().map(Choices)
    }

    fn show(&self) -> String {
        self.0.iter().map(|item| item.name()).collect::<Vec<_>>().join(",")
    }
}
