//! The least that a repair brings back undoubted, for each kind of damage.

use std::path::PathBuf;

use base::UserOrder;

use crate::engine::version::file_name::FileType;

use super::damage::{Damage, Kind, kind_of};
use super::lives::{Ending, Life, Span};
use crate::ops::Op;

/// What has to come back undoubted.
pub enum Least<'a> {
    /// Everything, and the report is of no loss.
    All,
    /// Every key outside these tables.
    Outside(Vec<&'a Span>),
    Nothing,
}

impl Span {
    /// Whether a key of a family lies between the table's first and last one.
    pub fn holds(&self, family: &str, key: &[u8], order: &UserOrder) -> bool {
        self.family == family && order.compare(&self.from, key).is_le() && order.compare(key, &self.through).is_le()
    }
}

/// The least for a damage.
pub fn least<'a>(life: &'a Life, damage: &Damage) -> Least<'a> {
    match damage.kind {
        Kind::Current | Kind::ManifestLost if damage.is_of("CURRENT") && allows_a_later(life) => Least::Nothing,
        Kind::Copy | Kind::ManifestLost | Kind::ManifestCut if left_an_ingest(life) => Least::Nothing,
        Kind::Current | Kind::Copy | Kind::SideLost | Kind::SideDamaged | Kind::ImageLost => Least::All,
        Kind::TableGrown | Kind::StrayLog => Least::All,
        Kind::ManifestExchanged if left_an_ingest(life) => Least::Nothing,
        Kind::ManifestExchanged => Least::All, // IDENTITY tells whose it is
        // The second copy is there; an export has none.
        Kind::ManifestLost | Kind::ManifestCut if life.is_own() => Least::All,
        // A whole MANIFEST is believed: what it does not name is left over.
        Kind::TablesLeft | Kind::EarlierLeft => Least::All,
        Kind::TableLost | Kind::TableZeroed | Kind::TableFlipped | Kind::TableExchanged => {
            Least::Outside(life.tables.iter().filter(|span| damage.paths.contains(&span.path)).collect())
        }
        Kind::ManifestLost | Kind::ManifestCut | Kind::BothManifests | Kind::EveryManifestLost => Least::Nothing,
        Kind::CurrentOfLost | Kind::CurrentOfEarlier | Kind::LaterLost => Least::Nothing,
        // A lost record can be of any key.
        Kind::LastLog | Kind::OtherLog | Kind::LogHole | Kind::LogExchanged | Kind::LargeBatch => Least::Nothing,
    }
}

/// Whether a kill may have left an ingest's table that the MANIFEST does not name: never committed, of a family that was dropped
/// before the table had a level, or compacted and not deleted yet. Without the MANIFEST or its copy it passes for a live one.
fn left_an_ingest(life: &Life) -> bool {
    let leaves_one = |op: &Op| matches!(op, Op::Prepare(..) | Op::Drop(..));
    let brings_one = |op: &Op| matches!(op, Op::Ingest(..) | Op::Import { .. });
    let is_unnamed = |path: &PathBuf| {
        kind_of(path).is_some_and(|(kind, _)| kind == FileType::Table)
            && life.tables.iter().all(|table| table.path != *path)
    };
    let ops = &life.script.ops;
    let has_left = ops.iter().any(leaves_one) || ops.iter().any(brings_one) && life.files.keys().any(is_unnamed);
    life.ending == Ending::Killed && has_left
}

/// Whether the files without CURRENT allow that a later MANIFEST is lost: an ingest that it alone named may have left an
/// unnamed table. If a log notes the last MANIFEST, the process that made this log may have left the table as well, and a
/// repair has to take the MANIFEST for the last one (R1).
fn allows_a_later(life: &Life) -> bool {
    let vfs = life.mount(&life.files);
    let of = |wanted: FileType| {
        let numbered = life.files.keys().filter_map(|path| Some((path, kind_of(path)?)));
        numbered.filter(move |(_, (kind, _))| *kind == wanted).map(|(path, (_, number))| (path, number))
    };
    let Some(last) = of(FileType::Manifest).map(|(_, number)| number).max() else { return false };
    let is_named = |path: &PathBuf| life.tables.iter().any(|table| table.path == *path);
    let heads = of(FileType::Log).filter_map(|(path, number)| wal::read_head(&*vfs, path, number).ok());
    let noted = heads.filter_map(|head| head.manifest).next_back();
    noted.is_none_or(|noted| noted.bytes_of(last).is_none())
        && of(FileType::Table).any(|(path, number)| number > last && !is_named(path))
}
