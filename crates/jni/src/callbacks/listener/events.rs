//! The engine's events, as Java's callbacks.

use std::path::{Path, PathBuf};

use spillway::internal::FileNumber;
use spillway::internal::extend::{Event, EventListener};

use super::infos::{self, Flush, Ingestion, Memtable, TableFile, outcome_of};
use super::{
    BACKGROUND_ERROR, COMPACTION_BEGIN, COMPACTION_COMPLETED, FLUSH_BEGIN, FLUSH_COMPLETED, INGESTED, Listening,
    MEMTABLE_SEALED, RECOVERY_BEGIN, RECOVERY_END, STALL_CHANGED, TABLE_BEGIN, TABLE_CREATED, TABLE_DELETED,
};
use crate::boundary::object::Value;
use crate::fault::Outcome;
use crate::files::compaction_info::{JobInfo, JobStats, reason_number};
use crate::files::lists::text;

/// `FlushReason`, by number.
const WRITE_BUFFER_FULL: i8 = 6;
const MANUAL_FLUSH: i8 = 10;

/// `BackgroundErrorReason`, by number. The engine does not tell why: a flush stands for all.
const FLUSH: i8 = 0;

fn flush_reason(by_hand: bool) -> i8 {
    if by_hand { MANUAL_FLUSH } else { WRITE_BUFFER_FULL }
}

/// `TableFileCreationReason`, by number.
fn creation_reason(by_flush: bool) -> i8 {
    i8::from(!by_flush)
}

/// `WriteStallCondition`, by number.
fn stall_condition(delayed: bool, stopped: bool) -> i8 {
    match (delayed, stopped) {
        (_, true) => 1,
        (true, false) => 0,
        (false, false) => 2,
    }
}

impl EventListener for Listening {
    fn on_event(&self, event: &Event) {
        match event {
            Event::FlushBegin { .. } | Event::FlushEnd { .. } => self.on_flush(event),
            Event::CompactionBegin { .. } | Event::CompactionEnd { .. } => self.on_compaction(event),
            Event::TableBegin { .. } | Event::TableCreated { .. } | Event::FileDeleted { .. } => self.on_table(event),
            Event::Ingested { family, files, first_seq, .. } => {
                files.iter().for_each(|(path, number)| self.on_ingested(family, path, *number, first_seq.0 as i64));
            }
            Event::MemtableSealed { family, first_seq, entries, deletions } => {
                let first_seq = first_seq.0 as i64;
                let (entries, deletions) = (*entries as i64, *deletions as i64);
                let sealed =
                    Memtable { family: family.clone(), first_seq, earliest_seq: first_seq - 1, entries, deletions };
                self.listener.tell(&MEMTABLE_SEALED, |env| Ok(vec![Value::Object(sealed.object(env)?)]));
            }
            Event::StallChanged { family, delayed, stopped, was_delayed, was_stopped, .. } => {
                let (now, before) = (stall_condition(*delayed, *stopped), stall_condition(*was_delayed, *was_stopped));
                self.listener.tell(&STALL_CHANGED, |env| {
                    Ok(vec![Value::Object(infos::stall_object(env, family, now, before)?)])
                });
            }
            Event::BackgroundError { error } => self.listener.tell(&BACKGROUND_ERROR, |env| {
                Ok(vec![Value::Byte(FLUSH), Value::Object(outcome_of(error).object(env)?)])
            }),
            // The engine recovers by itself, whatever the answer.
            Event::RecoveryBegin { error } => self.listener.ask(&RECOVERY_BEGIN, |env| {
                Ok(vec![Value::Byte(FLUSH), Value::Object(outcome_of(error).object(env)?)])
            }),
            Event::RecoveryEnd { error } => {
                self.listener.tell(&RECOVERY_END, |env| Ok(vec![Value::Object(outcome_of(error).object(env)?)]));
            }
            _ => {}
        }
    }
}

impl Listening {
    fn table_path(&self, number: FileNumber) -> PathBuf {
        self.home.dir().join(format!("{:06}.sst", number.0))
    }

    fn family_id(&self, name: &str) -> i64 {
        self.home.family(name).map_or(0, |family| i64::from(family.id().0))
    }

