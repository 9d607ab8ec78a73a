//! Verifies a converted table from its file, not from memory.

use base::{Cursor, Error, Result};
use memtable::image::check;
use vfs::IoClass;

use super::ConvertedTable;
use super::footer::Footer;
use super::open::check_counts;
use crate::private::{Tail, check_size};
use crate::reader::read_exactly;
use crate::values::FollowingCursor;

impl ConvertedTable {
    pub(super) fn verify_file(&self) -> Result<()> {
        check_size(self.file.len()?, self.file_bytes)?;
        let tail = Tail::<Footer, _>::read(self.file_bytes, |at, len| self.read(at, len))?;
        if tail.footer.image_bytes != self.image_bytes || tail.properties != self.properties {
            return Err(Error::corruption("the file has another table than the one that is open"));
        }
        tail.check_extents(|at, len| self.read(at, len))?;
        // The image in memory has the same bytes: it is mapped from the file, or the checksums were made of it.
        check_counts(&self.properties, &check(self.image(), &self.order.user)?.counts)
    }

    /// Follows every reference to a value in the WAL.
    pub(super) fn verify_values(&self) -> Result<()> {
        let Some(values) = &self.values else { return Ok(()) };
        let mut cursor = FollowingCursor::new(self.memtable.clone().cursor(), values.clone());
        let mut found = cursor.seek_to_first();
        while found {
            found = cursor.next();
        }
        cursor.status()
    }

    fn read(&self, at: u64, len: usize) -> Result<Vec<u8>> {
        read_exactly(&*self.file, at, len, IoClass::Other)
    }
}
