//! State accumulated from edits, with every rule for a sequence of edits.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base::{Error, FamilyId, FileNumber, Result, SeqNo};
use wal::Frontiers;

use super::builder::refused;
use super::edit::{FENCE_VERSION, LogEnd, VersionEdit, WalRange};
use super::file_name::{self, FileType};
use super::recover::Recovered;
use super::session::Session;
use super::table_file::FileMeta;

/// The name of the family present in every database.
pub const DEFAULT_FAMILY_NAME: &str = "default";

/// RocksDB's logs that its MANIFEST shows to have been there.
#[derive(Clone, Debug, Default)]
pub(crate) struct RocksdbLogs {
    /// Logs that were begun after the MANIFEST was, each with the last number in tables at that time. A family's log number
    /// names one that is there; only those that an open gives, below the MANIFEST's own number, or a close
    /// (`optimize_manifest_for_recovery`), may be of none. Empty where a later open kept the MANIFEST.
    pub begun: BTreeMap<FileNumber, SeqNo>,
    /// A later open kept the MANIFEST (`reuse_manifest_on_open`). It gives numbers to families, begins its log while the last one may
    /// be empty, and does not name its own: then log numbers prove no log.
    pub is_kept: bool,
    /// Bytes of logs that were synced.
    pub synced: BTreeMap<FileNumber, u64>,
    /// First and last numbers of the tables that flushes and ingests made, those deleted since included: of each first number
    /// the largest last one. Compactions are left out, for their edits delete tables; only the first
    /// edits can add tables of compactions.
    pub flushed: BTreeMap<SeqNo, SeqNo>,
    /// By log: a number in tables when the log began. The log and later ones have larger numbers only. Flushes that name the log tell
    /// it, and opens.
    pub flushed_before: BTreeMap<FileNumber, SeqNo>,
    /// The largest first number of the tables that flushes made, and ingests: smaller ones were given.
    pub given: SeqNo,
    /// The largest number of the other tables. They can be imported, and then the numbers below are another database's.
    pub imported: SeqNo,
    /// Families that have had tables. What an import brings is a family's first.
    with_tables: BTreeSet<FamilyId>,
    /// The newest OPTIONS file, which an open writes behind its first log. 0: there is none, or it was not looked for.
    pub options: FileNumber,
    /// The newest one from before the MANIFEST, else as `options`: a new family, or a changed option, writes one, too.
    pub options_before: FileNumber,
    /// The first edits behind the state with which the MANIFEST begins.
    first: FirstEdits,
    /// The next file of the last edit, if that has no changes.
    without_changes: Option<FileNumber>,
    /// The next file of the edit that named the last log first.
    named_at: Option<FileNumber>,
    /// An open began the MANIFEST, right behind its first log.
    pub is_of_open: bool,
    /// The open had read the logs below this one. What families still need of them was there. 0: not known.
    pub read_below: FileNumber,
    /// A flush noted this one as the oldest log to keep, when all families named later ones: a transaction is prepared there.
    pub prepared_in: Option<FileNumber>,
    /// The largest number of a table without sequence numbers in the state with which the MANIFEST begins.
    pub unnumbered: FileNumber,
}

/// The edits that came with a new MANIFEST. All tell the same next file: the MANIFEST's number, or a smaller one.
#[derive(Clone, Debug, Default)]
struct FirstEdits {
    next_file: Option<FileNumber>,
    /// The last number by then.
    last: SeqNo,
    /// How many edits without changes the others follow. An open of RocksDB's begins with several, and the edit for which another
    /// MANIFEST is begun anew is one at most.
    without_changes: u32,
    has_changes: bool,
    /// The largest log number of a family.
    log: FileNumber,
}

