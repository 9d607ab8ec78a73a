//! Recovers families missing from the MANIFEST: from table properties, the OPTIONS file and the logs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base::options::{FamilyOptions, whole};
use base::{FamilyId, name};
use vfs::Vfs;

use super::tables::WholeTable;
use super::unnamed;
use crate::core::doubt::Doubt;
use crate::core::open_options::DEFAULT_FAMILY;
use crate::open::options_file;
use crate::version::replay::RecoveredFamily;

/// Families by id, from the MANIFEST and other files.
pub(super) struct Families {
    pub known: BTreeMap<FamilyId, RecoveredFamily>,
    pub doubts: Vec<Doubt>,
}

impl Families {
    /// The MANIFEST's families, and always the default one.
    pub fn of(recovered: impl IntoIterator<Item = RecoveredFamily>) -> Families {
        let mut known: BTreeMap<_, _> = recovered.into_iter().map(|family| (family.id, family)).collect();
        let default = known.entry(FamilyId::DEFAULT).or_insert_with(|| empty(FamilyId::DEFAULT));
        default.name = DEFAULT_FAMILY.to_owned();
        Families { known, doubts: Vec::new() }
    }

    /// Adds the family `id` of a table, with what the table's properties say of it.
    pub fn record_table(&mut self, id: FamilyId, table: &WholeTable) -> FamilyId {
        let properties = &table.properties;
        let family = self.known.entry(id).or_insert_with(|| empty(id));
        if family.name.is_empty() {
            family.name.clone_from(&properties.family_name);
        }
        family.value_times |= properties.has_value_times();
        if family.comparator.is_empty() {
            table.order.user.name().clone_into(&mut family.comparator);
        }
        id
    }

    /// Names the unnamed families, including families found only in logs.
    pub fn name_the_rest(&mut self, vfs: &dyn Vfs, dir: &Path, of_logs: &BTreeSet<FamilyId>) {
        for id in of_logs {
            self.known.entry(*id).or_insert_with(|| empty(*id));
        }
        self.rename_predecessors();
        let taken: BTreeSet<String> = self.known.values().map(|family| family.name.clone()).collect();
        let (stored, is_changing) = stored_families(vfs, dir).unzip();
        let is_changing = is_changing.unwrap_or(false);
        let names = |families: &Vec<(String, FamilyOptions)>| families.iter().map(|(name, _)| name.clone()).collect();
        let names: Option<Vec<String>> = stored.as_ref().map(names);
        self.doubt_dropped(names.as_deref(), is_changing);
        let mut free = names.unwrap_or_default();
        free.retain(|name| !taken.contains(name));
        let nameless = self.known.values_mut().filter(|family| family.name.is_empty());
        let nameless: Vec<_> = nameless.collect();
        // Both are in order of creation.
        let names: Vec<Option<String>> = match free.len() == nameless.len() {
            true => free.into_iter().map(Some).collect(),
            false => vec![None; nameless.len()],
        };
        let is_certain = nameless.len() == 1 && !is_changing;
        for (family, name) in nameless.into_iter().zip(names) {
            let is_stored = name.is_some();
            family.name = name.unwrap_or_else(|| unnamed(family.id));
            if !(is_stored && is_certain) {
                let name = name::quoted(&family.name);
                let what = format!("no file names column family {}; its name now is {name}", family.id.0);
                self.doubts.push(Doubt::of_family(&family.name, what));
            }
        }
        let timed: Vec<_> = stored.into_iter().flatten().filter(|(_, options)| *options.value_times).collect();
        for family in self.known.values_mut() {
            family.value_times |= timed.iter().any(|(name, _)| *name == family.name);
        }
    }

