//! An open table read in its mapped file: what fast and zip tables have in common.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::metrics::Statistics;
use base::pinned::BytesOwner;
use base::tombstone::FragmentedTombstones;
use base::{Error, InternalOrder, LookupKey, Result, key};
use vfs::ReadMapping;

use super::{CheckedExtents, FILTER, Footer, Section, TOMBSTONES, Tail, part_of};
use crate::block::{Block, GlobalSeq};
use crate::filter::{FilterQuestion, FilterReader};
use crate::reader::global_seq;
use crate::verify::EntryCheck;
use crate::{Properties, ShareBytes, TableContext, tombstones};

/// A table's filter.
struct Filter {
    question: FilterQuestion,
    place: Range<usize>,
}

pub(crate) struct MappedTable<F> {
    mapping: Arc<dyn ReadMapping>,
    path: PathBuf,
    pub(crate) footer: F,
    pub(crate) order: InternalOrder,
    /// The sequence number of every key, if the table was ingested under one.
    pub(crate) global: GlobalSeq,
    pub(crate) properties: Properties,
    /// `None` if the table has no filter.
    filter: Option<Filter>,
    pub(crate) tombstones: Option<Arc<FragmentedTombstones>>,
    extents: CheckedExtents,
    pub(crate) statistics: Option<Arc<Statistics>>,
}

impl<F: Footer> MappedTable<F> {
    /// Checks the tail and reads the range tombstones.
    ///
    /// # Errors
    /// `Corruption`: damage, or a size other than `file_bytes`. `Unsupported`: a newer format. `InvalidArgument`: the
    /// key order differs from the order of `context`.
    pub(crate) fn open(
        mapping: Arc<dyn ReadMapping>,
        path: &Path,
        file_bytes: u64,
        context: &TableContext,
    ) -> Result<MappedTable<F>> {
        let Tail { footer, properties, .. } = Self::read_tail(&*mapping, file_bytes)?;
        properties.check_order(&context.order.user)?;
        let place = places(footer.section(FILTER));
        let question = FilterQuestion::new(&properties, context);
        let mut table = MappedTable {
            mapping,
            path: path.to_owned(),
            order: context.order.clone(),
            global: global_seq(&properties, context)?,
            filter: (!place.is_empty()).then_some(Filter { question, place }),
            tombstones: None,
            extents: CheckedExtents::new(F::FORMAT.extent_bytes, footer.checksums_at()),
            statistics: context.statistics.clone(),
            footer,
            properties,
        };
        if !footer.section(TOMBSTONES).is_empty() {
            table.tombstones = table.read_section(TOMBSTONES, |stored| {
                tombstones::decode(&Block::parse(stored.to_vec())?, table.global, &table.order.user)
            })?;
        }
        Ok(table)
    }

    fn read_tail(mapping: &dyn ReadMapping, file_bytes: u64) -> Result<Tail<F, &[u8]>> {
        let whole = mapping.as_ref();
        check_size(whole.len() as u64, file_bytes)?;
        Tail::read(file_bytes, |at, len| part_of(whole, at, len))
    }

    /// Checks a section and passes it to `parse`.
    ///
    /// # Errors
    /// `Corruption`. Errors of `parse`, with the section's offset.
    pub(crate) fn read_section<T>(&self, name: &str, parse: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let place = self.footer.section(name);
        parse(self.part(places(place.clone()), true)?).map_err(|e| e.at_offset(place.start))
    }