impl FirstEdits {
    fn add(&mut self, edit: &VersionEdit, last_seq: SeqNo) {
        if self.next_file.is_none() {
            (self.next_file, self.last) = (edit.next_file, last_seq);
        }
        if edit.next_file.is_none() || edit.next_file != self.next_file {
            // The last edit of an open counts its own MANIFEST in.
            let behind = self.next_file.map(|next| FileNumber(next.0 + 1));
            if self.log.0 == 0 && behind.is_some() && edit.next_file == behind && edit.added.is_empty() {
                self.log = edit.log_number.unwrap_or_default();
            }
            return;
        }
        self.has_changes |= has_changes(edit);
        self.without_changes += u32::from(!self.has_changes && edit.prev_log.is_some());
        self.log = self.log.max(edit.log_number.unwrap_or_default());
    }
}

/// Whether an edit tells more than how far the database has come.
fn has_changes(edit: &VersionEdit) -> bool {
    *edit
        != VersionEdit {
            prev_log: edit.prev_log,
            next_file: edit.next_file,
            last_seq: edit.last_seq,
            max_family: edit.max_family,
            atomic_group: edit.atomic_group,
            ..VersionEdit::default()
        }
}

/// Tables of flushes that are remembered; then the oldest are forgotten. RocksDB keeps far fewer logs.
const FLUSHED_MAX: usize = 1 << 16;

impl RocksdbLogs {
    /// The last log that has to be there, if the database is no copy.
    pub fn last_begun(&self) -> Option<FileNumber> {
        self.begun.last_key_value().map(|(number, _)| *number)
    }

    /// Whether a flush began the log, which RocksDB does only once the one before has writes. A new family names the current one, and
    /// so may a flush of unlogged writes.
    pub fn is_of_flush(&self, log: FileNumber) -> bool {
        self.begun.contains_key(&log) && self.flushed_before.contains_key(&log)
    }

    /// A number in tables when the log was begun, which its own are above: as large a one as is known.
    pub fn in_tables_before(&self, log: FileNumber) -> SeqNo {
        let of_flushes = self.flushed_before.range(..=log).next_back().map(|(_, last)| *last);
        of_flushes.max(self.begun.get(&log).copied()).unwrap_or_default()
    }

    /// `last_seq`: as of the MANIFEST so far.
    fn apply(&mut self, edit: &VersionEdit, last_seq: SeqNo) {
        self.first.add(edit, last_seq);
        self.find_kept(edit);
        // A flush has a table, or RocksDB wrote the state with which the MANIFEST begins, which names no previous log. An open, and a
        // close, give numbers without a log.
        let begins_log = edit.prev_log.is_none() || edit.add_family.is_some() || !edit.added.is_empty();
        if let Some(log) = edit.log_number.filter(|_| begins_log) {
            if !self.begun.contains_key(&log) {
                self.named_at = edit.next_file;
            }
            if self.named_at == edit.next_file {
                self.begun.insert(log, last_seq);
            }
        }
        for (log, bytes) in &edit.tracked_logs {
            let synced = self.synced.entry(*log).or_default();
            *synced = (*bytes).max(*synced);
        }
        if let Some(from) = edit.tracked_from {
            self.synced = self.synced.split_off(&from);
        }
        if let Some(kept) = edit.min_log_to_keep {
            self.begun = self.begun.split_off(&kept);
            let later = self.flushed_before.split_off(&kept);
            let earlier = std::mem::replace(&mut self.flushed_before, later).into_values().max();
            self.record_flushed_before(kept, earlier.unwrap_or_default());
        }
        let added = edit.added.iter().map(|(_, meta)| meta);
        // The state with which a MANIFEST begins tells no next file. RocksDB's repair tells one, and log 0, which no flush names.
        let is_later = edit.next_file.is_some() && edit.log_number != Some(FileNumber(0));
        let is_first = !edit.added.is_empty() && self.with_tables.insert(edit.family);
        let may_be_import = is_first && edit.family != FamilyId::DEFAULT;
        for meta in added.clone().filter(|meta| !is_later && meta.smallest_seq == SeqNo::ZERO) {
            self.unnumbered = self.unnumbered.max(meta.number);
        }
        for meta in added.filter(|meta| edit.deleted.is_empty() && meta.smallest_seq > SeqNo::ZERO) {
            let (first, last) = (meta.smallest_seq, meta.largest_seq);
            let largest = self.flushed.entry(first).or_default();
            *largest = last.max(*largest);
            if let Some(log) = edit.log_number.filter(|_| is_later) {
                self.record_flushed_before(log, last);
            }
            let is_ingest = !may_be_import && first == last;
            match is_later && (edit.log_number.is_some() || is_ingest) {
                true => self.given = self.given.max(first),
                false => self.imported = self.imported.max(last),
            }
        }
        while self.flushed.len() > FLUSHED_MAX {
            self.flushed.pop_first();
        }
    }

