//! Verifies a whole zip table: checksums, entries and values, key order, separators, filter, and the counts of the
//! properties.

use base::{Error, ParsedKey, Result, key};

use super::ZipTable;
use super::open::read_tail;
use crate::filter::FilterReader;
use crate::reader::{Counts, unknown_kind};

/// One pass over the groups.
struct Pass<'a> {
    table: &'a ZipTable,
    filter: Option<FilterReader<&'a [u8]>>,
    counts: Counts,
    /// Internal.
    last_key: Vec<u8>,
    value: Vec<u8>,
}

impl ZipTable {
    pub(super) fn verify_file(&self) -> Result<()> {
        let (footer, properties) = read_tail(self.bytes())?;
        if footer != self.footer || properties != self.properties {
            return Err(Error::corruption("the file has another table than the one that is open"));
        }
        self.extents.compare_all(self.bytes())?;
        let filter = match &self.filter {
            Some(question) if question.by_whole_keys() && !self.order.user.equal_keys_can_differ() => {
                Some(self.filter(false)?)
            }
            _ => None,
        };
        let (last_key, value) = (Vec::new(), Vec::new());
        let mut pass = Pass { table: self, filter, counts: Counts::default(), last_key, value };
        for group in 0..self.index.len() {
            pass.check_group(group).map_err(|e| e.at_offset(self.index.place(group).start))?;
        }
        pass.counts.compare(&self.properties)
    }
}

impl Pass<'_> {
    fn check_group(&mut self, group: usize) -> Result<()> {
        let (table, order) = (self.table, &self.table.order);
        let separator = table.index.separator(group);
        if group > 0 && order.user.compare(key::user_key(&self.last_key), separator).is_gt() {
            return Err(Error::corruption("a separator before the last key of the group before"));
        }
        let mut entries = table.group(group, false)?;
        let (mut user_key, mut is_first) = (separator.to_vec(), true);
        while let Some((stored, record)) = entries.next(&mut user_key)? {
            if std::mem::take(&mut is_first) && group > 0 && order.user.compare(separator, &user_key).is_gt() {
                return Err(Error::corruption("a separator behind the first key of its group"));
            }
            let value = table.value(record, &mut self.value)?.bytes.len();
            let mut internal_key = user_key.clone();
            internal_key.extend_from_slice(&table.global.trailer(stored).to_le_bytes());
            self.check_entry(internal_key, value)?;
        }
        self.counts.blocks += 1;
        entries.check_end()
    }

    fn check_entry(&mut self, key: Vec<u8>, value_bytes: usize) -> Result<()> {
        let table = self.table;
        let entry = ParsedKey::parse(&key).ok_or_else(|| unknown_kind(&key))?;
        if self.counts.entries > 0 && table.order.compare(&self.last_key, &key).is_ge() {
            return Err(Error::corruption("keys are not in order"));
        }
        let stripped = table.order.user.strip_timestamp(entry.user_key);
        if self.filter.as_ref().is_some_and(|filter| !filter.may_match(stripped)) {
            return Err(Error::corruption("the filter denies a key that is there"));
        }
        self.counts.add(entry.kind, key.len(), value_bytes)?;
        self.last_key = key;
        Ok(())
    }
}
