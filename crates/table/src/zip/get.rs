//! Point lookups.

use std::cell::Cell;
use std::cmp::Ordering;

use base::metrics::{Ticker, tick};
use base::{LookupKey, Result, SeqNo, ValueKind, key};

use super::ZipTable;
use crate::reader::unknown_kind;
use crate::{TableReadOptions, TableValue};

/// Larger buffers are shrunk after a call: one huge key or value must not pin memory.
const BUFFER_KEPT_MAX: usize = 256 << 10;

/// Decoding buffers of a lookup.
#[derive(Default)]
struct Buffers {
    key: Vec<u8>,
    value: Vec<u8>,
}

thread_local! {
    /// Two allocations for each thread.
    static BUFFERS: Cell<Buffers> = const { Cell::new(Buffers { key: Vec::new(), value: Vec::new() }) };
}

impl ZipTable {
    pub(super) fn get_many(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        let mut buffers = BUFFERS.take();
        let result = keys.iter().enumerate().try_for_each(|(nth, key)| {
            if !self.file.may_hold_key(key, options.verify_checksums)? {
                return Ok(());
            }
            self.get_at(key, options.verify_checksums, &mut buffers, &mut |seq, kind, value| {
                visit(nth, seq, kind, value)
            })
        });
        for buffer in [&mut buffers.key, &mut buffers.value] {
            buffer.clear();
            buffer.shrink_to(BUFFER_KEPT_MAX);
        }
        BUFFERS.set(buffers);
        result
    }

    /// Passes the visible entries of one key to `visit`, newest first.
    fn get_at(
        &self,
        key: &LookupKey,
        verify: bool,
        buffers: &mut Buffers,
        visit: &mut dyn FnMut(SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        let (user_key, newest) = key::split(key.internal()).unwrap_or_default();
        let order = &self.file.order.user;
        let mut awaits_first = true;
        let mut group = self.index.find(user_key, order);
        while group < self.index.len() {
            let place = self.index.place(group);
            let mut entries = self.group(group, verify)?;
            buffers.key.clear();
            buffers.key.extend_from_slice(self.index.separator(group));
            while let Some((stored, record)) =
                entries.next(&mut buffers.key).map_err(|e| self.damaged(e, place.start))?
            {
                match order.compare(&buffers.key, user_key) {
                    Ordering::Less => continue,
                    Ordering::Greater => return Ok(()),
                    Ordering::Equal => {}
                }
                let trailer = self.file.global.trailer(stored);
                if trailer > newest {
                    continue;
                }
                if std::mem::take(&mut awaits_first) && self.file.filters_whole_keys() {
                    tick(&self.file.statistics, Ticker::BloomFilterFullTruePositive, 1);
                }
                let kind = ValueKind::from_u8(trailer as u8).ok_or_else(|| unknown_kind(&trailer.to_le_bytes()))?;
                let value = self.value(record, &mut buffers.value).map_err(|e| self.damaged(e, place.start))?;
                if !visit(SeqNo(trailer >> 8), kind, value) {
                    return Ok(());
                }
            }
            group += 1;
            // The next group has versions of the key only if its separator equals the key.
            if group >= self.index.len() || order.compare(self.index.separator(group), user_key).is_gt() {
                break;
            }
        }
        Ok(())
    }
}
