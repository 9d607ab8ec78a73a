//! Builds the next version from a base version and edits. Needs no lock.
//!
//! The cost grows with the edits and the tables of touched levels; untouched levels are shared with the base. Invalid
//! edits are refused: deleting a missing table, adding a table twice, overlapping a neighbour in a sorted level.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use base::{Error, FileNumber, InternalOrder, Result, UserOrder};

use super::edit::VersionEdit;
use super::file_name::{self, FileType};
use super::level::Level;
use super::table_file::{FileMeta, TableFile};
use super::table_store::TableStore;
use super::version::Version;

/// Accumulates edits of one family over a base version.
pub struct VersionBuilder<'a> {
    base: &'a Version,
    store: &'a Arc<TableStore>,
    /// Position of each table in its base level; `None` for levels not named by any edit.
    places: Vec<Option<HashMap<FileNumber, usize>>>,
    /// Handles of tables in use but in no version yet.
    adopted: HashMap<FileNumber, Arc<TableFile>>,
    changes: BTreeMap<FileNumber, Change>,
    is_for_planning: bool,
}

/// Change of one table.
#[derive(Default)]
struct Change {
    /// Level, position and handle in the base.
    before: Option<(usize, usize, Arc<TableFile>)>,
    after: Option<(usize, FileMeta)>,
}

/// Result of a build.
pub struct BuiltVersion {
    pub version: Version,
    /// Base tables absent from `version`. The caller marks them obsolete once the edits are durable (V3).
    pub removed: Vec<Arc<TableFile>>,
}

/// Change of one level.
#[derive(Default)]
struct LevelChange {
    /// Positions in the base level, unordered.
    removed: Vec<usize>,
    added: Vec<Arc<TableFile>>,
}

impl<'a> VersionBuilder<'a> {
    pub fn new(base: &'a Version, store: &'a Arc<TableStore>) -> Self {
        let places = vec![None; base.num_levels()];
        VersionBuilder {
            base,
            store,
            places,
            adopted: HashMap::new(),
            changes: BTreeMap::new(),
            is_for_planning: false,
        }
    }

    /// Reuses `handles` for added tables, so open tables stay open and pins hold (Q3).
    #[must_use]
    pub fn adopting(mut self, handles: &[Arc<TableFile>]) -> Self {
        self.adopted.extend(handles.iter().map(|file| (file.number(), file.clone())));
        self
    }

    /// Builds a version for inspection only, never installed. Its new tables keep no file and no WAL alive, so an edit
    /// may meanwhile remove tables of the base.
    #[must_use]
    pub fn for_planning(mut self) -> Self {
        self.is_for_planning = true;
        self
    }

