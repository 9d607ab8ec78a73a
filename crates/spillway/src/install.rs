//! The last step of every job: recheck, make the edit durable, publish. Keeps V1-V3, F2, D4.

use std::sync::Arc;

use base::{Error, FileNumber, Result, SeqNo};

use crate::core::{Core, FamilyState, State};
use crate::family::Family;
use crate::version::builder::VersionBuilder;
use crate::version::edit::VersionEdit;
use crate::version::file_name::FileType;
use crate::version::manifest::ManifestWriter;
use crate::version::purge::ObsoleteFile;

impl Core {
    /// Applies `edit` to its family. `still_stands` is asked under the state lock whether the job's inputs are what they
    /// were (V2); `and_then` changes the rest of the family's state in the same step as the version. False where the
    /// inputs no longer stand, or the family is gone: the output is to be dropped.
    ///
    /// # Errors
    /// A failure of the MANIFEST, after which the database is read-only (D4).
    pub fn install(
        &self,
        mut edit: VersionEdit,
        still_stands: impl FnOnce(&FamilyState) -> bool,
        and_then: impl FnOnce(&mut FamilyState),
    ) -> Result<bool> {
        let id = edit.family;
        let mut manifest = self.manifest.lock();
        let (base, tables) = {
            let state = self.state.lock();
            match state.families.get(&id) {
                Some(family) if still_stands(family) => (family.version.clone(), family.family.tables().clone()),
                _ => return Ok(false),
            }
        };
        edit.next_file = Some(self.context.numbers.peek());
        edit.last_seq = Some(self.pipeline.visible());
        // Only the holder of the manifest lock changes versions, so `base` stands until the swap below.
        let mut builder = VersionBuilder::new(&base, &tables);
        builder.apply(&edit)?;
        let built = builder.build()?;
        let writer = manifest.as_mut().ok_or_else(|| Error::closed("the database is closed"))?;
        writer.commit(std::slice::from_ref(&edit)).inspect_err(|e| self.fail(e))?;
        for file in &built.removed {
            file.mark_obsolete(); // the edit is durable (V3)
        }
        let mut state = self.state.lock();
        let old_view = state.families.get_mut(&id).map(|family| {
            family.version = Arc::new(built.version);
            family.refresh_pending_bytes();
            and_then(family);
            family.publish_view()
        });
        self.refresh_debt(&state);
        let needed_after = needed_after(&state);
        drop(state);
        let rolled = self.roll_manifest_if_long(&mut manifest);
        drop(manifest);
        drop((old_view, base, built.removed));
        rolled?;
        self.logs.release_through(needed_after);
        self.state_changed.notify_all();
        self.upkeep.raise();
        Ok(true)
    }

    /// Goes on in a new MANIFEST where the present one is long. The caller holds the manifest lock, so that nothing is
    /// installed meanwhile.
    fn roll_manifest_if_long(&self, manifest: &mut Option<ManifestWriter>) -> Result<()> {
        let Some(writer) = manifest.as_mut().filter(|writer| writer.wants_roll_over()) else { return Ok(()) };
        let snapshot = self.manifest_snapshot(self.logs.recovered_ends());
        let old = writer.roll_over(self.context.numbers.take(), &snapshot).inspect_err(|e| self.fail(e))?;
        self.purge.push(ObsoleteFile { file_type: FileType::Manifest, path_id: 0, number: old });
        Ok(())
    }

    /// Lets families that hold nothing unflushed advance for free (F3), then lets go of logs that nobody needs.
    pub fn release_logs(&self) {
        let needed_after = {
            let state = self.state.lock();
            let commit = self.commit.lock();
            for family in state.families.values() {
                if family.queue.is_empty() && family.mutable.is_unused() {
                    family.mutable.advance_empty_to(commit.last_seq);
                }
            }
            drop(commit);
            needed_after(&state)
        };
        self.logs.release_through(needed_after);
        self.upkeep.raise();
    }

    /// Flushes the families that hold the oldest log, while the logs together are over their limit.
    pub fn flush_for_log_limit(&self) {
        self.release_logs();
        let (bytes, oldest_last) = self.logs.total();
        let Some(oldest_last) = oldest_last.filter(|_| bytes > self.log_limit_bytes()) else { return };
        for family in self.families_needing(oldest_last) {
            if let Err(e) = self.seal_for_flush(&family) {
                tracing::warn!(error = %e, family = family.name(), "cannot flush for max_total_wal_size");
            }
        }
    }

    fn families_needing(&self, through: SeqNo) -> Vec<Arc<Family>> {
        let state = self.state.lock();
        let needing = state.families.values().filter(|f| f.needed_after() < through);
        needing.map(|f| f.family.clone()).collect()
    }

    /// `max_total_wal_size`, or four times what all memtables may hold.
    fn log_limit_bytes(&self) -> u64 {
        if self.context.options.max_total_wal_size > 0 {
            return self.context.options.max_total_wal_size;
        }
        let families = self.families.load();
        let memtables: usize = families
            .iter()
            .map(|f| f.options())
            .map(|o| o.write_buffer_size.saturating_mul(o.max_write_buffer_number))
            .sum();
        4 * memtables as u64
    }
}

/// The number through which no family needs the logs.
fn needed_after(state: &State) -> SeqNo {
    state.families.values().map(FamilyState::needed_after).min().unwrap_or(SeqNo::MAX)
}

/// True where every file of a plan is still where it was (V2).
pub(crate) fn all_in_place(family: &FamilyState, inputs: &[(usize, FileNumber)]) -> bool {
    inputs.iter().all(|(level, number)| family.version.level(*level).iter().any(|file| file.number() == *number))
}
