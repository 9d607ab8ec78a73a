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
//!
//! Images of a family are let go if one of them cannot be read. They may hold unlogged writes, so the family is in doubt, and
//! they are kept in `lost/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::key::ParsedKey;
use base::note;
use base::options::WalRecoveryMode;
use base::{Error, FamilyId, FileNumber, Result, SeqNo, UserOrder};
use memtable::image::{HEADER_BYTES, Header, ImageIdentity, LazyImage};
use vfs::{IoClass, Vfs};
use wal::{FILE_HEADER_BYTES, Position};

use crate::background::caught::caught;
use crate::core::FamilyState;
use crate::core::context::Context;
use crate::core::doubt::Doubt;
use crate::core::unnamed::Logged;
use crate::flush::images::{doubt_without_images, find_damage};
use crate::memtables::restored::RestoredMemtable;
use crate::queue::flushable::Flushable;
use crate::queue::images::LEAVES_VALUES;
use crate::queue::watermark;
use crate::version::file_name::{self, FileType};
use crate::version::recover::Recovered;
use crate::version::span::widen;

/// The state restored from images instead of by replay.
#[derive(Default)]
pub(crate) struct Restored {
    /// Per family: the number through which it is complete, and a WAL position at or before its first later write.
    pub families: BTreeMap<FamilyId, (SeqNo, Position)>,
    /// Number of restored images.
    pub images: usize,
    /// Unused images of this database with writes beyond its tables. Includes images of other mounts: a later open may
    /// be on such a mount.
    pub(super) left: Vec<FileNumber>,
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
    pub(super) fn forget_others(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        self.left.iter().try_for_each(|number| {
            let path = dir.join(file_name::format(FileType::MemtableImage, *number));
            // Images of an abandoned open attempt may be gone: the thread with the last handle removes them.
            vfs.remove_file(&path).or_else(|e| if e.is_not_found() { Ok(()) } else { Err(e) })
        })
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
            let position = watermark::unpack(image.header.watermark.position);
            // An image that overlaps the tables is not one of the memtables flushed into them.
            let follows = image.joins(through) || image.through == through;
            if !follows || position.is_none() {
                self.left.push(image.number);
                continue;
            }
            if image.through > through {
                match open(context, family, &image, through) {
                    Ok(entry) => family.queue.insert(0, entry),
                    Err(error) => {
                        note::warn!(%error, "a memtable's file cannot be read; the log is replayed");
                        context.recovery_doubts.add(doubt_without_images(family.family.name(), &error));
                        self.left.push(image.number);
                        continue;
                    }
                }
                self.images += 1;
            }
            (through, at) = (image.through, position);
        }
        let at = at?;
        family.mutable.begin_after(through);
        if !family.queue.is_empty() {
            family.family.record_unlogged(); // images do not tell whether they hold unlogged writes
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

/// Adds images to the queues of their families, whose memtables are empty. Those of the families in `damaged`, with why, are only
/// listed for removal; all are, by option or unless `is_used`. Files with numbers that `recovered` does not reach are this process's.
///
/// # Errors
/// The file system's.
pub(super) fn restore(
    context: &Context,
    families: &mut BTreeMap<FamilyId, FamilyState>,
    damaged: &BTreeMap<FamilyId, Error>,
    recovered: &Recovered,
    is_used: bool,
) -> Result<Restored> {
    let mut restored = Restored::default();
    let mut found = find(context, recovered, &mut restored.left)?;
    if is_used && context.options.memtable_crash_safe_recover {
        for (id, family) in families {
            if let Some(error) = damaged.get(id) {
                context.recovery_doubts.add(doubt_without_images(family.family.name(), error));
                continue;
            }
            let of_family = found.remove(id).unwrap_or_default();
            if let Some((through, at)) = restored.take(context, family, of_family) {
                restored.families.insert(*id, (through, at));
            }
        }
    }
    restored.left.extend(found.into_values().flatten().map(|image| image.number));
    Ok(restored)
}

/// This database's valid images by family, in the order of their numbers. Images with possibly lost pages go to `left`.
fn find(
    context: &Context,
    recovered: &Recovered,
    left: &mut Vec<FileNumber>,
) -> Result<BTreeMap<FamilyId, Vec<Found>>> {
    let (vfs, dir) = (&*context.vfs, &*context.dir);
    let db_id = recovered.db_id.as_deref().unwrap_or_default();
    let mut found = BTreeMap::<FamilyId, Vec<Found>>::new();
    for number in file_name::numbers_in(vfs, dir, FileType::MemtableImage)?.range(..recovered.next_file) {
        match read(vfs, dir, db_id, *number) {
            Ok(Some(image)) if !image.is_of_this_cache(vfs, dir) => left.push(image.number),
            Ok(Some(image)) => found.entry(image.header.identity.family).or_default().push(image),
            Ok(None) => {}
            Err(error) => note::info!(%error, "a memtable's file is of no use; the log is replayed"),
        }
    }
    found.values_mut().for_each(|images| images.sort_by_key(|image| (image.begins_after, image.number)));
    Ok(found)
}

/// The families with images that cannot be read. If all can be, the families with images: then `error` tells of them.
pub(super) fn find_damaged(
    families: &BTreeMap<FamilyId, FamilyState>,
    restored: &Restored,
    error: &Error,
) -> BTreeMap<FamilyId, Error> {
    let found = |(id, family): (&FamilyId, &FamilyState)| Some((*id, find_damage(&family.queue)?));
    let damaged: BTreeMap<_, _> = families.iter().filter_map(found).collect();
    let with_images = restored.families.keys().map(|id| (*id, error.clone()));
    if damaged.is_empty() { with_images.collect() } else { damaged }
}

/// Compares the logs' ends with images. An open that uses them goes on with what they have, and doubts the rest. So does one that
/// bears damage.
///
/// # Errors
/// `Corruption`: a log lost its end, and this open reads only, or accepts no loss.
pub(super) fn check_log_ends(
    context: &Context,
    recovered: &Recovered,
    read_only: bool,
    bears_damage: bool,
) -> Result<()> {
    let goes_on = match context.options.wal_recovery_mode {
        WalRecoveryMode::SkipAnyCorruptedRecords => true,
        WalRecoveryMode::AbsoluteConsistency => false,
        _ => !read_only || bears_damage,
    };
    for error in lost_log_ends(&*context.vfs, &context.dir, &context.log_dir(), recovered)? {
        if !goes_on {
            return Err(error.advise("wal_recovery_mode=kSkipAnyCorruptedRecords goes on with what is left"));
        }
        context.recovery_doubts.add(Doubt::of_all(error.to_string()));
    }
    Ok(())
}

/// What images of the database prove: a log that has no record before a place that an image knows lost its end, or all. The place
/// was published, and since then the page cache has lost nothing.
///
/// # Errors
/// The file system's.
pub(crate) fn lost_log_ends(vfs: &dyn Vfs, dir: &Path, log_dir: &Path, recovered: &Recovered) -> Result<Vec<Error>> {
    let db_id = recovered.db_id.as_deref().unwrap_or_default();
    let mut lost = Vec::new();
    for number in file_name::numbers_in(vfs, dir, FileType::MemtableImage)? {
        let image = read(vfs, dir, db_id, number).ok().flatten();
        let Some(image) = image.filter(|image| image.is_of_this_cache(vfs, dir)) else { continue };
        let Some(at) = watermark::unpack(image.header.watermark.position) else { continue };
        lost.extend(lost_log_end(vfs, log_dir, recovered, at));
    }
    Ok(lost)
}

/// The error for a log that has no record `at` a place that an image knows, nor before it. `None` if the MANIFEST let the log go.
pub(super) fn lost_log_end(vfs: &dyn Vfs, log_dir: &Path, recovered: &Recovered, at: Position) -> Option<Error> {
    let is_let_go = recovered.wal_range.is_some_and(|range| at.log < range.oldest);
    if is_let_go || at.offset <= FILE_HEADER_BYTES {
        return None; // of an image of unlogged writes the log may never have been
    }
    let path = log_dir.join(file_name::format(FileType::Log, at.log));
    let what = match wal::reaches(vfs, &path, at.log, at.offset) {
        Ok(true) => return None,
        Err(error) if error.is_not_found() => "a memtable's image knows of this log, and it is missing",
        _ => {
            "a memtable's image knows that the log came so far, and no record is there: the log lost its end, or is damaged"
        }
    };
    Some(Error::corruption(what).at_path(path).at_offset(at.offset))
}

impl Found {
    /// Whether it has all later writes of the family, up to its end, and no other.
    fn joins(&self, through: SeqNo) -> bool {
        let starts = self.begins_after..=self.header.watermark.empty_through.max(self.begins_after);
        starts.contains(&through)
    }

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

fn open(context: &Context, family: &FamilyState, image: &Found, created_at: SeqNo) -> Result<Arc<dyn Flushable>> {
    let mapping = context.vfs.map_read(&image.path)?;
    let order = &family.family.order().user;
    let opened = LazyImage::open(mapping, &image.path, order, image.through)?;
    let leaves_values = image.header.identity.extra & LEAVES_VALUES != 0;
    Ok(RestoredMemtable::new(context, opened, image.number, created_at, leaves_values))
}

/// What a rescue loses by letting `images` go: by family, the keys of writes that neither its tables nor the logs have.
///
/// # Errors
/// The file system's.
pub(crate) fn unlogged(
    vfs: &dyn Vfs,
    dir: &Path,
    images: impl IntoIterator<Item = FileNumber>,
    recovered: &Recovered,
    logged: &Logged,
    orders: &[UserOrder],
) -> Result<Vec<Doubt>> {
    let db_id = recovered.db_id.as_deref().unwrap_or_default();
    let mut doubts = Vec::new();
    for number in images {
        let image = read(vfs, dir, db_id, number).ok().flatten();
        let Some(image) = image.filter(|image| image.is_of_this_cache(vfs, dir)) else { continue };
        let Some(family) = recovered.family(image.header.identity.family) else { continue };
        let flushed = family.flushed_through.unwrap_or_default();
        let order = orders.iter().find(|order| order.name() == family.comparator).cloned().unwrap_or_default();
        let is_lost = |seq: SeqNo| seq > flushed && !logged.has(seq);
        let name = image.path.file_name().unwrap_or_default().to_string_lossy();
        match caught("reading a memtable's image", || keys_of(vfs, &image, &order, is_lost)) {
            Ok(None) => {}
            Ok(Some(keys)) => {
                let what = format!("the memtable's image {name} alone has writes to them; it is kept in lost/");
                doubts.push(Doubt::of_keys(&family.name, keys, what));
            }
            Err(error) => {
                let what = format!("what only the memtable's image {name} has is lost: {error}; it is kept in lost/");
                doubts.push(Doubt::of_family(&family.name, what));
            }
        }
    }
    Ok(doubts)
}

/// The range of the keys that an image has under such numbers.
fn keys_of(
    vfs: &dyn Vfs,
    image: &Found,
    order: &UserOrder,
    is_wanted: impl Fn(SeqNo) -> bool,
) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let opened = Arc::new(LazyImage::open(vfs.map_read(&image.path)?, &image.path, order, image.through)?);
    let mut keys = None;
    for fragment in opened.tombstones().iter().flat_map(|tombstones| tombstones.fragments()) {
        if fragment.seqs.iter().any(|seq| is_wanted(*seq)) {
            widen(&mut keys, &fragment.start, &fragment.end, |a, b| order.compare(a, b));
        }
    }
    let mut cursor = opened.cursor();
    let mut is_valid = cursor.seek_to_first();
    while is_valid {
        if let Some(key) = ParsedKey::parse(cursor.key())
            && is_wanted(key.seq)
        {
            widen(&mut keys, key.user_key, key.user_key, |a, b| order.compare(a, b));
        }
        is_valid = cursor.next();
    }
    cursor.status()?;
    Ok(keys)
}