    /// Compares the file with the open table, and all checksums. The result checks entries by order and filter.
    ///
    /// # Errors
    /// `Corruption`.
    pub(crate) fn verify(&self) -> Result<EntryCheck<'_>> {
        let tail = Self::read_tail(&*self.mapping, self.bytes().len() as u64)?;
        if tail.footer != self.footer || tail.properties != self.properties {
            return Err(Error::corruption("the file has another table than the one that is open"));
        }
        self.extents.compare_all(self.bytes())?;
        let by_keys = |filter: &&Filter| filter.question.by_whole_keys() && !self.order.user.equal_keys_can_differ();
        let filter =
            self.filter.as_ref().filter(by_keys).map(|filter| self.filter_reader(filter, false)).transpose()?;
        Ok(EntryCheck::new(&self.order, filter))
    }

    /// The footer, line by line, with lines of the kind's own.
    pub(crate) fn layout(&self, own: Vec<String>) -> Vec<String> {
        let (format, footer) = (F::FORMAT, &self.footer);
        let mut lines = vec![
            format!("format version: {}, {}", format.version, format.name),
            format!("checksum: crc32c of {} bytes each", format.extent_bytes),
        ];
        lines.extend(own);
        let mut at = 0;
        for Section { name, bytes } in footer.sections().into_iter().filter(|section| section.bytes > 0) {
            lines.push(format!("{name}: {at}+{bytes}"));
            at += bytes;
        }
        lines.push(format!("properties: {}+{}", footer.properties_at(), footer.properties_bytes()));
        lines
    }
}

impl<F> MappedTable<F> {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The whole file.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        (*self.mapping).as_ref()
    }

    /// Compares the checksums of all extents in `range`, once per extent.
    ///
    /// # Errors
    /// `Corruption`.
    #[inline]
    pub(crate) fn check(&self, range: Range<usize>) -> Result<()> {
        self.extents.check(self.bytes(), range).map_err(|e| e.at_path(&self.path))
    }

    /// A part of the file. `verify`: compare its checksums, once per extent.
    ///
    /// # Errors
    /// `Corruption`.
    #[inline]
    pub(crate) fn part(&self, range: Range<usize>, verify: bool) -> Result<&[u8]> {
        if verify {
            self.check(range.clone())?;
        }
        let at = range.start;
        self.bytes().get(range).ok_or_else(|| self.damaged(Error::corruption("a part outside the file"), at))
    }

    /// Adds path and offset to an error.
    #[cold]
    pub(crate) fn damaged(&self, error: Error, at: usize) -> Error {
        error.at_path(&self.path).at_offset(at as u64)
    }

    #[inline]
    fn filter_reader(&self, filter: &Filter, verify: bool) -> Result<FilterReader<&[u8]>> {
        Ok(FilterReader::new(self.part(filter.place.clone(), verify)?))
    }

    /// Whether the filter has whole keys.
    #[inline]
    pub(crate) fn filters_whole_keys(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.question.by_whole_keys())
    }

    /// False if the table certainly holds no entry of `key`.
    #[inline]
    pub(crate) fn may_hold_key(&self, key: &LookupKey, verify: bool) -> Result<bool> {
        let Some(filter) = &self.filter else { return Ok(true) };
        let ask = |part: &[u8]| Ok(self.filter_reader(filter, verify)?.may_match(part));
        filter.question.may_hold_key(key.user_key(), &self.order.user, &self.statistics, ask)
    }

    /// False if no key at or after `target` has its prefix.
    pub(crate) fn may_hold_prefix(&self, target: &[u8], verify: bool) -> Result<bool> {
        let Some(filter) = &self.filter else { return Ok(true) };
        let ask = |part: &[u8]| Ok(self.filter_reader(filter, verify)?.may_match(part));
        filter.question.may_hold_prefix(key::user_key(target), &self.order.user, &self.statistics, ask)
    }

    /// Heap memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.extents.memory_bytes() + self.tombstones.as_deref().map_or(0, tombstones::memory_bytes)
    }
}

impl<F: Send + Sync + 'static> ShareBytes for MappedTable<F> {
    fn share(&self) -> BytesOwner {
        self.mapping.clone()
    }
}

/// # Errors
/// `Corruption`: the sizes differ.
pub(crate) fn check_size(actual: u64, expected: u64) -> Result<()> {
    if actual == expected {
        return Ok(());
    }
    Err(Error::corruption(format!("the file has {actual} bytes instead of {expected}")))
}

/// Of a section: its bytes are bounded by the file's.
fn places(section: Range<u64>) -> Range<usize> {
    section.start as usize..section.end as usize
}
