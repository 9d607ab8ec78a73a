//! Tables that are not as the MANIFEST or a log has them: longer, damaged, moved by an interrupted repair, exchanged, or
//! missing.

use std::path::{Path, PathBuf};

use base::{Error, ErrorKind, FamilyId, FileNumber, Result, UserOrder};
use vfs::{IfExists, IoClass};

use super::queued::Ingested;
use super::report::LostTable;
use super::tables::{WholeTable, path_of};
use super::work::{Repairing, keys_of};
use crate::background::staging::scan;
use crate::core::lost::Lost;
use crate::version::file_name::{self, FileType};
use crate::version::table_file::FileMeta;

impl Repairing<'_> {
    /// Reads a table that is named. If it is damaged, its readable part takes its place and the rest is reported as lost.
    /// `None` if nothing of it is left.
    pub(super) fn read_or_mend(&mut self, family: FamilyId, meta: &FileMeta) -> Result<Option<WholeTable>> {
        let path = path_of(self.dir, meta.physical_number());
        let bytes = match self.vfs.metadata(&path) {
            Ok(metadata) => Some(metadata.len),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let name = file_name::format(FileType::Table, meta.physical_number());
        let kept = match bytes {
            Some(_) => path.clone(),
            None => match Lost::new(&**self.vfs, self.dir).find(&name)? {
                Some(moved) => moved,
                None => {
                    self.report_missing(family, meta);
                    return Ok(None);
                }
            },
        };
        let copy = self.dir.join(file_name::format(FileType::Temp, meta.physical_number()));
        let is_longer = self.vfs.metadata(&kept)?.len > meta.physical_bytes();
        let from = if is_longer { copy.clone() } else { kept.clone() };
        let copied = if is_longer { self.copy_of(&kept, meta, &copy) } else { Ok(()) };
        let read = copied.and_then(|()| self.source.read_named(meta, &from));
        if kept != path && !is_longer && matches!(read, Ok(Some(_))) {
            self.copy_of(&kept, meta, &copy)?;
        }
        if (kept != path || is_longer) && matches!(read, Ok(Some(_))) {
            self.replace(&copy, &path, bytes)?;
        }
        let table = self.or_salvage(family, meta, Read { read, kept, from });
        if is_longer && self.vfs.exists(&copy)? {
            self.vfs.remove_file(&copy)?;
        }
        table
    }

    /// Copies as many bytes as the table has.
    fn copy_of(&self, from: &Path, meta: &FileMeta, to: &Path) -> Result<()> {
        let mut copy = self.vfs.create(to, IfExists::Truncate)?;
        scan(&**self.vfs, from, Some(meta.physical_bytes()), &mut |block| copy.append(block, IoClass::Other))?;
        copy.sync(IoClass::Other)
    }

    /// Puts a whole copy in the table's place. A file of `bytes` that is there goes to `lost/`.
    fn replace(&mut self, copy: &Path, path: &Path, bytes: Option<u64>) -> Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let lost = Lost::new(&**self.vfs, self.dir);
        let note = match bytes {
            Some(bytes) => {
                let whole = self.vfs.metadata(copy)?.len;
                let kept = lost.keep(path)?;
                lost.sync()?;
                format!(
                    "{name}: {} bytes follow the table's own {whole}; the table is whole, and the file is kept: {}",
                    bytes - whole,
                    kept.display()
                )
            }
            None => format!("{name}: an earlier repair moved it; it is whole, and is back"),
        };
        self.report.notes.push(note);
        self.vfs.rename(copy, path)?;
        self.vfs.sync_dir(self.dir)
    }

    /// The table if it could be read, or what can be salvaged of it.
    fn or_salvage(&mut self, family: FamilyId, meta: &FileMeta, table: Read) -> Result<Option<WholeTable>> {
        match &table.read {
            Err(error) if error.kind() == ErrorKind::Corruption => self.salvage(family, meta, &table, error),
            Ok(None) => {
                self.set_aside_another(family, meta, table.kept);
                Ok(None)
            }
            _ => table.read,
        }
    }

    /// Copies the readable part of a damaged table to another file, and reports the rest as lost. `None` if nothing is
    /// readable.
    fn salvage(
        &mut self,
        family: FamilyId,
        meta: &FileMeta,
        table: &Read,
        error: &Error,
    ) -> Result<Option<WholeTable>> {
        self.move_aside(&table.kept);
        let name = file_name::format(FileType::Table, meta.physical_number());
        let of_family = Some(self.name_of(family));
        let text = |why: &Error| why.to_string().replace(&*table.from.to_string_lossy(), &table.kept.to_string_lossy());
        let lost = |keys, why: &Error| {
            let (path, name, family) = (Some(table.kept.clone()), name.clone(), of_family.clone());
            LostTable { path, name, family, keys: Some(keys), why: text(why) }
        };
        self.mark_copies()?;
        let salvaged = match self.families.known.get(&family) {
            Some(of) if self.vfs.exists(&table.from)? => self.source.salvage(of, meta, &table.from, self.next_file)?,
            _ => None,
        };
        let Some(salvaged) = salvaged else {
            if table.from != table.kept && error.kind() == ErrorKind::Corruption {
                self.set_aside_another(family, meta, table.kept.clone());
                return Ok(None);
            }
            self.report.lost.push(lost(keys_of(meta), error));
            return Ok(None);
        };
        self.next_file.0 += 1;
        if salvaged.skipped.is_empty() {
            self.report.notes.push(format!("{name}: {}; all of its entries can be read, and are kept", text(error)));
        }
        let order = &salvaged.table.order.user;
        self.report.lost.extend(salvaged.skipped.into_iter().filter_map(|skipped| {
            // What a virtual table's file has besides is no loss of its own.
            let within = within_bounds(order, meta, skipped.from.clone(), skipped.through.clone());
            let whole =
                || (!meta.is_virtual()).then_some(skipped.from.zip(skipped.through).unwrap_or_else(|| keys_of(meta)));
            Some(lost(within.or_else(whole)?, &skipped.error))
        }));
        Ok(Some(salvaged.table))
    }

    /// Before the first copy: a repetition must not take it for a table that nothing names.
    fn mark_copies(&self) -> Result<()> {
        Lost::new(&**self.vfs, self.dir).mark(self.first_new)
    }

    /// As [`read_or_mend`](Self::read_or_mend), for a damaged table without a complete MANIFEST.
    pub(super) fn salvage_unnamed(
        &mut self,
        file: FileNumber,
        path: &Path,
        ingested: Option<&Ingested>,
        error: &Error,
    ) -> Result<()> {
        self.move_aside(path);
        let name = file_name::format(FileType::Table, file);
        let number = ingested.map(|ingested| ingested.number);
        self.mark_copies()?;
        let Some(salvaged) = self.source.salvage_unnamed(path, number, self.next_file)? else {
            let (path, why) = (Some(path.to_owned()), error.to_string());
            self.report.lost.push(LostTable { path, name, family: None, keys: None, why });
            return Ok(());
        };
        let copy = self.next_file;
        self.next_file.0 += 1;
        self.salvaged.insert(copy, file);
        let of_family = &salvaged.table.properties.family_name;
        let family = (!of_family.is_empty()).then(|| of_family.clone());
        self.report.lost.extend(salvaged.skipped.into_iter().map(|skipped| LostTable {
            path: Some(path.to_owned()),
            name: name.clone(),
            family: family.clone(),
            keys: skipped.from.zip(skipped.through),
            why: skipped.error.to_string(),
        }));
        self.take_guessed(salvaged.table, path_of(self.dir, copy), ingested.map(|ingested| ingested.family));
        Ok(())
    }

    fn report_missing(&mut self, family: FamilyId, meta: &FileMeta) {
        let name = file_name::format(FileType::Table, meta.physical_number());
        let why = match self.is_complete {
            true => "it is missing",
            false => "it is missing; it may have been compacted after the part of the MANIFEST that can be read",
        };
        let (family, keys) = (Some(self.name_of(family)), Some(keys_of(meta)));
        self.report.lost.push(LostTable { path: None, name, family, keys, why: why.to_owned() });
    }

    fn set_aside_another(&mut self, family: FamilyId, meta: &FileMeta, path: PathBuf) {
        self.move_aside(&path);
        let name = file_name::format(FileType::Table, meta.physical_number());
        let (family, keys) = (Some(self.name_of(family)), Some(keys_of(meta)));
        let is_queued = self.ingested().get(&meta.number).is_some_and(|ingested| ingested.is_queued);
        let says = if is_queued { "a log" } else { "the MANIFEST" };
        let why = format!("the file is another table than {says} says");
        self.report.lost.push(LostTable { path: Some(path), name, family, keys, why });
    }

    /// Plans the move of a file to `lost/`, unless it is there.
    fn move_aside(&mut self, path: &Path) {
        if path.parent() == Some(self.dir) {
            self.aside.insert(path.to_owned());
        }
    }
}

/// A table that was read.
struct Read {
    /// `None`: the file is another table.
    read: Result<Option<WholeTable>>,
    /// The file that is left of the table.
    kept: PathBuf,
    /// The file that was read.
    from: PathBuf,
}

/// The part of a damaged span that belongs to the table. A virtual table's file has more keys than the table.
fn within_bounds(
    order: &UserOrder,
    meta: &FileMeta,
    from: Option<Vec<u8>>,
    through: Option<Vec<u8>>,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let (smallest, largest) = keys_of(meta);
    let from = from.filter(|key| order.compare(key, &smallest).is_gt()).unwrap_or(smallest);
    let through = through.filter(|key| order.compare(key, &largest).is_lt()).unwrap_or(largest);
    order.compare(&from, &through).is_le().then_some((from, through))
}
