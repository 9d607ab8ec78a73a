//! Deletes leftovers of a crash: files unknown to the new MANIFEST.

use std::collections::BTreeSet;

use base::note;
use base::{FileNumber, Result};
use log::DatabaseId;

use crate::core::FamilyState;
use crate::open::destroy::remove_load_dir;
use crate::open::engine::Engine;
use crate::open::replay::{remove_quietly, row};
use crate::version::file_name::{self, FileType};
use crate::version::manifest::ManifestWriter;
use crate::version::purge::ObsoleteFile;

/// Whether the image is of no living memtable. Images of this process's memtables have numbers from `first_own` on.
fn is_left_image(number: FileNumber, first_own: FileNumber, kept: &BTreeSet<FileNumber>) -> bool {
    number < first_own && !kept.contains(&number)
}

/// Deletes orphans once the new MANIFEST is durable (V3). Logs are deleted only in the log directory, and a separate
/// log directory loses nothing but logs. Files that may be large are deleted in the background: freeing a file's pages
/// costs as much as writing them.
pub(super) fn remove(engine: &Engine) -> Result<()> {
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
    // Images of restored memtables, in use.
    let queued = state.families.values().flat_map(|family| &family.queue);
    let images: BTreeSet<FileNumber> = queued.filter_map(|entry| entry.image_number()).collect();
    drop(state);
    logs.extend(core.logs.pin_all().into_iter().map(|(number, _)| number));
    let manifest = engine.installer.manifest.lock().as_ref().map(ManifestWriter::number);
    let is_superfluous = |kind: FileType, number: FileNumber| match kind {
        FileType::Table => !tables.contains(&number),
        FileType::Log | FileType::LargeBatch => !logs.contains(&number),
        FileType::Manifest | FileType::ManifestCopy => Some(number) != manifest,
        FileType::MemtableImage => is_left_image(number, core.first_own_file, &images),
        FileType::RocksLog | FileType::Temp | FileType::Socket => true,
        FileType::Current | FileType::Identity | FileType::Lock | FileType::Options | FileType::Reserve => false,
        FileType::Incomplete => false, // no marked directory is opened
    };
    let (log_dir, own) = (context.log_dir(), DatabaseId::new(&context.db_id));
    let mut dirs = vec![context.dir.clone()];
    dirs.extend(Some(log_dir.clone()).filter(|dir| *dir != context.dir));
    for dir in dirs {
        for name in context.vfs.read_dir(&dir)? {
            let Some((kind, number)) = file_name::parse(&name) else { continue };
            let lies_in = if kind.is_log() { &log_dir } else { &context.dir };
            if *lies_in != dir || !is_superfluous(kind, number) {
                continue;
            }
            if row::is_of_another(&*context.vfs, &dir.join(&name), own) {
                note::warn!(name, dir = %dir.display(), "left alone: a log of another database; give each its own wal_dir");
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
