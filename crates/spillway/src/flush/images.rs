//! Memtables' images that cannot be read.

use std::sync::Arc;

use base::{Error, FileNumber, Result};
use table::TableReadOptions;

use crate::background::caught::caught;
use crate::core::context::Context;
use crate::core::doubt::Doubt;
use crate::core::lost::{Lost, REPORT};
use crate::queue::flushable::Flushable;
use crate::version::file_name::{self, FileType};

/// The first error in reading entries of a family's queue that were restored from images, with their values in logs.
pub(crate) fn find_damage<'e>(entries: impl IntoIterator<Item = &'e Arc<dyn Flushable>>) -> Option<Error> {
    let options = TableReadOptions::default();
    let read = |entry: &Arc<dyn Flushable>| {
        let mut cursor = entry.clone().cursor(&options)?;
        let mut is_valid = cursor.seek_to_first();
        while is_valid {
            is_valid = cursor.next();
        }
        cursor.status()
    };
    let mut images = entries.into_iter().filter(|entry| entry.image_number().is_some());
    images.find_map(|entry| caught("reading a memtable's image", || read(entry)).err())
}

/// The doubt about a family whose images are let go.
pub(crate) fn doubt_without_images(family: &str, error: &Error) -> Doubt {
    let what = format!(
        "memtables' images of it are damaged, or a log that they refer to, and what no log has of them is lost: {error}"
    );
    Doubt::of_family(family, what)
}

/// Moves the images `numbers` of an open database's family to `lost/`, with a report. The next open replays the logs instead.
///
/// # Errors
/// The file system's.
pub(crate) fn let_go(context: &Context, family: &str, numbers: &[FileNumber], error: &Error) -> Result<()> {
    let lost = Lost::new(&*context.vfs, &context.dir);
    for number in numbers {
        lost.take(&context.dir.join(file_name::format(FileType::MemtableImage, *number)))?;
    }
    let doubt = doubt_without_images(family, error);
    lost.write(REPORT, format!("in doubt: {doubt}\n").as_bytes())?;
    context.recovery_doubts.add(doubt);
    lost.sync()
}
