//! Point lookups in runs.

use base::{LookupKey, key};

use super::item::{Item, Target};
use super::list::RunsList;
use crate::Visit;
use crate::order::KeyOrder;

impl<O: KeyOrder> RunsList<O> {
    /// Shows `visit` the entries of the lookup's user key at or below its sequence number, newest first, until it
    /// returns false. Searches each run once for every entry shown, usually one.
    pub(crate) fn get(&self, lookup: &LookupKey, visit: &mut Visit<'_>) {
        let entries = &self.entries;
        let parts = self.current();
        let (user_key, visible) = (lookup.user_key(), lookup.seq());
        let target = Target { user_key, trailer: key::pack_trailer(visible, key::SEEK_KIND) };
        let same_key = |item: &Item| entries.order.same_key(entries.record(*item).user_key(), user_key);
        let mut shown: Option<Item> = None;
        loop {
            let first = parts.runs().filter_map(|run| {
                let at = match shown {
                    None => run.position(entries, &target, false),
                    Some(shown) => run.position_after(entries, shown),
                };
                run.items.get(at).copied().filter(same_key)
            });
            let Some(item) = first.min_by(|a, b| entries.compare_keys(*a, *b)) else { return };
            let record = entries.record(item);
            let (seq, kind) = record.version();
            // With timestamps, newer entries can follow: timestamps sort before sequence numbers.
            if seq <= visible && !visit(seq, kind, record.value()) {
                return;
            }
            shown = Some(item);
        }
    }
}