    /// Applies one edit after the earlier ones: deletions first, then additions.
    ///
    /// # Errors
    /// `Corruption`, naming the table, if the edit does not fit. The builder is unusable afterwards.
    pub fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        for &(level, number) in &edit.deleted {
            self.delete(level, number)?;
        }
        for (level, meta) in &edit.added {
            self.add(*level, meta)?;
        }
        Ok(())
    }

    fn delete(&mut self, level: usize, number: FileNumber) -> Result<()> {
        if let Some(change) = self.changes.get_mut(&number) {
            return match change.after {
                Some((at, _)) if at == level => {
                    change.after = None;
                    Ok(())
                }
                _ => Err(not_there(level, number)),
            };
        }
        let (place, file) = self.find_in_base(level, number).ok_or_else(|| not_there(level, number))?;
        self.changes.insert(number, Change { before: Some((level, place, file)), after: None });
        Ok(())
    }

    fn add(&mut self, level: usize, meta: &FileMeta) -> Result<()> {
        let number = meta.number;
        if level >= self.base.num_levels() {
            let what = format!("is in level {level}, but the family has {} levels", self.base.num_levels());
            return Err(refused(number, &what));
        }
        // One entry needs no comparator: it may be a program's own.
        if meta.smallest != meta.largest
            && self.base.order().compare(&meta.smallest, &meta.largest) == Ordering::Greater
        {
            return Err(refused(number, "has its smallest key above its largest"));
        }
        let is_there = match self.changes.get(&number) {
            Some(change) => change.after.is_some(),
            None => self.find_in_base(level, number).is_some(),
        };
        if is_there {
            return Err(refused(number, &format!("is added to level {level} but is there already")));
        }
        let change = self.changes.entry(number).or_default();
        if change.before.as_ref().is_some_and(|(_, _, file)| file.meta.path_id != meta.path_id) {
            return Err(refused(number, "changes its path, which a table never does"));
        }
        if change.before.as_ref().is_some_and(|(_, _, file)| file.meta.backing != meta.backing) {
            return Err(refused(number, "changes its file, which a table never does"));
        }
        change.after = Some((level, meta.clone()));
        Ok(())
    }

    fn find_in_base(&mut self, level: usize, number: FileNumber) -> Option<(usize, Arc<TableFile>)> {
        let files = self.base.level(level);
        let places = self
            .places
            .get_mut(level)?
            .get_or_insert_with(|| files.iter().enumerate().map(|(place, file)| (file.number(), place)).collect());
        let place = *places.get(&number)?;
        Some((place, files.get(place)?.clone()))
    }

    /// Base tables in the backing files of new virtual tables, by file number. Each backing file has one, except at
    /// recovery: the edit removing its last table adds the virtual ones.
    fn tables_in_files_of_new(&self) -> TablesInFiles {
        let new = self.changes.values().filter(|change| change.before.is_none());
        let backings = new.filter_map(|change| change.after.as_ref()?.1.backing);
        let wanted: HashSet<FileNumber> = backings.map(|backing| backing.number).collect();
        if wanted.is_empty() || self.is_for_planning {
            return HashMap::new();
        }
        let all = self.base.all_files().map(|(_, file)| (file.meta.physical_number(), file));
        all.filter(|(number, _)| wanted.contains(number)).map(|(number, file)| (number, file.clone())).collect()
    }

    /// Returns the version after all edits.
    ///
    /// # Errors
    /// `Corruption`, naming both tables, if two overlap in a sorted level.
    pub fn build(mut self) -> Result<BuiltVersion> {
        let mut level_changes: Vec<LevelChange> = Vec::new();
        level_changes.resize_with(self.base.num_levels(), LevelChange::default);
        let mut removed = Vec::new();
        let mut in_files = self.tables_in_files_of_new();
        let new_file = |meta| if self.is_for_planning { self.store.planned_file(meta) } else { self.store.file(meta) };
        for change in self.changes.into_values() {
            if let Some((level, place, _)) = &change.before
                && let Some(of_level) = level_changes.get_mut(*level)
            {
                of_level.removed.push(*place);
            }
            match (change.before, change.after) {
                (None, None) => {}
                (Some((_, _, file)), None) => removed.push(file),
                (before, Some((level, meta))) => {
                    let known = before.map(|(_, _, file)| file).or_else(|| self.adopted.remove(&meta.number));
                    let file = handle(&new_file, known, meta, &mut in_files);
                    if let Some(of_level) = level_changes.get_mut(level) {
                        of_level.added.push(file);
                    }
                }
            }
        }
        removed.sort_unstable_by_key(|file| file.number());
        let order = self.base.order();
        let mut levels = Vec::with_capacity(level_changes.len());
        for (number, (base, change)) in self.base.levels().iter().zip(level_changes).enumerate() {
            levels.push(match number {
                _ if change.removed.is_empty() && change.added.is_empty() => base.clone(),
                0 => Arc::new(build_level_zero(&order.user, base, change)),
                _ => Arc::new(build_sorted_level(order, number, base, change)?),
            });
        }
        Ok(BuiltVersion { version: self.base.followed_by(levels), removed })
    }
}

/// One table in each backing file of the new virtual tables, by file number.
type TablesInFiles = HashMap<FileNumber, Arc<TableFile>>;

/// Returns the handle of a table in the next version. A known handle with unchanged metadata is reused, so an open
/// table stays open; else its life is shared, so pins hold. A new virtual table shares the life of a table in the same
/// file, so the file outlives both (Q3).
fn handle(
    new_file: &dyn Fn(FileMeta) -> Arc<TableFile>,
    before: Option<Arc<TableFile>>,
    meta: FileMeta,
    in_files: &mut TablesInFiles,
) -> Arc<TableFile> {
    match before {
        Some(file) if file.meta == meta => return file,
        Some(file) => return file.with_meta(meta),
        None => {}
    }
    let Some(backing) = meta.backing else { return new_file(meta) };
    let file = match in_files.get(&backing.number) {
        Some(other) => other.beside(meta),
        None => new_file(meta),
    };
    in_files.insert(backing.number, file.clone());
    file
}

