//! Creates and drops families, and changes their options.

use std::sync::Arc;

use base::note;
use base::options::FamilyOptions;
use base::{Error, FamilyId, Result};

use crate::core::family::{Family, check_name};
use crate::core::install::Installer;
use crate::core::new_family::Shared;
use crate::core::open_options::DEFAULT_FAMILY;
use crate::core::{Core, FamilyState};
use crate::queue::flushable::Flushable;
use crate::queue::view::ReadView;
use crate::version::builder::VersionBuilder;
use crate::version::edit::VersionEdit;
use crate::version::table_file::FileMeta;

/// The families of an open database.
pub(crate) struct Catalog<'a> {
    pub core: &'a Arc<Core>,
    pub installer: &'a Installer,
}

impl Catalog<'_> {
    /// # Errors
    /// `InvalidArgument`: the name is none, or taken.
    pub fn check_new_name(&self, name: &str) -> Result<()> {
        check_name(name)?;
        if self.core.families.load().by_name(name).is_some() {
            return Err(Error::invalid_argument(format!("Column family already exists: \"{name}\"")));
        }
        Ok(())
    }

    pub fn create_family(&self, name: &str, options: FamilyOptions) -> Result<Arc<Family>> {
        self.create_family_of(name, options, Vec::new())
    }

    /// Creates a family with tables, by level. All their numbers are visible, and earlier writes are durable (D2).
    pub fn create_family_of(
        &self,
        name: &str,
        options: FamilyOptions,
        tables: Vec<(usize, FileMeta)>,
    ) -> Result<Arc<Family>> {
        self.check_new_name(name)?;
        let mut manifest = self.installer.manifest.lock();
        let id = {
            let mut state = self.core.state.lock();
            self.check_new_name(name)?;
            state.max_family += 1;
            FamilyId(state.max_family)
        };
        let last_seq = self.core.commit.lock().last_seq;
        let shared = Shared::of(self.core);
        let family = shared.make_family(&self.core.context, last_seq, id, name, options)?;
        self.core.learn_from_reads_of(&family);
        let last_seq = family.view_full().mutable.created_at();
        let has_tables = !tables.is_empty();
        let edit = VersionEdit {
            comparator: Some(family.order().user.name().to_owned()),
            add_family: Some(name.to_owned()),
            value_times: *family.options().value_times,
            log_number: Some(base::FileNumber(0)),
            flushed_through: Some(last_seq),
            max_family: Some(id.0),
            next_file: Some(self.core.context.numbers.peek()),
            added: tables,
            ..VersionEdit::new(id)
        };
        let mut view = family.view_full();
        let mut builder = VersionBuilder::new(&view.version, family.tables());
        builder.apply(&edit)?;
        let version = builder.build()?.version;
        let writer = manifest.as_mut().ok_or_else(|| Error::closed("the database is closed"))?;
        self.core.append_edits(writer, vec![edit])?;
        let mut _before = None; // dropped off the lock
        let mut state = self.core.state.lock();
        if has_tables {
            view = Arc::new(ReadView::new(view.mutable.clone(), Vec::new(), Arc::new(version)));
            _before = Some(family.swap_view(view.clone()));
        }
        state.table_bytes += view.version.total_bytes();
        state.families.insert(id, FamilyState::new(family.clone(), &view, last_seq));
        state.record_age(id, self.core.context.now_s());
        self.core.change_families(&mut state, |families| families.insert(&family));
        Ok(family)
    }

    /// Notes for good that the family's values end with times. What the write behind this call will refuse notes nothing.
    pub fn record_times(&self, family: &Family) -> Result<()> {
        self.core.check_writable()?;
        let mut manifest = self.installer.manifest.lock();
        if family.has_value_times() || self.core.check_family(family).is_err() {
            return Ok(());
        }
        let writer = manifest.as_mut().ok_or_else(|| Error::closed("the database is closed"))?;
        self.core.append_edits(writer, vec![VersionEdit { value_times: true, ..VersionEdit::new(family.id()) }])?;
        family.change_options(|options| {
            options.value_times = true.into();
            Ok(())
        })
    }

    pub fn drop_family(&self, family: &Family) -> Result<()> {
        if family.name() == DEFAULT_FAMILY {
            return Err(Error::invalid_argument("Can't drop default column family"));
        }
        self.core.sync_published()?;
        let mut manifest = self.installer.manifest.lock();
        self.core.check_family(family)?;
        let next_file = Some(self.core.context.numbers.peek()); // a later OPTIONS file has a larger number
        let edit = VersionEdit { drop_family: true, next_file, ..VersionEdit::new(family.id()) };
        let writer = manifest.as_mut().ok_or_else(|| Error::closed("the database is closed"))?;
        self.core.append_edits(writer, vec![edit])?;
        let mut state = self.core.state.lock();
        let dropped = state.families.remove(&family.id());
        self.core.change_families(&mut state, |families| families.remove(family));
        family.mark_dropped();
        let mut frees_log = false;
        if let Some(dropped) = &dropped {
            let oldest_last = self.core.logs.total().1;
            let needs = |family: &FamilyState| {
                family.is_written() && oldest_last.is_some_and(|last| family.needed_after() < last)
            };
            frees_log = needs(dropped) && !state.families.values().any(needs); // mostly the first does
            state.table_bytes -= dropped.version.total_bytes();
            // Else the debt is of other families, or so small that the next job sets it in time.
            if !self.core.stall.is_free() || dropped.is_behind() {
                self.core.refresh_debt(&state);
            }
        }
        drop(state);
        drop(manifest);
        if let Some(dropped) = dropped {
            // Readers may keep the memtables; a writer short of memory releases their charges.
            let sealed = dropped.queue.iter().filter_map(|entry| entry.charge());
            sealed.for_each(|charge| charge.left_queue());
            dropped.mutable.memtable_charge().left_queue();
            dropped.tables().for_each(|file| file.mark_obsolete()); // the edit is durable (V3)
        }
        if frees_log {
            self.installer.release_logs();
        }
        self.core.state_changed.wake_waiting(); // it makes no job due
        Ok(())
    }

    /// Changes options of the database. All are changed, or none.
    pub fn set_db_options(&self, changes: &[(&str, &str)]) -> Result<()> {
        let context = &self.core.context;
        let _one_at_a_time = self.core.state.lock();
        let mut options = (**context.options_now.load()).clone();
        for remark in base::options::set_at_runtime(&mut options, changes)? {
            note::warn!("{remark}");
        }
        options.validate()?;
        self.core.stall.set_rate(options.delayed_write_rate);
        context.options_now.store(Arc::new(options));
        Ok(())
    }

    pub fn set_family_options(&self, family: &Family, changes: &[(&str, &str)]) -> Result<()> {
        self.core.check_family(family)?;
        family.change_options(|options| {
            let remarks = base::options::set_at_runtime(options, changes)?;
            for remark in remarks.into_iter().chain(options.settle()) {
                note::warn!("column family \"{}\": {remark}", family.name());
            }
            options.validate()
        })?;
        let mut state = self.core.state.lock();
        state.record_age(family.id(), self.core.context.now_s());
        self.core.refresh_debt(&state);
        drop(state);
        self.core.state_changed.notify_all();
        self.core.upkeep.raise();
        Ok(())
    }
}
