//! Damage to the files of a life: each kind, and every place for it.
//!
//! A new kind is a [`Kind`], its places in [`all`], what it may leave in [`super::verdict`], and what a repair has to
//! bring back in [`super::least`].

use std::cmp::Ordering;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{FileNumber, Result as EngineResult};
use vfs::{Fault, FaultCode, FaultVfs, IoClass, MemoryVfs, Operation, Rule, Vfs};
use wal::framed::FramedReader;
use wal::{Frontiers, LogReader};

use crate::engine::version::file_name::{self, FileType};
use crate::engine::version::recover::recover;
use crate::random::Random;
use crate::run::DIR;

use super::lives::{Ending, Files, Life};

/// Kind of a damage: what may be read afterwards depends on it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// CURRENT is lost or empty.
    Current,
    /// CURRENT names a MANIFEST that is not there.
    CurrentOfLost,
    /// CURRENT and its MANIFEST are of an earlier instant; the newer MANIFEST is there.
    CurrentOfEarlier,
    /// A MANIFEST is lost, with or without CURRENT; its second copy is there.
    ManifestLost,
    ManifestCut,
    /// One of a MANIFEST and its copy is cut, and the other one damaged or unreadable.
    BothManifests,
    /// CURRENT, all MANIFESTs and their copies are lost.
    EveryManifestLost,
    /// The last MANIFEST and its copy are lost, and an earlier pair is left.
    LaterLost,
    /// A MANIFEST is another life's of the same number; its second copy is there.
    ManifestExchanged,
    /// The second copy of the MANIFEST is lost, cut, or another life's.
    Copy,
    /// A file in the form of RocksDB's logs came from elsewhere.
    StrayLog,
    /// OPTIONS or IDENTITY is lost.
    SideLost,
    /// OPTIONS or IDENTITY is cut or zeroed.
    SideDamaged,
    ImageLost,
    /// The end of the last log is lost or zeroed, or the log as a whole; or the end of another one from where no file proves
    /// a sync.
    LastLog,
    OtherLog,
    /// A stretch inside a log is zeros, and whole records follow.
    LogHole,
    /// Two logs are exchanged, or one for a log of another life.
    LogExchanged,
    /// A large batch is lost or cut.
    LargeBatch,
    TableLost,
    TableZeroed,
    TableFlipped,
    /// Bytes follow a table's end.
    TableGrown,
    /// Two tables are exchanged, or one for a table of another life.
    TableExchanged,
    /// Tables of an earlier instant are put back.
    TablesLeft,
    /// Every file of an earlier instant that is not there is put back.
    EarlierLeft,
}

impl Kind {
    pub const ALL: [Kind; 26] = [
        Kind::Current,
        Kind::CurrentOfLost,
        Kind::CurrentOfEarlier,
        Kind::ManifestLost,
        Kind::ManifestCut,
        Kind::BothManifests,
        Kind::EveryManifestLost,
        Kind::LaterLost,
        Kind::ManifestExchanged,
        Kind::Copy,
        Kind::StrayLog,
        Kind::SideLost,
        Kind::SideDamaged,
        Kind::ImageLost,
        Kind::LastLog,
        Kind::OtherLog,
        Kind::LogHole,
        Kind::LogExchanged,
        Kind::LargeBatch,
        Kind::TableLost,
        Kind::TableZeroed,
        Kind::TableFlipped,
        Kind::TableGrown,
        Kind::TableExchanged,
        Kind::TablesLeft,
        Kind::EarlierLeft,
    ];
}

/// A change of one file.
#[derive(Clone, Debug)]
enum Edit {
    Remove(PathBuf),
    Write(PathBuf, Vec<u8>),
    Cut(PathBuf, usize),
    /// From this byte to the end of the file.
    Zero(PathBuf, usize),
    /// From the first byte to before the second.
    Hole(PathBuf, usize, usize),
    /// All bits of a byte.
    Flip(PathBuf, usize),
    /// The device fails every read of this byte's page.
    Unreadable(PathBuf, usize),
    /// Zeros at the end of the file.
    Grow(PathBuf, usize),
}