    /// An open begins with two edits without changes, which tell one next file. Those with which the MANIFEST begins are of the open
    /// that began it.
    fn find_kept(&mut self, edit: &VersionEdit) {
        let is_without = edit.prev_log.is_some() && !has_changes(edit);
        let again = edit.next_file.filter(|next| is_without && self.first.next_file < Some(*next));
        self.is_kept |= again.is_some() && again == self.without_changes;
        self.without_changes = again;
    }

    fn record_flushed_before(&mut self, log: FileNumber, last: SeqNo) {
        let before = self.flushed_before.entry(log).or_default();
        *before = last.max(*before);
    }

    /// All edits of the MANIFEST of this number are applied.
    fn finish(&mut self, manifest: FileNumber) {
        // What the making of a database begins an open either keeps or lets go.
        self.is_kept |= manifest.0 == 1;
        self.begun.retain(|log, _| *log > manifest && !self.is_kept);
        let first = self.first.clone();
        if first.without_changes > 1 && first.next_file <= Some(manifest) {
            let own = FileNumber(manifest.0.saturating_sub(1));
            // It gives each family without changes a log: without such a one all had changes in older logs.
            (self.is_of_open, self.read_below) = (true, if first.log.0 > 0 { first.log } else { own });
            self.record_flushed_before(own, first.last);
        }
        let mut reached = SeqNo::ZERO;
        self.flushed_before.retain(|_, last| {
            reached = reached.max(*last);
            *last = reached;
            reached > SeqNo::ZERO
        });
    }

    /// Whether the table of a flush or ingest has changes on both sides of the number, or with it.
    pub fn has_flushed(&self, number: SeqNo) -> bool {
        self.flushed.range(..=number).any(|(_, largest)| *largest >= number)
    }

    /// Whether flushes may hold all from `next` up to `first`: of memtables with no write before those, one behind the other.
    pub fn flushes_may_hold(&self, next: SeqNo, first: SeqNo) -> bool {
        let mut reached = next;
        for (smallest, largest) in self.flushed.range(next..) {
            if *smallest > reached {
                break;
            }
            reached = reached.max(SeqNo(largest.0.saturating_add(1)));
        }
        first <= reached
    }
}

/// A live family.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecoveredFamily {
    pub id: FamilyId,
    pub name: String,
    /// The name of its comparator.
    pub comparator: String,
    /// Values end with their times.
    pub value_times: bool,
    /// RocksDB's WALs below this number hold only entries already in tables.
    pub log_number: FileNumber,
    /// T (F2); `None` if RocksDB wrote the MANIFEST.
    pub flushed_through: Option<SeqNo>,
    /// Ingests above T with tables already linked, ascending (F2).
    pub linked_ingests: Vec<SeqNo>,
    /// Each table with its level; by level, then by number.
    pub tables: Vec<(usize, FileMeta)>,
}

