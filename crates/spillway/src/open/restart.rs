//! Restart by image: memtables left in files by the previous process are read in place, so WAL replay begins only where
//! they are complete. Keeps D1 and D2: images replace the WAL as far as they continue a family's tables without a gap.
//! Everything else is replayed from the WAL.
//!
//! An image is valid only if nothing came between its writer's stores and this read: same boot, same mount, the file it
//! was made in, this database. It is cut at its watermark. Entries above the watermark, whole or torn, are ignored and
//! come from the WAL. The files are not changed, so a second crash finds the same state.
//!
//! Unused images are removed before any sequence number is allocated ([`Restored::forget_others`]). Afterwards this
//! process's memtables hold the same writes, or different ones under the same numbers, and a later open could not tell
//! from which of the two the tables were made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::note;
use base::{Error, FamilyId, FileNumber, Result, SeqNo};
use log::Position;
use memtable::image::{HEADER_BYTES, Header, ImageIdentity, LazyImage};
use vfs::{IoClass, Vfs};

use crate::core::FamilyState;
use crate::core::context::Context;
use crate::queue::flushable::Flushable;
use crate::queue::images::LEAVES_VALUES;
use crate::queue::restored::RestoredMemtable;
use crate::version::file_name::{self, FileType};
use crate::wal::marks;

/// The state restored from images instead of by replay.
#[derive(Default)]
pub(crate) struct Restored {
    /// Per family: the number through which it is complete, and a WAL position at or before its first later write.
    pub families: BTreeMap<FamilyId, (SeqNo, Position)>,
    /// Number of restored images.
    pub images: usize,
    /// Unused images of this database with writes beyond its tables. Includes images of other mounts: a later open may
    /// be on such a mount.
    left: Vec<PathBuf>,
}

