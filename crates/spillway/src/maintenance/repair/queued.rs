//! Ingests in the logs: their tables belong to the database before a level has them.
//!
//! The readable part of a damaged table takes the table's place. The log still names the damaged file: so replay swaps
//! the tables, and flushes everything before the log goes.

use std::collections::{BTreeMap, BTreeSet};

use base::{FamilyId, FileNumber, Result, SeqNo};

use super::work::Repairing;
use crate::records::ingest_record::numbered;
use crate::version::table_file::FileMeta;

/// An ingested table's entry in a log.
#[derive(Clone)]
pub(super) struct Ingested {
    pub family: FamilyId,
    pub number: SeqNo,
    /// Not linked yet: replay adds the table.
    pub is_queued: bool,
    /// With the ingest's number.
    pub meta: FileMeta,
}

impl Repairing<'_> {
    /// Ingested tables in the logs.
    pub(super) fn ingested(&self) -> BTreeMap<FileNumber, Ingested> {
        let mut ingested = BTreeMap::new();
        for record in &self.logs.ingests {
            for share in &record.families {
                let known = self.families.known.get(&share.family);
                // A dropped family's share is not replayed.
                let is_dropped = self.is_complete && known.is_none();
                let is_queued =
                    !is_dropped && !known.is_some_and(|known| known.has_linked(record.first, record.last()));
                for (i, layer) in share.layers.iter().enumerate() {
                    let (family, number) = (share.family, record.shape().number_of_layer(record.first, i));
                    let entry = |meta: FileMeta| Ingested { family, number, is_queued, meta: numbered(meta, number) };
                    ingested.extend(layer.iter().map(|table| (table.meta.number, entry(table.meta.clone()))));
                }
            }
        }
        ingested
    }

    /// Puts the readable part of a damaged or lost table in its place.
    pub(super) fn mend_queued(&mut self, ingested: &Ingested) -> Result<()> {
        let number = ingested.meta.number;
        let mended = self.read_or_mend(ingested.family, &ingested.meta)?.map(|table| table.meta);
        if mended.as_ref().is_none_or(|meta| meta.number != number) {
            self.substitutes.insert(number, mended);
        }
        Ok(())
    }

    /// Reports missing tables of queued ingests. The other tables of such an ingest stay.
    pub(super) fn report_gone_ingests(&mut self, files: &BTreeSet<FileNumber>) -> Result<()> {
        for (number, ingested) in self.ingested() {
            if ingested.is_queued && !files.contains(&number) {
                self.mend_queued(&ingested)?;
            }
        }
        Ok(())
    }
}