/// Edits applied so far.
#[derive(Clone, Default)]
pub(crate) struct Replay {
    families: BTreeMap<FamilyId, Family>,
    /// Ids of dropped families.
    dropped: BTreeSet<FamilyId>,
    /// Edits of an incomplete group.
    group: Vec<VersionEdit>,
    group_left: u32,
    fence: Option<u32>,
    any_edit: bool,
    db_id: Option<String>,
    next_file: Option<FileNumber>,
    last_seq: Option<SeqNo>,
    min_log_to_keep: FileNumber,
    rocksdb_logs: RocksdbLogs,
    max_family: u32,
    log_ends: BTreeMap<FileNumber, LogEnd>,
    wal_range: Option<WalRange>,
    log_frontiers: Frontiers,
    is_writers: bool,
    log_dir: Option<String>,
    home: Option<String>,
    sessions: Vec<Session>,
    options_file: Option<FileNumber>,
    warnings: Vec<String>,
    /// For a damaged MANIFEST: edits are missing, so contradictions between edits and state are tolerated.
    is_lenient: bool,
}

#[derive(Clone, Default)]
struct Family {
    name: String,
    comparator: Option<String>,
    value_times: bool,
    log_number: FileNumber,
    flushed_through: Option<SeqNo>,
    linked_ingests: BTreeSet<SeqNo>,
    tables: HashMap<FileNumber, (usize, FileMeta)>,
}

impl Replay {
    /// For the surviving edits of a damaged MANIFEST.
    pub fn lenient() -> Self {
        Replay { is_lenient: true, ..Replay::default() }
    }

    /// Whether the edits so far form a state the database once had.
    pub fn is_whole_state(&self) -> bool {
        self.group.is_empty() && self.next_file.is_some() && self.last_seq.is_some() && !self.families.is_empty()
    }

    /// Whether the last edit began a group that is not whole yet.
    pub fn is_in_group(&self) -> bool {
        !self.group.is_empty()
    }

    /// Whether we wrote the MANIFEST for our own use.
    pub fn is_fenced(&self) -> bool {
        self.fence.is_some()
    }

    /// All tables so far.
    pub fn tables(&self) -> impl Iterator<Item = &FileMeta> {
        self.families.values().flat_map(|family| family.tables.values()).map(|(_, meta)| meta)
    }

    /// The database's id, if an edit named it.
    pub fn db_id(&self) -> Option<&str> {
        self.db_id.as_deref()
    }

    /// Ids of dropped families.
    pub fn dropped(&self) -> &BTreeSet<FamilyId> {
        &self.dropped
    }

