//! Recovers families missing from the MANIFEST: from table properties, the OPTIONS file and the logs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base::FamilyId;
use base::options::FamilyOptions;
use vfs::Vfs;

use super::tables::WholeTable;
use super::unnamed;
use crate::core::doubt::Doubt;
use crate::database::handle::DEFAULT_FAMILY;
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
    pub fn note_table(&mut self, id: FamilyId, table: &WholeTable) -> FamilyId {
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
        let stored = stored_families(vfs, dir);
        let names = |families: &Vec<(String, FamilyOptions)>| families.iter().map(|(name, _)| name.clone()).collect();
        let names: Option<Vec<String>> = stored.as_ref().map(names);
        self.doubt_dropped(names.as_deref());
        let mut free = names.unwrap_or_default();
        free.retain(|name| !taken.contains(name));
        let nameless = self.known.values_mut().filter(|family| family.name.is_empty());
        let nameless: Vec<_> = nameless.collect();
        // Both are in order of creation.
        let names: Vec<Option<String>> = match free.len() == nameless.len() {
            true => free.into_iter().map(Some).collect(),
            false => vec![None; nameless.len()],
        };
        let is_certain = nameless.len() == 1;
        for (family, name) in nameless.into_iter().zip(names) {
            let is_stored = name.is_some();
            family.name = name.unwrap_or_else(|| unnamed(family.id));
            if !(is_stored && is_certain) {
                let what = format!("no file names column family {}; its name now is {:?}", family.id.0, family.name);
                self.doubts.push(Doubt::of_family(&family.name, what));
            }
        }
        let timed: Vec<_> = stored.into_iter().flatten().filter(|(_, options)| options.value_times).collect();
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
    /// may remain.
    fn doubt_dropped(&mut self, stored: Option<&[String]>) {
        let Some(stored) = stored else { return };
        let is_unknown = |family: &&RecoveredFamily| !family.name.is_empty() && !stored.contains(&family.name);
        let unknown = self.known.values().filter(is_unknown).map(|family| &family.name);
        self.doubts.extend(unknown.map(|name| {
            let what =
                "it is back, since files of it are there; it may have been dropped: the OPTIONS file does not name it";
            Doubt::of_family(name, what)
        }));
    }
}

fn empty(id: FamilyId) -> RecoveredFamily {
    RecoveredFamily { id, ..RecoveredFamily::default() }
}

/// The families of the newest OPTIONS file, if it is whole.
fn stored_families(vfs: &dyn Vfs, dir: &Path) -> Option<Vec<(String, FamilyOptions)>> {
    let (_, bytes) = options_file::newest(vfs, dir).ok()??;
    options_file::families_in(&bytes).ok()?
}
