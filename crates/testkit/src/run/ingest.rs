//! Ingests of a script. Tables are made outside the database and ingested; the caller's files are checked afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::engine::{Family, IngestProgress, PreparedIngest, SeqNo, WriteBatch};
use base::Result as EngineResult;

use super::{Failure, Runner, add, differ};
use crate::ingest::{Ingest, Source};
use crate::model::{Circumstances, Incarnation, Verdict, is_contradictory};
use crate::ops::{Action, Durability};
use crate::tables::{self, Tables};

/// Directory of tables to ingest.
pub const TABLES_DIR: &str = "/tables";

/// A prepared ingest and its families.
pub(super) struct HeldIngest {
    prepared: PreparedIngest,
    ingest: Ingest,
    families: BTreeMap<String, Incarnation>,
}

impl Runner {
    pub(super) fn ingest(&mut self, ingest: &Ingest) -> Result<(), Failure> {
        let ingest = self.model.applicable_ingest(ingest);
        if ingest.is_empty() {
            return Ok(());
        }
        let verdict = self.model.verdict(&ingest, self.circumstances());
        let before = self.db().latest_sequence_number();
        self.attempted = Some(ingest.clone());
        let done = self.prepared(&ingest).and_then(|(prepared, tables)| {
            let committed = self.commit_prepared(prepared, &ingest);
            check_sources(&tables, &ingest, committed.is_ok())?;
            committed
        });
        self.judge(verdict, done, &ingest, before)
    }

    fn circumstances(&self) -> Circumstances {
        Circumstances {
            allows_behind: self.profile.behind,
            snapshots: !self.snapshots.is_empty(),
            iterators: !self.iterators.is_empty(),
        }
    }

    /// Records the outcome of an ingest, if the verdict allows it.
    fn judge(
        &mut self,
        verdict: Verdict,
        done: Result<(), Failure>,
        ingest: &Ingest,
        before: SeqNo,
    ) -> Result<(), Failure> {
        match (verdict, done) {
            (Verdict::Refused, Ok(())) => differ("the ingest was done, and should have been refused"),
            (_, Ok(())) => {
                self.record_ingested(ingest);
                Ok(())
            }
            (Verdict::Refused | Verdict::Either, Err(Failure::Engine(error))) if ingest.demands.explain(&error) => {
                self.refused(before)
            }
            (_, Err(failure)) => Err(failure),
        }
    }

    fn record_ingested(&mut self, ingest: &Ingest) {
        if ingest.is_empty() {
            return;
        }
        self.model.ingest(ingest, Durability { sync: true, ..Durability::default() });
        if ingest.demands.behind {
            for held in self.snapshots.values_mut() {
                self.model.put_behind(ingest, &mut held.state);
            }
        }
    }

    pub(super) fn prepare(&mut self, name: &str, ingest: &Ingest) -> Result<(), Failure> {
        let mut ingest = Ingest { batch: Vec::new(), ..ingest.clone() };
        let is_single = |action: &Action| matches!(action, Action::SingleDelete(_));
        // Only the commit could decide whether single-deletes are defined.
        ingest.files.iter_mut().for_each(|file| file.entries.retain(|action| !is_single(action)));
        let ingest = self.model.applicable_ingest(&ingest);
        self.abandon_prepared(name)?;
        let before = self.db().latest_sequence_number();
        let (prepared, tables) = match (is_contradictory(&ingest, self.profile.behind), self.prepared(&ingest)) {
            (false, prepared) => prepared?,
            (true, prepared) => return self.judge(Verdict::Refused, prepared.map(drop), &ingest, before),
        };
        drop(tables); // linked or copied: the caller's files are no longer needed
        let named = ingest.changes(self.model.order()).into_iter().filter_map(|change| {
            let incarnation = self.model.family(&change.family)?;
            Some((change.family, incarnation))
        });
        let families = named.collect();
        self.prepared.insert(name.to_owned(), HeldIngest { prepared, ingest, families });
        Ok(())
    }