/// One damage.
#[derive(Clone, Debug)]
pub struct Damage {
    pub kind: Kind,
    /// The files that are damaged.
    pub paths: Vec<PathBuf>,
    edits: Vec<Edit>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)?;
        const SHOWN_MAX: usize = 4;
        for edit in self.edits.iter().take(SHOWN_MAX) {
            write!(f, ", {edit}")?;
        }
        match self.edits.len() > SHOWN_MAX {
            true => write!(f, " and {} more", self.edits.len() - SHOWN_MAX),
            false => Ok(()),
        }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = name_of(self.path());
        match self {
            Edit::Remove(_) => write!(f, "{name} lost"),
            Edit::Write(_, bytes) => write!(f, "{name} with {} other bytes", bytes.len()),
            Edit::Cut(_, len) => write!(f, "{name} cut to {len}"),
            Edit::Zero(_, from) => write!(f, "{name} zeroed from {from}"),
            Edit::Hole(_, from, to) => write!(f, "{name} zeroed from {from} to {to}"),
            Edit::Flip(_, at) => write!(f, "{name} byte {at} flipped"),
            Edit::Unreadable(_, at) => write!(f, "{name} unreadable at {at}"),
            Edit::Grow(_, zeros) => write!(f, "{name} with {zeros} zeros behind it"),
        }
    }
}

impl Edit {
    fn path(&self) -> &Path {
        match self {
            Edit::Remove(path) | Edit::Write(path, _) | Edit::Cut(path, _) | Edit::Hole(path, ..) => path,
            Edit::Zero(path, _) | Edit::Flip(path, _) | Edit::Grow(path, _) | Edit::Unreadable(path, _) => path,
        }
    }

    fn apply(&self, files: &mut Files) {
        match self {
            Edit::Remove(path) => drop(files.remove(path)),
            Edit::Write(path, bytes) => drop(files.insert(path.clone(), bytes.clone())),
            Edit::Cut(path, len) => files.entry(path.clone()).or_default().truncate(*len),
            Edit::Zero(path, from) => {
                files.entry(path.clone()).or_default().iter_mut().skip(*from).for_each(|byte| *byte = 0);
            }
            Edit::Hole(path, from, to) => {
                let file = files.entry(path.clone()).or_default();
                file.iter_mut().take(*to).skip(*from).for_each(|byte| *byte = 0);
            }
            Edit::Grow(path, zeros) => {
                let file = files.entry(path.clone()).or_default();
                file.resize(file.len() + zeros, 0);
            }
            Edit::Flip(path, at) => {
                files.entry(path.clone()).or_default().iter_mut().skip(*at).take(1).for_each(|byte| *byte ^= 0xff);
            }
            Edit::Unreadable(..) => {}
        }
    }
}

impl Damage {
    fn new(kind: Kind, edits: Vec<Edit>) -> Damage {
        Damage { kind, paths: edits.iter().map(|edit| edit.path().to_owned()).collect(), edits }
    }

    /// The damaged files.
    pub fn of(&self, files: &Files) -> Files {
        let mut files = files.clone();
        self.edits.iter().for_each(|edit| edit.apply(&mut files));
        files
    }