/// Newest first, as in RocksDB: by epoch, then sequence numbers, then file number.
fn newest_first(a: &Arc<TableFile>, b: &Arc<TableFile>) -> Ordering {
    let key =
        |file: &TableFile| (file.meta.epoch_number, file.meta.largest_seq, file.meta.smallest_seq, file.meta.number);
    key(b).cmp(&key(a))
}

fn build_level_zero(order: &UserOrder, base: &Level, change: LevelChange) -> Level {
    let LevelChange { mut removed, added } = change;
    removed.sort_unstable();
    let kept = base.files().iter().enumerate().filter(|(place, _)| removed.binary_search(place).is_err());
    let mut files: Vec<_> = kept.map(|(_, file)| file.clone()).chain(added).collect();
    files.sort_by(newest_first);
    let mut level = Level::with_capacity(files.len());
    for file in files {
        level.push(order, file);
    }
    level
}

fn build_sorted_level(order: &InternalOrder, number: usize, base: &Level, change: LevelChange) -> Result<Level> {
    let LevelChange { mut removed, mut added } = change;
    removed.sort_unstable();
    added.sort_by(|a, b| order.compare(&a.meta.smallest, &b.meta.smallest));
    let capacity = (base.files().len() + added.len()).saturating_sub(removed.len());
    let mut level = SortedLevel {
        order,
        number,
        base,
        removed: removed.into_iter().peekable(),
        copied: 0,
        built: Level::with_capacity(capacity),
        last_is_new: false,
    };
    for file in added {
        level.copy_below(Some(&file.meta.smallest))?;
        level.push_new(file)?;
    }
    level.copy_below(None)?;
    Ok(level.built)
}

/// Merge of base and added tables into a sorted level. Base tables do not overlap each other, so only pairs with an
/// added table are compared.
struct SortedLevel<'a> {
    order: &'a InternalOrder,
    number: usize,
    base: &'a Level,
    removed: std::iter::Peekable<std::vec::IntoIter<usize>>,
    /// Base tables copied or skipped so far.
    copied: usize,
    built: Level,
    last_is_new: bool,
}

impl SortedLevel<'_> {
    /// Copies the remaining base tables with a smallest key below `bound`; all of them if `None`.
    fn copy_below(&mut self, bound: Option<&[u8]>) -> Result<()> {
        let rest = self.base.files().get(self.copied..).unwrap_or(&[]);
        let count = bound.map_or(rest.len(), |bound| {
            rest.partition_point(|file| self.order.compare(&file.meta.smallest, bound) == Ordering::Less)
        });
        for (place, file) in rest.iter().enumerate().take(count).map(|(i, file)| (self.copied + i, file)) {
            if self.removed.next_if_eq(&place).is_some() {
                continue;
            }
            if self.last_is_new {
                self.check_follows(file)?;
                self.last_is_new = false;
            }
            self.built.push_from(self.base, place);
        }
        self.copied += count;
        Ok(())
    }

    fn push_new(&mut self, file: Arc<TableFile>) -> Result<()> {
        self.check_follows(&file)?;
        self.built.push(&self.order.user, file);
        self.last_is_new = true;
        Ok(())
    }

    fn check_follows(&self, file: &TableFile) -> Result<()> {
        let Some(last) = self.built.files().last() else {
            return Ok(());
        };
        if self.order.compare(&last.meta.largest, &file.meta.smallest) == Ordering::Less {
            return Ok(());
        }
        let other = file_name::format(FileType::Table, last.number());
        Err(refused(file.number(), &format!("overlaps {other} in level {}", self.number)))
    }
}

fn not_there(level: usize, number: FileNumber) -> Error {
    refused(number, &format!("is deleted from level {level} but is not there"))
}

pub(super) fn refused(number: FileNumber, what: &str) -> Error {
    Error::corruption(format!("table {} {what}", file_name::format(FileType::Table, number)))
}