    /// Commits a prepared ingest; it must fail if one of its families was dropped.
    pub(super) fn commit(&mut self, name: &str) -> Result<(), Failure> {
        let Some(HeldIngest { prepared, ingest, families }) = self.prepared.remove(name) else { return Ok(()) };
        let there = families.iter().all(|(family, incarnation)| self.model.family(family) == Some(*incarnation));
        // A key may have been single-deleted since; a table behind it would be undefined.
        let is_defined = !ingest.demands.behind || self.model.applicable_ingest(&ingest) == ingest;
        if there && !is_defined {
            return Ok(()); // dropped
        }
        self.attempted = there.then(|| ingest.clone());
        let (verdict, before) = (self.model.verdict(&ingest, self.circumstances()), self.db().latest_sequence_number());
        match (there, self.commit_prepared(prepared, &ingest)) {
            (true, committed) => self.judge(verdict, committed, &ingest, before),
            (false, Err(_)) => Ok(()),
            (false, Ok(())) => differ("an ingest into a family that was dropped was committed"),
        }
    }

    /// Drops a prepared ingest; its files must go.
    pub(super) fn abandon_prepared(&mut self, name: &str) -> Result<(), Failure> {
        let Some(HeldIngest { prepared, .. }) = self.prepared.remove(name) else { return Ok(()) };
        let (before, tables) = (self.table_files()?, prepared.files());
        drop(prepared);
        let after = self.table_files()?;
        if after + tables != before {
            return differ(format!("{before} table files became {after} as an ingest of {tables} was abandoned"));
        }
        Ok(())
    }

    fn table_files(&self) -> Result<usize, Failure> {
        let names = self.vfs.read_dir(&self.dir)?;
        Ok(names.iter().filter(|name| name.ends_with(".sst")).count())
    }

    fn prepared(&mut self, ingest: &Ingest) -> Result<(PreparedIngest, Tables), Failure> {
        self.find_tables_made()?;
        let mut made = self.tables_made;
        let mut next_path = || {
            made += 1;
            Path::new(TABLES_DIR).join(format!("{made:06}.sst"))
        };
        let tables = Tables::make(self.db(), &self.vfs, ingest, &mut next_path);
        self.tables_made = made;
        let (tables, requests) = tables?;
        let prepared = self.db().prepare_ingest(&requests, &tables::options(ingest), &IngestProgress::default());
        check_sources(&tables, ingest, false)?;
        Ok((prepared?, tables))
    }

    /// Continues the numbering of tables from an earlier life.
    fn find_tables_made(&mut self) -> EngineResult<()> {
        if self.tables_made == 0 {
            self.vfs.create_dir_all(Path::new(TABLES_DIR))?;
            let names = self.vfs.read_dir(Path::new(TABLES_DIR))?;
            let numbers = names.iter().filter_map(|name| name.strip_suffix(".sst")?.parse::<u64>().ok());
            self.tables_made = numbers.max().unwrap_or(0);
        }
        Ok(())
    }

    fn commit_prepared(&self, prepared: PreparedIngest, ingest: &Ingest) -> Result<(), Failure> {
        let before = self.db().latest_sequence_number();
        let report = if ingest.batch.is_empty() {
            self.db().commit_ingest(prepared)?
        } else {
            let mut batch = WriteBatch::new();
            for change in &ingest.batch {
                add(&mut batch, &*self.live(&change.family)?, &change.action);
            }
            self.db().write_with_ingest(&batch, prepared)?
        };
        let after = self.db().latest_sequence_number();
        let numberless = ingest.demands.behind && (after != before || report.last > SeqNo(0));
        if after < before || (!ingest.is_empty() && report.last > after) || numberless {
            return differ(format!(
                "{} was visible, now {} is, after an ingest through {}",
                before.0, after.0, report.last.0
            ));
        }
        Ok(())
    }

    fn live(&self, name: &str) -> Result<Arc<Family>, Failure> {
        match self.family(name)? {
            Some((family, _)) => Ok(family),
            None => differ(format!("the model has no family {name}")),
        }
    }
}

/// The caller's files must be untouched, unless moved by a committed ingest.
fn check_sources(tables: &Tables, ingest: &Ingest, committed: bool) -> Result<(), Failure> {
    match tables.gone() {
        Some(path) if !committed || ingest.source != Source::Moved => differ(format!("{} is gone", path.display())),
        _ => Ok(()),
    }
}