    /// The file system through which the damaged files are seen.
    pub fn seen(&self, vfs: Arc<MemoryVfs>) -> Arc<dyn Vfs> {
        let faulty = FaultVfs::new(vfs);
        for edit in &self.edits {
            if let Edit::Unreadable(path, at) = edit {
                let rule =
                    Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Read).path(name_of(path)).byte(*at as u64); // in lost/, too
                faulty.inject(rule.sticky());
            }
        }
        faulty
    }

    /// Where the damage of one file begins.
    fn first_byte(&self) -> u64 {
        let first = |edit: &Edit| match edit {
            Edit::Cut(_, at) | Edit::Zero(_, at) | Edit::Flip(_, at) | Edit::Hole(_, at, _) => *at,
            Edit::Unreadable(_, at) => at / PAGE_BYTES * PAGE_BYTES,
            Edit::Remove(_) | Edit::Write(..) | Edit::Grow(..) => 0,
        };
        self.edits.iter().map(first).min().unwrap_or_default() as u64
    }

    /// Whether a file of this name is damaged.
    pub fn is_of(&self, start: &str) -> bool {
        self.paths.iter().any(|path| name_of(path).starts_with(start))
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The kind of a file of the life's directory, and its number.
pub(super) fn kind_of(path: &Path) -> Option<(FileType, FileNumber)> {
    (path.parent() == Some(Path::new(DIR))).then(|| file_name::parse(&name_of(path))).flatten()
}

/// Whether the file is a second copy of a MANIFEST.
fn is_copy(path: &Path) -> bool {
    name_of(path).ends_with(".spmanifest")
}

/// Every damage of a life, in no order. Places within a file are drawn where there are many.
///
/// # Errors
/// Files of the undamaged life cannot be read.
pub fn all(life: &Life, random: &mut Random) -> EngineResult<Vec<Damage>> {
    let vfs = life.mount(&life.files);
    let mut damages = of_manifests(life, &vfs, random)?;
    damages.extend(of_pairs(life, &vfs, random)?);
    let last_log = last_log(life, &vfs)?;
    for (path, bytes) in &life.files {
        match kind_of(path) {
            Some((FileType::Options | FileType::Identity, _)) => damages.extend(of_side(path, bytes.len())),
            Some((FileType::MemtableImage, _)) => damages.push(lost(Kind::ImageLost, [path])),
            Some((FileType::Log | FileType::RocksLog, _)) => {
                let kind = if last_log.as_ref() == Some(path) { Kind::LastLog } else { Kind::OtherLog };
                let ends = ends_of_log(&vfs, path)?;
                let mut of_log = of_log(kind, path, &ends, random);
                let synced = synced_through(life, &vfs, path);
                of_log
                    .iter_mut()
                    .filter(|damage| damage.first_byte() >= synced)
                    .for_each(|damage| damage.kind = Kind::LastLog);
                damages.extend(of_log);
                damages.extend(hole(Kind::LogHole, path, &ends, random));
            }
            Some((FileType::LargeBatch, _)) => {
                damages.push(lost(Kind::LargeBatch, [path]));
                damages.push(unreadable(Kind::LargeBatch, path, random.below(bytes.len().max(1) as u64) as usize));
                damages.push(Damage::new(Kind::LargeBatch, vec![Edit::Cut(path.clone(), bytes.len() / 2)]));
            }
            Some((FileType::Table, _)) => damages.extend(of_table(path, bytes.len(), random)),
            _ => {}
        }
    }
    damages.extend(of_earlier(life));
    damages.extend(life.is_own().then(|| stray_log(random)));
    for (kind, types) in [(Kind::TableExchanged, &[FileType::Table][..]), (Kind::LogExchanged, &LOGS)] {
        damages.extend(swap(life, kind, types, random));
    }
    Ok(damages)
}

fn lost<'a>(kind: Kind, paths: impl IntoIterator<Item = &'a PathBuf>) -> Damage {
    Damage::new(kind, paths.into_iter().cloned().map(Edit::Remove).collect())
}

/// A page is unreadable: with the byte `at`, or the first one.
fn unreadable(kind: Kind, path: &Path, at: usize) -> Damage {
    Damage::new(kind, vec![Edit::Unreadable(path.to_owned(), at)])
}

