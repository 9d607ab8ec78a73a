//! A MANIFEST read while its writer goes on: what was added since the last read, or all of another one.

use std::path::Path;

use base::{FileNumber, Result};
use vfs::Vfs;

use super::current::read_current;
use super::edit::VersionEdit;
use super::manifest::manifest_path;
use super::recover::{Recovered, read_edits_from, recover};

/// How far a MANIFEST was read. By default no MANIFEST was read.
#[derive(Default)]
pub(crate) struct ManifestTail {
    manifest: FileNumber,
    /// End of the last whole group of edits.
    offset: u64,
}

pub(crate) enum News {
    /// The whole state, of a MANIFEST not read before.
    Replaced(Box<Recovered>),
    /// The edits since the last read; groups are whole.
    Edits(Vec<VersionEdit>),
}

impl ManifestTail {
    /// Reads what is new. A record or a group still being written is left for the next read.
    ///
    /// # Errors
    /// As [`recover`](super::recover::recover).
    pub fn read(&mut self, vfs: &dyn Vfs, dir: &Path) -> Result<News> {
        let manifest = read_current(vfs, dir)?;
        if manifest != self.manifest {
            let recovered = recover(vfs, dir)?;
            *self = ManifestTail { manifest: recovered.manifest, offset: recovered.manifest_end.unwrap_or_default() };
            return Ok(News::Replaced(Box::new(recovered)));
        }
        let (mut whole, mut group, mut end) = (Vec::new(), Vec::new(), self.offset);
        read_edits_from(vfs, &manifest_path(dir, manifest), self.offset, |record_end, _, edits| {
            let is_last = edits.last().is_none_or(|edit| edit.atomic_group.is_none_or(|left| left == 0));
            group.extend(edits);
            if is_last {
                whole.append(&mut group);
                end = record_end;
            }
            Ok(())
        })?;
        self.offset = end;
        Ok(News::Edits(whole))
    }
}
