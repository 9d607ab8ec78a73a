//! Flags that choose among names, and lists of choices and numbers.

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

/// Numbers, in the order given.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers(pub Vec<usize>);

impl FlagValue for Numbers {
    fn read(text: &str) -> Option<Self> {
        split_list(text)?.iter().map(|item| item.parse().ok()).collect::<Option<Vec<usize>>>().map(Numbers)
    }

    fn show(&self) -> String {
        self.0.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
    }
}

/// As yes-or-no flags that can be both are named.
impl Named for bool {
    const ALL: &'static [(&'static str, bool)] = &[("no", false), ("yes", true)];
}

/// Makes a flag of one choice.
macro_rules! one_of {
    ($($type:ty),+) => {
        $(impl $crate::flags::FlagValue for $type {
            fn read(text: &str) -> Option<Self> {
                <$type as $crate::flags::choices::Named>::by_name(text)
            }

            fn show(&self) -> String {
                $crate::flags::choices::Named::name(*self).to_owned()
            }
        })+
    };
}
pub(crate) use one_of;
