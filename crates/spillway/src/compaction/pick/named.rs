//! Compactions of tables named by a caller, into a level of the caller's choice (RocksDB: `CompactFiles`).

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use base::options::CompactionStyle;
use base::{Error, FileNumber, Result};

use super::{Chosen, Picker, RangePick};
use crate::core::plan::{LevelInputs, Reason};
use crate::version::span::{Span, clean_cut};
use crate::version::table_file::TableFile;

/// Tables of one version, and where they are to go.
#[derive(Clone, Copy, Debug)]
pub struct FilesRequest<'a> {
    pub files: &'a BTreeSet<FileNumber>,
    pub output_level: usize,
    /// Whether the tables may go there as they are.
    pub may_move: bool,
}

/// Picks by name.
pub(super) struct Named<'p, 'a>(pub &'p Picker<'a>);

impl<'a> Deref for Named<'_, 'a> {
    type Target = Picker<'a>;

    fn deref(&self) -> &Picker<'a> {
        self.0
    }
}

impl Named<'_, '_> {
    /// The compaction of the named tables, with all others between them and the output level: what is newer stays above
    /// what is older (V4).
    ///
    /// # Errors
    /// `InvalidArgument`: a table is not there, or cannot go to that level.
    pub(super) fn pick(&self, request: &FilesRequest<'_>) -> Result<RangePick> {
        let (first, last) = self.check_named(request)?;
        if request.output_level < last {
            return Err(Error::invalid_argument(format!(
                "compact_files: a table of level {last} cannot go up to level {}",
                request.output_level
            )));
        }
        let inputs = match request.output_level {
            0 => vec![LevelInputs { level: 0, files: self.between_in_level0(request) }],
            _ => self.with_all_between(request, first),
        };
        let is_busy =
            inputs.iter().any(|inputs| self.any_busy(&inputs.files)) || (first == 0 && self.running.level0_is_busy());
        if is_busy {
            return Ok(RangePick::Busy);
        }
        let (output_level, may_move) = (request.output_level, request.may_move);
        Ok(RangePick::of(self.complete(Chosen { reason: Reason::Manual, inputs, output_level, may_move }), None))
    }

    /// The first and the last level of the named tables.
    fn check_named(&self, request: &FilesRequest<'_>) -> Result<(usize, usize)> {
        let invalid = |what: String| Err(Error::invalid_argument(format!("compact_files: {what}")));
        if let Some(number) = request.files.iter().find(|number| self.version.file(**number).is_none()) {
            return invalid(format!("table {number} is not in this family"));
        }
        let is_fifo = self.options.compaction_style == CompactionStyle::Fifo;
        if request.output_level >= self.levels() || (is_fifo && request.output_level > 0) {
            let last = if is_fifo { 0 } else { self.levels() - 1 };
            return invalid(format!("the output level must be between 0 and {last}, not {}", request.output_level));
        }
        let named = self.version.all_files().filter(|(_, file)| request.files.contains(&file.number()));
        let levels: Vec<usize> = named.map(|(level, _)| level).collect();
        match (levels.iter().min(), levels.iter().max()) {
            (Some(&first), Some(&last)) if last < self.levels() => Ok((first, last)),
            (Some(_), _) => invalid("a table was ingested from behind, and stays in the last level".to_owned()),
            _ => invalid("no table is named".to_owned()),
        }
    }

    /// The named tables of level 0, and those between them by age.
    fn between_in_level0(&self, request: &FilesRequest<'_>) -> Vec<Arc<TableFile>> {
        let level0 = self.version.level(0);
        let is_named = |file: &Arc<TableFile>| request.files.contains(&file.number());
        let (start, end) = (level0.iter().position(is_named), level0.iter().rposition(is_named));
        let named = start.zip(end).and_then(|(start, end)| level0.get(start..=end));
        named.unwrap_or(&[]).to_vec()
    }

    /// The named tables, and all that overlap them from their first level down to the output level, and so on.
    fn with_all_between(&self, request: &FilesRequest<'_>, first: usize) -> Vec<LevelInputs> {
        let order = self.order();
        let named =
            self.version.all_files().map(|(_, file)| file).filter(|file| request.files.contains(&file.number()));
        let mut span = Span::of_files(order, named);
        let mut count = 0;
        loop {
            let levels = (first..=request.output_level).map(|level| {
                let files = self.version.level(level);
                let in_span = |span: &Span| match level {
                    0 => self.version.overlapping(0, Some(&span.start), Some(&span.end)),
                    _ => files.get(clean_cut(order, files, span.places_in(order, files))).unwrap_or(&[]).to_vec(),
                };
                LevelInputs { level, files: span.as_ref().map(in_span).unwrap_or_default() }
            });
            let inputs: Vec<LevelInputs> = levels.collect();
            let files = || inputs.iter().flat_map(|inputs| &inputs.files);
            if files().count() == count {
                return inputs;
            }
            (count, span) = (files().count(), Span::of_files(order, files()));
        }
    }
}