    fn on_flush(&self, event: &Event) {
        let database = Value::Long(self.home.handle());
        let (told, flush) = match event {
            Event::FlushBegin { family, by_hand } => {
                let (family_id, reason) = (self.family_id(family), flush_reason(*by_hand));
                (&FLUSH_BEGIN, Flush { family_id, family: family.clone(), reason, ..Flush::default() })
            }
            Event::FlushEnd { family, table, by_hand, smallest_seq, largest_seq, .. }
                if self.listener.is_enabled(&FLUSH_COMPLETED) =>
            {
                let path = self.table_path(*table);
                let flush = Flush {
                    family_id: self.family_id(family),
                    table: self.home.properties(family, &path),
                    family: family.clone(),
                    path: text(&path),
                    smallest_seq: smallest_seq.0 as i64,
                    largest_seq: largest_seq.0 as i64,
                    reason: flush_reason(*by_hand),
                    ..Flush::default()
                };
                (&FLUSH_COMPLETED, flush)
            }
            _ => return,
        };
        self.listener.tell(told, |env| Ok(vec![database, Value::Object(flush.object(env)?)]));
    }

    fn on_compaction(&self, event: &Event) {
        let paths = |numbers: &[FileNumber]| numbers.iter().map(|&number| text(&self.table_path(number))).collect();
        let info = |family: &str, reason: &str, inputs: &[FileNumber], level: usize, output_level: usize| JobInfo {
            family: family.to_owned(),
            reason: reason_number(reason),
            inputs: paths(inputs),
            base_input_level: level as i32,
            output_level: output_level as i32,
            stats: JobStats { input_files: inputs.len() as i64, ..JobStats::default() },
            ..JobInfo::default()
        };
        let (told, info) = match event {
            Event::CompactionBegin { family, reason, input_tables, level, output_level, .. } => {
                (&COMPACTION_BEGIN, info(family, reason, input_tables, *level, *output_level))
            }
            Event::CompactionEnd {
                family,
                reason,
                input_tables,
                output_tables,
                level,
                output_level,
                duration_us,
                ..
            } => {
                let mut info = info(family, reason, input_tables, *level, *output_level);
                info.outputs = paths(output_tables);
                info.stats.output_files = output_tables.len() as i64;
                info.stats.elapsed_us = *duration_us as i64;
                (&COMPACTION_COMPLETED, info)
            }
            _ => return,
        };
        self.listener.tell_compaction(told, self.home.handle(), info);
    }

    /// Deletions are told of tables alone, as in RocksDB.
    fn on_table(&self, event: &Event) {
        let file = |family: &str, path: &Path, reason| TableFile {
            database: text(self.home.dir()),
            family: family.to_owned(),
            path: text(path),
            job: 0,
            reason,
        };
        match event {
            Event::TableBegin { family, path, by_flush } => {
                let file = file(family, path, creation_reason(*by_flush));
                self.listener.tell(&TABLE_BEGIN, |env| Ok(vec![Value::Object(file.begun(env)?)]));
            }
            Event::TableCreated { family, path, bytes, by_flush } if self.listener.is_enabled(&TABLE_CREATED) => {
                let table = self.home.properties(family, path);
                let file = file(family, path, creation_reason(*by_flush));
                self.listener.tell(&TABLE_CREATED, |env| {
                    Ok(vec![Value::Object(file.created(env, *bytes as i64, &table, &Outcome::default())?)])
                });
            }
            Event::FileDeleted { path } if path.extension().is_some_and(|extension| extension == "sst") => {
                let file = file("", path, 0);
                self.listener
                    .tell(&TABLE_DELETED, |env| Ok(vec![Value::Object(file.deleted(env, &Outcome::default())?)]));
            }
            _ => {}
        }
    }

    fn on_ingested(&self, family: &str, external: &Path, number: FileNumber, seq: i64) {
        if !self.listener.is_enabled(&INGESTED) {
            return;
        }
        let path = self.table_path(number);
        let ingestion = Ingestion {
            family: family.to_owned(),
            external_path: text(external),
            internal_path: text(&path),
            seq,
            table: self.home.properties(family, &path),
        };
        let database = Value::Long(self.home.handle());
        self.listener.tell(&INGESTED, |env| Ok(vec![database, Value::Object(ingestion.object(env)?)]));
    }
}
