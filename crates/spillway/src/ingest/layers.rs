//! Sorts overlapping tables of one family into layers without overlap.

use base::UserOrder;

use crate::records::ingest_record::IngestTable;
use crate::version::span::Span;

/// Tables without overlap, ascending.
struct Layer(Vec<(Span, IngestTable)>);

impl Layer {
    /// Index for a table of this span. `None` if a table overlaps it.
    fn place(&self, order: &UserOrder, span: &Span) -> Option<usize> {
        let at = self.0.partition_point(|(before, _)| !before.reaches(order, &span.start));
        match self.0.get(at) {
            Some((next, _)) if span.reaches(order, &next.start) => None,
            _ => Some(at),
        }
    }
}

/// Sorts tables into layers, oldest first. A table is newer than earlier ones, so it goes above every one it overlaps,
/// and no higher. O(n log n) comparisons for n tables of one layer.
pub(super) fn layers_of(order: &UserOrder, tables: Vec<IngestTable>) -> Vec<Vec<IngestTable>> {
    let mut layers: Vec<Layer> = Vec::new();
    for table in tables {
        let span = Span::of_file(&table.meta);
        let above = layers.iter().rposition(|layer| layer.place(order, &span).is_none()).map_or(0, |at| at + 1);
        match layers.get_mut(above) {
            Some(layer) => {
                if let Some(at) = layer.place(order, &span) {
                    layer.0.insert(at, (span, table));
                }
            }
            None => layers.push(Layer(vec![(span, table)])),
        }
    }
    layers.into_iter().map(|layer| layer.0.into_iter().map(|(_, table)| table).collect()).collect()
}

#[cfg(test)]
mod tests {
    use base::{FileNumber, SeqNo, ValueKind, key};

    use super::*;
    use crate::version::table_file::FileMeta;

    /// `a-c` is from a to c, `a-c)` without c itself.
    fn table(number: u64, range: &str) -> IngestTable {
        let (start, end) = range.split_once('-').expect("a range");
        let largest = match end.strip_suffix(')') {
            Some(end) => key::encode(end.as_bytes(), SeqNo::MAX, ValueKind::RangeDeletion),
            None => key::encode(end.as_bytes(), SeqNo::ZERO, ValueKind::Value),
        };
        let smallest = key::encode(start.as_bytes(), SeqNo::ZERO, ValueKind::Value);
        let meta = FileMeta { number: FileNumber(number), smallest, largest, ..FileMeta::default() };
        IngestTable { meta, ..IngestTable::default() }
    }

    fn layers(ranges: &[&str]) -> Vec<Vec<u64>> {
        let tables = ranges.iter().zip(1..).map(|(range, number)| table(number, range)).collect();
        let layers = layers_of(&UserOrder::default(), tables);
        layers.iter().map(|layer| layer.iter().map(|table| table.meta.number.0).collect()).collect()
    }

    #[test]
    fn tables_that_do_not_overlap_are_one_layer_in_order() {
        assert_eq!(layers(&[]), [[0; 0]; 0]);
        assert_eq!(layers(&["m-p", "a-c", "d-f", "x-z"]), [[2, 3, 1, 4]]);
        assert_eq!(layers(&["c-f", "a-c)"]), [[2, 1]], "an exclusive end is outside");
        assert_eq!(layers(&["c-f", "a-c"]), [vec![1], vec![2]]);
        assert_eq!(layers(&["b-b", "a-a", "b-b"]), [vec![2, 1], vec![3]]);
    }

    #[test]
    fn a_table_stands_above_what_it_overlaps_and_as_low_as_that_allows() {
        assert_eq!(layers(&["a-f", "b-c", "d-e", "g-h", "c-d", "a-z"]), [vec![1, 4], vec![2, 3], vec![5], vec![6]]);
        // The last meets nothing in the middle layer, but something above it.
        assert_eq!(layers(&["a-z", "b-c", "b-y", "m-n"]), [vec![1], vec![2], vec![3], vec![4]]);
    }

    /// Against the definition, pair by pair.
    #[test]
    fn random_tables_keep_their_order() {
        let mut random = 7u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let ranges: Vec<(u64, u64)> = (0..12).map(|_| (next(40), next(6))).collect();
            let text = |(start, len): &(u64, u64)| {
                format!("{start:02}-{:02}{}", start + len, ["", ")"][(start % 2 * u64::from(*len > 0)) as usize])
            };
            let ranges: Vec<String> = ranges.iter().map(text).collect();
            let tables: Vec<IngestTable> = ranges.iter().zip(1..).map(|(range, number)| table(number, range)).collect();
            let order = UserOrder::default();
            let layers = layers_of(&order, tables.clone());
            assert_eq!(layers.iter().map(Vec::len).sum::<usize>(), tables.len());
            let layer_of = |number: FileNumber| {
                layers.iter().position(|layer| layer.iter().any(|table| table.meta.number == number))
            };
            for (i, newer) in tables.iter().enumerate() {
                let span = Span::of_file(&newer.meta);
                let older = tables[..i].iter().filter(|older| span.overlaps_file(&order, &older.meta));
                let least =
                    older.map(|older| layer_of(older.meta.number).map(|layer| layer + 1)).max().unwrap_or(Some(0));
                assert_eq!(layer_of(newer.meta.number), least, "{ranges:?}");
            }
        }
    }
}
