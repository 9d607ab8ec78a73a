//! Many lookups at once, interleaved: each goes a step and asks for the memory of its next step, then the next lookup
//! goes. The cache misses of all run side by side.

use base::{Error, LookupKey, Result, SeqNo, ValueKind};

use crate::reader::{Fetch, Located, read_missing};
use crate::{BlockBasedTable, TableReadOptions, TableValue};

/// Lookups that are on their way at a time: about as many as the processor has misses in flight.
const LANES_MAX: usize = 16;

/// One lookup.
#[derive(Clone, Copy)]
pub struct Lane<'a> {
    /// The table.
    pub table: &'a BlockBasedTable,
    /// The key.
    pub key: &'a LookupKey,
}

/// Passes the point entries of all lookups to `visit`, as [`Table::multi_get`](crate::Table::multi_get), and to `failed`
/// the error of each lookup that failed.
pub fn look_up_together(
    lanes: &[Lane<'_>],
    options: &TableReadOptions,
    visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    failed: &mut dyn FnMut(usize, Error),
) {
    let mut located: Vec<Result<Located<'_>>> = Vec::with_capacity(lanes.len().min(LANES_MAX));
    for (nth_group, group) in lanes.chunks(LANES_MAX).enumerate() {
        group.iter().for_each(|lane| lane.table.foresee(lane.key));
        located.extend(group.iter().map(|lane| lane.table.locate(lane.key, options)));
        if located.iter().flatten().any(Located::is_missing) {
            let wanted = located.iter_mut().flatten().filter_map(Located::wanted);
            read_missing(wanted, Fetch::from(options));
        }
        located.iter().flatten().for_each(Located::foresee);
        for (lane, located) in group.iter().zip(&mut located) {
            if let Ok(located) = located {
                lane.table.narrow(lane.key, located);
            }
        }
        for (nth, (lane, located)) in group.iter().zip(located.drain(..)).enumerate() {
            let nth = nth_group * LANES_MAX + nth;
            let mut show = |seq, kind, value: TableValue<'_>| visit(nth, seq, kind, value);
            let shown = located.and_then(|located| lane.table.show_located(lane.key, located, options, &mut show));
            if let Err(error) = shown {
                failed(nth, error);
            }
        }
    }
}
