//! Remembers which blocks were evicted lately, by a print of their key each and without their bytes.

/// A table of prints, each at the one place its key gives it; newer ones overwrite older ones.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    /// A power of two of them, or none; 0 where there is no print.
    prints: Box<[u32]>,
}

impl Ghosts {
    /// Makes room to remember about as many blocks as there are entries.
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

    /// Whether the block was remembered; it no longer is.
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
