//! Restart by image: memtables that the process before this one left in files are read where they lie, so that the log is
//! replayed only from where they are complete. Keeps D1 and D2: a family's images stand in for its log as far as they join
//! without a gap; what cannot be established is replayed from the log as ever.
//!
//! An image counts only where nothing can have come between its writer's stores and this read: on the same boot of the
//! machine and the same mount, in the file that it was made in, of this database. It is cut at its watermark: what is
//! above it, whole or torn, is not there, and comes from the log. The files are not changed, so that a second crash finds
//! the same.
//!
//! What is not taken is gone before anything is numbered ([`Restored::forget_others`]). From then on this process's
//! memtables hold the same writes, or others under the same numbers, and a later open could not tell which of the two the
//! tables were made of.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base::note;
use base::{Error, FamilyId, FileNumber, Result, SeqNo};
use log::Position;
use memtable::image::{Expected, HEADER_BYTES, Header, ImageIdentity, LazyImage};
use vfs::{IoClass, Vfs};

use crate::core::FamilyState;
use crate::core::context::Context;
use crate::queue::flushable::Flushable;
use crate::queue::images::LEAVES_VALUES;
use crate::queue::restored::RestoredMemtable;
use crate::version::file_name::{self, FileType};
use crate::wal::marks;

/// What was found instead of being replayed.
#[derive(Default)]
pub(crate) struct Restored {
    /// Through which number each family is whole, and where in the logs what follows begins at the latest.
    pub families: BTreeMap<FamilyId, (SeqNo, Position)>,
    /// How many images are read.
    pub images: usize,
    /// Images of this database that were not taken, and tell of more than tables do; those of other mounts among them, which
    /// can be that of a later open.
    left: Vec<PathBuf>,
}

impl Restored {
    /// Where replay begins, and a number that everything before that place is at or below. `None`: with the first log.
    pub fn start(&self, families: &BTreeMap<FamilyId, FamilyState>) -> Option<(Position, SeqNo)> {
        let starts = families.keys().map(|id| self.families.get(id).map(|(through, at)| (*at, *through)));
        starts.collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    /// Whether a write of a family need not be replayed.
    pub fn has(&self, family: FamilyId, seq: SeqNo) -> bool {
        self.families.get(&family).is_some_and(|(through, _)| seq <= *through)
    }

    /// Removes what was not taken; to be done before anything is numbered.
    ///
    /// # Errors
    /// The file system's: while one of them is there nothing may be written.
    pub(super) fn forget_others(&self, vfs: &dyn Vfs) -> Result<()> {
        // Those of an attempt to open that was given up go by themselves, on whatever thread used them last.
        let removed =
            |path: &PathBuf| vfs.remove_file(path).or_else(|e| if e.is_not_found() { Ok(()) } else { Err(e) });
        self.left.iter().try_for_each(removed)
    }

    /// Takes the images of a family that follow each other, without a gap or an overlap, on what is in tables. Returns the
    /// number through which that is whole, and where the first write above it lies in the logs at the earliest.
    fn take(&mut self, context: &Context, family: &mut FamilyState, images: Vec<Found>) -> Option<(SeqNo, Position)> {
        let mut through = family.flushed_through;
        let mut at = None;
        for image in images {
            if image.through < through || (image.through == through && at.is_some()) {
                continue; // in tables, or nothing
            }
            let position = marks::unpack(image.header.watermark.position);
            // One that tables hold a part of is not of the row of memtables that they were made of.
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
            family.family.note_unlogged(); // whether some of it is in no log, images do not tell
        }
        // They are read where they lie, at the pace of the disk where they were swapped out: better in tables.
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

/// Puts what images hold into the queues of their families, whose memtables are empty; where `by_images` is false, or the
/// options say so, only looks for them. Files from number `first_own` on are of this process.
///
/// # Errors
/// The file system's.
pub(super) fn restore(
    context: &Context,
    families: &mut BTreeMap<FamilyId, FamilyState>,
    by_images: bool,
    first_own: FileNumber,
) -> Result<Restored> {
    let Images { mut found, left } = find(context, first_own)?;
    let mut restored = Restored { left, ..Restored::default() };
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

/// This database's images.
struct Images {
    /// Those that may be relied on, by family and in the order of their numbers.
    found: BTreeMap<FamilyId, Vec<Found>>,
    /// Those whose pages may have been lost.
    left: Vec<PathBuf>,
}

fn find(context: &Context, first_own: FileNumber) -> Result<Images> {
    let page_cache = ImageIdentity::number_of(&context.vfs.page_cache_id(&context.dir).unwrap_or_default());
    let (mut found, mut left) = (BTreeMap::<FamilyId, Vec<Found>>::new(), Vec::new());
    for name in context.vfs.read_dir(&context.dir)? {
        let Some((FileType::MemtableImage, number)) = file_name::parse(&name) else { continue };
        if number >= first_own {
            continue;
        }
        match read(context, number) {
            Ok(Some(image)) if page_cache == 0 || image.header.identity.page_cache != page_cache => {
                left.push(image.path)
            }
            Ok(Some(image)) => found.entry(image.header.identity.family).or_default().push(image),
            Ok(None) => {}
            Err(error) => note::info!(%error, "a memtable's file is of no use; the log is replayed"),
        }
    }
    found.values_mut().for_each(|images| images.sort_by_key(|image| (image.begins_after, image.number)));
    Ok(Images { found, left })
}

/// `None`: not one of this database and in place, or never in use.
fn read(context: &Context, number: FileNumber) -> Result<Option<Found>> {
    let path = context.dir.join(file_name::format(FileType::MemtableImage, number));
    let file = context.vfs.open(&path)?;
    let mut bytes = vec![0; HEADER_BYTES];
    if file.read_at(0, &mut bytes, IoClass::Other)? < bytes.len() {
        return Err(Error::corruption("the file ends within its header").at_path(&path));
    }
    let header = Header::read(&bytes).map_err(|error| error.at_path(&path))?;
    let (identity, watermark) = (header.identity, header.watermark);
    let is_ours = identity.database == ImageIdentity::number_of(&context.db_id);
    let is_in_place = context.vfs.metadata(&path)?.identity == header.file;
    let Some(begins_after) = watermark.begins_after.filter(|_| is_ours && is_in_place) else { return Ok(None) };
    if watermark.is_foreign {
        return Ok(None);
    }
    let through = watermark.complete_through.max(begins_after);
    Ok(Some(Found { number, path, header, begins_after, through }))
}

fn open(context: &Context, family: &FamilyState, image: &Found) -> Result<Arc<dyn Flushable>> {
    let mapping = context.vfs.map_read(&image.path)?;
    let order = family.family.order().user.clone();
    let opened = LazyImage::open(mapping, &image.path, &Expected { representation: None, order }, image.through)?;
    let leaves_values = image.header.identity.extra & LEAVES_VALUES != 0;
    Ok(RestoredMemtable::new(context, opened, (image.number, image.begins_after), leaves_values))
}
