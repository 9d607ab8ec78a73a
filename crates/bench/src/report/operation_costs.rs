//! Tables of what single operations take: `scripts/op-cost.sh` counts it.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::medians::in_order;

/// `kind` of its lines.
pub const KIND: &str = "opcost";

/// What one operation takes of the thread that asks for it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct OperationCost {
    pub operation: String,
    pub lib: String,
    pub instructions: f64,
    pub allocations: f64,
    pub system_calls: f64,
    pub commit: String,
}

/// The table of one file: a line for each operation, with a ratio to the first library.
pub fn draw(name: &str, records: &[OperationCost]) -> String {
    let Some(first) = records.first() else { return String::new() };
    let mut text = format!(
        "\n### {name}\n\nSpillway at commit {}. {} / the others:\n\n\
         | operation | instructions | first over it | calls of the allocator | system calls |\n|---|---|---|---|---|\n",
        first.commit, first.lib
    );
    for (operation, sides) in in_order(records, |record| record.operation.clone()) {
        let all = |figure: fn(&OperationCost) -> f64, digits: usize| {
            // Counts are differences: a little less than none is none.
            let texts = sides.iter().map(|side| format!("{:.digits$}", figure(side).max(0.0)));
            texts.collect::<Vec<String>>().join(" / ")
        };
        let ratios = sides.iter().skip(1).map(|side| {
            let base = sides.first().map_or(0.0, |first| first.instructions);
            format!("**{:.2}**", base / side.instructions.max(1.0))
        });
        let ratios = ratios.collect::<Vec<String>>().join(" / ");
        let (instructions, allocations) = (all(|of| of.instructions, 0), all(|of| of.allocations, 2));
        let calls = all(|of| of.system_calls, 2);
        let _ = writeln!(text, "| {operation} | {instructions} | {ratios} | {allocations} | {calls} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_stand_side_by_side() {
        let record = |operation: &str, lib: &str, instructions: f64| OperationCost {
            operation: operation.to_owned(),
            lib: lib.to_owned(),
            instructions,
            allocations: -0.001,
            ..OperationCost::default()
        };
        let records = [("put", "a", 900.4), ("put", "b", 300.0), ("get", "a", 50.0), ("get", "b", 100.0)];
        let text = draw("x.jsonl", &records.map(|(operation, lib, count)| record(operation, lib, count)));
        assert!(text.contains("| put | 900 / 300 | **3.00** | 0.00 / 0.00 | 0.00 / 0.00 |\n"), "{text}");
        assert!(text.contains("| get | 50 / 100 | **0.50** |"), "{text}");
        assert!(draw("x.jsonl", &[]).is_empty());
    }
}
