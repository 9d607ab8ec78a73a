//! Merge operands collected during a walk, in reused memory.

#[derive(Default)]
pub(super) struct Operands {
    bytes: Vec<u8>,
    /// End offset of each operand in `bytes`.
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

    /// The operands in push order.
    pub fn in_order(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| self.bytes.get(start..end).unwrap_or_default()).collect()
    }

    /// The operands in reverse push order.
    pub fn reversed(&self) -> Vec<&[u8]> {
        let mut operands = self.in_order();
        operands.reverse();
        operands
    }
}
