//! Cuts sorted records into key ranges for parallel merges.

use spillway::internal::UserOrder;
use table::sort::Sequence;

/// Keys sampled from a buffer.
const SAMPLES_OF_BUFFER: usize = 256;

/// A range of keys; all of them by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// First key; `None` for the first of all.
    pub from: Option<Vec<u8>>,
    /// Exclusive end.
    pub to: Option<Vec<u8>>,
}

/// Cuts all keys into `count` parts of similar size, or fewer.
pub(super) fn cut(sequences: &[Sequence], order: &UserOrder, count: usize) -> Vec<Part> {
    let mut samples = samples(sequences);
    samples.sort_by(|a, b| order.compare(&a.0, &b.0));
    let total: f64 = samples.iter().map(|(_, weight)| weight).sum();
    let mut parts = Vec::new();
    let (mut from, mut before): (Option<Vec<u8>>, f64) = (None, 0.0);
    for (key, weight) in samples {
        let wanted = total * (parts.len() + 1) as f64 / count as f64;
        let is_new = from.as_ref().is_none_or(|from| order.compare(from, &key).is_lt());
        if parts.len() + 1 < count && before >= wanted && is_new {
            parts.push(Part { from: from.replace(key.clone()), to: Some(key) });
        }
        before += weight;
    }
    parts.push(Part { from, to: None });
    parts
}

/// Sampled keys with their weights in bytes.
fn samples(sequences: &[Sequence]) -> Vec<(Vec<u8>, f64)> {
    let mut samples = Vec::new();
    for sequence in sequences {
        let keys: Vec<Vec<u8>> = match sequence {
            Sequence::Memory(buffer) => {
                let step = buffer.len().div_ceil(SAMPLES_OF_BUFFER).max(1);
                buffer.iter().step_by(step).map(|(key, _)| key.to_vec()).collect()
            }
            Sequence::Spilled(run) => run.samples().iter().map(|sample| sample.key.clone()).collect(),
        };
        let weight = sequence.payload_bytes() as f64 / keys.len().max(1) as f64;
        samples.extend(keys.into_iter().map(|key| (key, weight)));
    }
    samples
}
