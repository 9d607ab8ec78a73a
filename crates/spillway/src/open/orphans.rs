//! Leftovers of a crash: files unknown to the new MANIFEST are deleted. After a rescue they are kept in `lost/`.

use std::collections::BTreeSet;

use base::note;
use base::{FileNumber, Result};
use wal::DatabaseId;

use crate::core::FamilyState;
use crate::core::lost::{Lost, REPORT};
use crate::engine::Engine;
use crate::open::destroy::remove_load_dir;
use crate::open::replay::{remove_quietly, wal_range};
use crate::version::file_name::{self, FileType};
use crate::version::manifest::ManifestWriter;
use crate::version::purge::ObsoleteFile;
use crate::version::recover::Recovered;
use crate::version::table_file::FileMeta;

/// Whether the image is of no living memtable. Images of this process's memtables have numbers from `first_own` on.
fn is_left_image(number: FileNumber, first_own: FileNumber, kept: &BTreeSet<FileNumber>) -> bool {
    number < first_own && !kept.contains(&number)
}

/// The images of restored memtables.
fn images_in_use(engine: &Engine) -> BTreeSet<FileNumber> {
    let state = engine.core.state.lock();
    state.families.values().flat_map(|family| &family.queue).filter_map(|entry| entry.image_number()).collect()
}

/// Keeps in `lost/` the files that a new MANIFEST lets go, unused images of memtables, and a report of the doubts. Durable before
/// that MANIFEST: an open that is cut off has told nobody.
///
/// # Errors
/// The file system's.
pub(super) fn keep(engine: &Engine, recovered: &Recovered, lost: &Lost<'_>) -> Result<()> {
    let context = &engine.core.context;
    let (vfs, log_dir) = (&*context.vfs, context.log_dir());
    lost.keep_manifests()?;
    let kept = images_in_use(engine);
    let images = file_name::numbers_in(vfs, &context.dir, FileType::MemtableImage)?.into_iter();
    for image in images.filter(|number| is_left_image(*number, recovered.next_file, &kept)) {
        match lost.keep(&context.dir.join(file_name::format(FileType::MemtableImage, image))) {
            Err(error) if error.is_not_found() => {} // an abandoned attempt to open removed it
            kept => drop(kept?),
        }
    }
    let live: BTreeSet<_> = recovered.tables().map(FileMeta::physical_number).collect();
    let is_left = |number: &FileNumber| *number < recovered.next_file && !live.contains(number);
    for number in file_name::numbers_in(vfs, &context.dir, FileType::Table)?.into_iter().filter(is_left) {
        lost.keep(&context.dir.join(file_name::format(FileType::Table, number)))?;
    }
    let own = recovered.id();
    let rocksdbs = (!recovered.fenced).then_some(FileType::RocksLog);
    for kind in [FileType::Log, FileType::LargeBatch].into_iter().chain(rocksdbs) {
        let numbers = file_name::numbers_in(vfs, &log_dir, kind)?.into_iter();
        let paths = numbers.map(|number| log_dir.join(file_name::format(kind, number)));
        let mut paths = paths.filter(|path| !wal_range::may_be_of_another(vfs, &context.dir, path, own));
        paths.try_for_each(|path| lost.keep(&path).map(drop))?;
    }
    let doubts = context.recovery_doubts.all();
    if !doubts.is_empty() {
        let lines: String = doubts.iter().map(|doubt| format!("in doubt: {doubt}\n")).collect();
        let report = lost.write(REPORT, lines.as_bytes())?;
        note::warn!(report = %report.display(), "recovery leaves doubts; what it let go is kept beside the report");
    }
    lost.sync()
}

/// Deletes orphans once the new MANIFEST is durable (V3). Logs are deleted only in the log directory, and a separate
/// log directory loses nothing but logs. Files that may be large are deleted in the background: freeing a file's pages
/// costs as much as writing them. `own`: the id that the database had. `taken_over`: the directory was RocksDB's until now, whose
/// logs were read from this one on; later a file in the form of its logs is another's, and an older one in a log directory can be.
pub(super) fn remove(engine: &Engine, own: DatabaseId, taken_over: Option<FileNumber>) -> Result<()> {
    let (core, context) = (&engine.core, &engine.core.context);
    let state = core.state.lock();
    let tables: BTreeSet<FileNumber> =
        state.families.values().flat_map(FamilyState::tables).map(|file| file.meta.physical_number()).collect();
    let mut logs: BTreeSet<FileNumber> = state
        .families
        .values()
        .flat_map(FamilyState::tables)
        .flat_map(|file| file.meta.value_logs.iter().map(|share| share.log))
        .collect();
    drop(state);
    let images = images_in_use(engine);
    logs.extend(core.logs.pin_all().into_iter().map(|(number, _)| number));
    let manifest = engine.installer.manifest.lock().as_ref().map(ManifestWriter::number);
    let log_dir = context.log_dir();
    let is_superfluous = |kind: FileType, number: FileNumber| match kind {
        FileType::Table => !tables.contains(&number),
        FileType::Log | FileType::LargeBatch => !logs.contains(&number),
        FileType::Manifest | FileType::ManifestCopy => Some(number) != manifest,
        FileType::MemtableImage => is_left_image(number, core.first_own_file, &images),
        FileType::RocksLog => taken_over.is_some_and(|oldest| number >= oldest || log_dir == context.dir),
        FileType::Temp | FileType::Socket => true,
        FileType::Current | FileType::Identity | FileType::Lock | FileType::Options | FileType::Reserve => false,
        FileType::Incomplete => false, // no marked directory is opened
    };
    let mut dirs = vec![context.dir.clone()];
    dirs.extend(Some(log_dir.clone()).filter(|dir| *dir != context.dir));
    for dir in dirs {
        for name in context.vfs.read_dir(&dir)? {
            let Some((kind, number)) = file_name::parse(&name) else { continue };
            let lies_in = if kind.is_log() { &log_dir } else { &context.dir };
            if *lies_in != dir || !is_superfluous(kind, number) {
                continue;
            }
            if wal_range::may_be_of_another(&*context.vfs, &context.dir, &dir.join(&name), own) {
                note::warn!(
                    name, dir = %dir.display(),
                    "left alone: a log of another database, or one that cannot be read; give each its own wal_dir"
                );
                continue;
            }
            match kind {
                FileType::Table | FileType::Log | FileType::LargeBatch | FileType::MemtableImage => {
                    core.purge.push(ObsoleteFile { file_type: kind, path_id: 0, number });
                }
                _ => remove_quietly(context, &dir.join(name)),
            }
        }
    }
    if let Err(error) = remove_load_dir(&*context.vfs, &context.dir) {
        note::warn!(%error, "cannot delete what a load left that was killed");
    }
    Ok(())
}
