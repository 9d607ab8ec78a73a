//! Remembers recently evicted blocks by a fingerprint of their key, without their bytes.

/// Direct-mapped table of fingerprints; newer ones overwrite older ones.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    /// Its length is a power of two, or 0. An empty place is 0.
    prints: Box<[u32]>,
}

impl Ghosts {
    /// Makes room to remember about `entries` blocks.
    pub(super) fn fit(&mut self, entries: usize) {
        if entries > self.prints.len() {
            self.prints = vec![0; entries.next_power_of_two().max(64)].into();
        }
    }

    pub(super) fn remember(&mut self, mixed: u64) {
        let print = print(mixed);
        if let Some(place) = self.place(mixed) {
            *place = print;
        }
    }

    /// Whether the block was remembered. Forgets it.
    pub(super) fn take(&mut self, mixed: u64) -> bool {
        let print = print(mixed);
        self.place(mixed).is_some_and(|place| {
            let found = *place == print;
            if found {
                *place = 0;
            }
            found
        })
    }

    fn place(&mut self, mixed: u64) -> Option<&mut u32> {
        let mask = self.prints.len().wrapping_sub(1);
        self.prints.get_mut(mixed as usize & mask)
    }
}

fn print(mixed: u64) -> u32 {
    (mixed >> 32) as u32 | 1
}