fn of_manifests(life: &Life, vfs: &MemoryVfs, random: &mut Random) -> EngineResult<Vec<Damage>> {
    let current = Path::new(DIR).join("CURRENT");
    let is_manifest = |path: &&PathBuf| matches!(kind_of(path), Some((FileType::Manifest, _)));
    let manifests: Vec<&PathBuf> = life.files.keys().filter(is_manifest).collect();
    let copies: Vec<&PathBuf> = life.files.keys().filter(|path| is_copy(path)).collect();
    let mut damages = vec![
        lost(Kind::Current, [&current]),
        Damage::new(Kind::Current, vec![Edit::Cut(current.clone(), 0)]),
        Damage::new(Kind::CurrentOfLost, vec![Edit::Write(current.clone(), b"MANIFEST-999999\n".to_vec())]),
        lost(Kind::ManifestLost, manifests.iter().copied().chain([&current])),
        lost(Kind::EveryManifestLost, manifests.iter().chain(&copies).copied().chain([&current])),
    ];
    for manifest in manifests {
        damages.push(lost(Kind::ManifestLost, [manifest]));
        let ends = ends_of_framed(vfs, manifest, None)?;
        damages.push(unreadable(Kind::ManifestLost, manifest, place(&ends, random)));
        damages.push(Damage::new(Kind::ManifestCut, vec![Edit::Flip(manifest.clone(), place(&ends, random))]));
        damages.extend(hole(Kind::ManifestCut, manifest, &ends, random));
        damages.extend(cuts(Kind::ManifestCut, manifest, &ends));
    }
    for copy in copies {
        damages.push(lost(Kind::Copy, [copy]));
        let ends = ends_of_framed(vfs, copy, None)?;
        damages.push(unreadable(Kind::Copy, copy, place(&ends, random)));
        damages.extend(hole(Kind::Copy, copy, &ends, random));
        damages.extend(cuts(Kind::Copy, copy, &ends));
    }
    Ok(damages)
}

/// Each file of a pair of MANIFEST and copy is cut while the other has a flipped byte, or cannot be read.
fn of_pairs(life: &Life, vfs: &MemoryVfs, random: &mut Random) -> EngineResult<Vec<Damage>> {
    let mut damages = Vec::new();
    for copy in life.files.keys().filter(|path| is_copy(path)) {
        let Some((_, number)) = kind_of(copy) else { continue };
        let manifest = &Path::new(DIR).join(file_name::format(FileType::Manifest, number));
        for [cut, other] in [[manifest, copy], [copy, manifest]] {
            let ends = ends_of_framed(vfs, cut, None)?;
            if ends.is_empty() {
                continue;
            }
            let at = place(&ends, random);
            for damaged in [Edit::Unreadable(other.clone(), at), Edit::Flip(other.clone(), at)] {
                let places = [0, place(&ends, random), *random.pick(&ends) as usize];
                let cut = Edit::Cut(cut.clone(), *random.pick(&places));
                damages.push(Damage::new(Kind::BothManifests, vec![cut, damaged]));
            }
        }
    }
    Ok(damages)
}

/// Some byte before the last end.
fn place(ends: &[u64], random: &mut Random) -> usize {
    random.below(ends.last().copied().unwrap_or(1)) as usize
}

/// Cuts at the start of each record, and inside it.
fn cuts(kind: Kind, path: &Path, ends: &[u64]) -> Vec<Damage> {
    let starts = [0].into_iter().chain(ends.iter().copied()).zip(ends);
    let places = starts.flat_map(|(start, end)| [start, start + (end - start) / 2]);
    places.map(|at| Damage::new(kind, vec![Edit::Cut(path.to_owned(), at as usize)])).collect()
}

/// A stretch of zeros from the start of a record, or from inside it, to the end of one that others follow.
fn hole(kind: Kind, path: &Path, ends: &[u64], random: &mut Random) -> Option<Damage> {
    let starts: Vec<u64> = [0].into_iter().chain(ends.iter().copied()).collect();
    let last = ends.len().checked_sub(2)?;
    let first = random.below(last as u64 + 1) as usize;
    let through = first + random.below((last - first) as u64 + 1) as usize;
    let (from, to) = (*starts.get(first)?, *ends.get(through)?);
    let from = if random.chance(50) { from } else { from + random.below(to - from) };
    Some(Damage::new(kind, vec![Edit::Hole(path.to_owned(), from as usize, to as usize)]))
}

fn stray_log(random: &mut Random) -> Damage {
    let name = file_name::format(FileType::RocksLog, FileNumber(1 + random.below(200)));
    let bytes = vec![random.below(2) as u8 * b'a'; random.below(3) as usize * 20_000];
    Damage::new(Kind::StrayLog, vec![Edit::Write(Path::new(DIR).join(name), bytes)])
}

const LOGS: [FileType; 2] = [FileType::Log, FileType::RocksLog];

