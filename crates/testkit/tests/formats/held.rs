//! Features present in a stored directory, checked so that each directory keeps covering its purpose.

use std::collections::BTreeSet;
use std::path::Path;

use testkit::engine::Db;
use testkit::engine::version::recover::recover;
use vfs::CrashPolicy;

use crate::life::{DIR, Life};
use crate::store;

/// # Panics
/// The features differ from those after `holds` in `life.txt`.
pub fn check(folder: &Path) {
    let life = Life::of(folder);
    let vfs = store::load(folder).crash_clone(1, CrashPolicy::ProcessKilled);
    let mut held = BTreeSet::new();
    for path in vfs.all_files() {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("splog" | "sst") | None => false, // of most
            Some(extension) => held.insert(extension.to_owned()),
        };
    }
    let families = recover(&*vfs, Path::new(DIR)).unwrap().families;
    if families.iter().any(|family| !family.linked_ingests.is_empty()) {
        held.insert("linked-under".to_owned());
    }
    let db = Db::open(DIR, &life.options(&vfs, true)).unwrap();
    for file in db.live_files() {
        let is = [("queued", file.is_queued), ("virtual", file.is_virtual)];
        held.extend(is.iter().filter(|(_, is)| *is).map(|(word, _)| (*word).to_owned()));
    }
    if db.int_property(&db.default_family(), "spillway.value-log-bytes").unwrap_or(0) > 0 {
        held.insert("references".to_owned());
    }
    let held = held.into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(held, life.holds, "{}", folder.display());
}
