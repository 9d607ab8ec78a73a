//! A memtable image of an earlier process: sealed, cut, and read in place until a flush writes its table. See
//! [`crate::open`]'s `restart`.

use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, FileNumber, LookupKey, Result, SeqNo, ValueKind};
use memtable::image::LazyImage;
use table::values::{Following, FollowingCursor, ValuesOfFile};
use table::{TableReadOptions, TableValue, Visit};

use crate::core::context::Context;
use crate::order::pipeline::LogPosition;
use crate::queue::flushable::{Flushable, in_place};
use crate::version::file_name::FileType;
use crate::version::log_life::LogsOnDemand;
use crate::version::purge::{FileLife, ObsoleteFile};

pub(crate) struct RestoredMemtable {
    image: Arc<LazyImage>,
    created_at: SeqNo,
    /// WALs with values kept out of the image; `None` if all values are in it.
    values: Option<Arc<ValuesOfFile>>,
    life: Arc<FileLife>,
}

impl RestoredMemtable {
    pub fn new(
        context: &Context,
        image: LazyImage,
        number: FileNumber,
        created_at: SeqNo,
        leaves_values: bool,
    ) -> Arc<Self> {
        let file = ObsoleteFile { file_type: FileType::MemtableImage, path_id: 0, number };
        let path = image.path().to_owned();
        let values = || Arc::new(ValuesOfFile::new(LogsOnDemand::new(context.logs.clone()), path));
        Arc::new(RestoredMemtable {
            image: Arc::new(image),
            created_at,
            values: leaves_values.then(values),
            life: FileLife::new(file, context.logs.purge().clone()),
        })
    }
}

impl Flushable for RestoredMemtable {
    fn get(&self, key: &LookupKey, _options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        let Some(values) = &self.values else {
            return self.image.get(key, &mut |seq, kind, bytes| visit(seq, kind, in_place(bytes)));
        };
        let mut following = Following::new(&**values);
        self.image.get(key, &mut |seq, kind, stored| following.show(seq, kind, stored, in_place, visit))?;
        following.end()
    }

    fn multi_get(
        &self,
        keys: &[&LookupKey],
        _options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        let Some(values) = &self.values else {
            return self.image.multi_get(keys, &mut |nth, seq, kind, bytes| visit(nth, seq, kind, in_place(bytes)));
        };
        let mut following = Following::new(&**values);
        self.image.multi_get(keys, &mut |nth, seq, kind, stored| {
            following.show(seq, kind, stored, in_place, &mut |seq, kind, value| visit(nth, seq, kind, value))
        })?;
        following.end()
    }

    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Result<Box<dyn Cursor>> {
        let cursor = self.image.clone().cursor();
        match &self.values {
            None => Ok(cursor),
            Some(values) => {
                Ok(FollowingCursor::new(cursor, values.clone()).passing_over(options.skip_damaged.as_ref()))
            }
        }
    }

    fn tombstones(&self, _options: &TableReadOptions) -> Result<Option<Arc<FragmentedTombstones>>> {
        Ok(self.image.tombstones())
    }

    fn created_at(&self) -> SeqNo {
        self.created_at
    }

    fn largest_seq(&self) -> Option<SeqNo> {
        Some(self.image.cut())
    }

    /// 0: its writes are in WALs of an earlier process, synced before the WALs of this one.
    fn logged_through(&self) -> LogPosition {
        0
    }

    /// 0: the image is page cache, reclaimed by the kernel.
    fn memory_bytes(&self) -> usize {
        0
    }

    fn image_number(&self) -> Option<FileNumber> {
        Some(self.life.file().number)
    }

    fn mark_flushed(&self) {
        self.life.mark_obsolete();
    }
}