impl Restored {
    /// The start of replay, and an upper bound of all numbers before it. `None`: replay begins with the first log.
    pub fn start(&self, families: &BTreeMap<FamilyId, FamilyState>) -> Option<(Position, SeqNo)> {
        let starts = families.keys().map(|id| self.families.get(id).map(|(through, at)| (*at, *through)));
        starts.collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    /// Whether a write of a family is in images, so that replay skips it.
    pub fn has(&self, family: FamilyId, seq: SeqNo) -> bool {
        self.families.get(&family).is_some_and(|(through, _)| seq <= *through)
    }

    /// Removes unused images. Called before any sequence number is allocated.
    ///
    /// # Errors
    /// The file system's. Nothing may be written while an unused image exists.
    pub(super) fn forget_others(&self, vfs: &dyn Vfs) -> Result<()> {
        // Images of an abandoned open attempt may be gone: the thread with the last handle removes them.
        let removed =
            |path: &PathBuf| vfs.remove_file(path).or_else(|e| if e.is_not_found() { Ok(()) } else { Err(e) });
        self.left.iter().try_for_each(removed)
    }

    /// Restores the images of a family that continue its tables without gap or overlap. Returns the number through
    /// which the family is complete, and a WAL position at or before the first write above it. `None` if no image is
    /// used.
    fn take(&mut self, context: &Context, family: &mut FamilyState, images: Vec<Found>) -> Option<(SeqNo, Position)> {
        let mut through = family.flushed_through;
        let mut at = None;
        for image in images {
            if image.through < through || (image.through == through && at.is_some()) {
                continue; // in tables, or empty
            }
            let position = marks::unpack(image.header.watermark.position);
            // An image that overlaps the tables is not one of the memtables flushed into them.
            let follows = image.begins_after == through || image.through == through;
            if !follows || position.is_none() {
                self.left.push(image.path);
                continue;
            }
            if image.through > through {
                match open(context, family, &image) {
                    Ok(entry) => family.queue.insert(0, entry),
                    Err(error) => {
                        note::warn!(%error, "a memtable's file cannot be read; the log is replayed");
                        self.left.push(image.path);
                        continue;
                    }
                }
                self.images += 1;
            }
            (through, at) = (image.through, position);
        }
        let at = at?;
        family.mutable.advance_empty_to(through);
        family.mutable.memtable().begin_after(through);
        if !family.queue.is_empty() {
            family.family.note_unlogged(); // images do not tell whether they hold unlogged writes
        }
        // Reads of swapped-out pages go at disk speed: flush the images soon.
        family.flush_wanted_through = family.flush_wanted_through.max(through);
        note::info!(family = family.family.name(), through = through.0, log = at.log.0, "memtables were found");
        Some((through, at))
    }
}

/// An image in the directory.
struct Found {
    number: FileNumber,
    path: PathBuf,
    header: Header,
    begins_after: SeqNo,
    through: SeqNo,
}

/// Adds images to the queues of their families, whose memtables are empty. If `by_images` is false, or by option, only
/// lists images for removal. Files with numbers from `first_own` on are this process's.
///
/// # Errors
/// The file system's.
pub(super) fn restore(
    context: &Context,
    families: &mut BTreeMap<FamilyId, FamilyState>,
    by_images: bool,
    first_own: FileNumber,
) -> Result<Restored> {
    let mut restored = Restored::default();
    let mut found = find(context, first_own, &mut restored.left)?;
    if by_images && context.options.memtable_crash_safe_recover {
        for (id, family) in families {
            let of_family = found.remove(id).unwrap_or_default();
            if let Some((through, at)) = restored.take(context, family, of_family) {
                restored.families.insert(*id, (through, at));
            }
        }
    }
    restored.left.extend(found.into_values().flatten().map(|image| image.path));
    Ok(restored)
}

/// This database's valid images by family, in the order of their numbers. Images with possibly lost pages go to `left`.
fn find(context: &Context, first_own: FileNumber, left: &mut Vec<PathBuf>) -> Result<BTreeMap<FamilyId, Vec<Found>>> {
    let (vfs, dir) = (&*context.vfs, &*context.dir);
    let mut found = BTreeMap::<FamilyId, Vec<Found>>::new();
    for number in file_name::numbers_in(vfs, dir, FileType::MemtableImage)?.range(..first_own) {
        match read(vfs, dir, &context.db_id, *number) {
            Ok(Some(image)) if !image.is_of_this_cache(vfs, dir) => left.push(image.path),
            Ok(Some(image)) => found.entry(image.header.identity.family).or_default().push(image),
            Ok(None) => {}
            Err(error) => note::info!(%error, "a memtable's file is of no use; the log is replayed"),
        }
    }
    found.values_mut().for_each(|images| images.sort_by_key(|image| (image.begins_after, image.number)));
    Ok(found)
}

/// What images of the database `db_id` prove: a log that ends before a place that an image knows lost its end. The place was
/// published, and since then the page cache has lost nothing.
///
/// # Errors
/// The file system's.
pub(crate) fn lost_log_ends(vfs: &dyn Vfs, dir: &Path, log_dir: &Path, db_id: &str) -> Result<Vec<Error>> {
    let mut lost = Vec::new();
    for number in file_name::numbers_in(vfs, dir, FileType::MemtableImage)? {
        let image = read(vfs, dir, db_id, number).ok().flatten();
        let Some(image) = image.filter(|image| image.is_of_this_cache(vfs, dir)) else { continue };
        let Some(at) = marks::unpack(image.header.watermark.position) else { continue };
        lost.extend(lost_log_end(vfs, log_dir, at));
    }
    Ok(lost)
}

/// The error for a log without a record, and with no room for one, `at` a place that an image knows.
pub(super) fn lost_log_end(vfs: &dyn Vfs, log_dir: &Path, at: Position) -> Option<Error> {
    let path = log_dir.join(file_name::format(FileType::Log, at.log));
    let may_begin = log::may_begin_at(vfs, &path, at.log, at.offset);
    if matches!(&may_begin, Ok(true)) || may_begin.is_err_and(|error| error.is_not_found()) {
        return None; // a log that is gone is no longer needed, or is missed
    }
    let what = "a memtable's image knows that the log came so far, and no record is there: the log lost its end, or is damaged";
    Some(Error::corruption(what).at_path(path).at_offset(at.offset))
}

impl Found {
    /// Whether no page can have been lost since its stores.
    fn is_of_this_cache(&self, vfs: &dyn Vfs, dir: &Path) -> bool {
        let now = ImageIdentity::number_of(&vfs.page_cache_id(dir).unwrap_or_default());
        now != 0 && self.header.identity.page_cache == now
    }
}

/// `None`: another database's, not in its original file, never in use, or marked foreign.
fn read(vfs: &dyn Vfs, dir: &Path, db_id: &str, number: FileNumber) -> Result<Option<Found>> {
    let path = dir.join(file_name::format(FileType::MemtableImage, number));
    let file = vfs.open(&path)?;
    let mut bytes = vec![0; HEADER_BYTES];
    if file.read_at(0, &mut bytes, IoClass::Other)? < bytes.len() {
        return Err(Error::corruption("the file ends within its header").at_path(&path));
    }
    let header = Header::read(&bytes).map_err(|error| error.at_path(&path))?;
    let (identity, watermark) = (header.identity, header.watermark);
    let is_ours = identity.database == ImageIdentity::number_of(db_id);
    let is_in_place = vfs.metadata(&path)?.identity == header.file;
    let Some(begins_after) = watermark.begins_after.filter(|_| is_ours && is_in_place) else { return Ok(None) };
    if watermark.is_foreign {
        return Ok(None);
    }
    let through = watermark.complete_through.max(begins_after);
    Ok(Some(Found { number, path, header, begins_after, through }))
}

fn open(context: &Context, family: &FamilyState, image: &Found) -> Result<Arc<dyn Flushable>> {
    let mapping = context.vfs.map_read(&image.path)?;
    let order = &family.family.order().user;
    let opened = LazyImage::open(mapping, &image.path, order, image.through)?;
    let leaves_values = image.header.identity.extra & LEAVES_VALUES != 0;
    Ok(RestoredMemtable::new(context, opened, image.number, image.begins_after, leaves_values))
}