    /// Adds one edit. Edits of a group are deferred until the group is whole.
    pub fn add(&mut self, edit: VersionEdit) -> Result<()> {
        if self.is_lenient {
            return self.apply(&edit);
        }
        let Some(left) = edit.atomic_group else {
            if !self.group.is_empty() {
                return Err(Error::corruption("an edit stands inside a group that it is no part of"));
            }
            return self.apply(&edit);
        };
        if !self.group.is_empty() && self.group_left.checked_sub(1) != Some(left) {
            let what = format!("a group has {left} edits left after {}", self.group_left);
            return Err(Error::corruption(what));
        }
        self.group_left = left;
        self.group.push(edit);
        if left == 0 {
            for edit in std::mem::take(&mut self.group) {
                self.apply(&edit)?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        self.apply_fence(edit)?;
        self.apply_database(edit)?;
        if let Some(name) = &edit.add_family {
            self.add_family(edit.family, name)?;
        }
        if edit.drop_family {
            return self.drop_family(edit.family);
        }
        // The default family exists without being created.
        if edit.family == FamilyId::DEFAULT {
            self.families.entry(FamilyId::DEFAULT).or_insert_with(|| Family::named(DEFAULT_FAMILY_NAME));
        }
        let what = || Error::corruption(format!("an edit is for family {}, which does not exist", edit.family.0));
        if self.is_lenient && !self.dropped.contains(&edit.family) {
            self.families.entry(edit.family).or_default(); // its name is in a lost record
        }
        let family = match self.families.get_mut(&edit.family) {
            Some(family) => family,
            None if self.is_lenient => return Ok(()),
            None => return Err(what()),
        };
        if self.is_lenient {
            edit.deleted.iter().for_each(|(_, number)| drop(family.tables.remove(number)));
            let left = edit.added.iter().map(|(_, meta)| meta.number);
            left.for_each(|number| drop(family.tables.remove(&number)));
            return family.apply(&VersionEdit { deleted: Vec::new(), ..edit.clone() }, &mut self.warnings);
        }
        family.apply(edit, &mut self.warnings)?;
        if let Some(kept) = edit.min_log_to_keep.filter(|_| edit.next_file.is_some()) {
            let is_behind = self.families.values().all(|family| family.log_number > kept);
            self.rocksdb_logs.prepared_in = is_behind.then_some(kept);
        }
        Ok(())
    }

    /// Checks the fence: the first edit or absent, and no private field without it.
    fn apply_fence(&mut self, edit: &VersionEdit) -> Result<()> {
        if let Some(version) = edit.fence {
            if version > FENCE_VERSION {
                let what = format!("private formats of version {version}; this is version {FENCE_VERSION}");
                return Err(Error::unsupported(what));
            }
            if self.any_edit && !self.is_lenient {
                return Err(Error::corruption("the fence is not the first edit"));
            }
            self.fence = Some(version);
        }
        if self.is_lenient && edit.is_private() {
            self.fence.get_or_insert(FENCE_VERSION);
        }
        if edit.is_private() && self.fence.is_none() {
            return Err(Error::corruption("a private field stands in a MANIFEST without the fence"));
        }
        self.any_edit = true;
        Ok(())
    }

    fn apply_database(&mut self, edit: &VersionEdit) -> Result<()> {
        if edit.prev_log.is_some_and(|log| log.0 != 0) {
            return Err(Error::unsupported("a previous log, as LevelDB wrote it"));
        }
        if let Some(id) = &edit.db_id {
            self.db_id = Some(id.clone());
        }
        self.next_file = self.next_file.max(edit.next_file);
        self.last_seq = self.last_seq.max(edit.last_seq);
        self.min_log_to_keep = self.min_log_to_keep.max(edit.min_log_to_keep.unwrap_or_default());
        if self.fence.is_none() {
            self.rocksdb_logs.apply(edit, self.last_seq.unwrap_or_default());
        }
        self.max_family = self.max_family.max(edit.max_family.unwrap_or_default()).max(edit.family.0);
        self.log_ends.extend(edit.log_ends.iter().map(|end| (end.log, *end)));
        self.wal_range = edit.wal_range.or(self.wal_range);
        self.is_writers |= edit.log_frontiers.is_some() && edit.wal_range.is_some();
        self.log_frontiers = self.log_frontiers.max(edit.log_frontiers.unwrap_or_default());
        if let Some(dir) = &edit.log_dir {
            (self.log_dir, self.home) = (Some(dir.clone()), edit.home.clone());
        }
        if let Some(sessions) = &edit.sessions {
            self.sessions.clone_from(sessions);
        }
        self.options_file = self.options_file.max(edit.options_file);
        Ok(())
    }

    fn add_family(&mut self, id: FamilyId, name: &str) -> Result<()> {
        if self.is_lenient {
            self.families.entry(id).or_default().name = name.to_owned();
            return Ok(());
        }
        if self.families.contains_key(&id) || self.dropped.contains(&id) || id == FamilyId::DEFAULT {
            return Err(Error::corruption(format!("family {} is created twice", id.0)));
        }
        if name == DEFAULT_FAMILY_NAME || self.families.values().any(|family| family.name == name) {
            return Err(Error::corruption(format!("two families have the name {name:?}")));
        }
        self.families.insert(id, Family::named(name));
        Ok(())
    }

    fn drop_family(&mut self, id: FamilyId) -> Result<()> {
        if self.is_lenient {
            self.families.remove(&id);
        } else if id == FamilyId::DEFAULT || self.families.remove(&id).is_none() {
            return Err(Error::corruption(format!("family {} is dropped, but cannot be or does not exist", id.0)));
        }
        self.dropped.insert(id);
        Ok(())
    }

    /// Returns the state after the last edit. A group still incomplete was cut off; it is left out.
    pub fn finish(mut self, manifest: FileNumber) -> Result<Recovered> {
        if !self.group.is_empty() {
            self.warnings.push(format!("a group of edits lacks its last {} and is left out", self.group_left));
        }
        if self.is_lenient {
            self.next_file.get_or_insert_default();
            self.last_seq.get_or_insert_default();
            for family in self.families.values_mut() {
                family.comparator.get_or_insert_default();
            }
        }
        let (Some(next_file), Some(last_seq)) = (self.next_file, self.last_seq) else {
            return Err(Error::corruption("no log_file_number, next_file_number, last_sequence entry in MANIFEST"));
        };
        let mut families = Vec::with_capacity(self.families.len());
        let mut largest_file = manifest;
        let log_ends: Vec<_> = self.log_ends.into_values().collect();
        let mut last_written = log_ends.iter().map(|end| end.last_seq).fold(last_seq, SeqNo::max);
        let mut last_seq = last_written;
        for (id, family) in self.families {
            let family = family.finish(id)?;
            let numbers = family.tables.iter().flat_map(|(_, meta)| [meta.number, meta.physical_number()]);
            largest_file = numbers.fold(largest_file, FileNumber::max);
            last_written = family.last_written().max(last_written);
            last_seq = family.flushed_through.unwrap_or_default().max(last_seq).max(last_written);
            families.push(family);
        }
        if !self.is_lenient {
            check_backings(&families)?;
        }
        let next_file = next_file.max(FileNumber(largest_file.0.saturating_add(1)));
        let mut rocksdb_logs = self.rocksdb_logs;
        rocksdb_logs.finish(manifest);
        Ok(Recovered {
            manifest,
            manifest_end: None,
            families,
            next_file,
            noted_next: next_file,
            last_seq,
            last_written,
            max_family: self.max_family,
            min_log_to_keep: self.min_log_to_keep,
            rocksdb_logs,
            log_ends,
            wal_range: self.wal_range,
            log_frontiers: self.log_frontiers,
            is_writers: self.is_writers,
            log_dir: self.log_dir,
            home: self.home,
            sessions: self.sessions,
            options_file: self.options_file,
            db_id: self.db_id,
            fenced: self.fence.is_some(),
            substitutes: BTreeMap::new(),
            warnings: self.warnings,
        })
    }
}

impl RecoveredFamily {
    /// Whether an ingest numbered `first` through `last` is in tables.
    pub fn has_linked(&self, first: SeqNo, last: SeqNo) -> bool {
        self.flushed_through.is_some_and(|through| last <= through) || self.linked_ingests.contains(&first)
    }

    /// # Errors
    /// `InvalidArgument`: a table is in a level above `num_levels`.
    pub(crate) fn check_levels(&self, num_levels: usize) -> Result<()> {
        let needed = self.tables.iter().map(|(level, _)| level + 1).max().unwrap_or(0);
        if needed <= num_levels {
            return Ok(());
        }
        Err(Error::invalid_argument(format!(
            "db has more levels than options.num_levels: column family {:?} has tables in {needed} levels; open it with \
             num_levels={needed}",
            self.name
        )))
    }

    /// The largest sequence number of the tables and the linked ingests.
    fn last_written(&self) -> SeqNo {
        // `MAX` stands for a LevelDB table without recorded sequence numbers.
        let tables = self.tables.iter().map(|(_, meta)| meta.largest_seq).filter(|&seq| seq != SeqNo::MAX);
        let ingests = self.linked_ingests.iter().copied();
        tables.chain(ingests).fold(SeqNo::ZERO, SeqNo::max)
    }
}

impl Family {
    fn named(name: &str) -> Self {
        Family { name: name.to_string(), ..Family::default() }
    }

    fn apply(&mut self, edit: &VersionEdit, warnings: &mut Vec<String>) -> Result<()> {
        if let Some(name) = &edit.comparator {
            let known = self.comparator.get_or_insert_with(|| name.clone());
            if known != name {
                let what = format!("the family {:?} changes its comparator from {known} to {name}", self.name);
                return Err(Error::corruption(what));
            }
        }
        if let Some(log) = edit.log_number {
            if log < self.log_number {
                warnings.push(format!("the family {:?} goes back from log {} to {log}", self.name, self.log_number));
            }
            self.log_number = self.log_number.max(log);
        }
        self.value_times |= edit.value_times;
        self.flushed_through = self.flushed_through.max(edit.flushed_through);
        self.linked_ingests.extend(&edit.linked_ingests);
        for (level, number) in &edit.deleted {
            match self.tables.remove(number) {
                Some((at, _)) if at == *level => {}
                _ => return Err(refused(*number, &format!("is deleted from level {level} but is not there"))),
            }
        }
        for (level, meta) in &edit.added {
            if self.tables.insert(meta.number, (*level, meta.clone())).is_some() {
                return Err(refused(meta.number, "is added but is there already"));
            }
        }
        Ok(())
    }

    fn finish(self, id: FamilyId) -> Result<RecoveredFamily> {
        // RocksDB's first MANIFEST names none for the default family: that of the options holds.
        let comparator = match self.comparator {
            None if id == FamilyId::DEFAULT => String::new(),
            None => return Err(Error::corruption(format!("the family {:?} has no comparator", self.name))),
            Some(comparator) => comparator,
        };
        let mut tables: Vec<_> = self.tables.into_values().collect();
        tables.sort_by_key(|(level, meta)| (*level, meta.number));
        if let Some((_, meta)) = tables.iter().find(|(_, meta)| meta.oldest_blob != 0) {
            let name = file_name::format(FileType::Table, meta.number);
            return Err(Error::unsupported(format!("table {name} refers to blob file {}", meta.oldest_blob)));
        }
        infer_epochs(&mut tables);
        let flushed_through = self.flushed_through;
        let linked_ingests = self.linked_ingests.into_iter().filter(|seq| Some(*seq) > flushed_through).collect();
        let (name, value_times, log_number) = (self.name, self.value_times, self.log_number);
        Ok(RecoveredFamily { id, name, comparator, value_times, log_number, flushed_through, linked_ingests, tables })
    }
}

/// Checks backing files: each holds virtual tables of one family only, and they agree on its path and length. The file
/// is deleted when the last of them goes (Q3).
fn check_backings(families: &[RecoveredFamily]) -> Result<()> {
    let tables = || families.iter().flat_map(|family| family.tables.iter().map(move |(_, meta)| (family.id, meta)));
    let mut files = HashMap::new();
    for (family, meta) in tables() {
        let Some(backing) = meta.backing else { continue };
        let file = (family, meta.path_id, backing.file_bytes);
        if *files.entry(backing.number).or_insert(file) != file {
            let name = file_name::format(FileType::Table, backing.number);
            let what = format!("lies in {name}, of which another table says otherwise, or that is another family's");
            return Err(refused(meta.number, &what));
        }
    }
    match tables().find(|(_, meta)| files.contains_key(&meta.number)) {
        Some((_, meta)) => Err(refused(meta.number, "is there, and virtual tables are said to lie in it")),
        None => Ok(()),
    }
}

/// If any table lacks an epoch number (RocksDB before 7.10), orders level 0 by sequence numbers.
fn infer_epochs(tables: &mut [(usize, FileMeta)]) {
    if tables.iter().all(|(_, meta)| meta.epoch_number != 0) {
        return;
    }
    let mut level_zero = Vec::new();
    for (level, meta) in tables {
        // Below level 0 an epoch only bounds the epochs handed on by compactions.
        meta.epoch_number = 1;
        if *level == 0 {
            level_zero.push(meta);
        }
    }
    level_zero.sort_by_key(|meta| (meta.largest_seq, meta.smallest_seq, meta.number));
    for (meta, epoch) in level_zero.into_iter().zip(2..) {
        meta.epoch_number = epoch;
    }
}
