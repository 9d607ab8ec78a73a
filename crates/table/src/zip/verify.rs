//! Verifies a whole zip table: checksums, entries and values, key order, separators, filter, and the counts of the
//! properties.

use base::{Error, Result, key};

use super::ZipTable;
use crate::verify::EntryCheck;

/// One pass over the groups.
struct Pass<'a> {
    table: &'a ZipTable,
    entries: EntryCheck<'a>,
    value: Vec<u8>,
}

impl ZipTable {
    pub(super) fn verify_file(&self) -> Result<()> {
        let mut pass = Pass { table: self, entries: self.file.verify()?, value: Vec::new() };
        for group in 0..self.index.len() {
            pass.check_group(group).map_err(|e| e.at_offset(self.index.place(group).start))?;
        }
        pass.entries.end(&self.file.properties, false)
    }
}

impl Pass<'_> {
    fn check_group(&mut self, group: usize) -> Result<()> {
        let (table, order) = (self.table, &self.table.file.order);
        let separator = table.index.separator(group);
        if group > 0 && order.user.compare(key::user_key(self.entries.last_key()), separator).is_gt() {
            return Err(Error::corruption("a separator before the last key of the group before"));
        }
        let mut entries = table.group(group, false)?;
        let (mut user_key, mut is_first) = (separator.to_vec(), true);
        while let Some((stored, record)) = entries.next(&mut user_key)? {
            if std::mem::take(&mut is_first) && group > 0 && order.user.compare(separator, &user_key).is_gt() {
                return Err(Error::corruption("a separator behind the first key of its group"));
            }
            table.value(record, &mut self.value)?;
            let internal_key = [&user_key[..], &table.file.global.trailer(stored).to_le_bytes()].concat();
            self.entries.add(&internal_key)?;
        }
        self.entries.end_block();
        entries.check_end()
    }
}
