//! Merge operands gathered while a cursor moves, in memory that is used again.

#[derive(Default)]
pub(super) struct Operands {
    bytes: Vec<u8>,
    /// Where each operand ends in `bytes`.
    ends: Vec<usize>,
}

impl Operands {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn push(&mut self, operand: &[u8]) {
        self.bytes.extend_from_slice(operand);
        self.ends.push(self.bytes.len());
    }

    /// The operands in the order in which they were pushed.
    pub fn in_order(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| self.bytes.get(start..end).unwrap_or_default()).collect()
    }

    /// The operands, the one pushed last first.
    pub fn reversed(&self) -> Vec<&[u8]> {
        let mut operands = self.in_order();
        operands.reverse();
        operands
    }
}
