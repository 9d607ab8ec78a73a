//! The check of a transaction's keys at its commit.

use base::limits::shown;
use base::{Error, ErrorKind, Result, SeqNo};

use super::tracked::{Tracked, TrackedKey};
use crate::commit::ConflictCheck;
use crate::core::family::Family;
use crate::order::latch::LatchSpan;
use crate::read::changed::has_changed;
use crate::version::span::Span;

/// Holds while no tracked key has changed since its number.
pub(super) struct Unchanged<'a>(pub &'a Tracked);

impl ConflictCheck for Unchanged<'_> {
    fn check(&self, visible: SeqNo) -> Result<()> {
        let mut last = None;
        // Without a number since, nothing has changed.
        for TrackedKey { family, user_key, since } in self.0.iter().filter(|key| key.since < visible) {
            let view = match last.take() {
                Some((of, view)) if of == family.id() => view,
                _ => family.view(),
            };
            if has_changed(&view, user_key, since)? {
                return Err(conflict(user_key, family));
            }
            last = Some((family.id(), view));
        }
        Ok(())
    }

    fn spans(&self) -> Vec<LatchSpan> {
        let span = |key: TrackedKey<'_>| LatchSpan {
            family: key.family.id(),
            order: key.family.order().user.clone(),
            span: Span { start: key.user_key.to_vec(), end: key.user_key.to_vec(), end_is_exclusive: false },
        };
        self.0.iter().map(span).collect()
    }
}

#[cold]
pub(super) fn conflict(user_key: &[u8], family: &Family) -> Error {
    let (key, name) = (shown(user_key), family.name());
    Error::new(
        ErrorKind::Conflict,
        format!("another write came first: {key} of column family \"{name}\" has changed; run the transaction again"),
    )
}