/// Two files of these types are exchanged.
fn swap(life: &Life, kind: Kind, types: &[FileType], random: &mut Random) -> Option<Damage> {
    let is_one = |path: &&PathBuf| kind_of(path).is_some_and(|(kind, _)| types.contains(&kind));
    let paths: Vec<&PathBuf> = life.files.keys().filter(is_one).collect();
    let first = random.below(paths.len().checked_sub(1).filter(|others| *others > 0)? as u64) as usize;
    let (one, other) = (*paths.get(first)?, *paths.get(first + 1)?);
    let [bytes, others] = [one, other].map(|path| life.files.get(path).cloned().unwrap_or_default());
    let edits = vec![Edit::Write(one.clone(), others), Edit::Write(other.clone(), bytes)];
    Some(Damage::new(kind, edits))
}

fn of_side(path: &Path, len: usize) -> Vec<Damage> {
    let path = path.to_owned();
    vec![
        lost(Kind::SideLost, [&path]),
        Damage::new(Kind::SideDamaged, vec![Edit::Cut(path.clone(), len / 2)]),
        Damage::new(Kind::SideDamaged, vec![Edit::Zero(path, 0)]),
    ]
}

/// Cuts of a log that are tried at most; the places are drawn.
const CUTS_OF_LOG_MAX: usize = 24;

fn of_log(kind: Kind, path: &Path, ends: &[u64], random: &mut Random) -> Vec<Damage> {
    let mut damages = cuts(kind, path, ends);
    while damages.len() > CUTS_OF_LOG_MAX {
        damages.swap_remove(random.below(damages.len() as u64) as usize);
    }
    damages.push(lost(kind, [&path.to_owned()]));
    damages.push(unreadable(kind, path, place(ends, random)));
    damages.push(Damage::new(kind, vec![Edit::Cut(path.to_owned(), 0)]));
    let zeroed = [0, *random.pick(&[&[0], ends].concat())];
    damages.extend(zeroed.map(|from| Damage::new(kind, vec![Edit::Zero(path.to_owned(), from as usize)])));
    damages
}

/// The end of a log's part that other files prove to be synced: later logs, or the MANIFEST. Otherwise the whole file.
fn synced_through(life: &Life, vfs: &MemoryVfs, path: &Path) -> u64 {
    let (Some((FileType::Log, number)), Ok(recovered)) = (kind_of(path), recover(vfs, Path::new(DIR))) else {
        return u64::MAX;
    };
    let heads = life.files.keys().filter_map(|path| match kind_of(path) {
        Some((FileType::Log, number)) => Some(wal::read_head(vfs, path, number).ok()?.frontiers),
        _ => None,
    });
    let synced = heads.fold(recovered.log_frontiers, Frontiers::max).synced;
    match synced.log.cmp(&number) {
        Ordering::Less => 0,
        Ordering::Equal => synced.offset,
        Ordering::Greater => u64::MAX,
    }
}

/// A copy can end with the zeros of a file system's or a disk's page.
const PAGE_BYTES: usize = 4096;

fn of_table(path: &Path, len: usize, random: &mut Random) -> Vec<Damage> {
    let path = path.to_owned();
    let at = random.below(len.max(1) as u64) as usize;
    vec![
        lost(Kind::TableLost, [&path]),
        Damage::new(Kind::TableZeroed, vec![Edit::Zero(path.clone(), 0)]),
        unreadable(Kind::TableZeroed, &path, at),
        Damage::new(Kind::TableFlipped, vec![Edit::Flip(path.clone(), at)]),
        Damage::new(Kind::TableGrown, vec![Edit::Grow(path, PAGE_BYTES - len % PAGE_BYTES)]),
    ]
}

fn of_earlier(life: &Life) -> Vec<Damage> {
    let mut damages = Vec::new();
    for earlier in &life.earlier {
        let gone: Vec<Edit> = earlier
            .iter()
            .filter(|(path, _)| !life.files.contains_key(*path))
            .map(|(path, bytes)| Edit::Write(path.clone(), bytes.clone()))
            .collect();
        let is_table = |edit: &&Edit| matches!(kind_of(edit.path()), Some((FileType::Table, _)));
        let tables: Vec<Edit> = gone.iter().filter(is_table).cloned().collect();
        if !tables.is_empty() {
            damages.push(Damage::new(Kind::TablesLeft, tables));
        }
        // A copy's directory was another one at earlier instants.
        if matches!(life.ending, Ending::Killed | Ending::Closed) {
            damages.extend((!gone.is_empty()).then(|| Damage::new(Kind::EarlierLeft, gone)));
            damages.extend(current_of(earlier, life));
            damages.extend(later_lost(earlier, life));
        }
    }
    damages
}