    /// A name is free again once its family was dropped: of several families, the youngest has it.
    fn rename_predecessors(&mut self) {
        let mut taken = BTreeSet::new();
        for (id, family) in self.known.iter_mut().rev().filter(|(_, family)| !family.name.is_empty()) {
            if taken.insert(family.name.clone()) {
                continue;
            }
            let was = std::mem::replace(&mut family.name, unnamed(*id));
            let what = format!(
                "it is back, since files of it are there; it was {was:?}, and was dropped before another had the name"
            );
            self.doubts.push(Doubt::of_family(&family.name, what));
        }
    }

    /// Doubts families missing from the OPTIONS file. Dropping a family rewrites the file, but the family's own files
    /// may remain. With `is_changing` the file is older than the last changes.
    fn doubt_dropped(&mut self, stored: Option<&[String]>, is_changing: bool) {
        let Some(stored) = stored else { return };
        let names = self.known.values().map(|family| &family.name);
        let unknown =
            names.filter(|name| !name.is_empty() && *name != DEFAULT_FAMILY && (is_changing || !stored.contains(name)));
        self.doubts.extend(unknown.map(|name| {
            let why = match stored.contains(name) {
                true => "families changed when the OPTIONS file was written",
                false => "the OPTIONS file does not name it",
            };
            let what = format!("it is back, since files of it are there; it may have been dropped: {why}");
            Doubt::of_family(name, what)
        }));
    }
}

fn empty(id: FamilyId) -> RecoveredFamily {
    RecoveredFamily { id, ..RecoveredFamily::default() }
}

/// The families of the newest OPTIONS file, if it is whole; and whether they changed when it was written.
fn stored_families(vfs: &dyn Vfs, dir: &Path) -> Option<(Vec<(String, FamilyOptions)>, bool)> {
    let (_, bytes) = options_file::newest(vfs, dir).ok()??;
    Some((options_file::families_in(&bytes).ok()??, whole::is_marked(&bytes)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vfs::{CrashPolicy, MemoryVfs};

    use super::*;
    use crate::internal::{Database, OpenOptions, OtherFamilies, RepairReport, WriteOptions};
    use crate::maintenance::repair::repair;
    use crate::version::file_name::{self, FileType, numbers_in};

    fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
        let other_families = OtherFamilies::OpenWith(Box::default());
        OpenOptions { vfs: vfs.clone(), other_families, ..OpenOptions::create_if_missing() }
    }

    /// What a repair without MANIFESTs says of a family with a table that was dropped after `before` other families were made.
    fn repaired_after(before: usize) -> RepairReport {
        let vfs = MemoryVfs::new(1);
        let db = Database::open("/db", &options(&vfs)).unwrap();
        let gone = db.create_family("gone", FamilyOptions::default()).unwrap();
        db.put(&gone, b"a", b"1", &WriteOptions::default()).unwrap();
        db.flush(&[&gone]).unwrap();
        vfs.sleep(std::time::Duration::from_secs(10));
        (0..before).for_each(|i| drop(db.create_family(&format!("f{i}"), FamilyOptions::default()).unwrap()));
        let _reads = db.iter(&gone, &Default::default()).unwrap(); // keeps the table
        db.drop_family(&gone).unwrap();
        let killed = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
        for kind in [FileType::Manifest, FileType::ManifestCopy] {
            for number in numbers_in(&*killed, Path::new("/db"), kind).unwrap() {
                killed.remove_file(&Path::new("/db").join(file_name::format(kind, number))).unwrap();
            }
        }
        repair("/db", &options(&killed)).unwrap()
    }

    #[test]
    fn family_that_may_have_been_dropped_is_in_doubt() {
        for (before, why) in
            [(0, "does not name it"), (8, "does not name it"), (20, "families changed"), (29, "families changed")]
        {
            let report = repaired_after(before);
            let told = |family: &str| {
                let doubts = report.doubts.iter().filter(|doubt| doubt.family.as_deref() == Some(family));
                doubts.map(|doubt| doubt.why.clone()).collect::<Vec<_>>()
            };
            assert!(told("gone").iter().any(|told| told.contains(why)), "after {before}: {report}");
        }
    }
}