/// CURRENT and the MANIFEST of an earlier instant, if the MANIFEST has another name by now.
fn current_of(earlier: &Files, life: &Life) -> Option<Damage> {
    let current = Path::new(DIR).join("CURRENT");
    let text = earlier.get(&current).filter(|text| life.files.get(&current) != Some(text))?;
    let manifest = Path::new(DIR).join(String::from_utf8_lossy(text).trim_end());
    let bytes = earlier.get(&manifest)?.clone();
    let edits = vec![Edit::Write(current, text.clone()), Edit::Write(manifest, bytes)];
    Some(Damage::new(Kind::CurrentOfEarlier, edits))
}

/// The files of the last MANIFEST are lost, and those of an earlier one are left. If CURRENT is lost, too, nothing may tell.
fn later_lost(earlier: &Files, life: &Life) -> Option<Damage> {
    let is_manifest = |path: &&PathBuf| matches!(kind_of(path), Some((FileType::Manifest | FileType::ManifestCopy, _)));
    let of = |files: &Files| files.keys().filter(is_manifest).cloned().collect::<Vec<_>>();
    let (before, now) = (of(earlier), of(&life.files));
    let is_later = before.iter().all(|path| !now.contains(path));
    let back = before.iter().filter_map(|path| Some(Edit::Write(path.clone(), earlier.get(path)?.clone())));
    is_later.then(|| Damage::new(Kind::LaterLost, now.into_iter().map(Edit::Remove).chain(back).collect()))
}

/// Each table, log and MANIFEST exchanged for another life's of the same name.
pub fn exchanges(life: &Life, stranger: &Files) -> Vec<Damage> {
    let exchanged = |path: &PathBuf| {
        let kind = match kind_of(path)? {
            (FileType::Table, _) => Kind::TableExchanged,
            (FileType::Log, _) => Kind::LogExchanged, // RocksDB's have no id
            (FileType::Manifest, _) if life.is_own() => Kind::ManifestExchanged,
            (FileType::ManifestCopy, _) => Kind::Copy,
            _ => return None,
        };
        Some(Damage::new(kind, vec![Edit::Write(path.clone(), stranger.get(path)?.clone())]))
    };
    life.files.keys().filter_map(exchanged).collect()
}

/// The last log with a record.
fn last_log(life: &Life, vfs: &MemoryVfs) -> EngineResult<Option<PathBuf>> {
    let mut last = None;
    for path in life.files.keys() {
        let is_log = matches!(kind_of(path), Some((FileType::Log | FileType::RocksLog, _)));
        if is_log && !ends_of_log(vfs, path)?.is_empty() {
            last = Some(path.clone());
        }
    }
    Ok(last)
}

/// Ends of a log's records.
fn ends_of_log(vfs: &MemoryVfs, path: &Path) -> EngineResult<Vec<u64>> {
    let Some((kind, number)) = kind_of(path) else { return Ok(Vec::new()) };
    if kind == FileType::RocksLog {
        return ends_of_framed(vfs, path, Some(number.0));
    }
    let mut ends = Vec::new();
    let Some(mut reader) = LogReader::open(vfs, path, number)? else { return Ok(ends) };
    while reader.read()?.is_some() {
        ends.push(reader.offset());
    }
    Ok(ends)
}

/// Ends of the records of a file in RocksDB's framing.
fn ends_of_framed(vfs: &MemoryVfs, path: &Path, number: Option<u64>) -> EngineResult<Vec<u64>> {
    let mut reader = FramedReader::open(vfs, path, number, IoClass::Manifest)?;
    let mut ends = Vec::new();
    while reader.next()?.is_some() {
        ends.push(reader.good_end());
    }
    Ok(ends)
}
