//! Recurring work per bytes of WAL. Memtables in files get a recovery watermark, so a restart need not replay their
//! contents (see [`crate::open`]'s `restart`). Upkeep prefaults the log further ([`crate::rollover::prefault`]).

use base::SeqNo;
use wal::Position;

use crate::queue::watermark;
use crate::rollover::roll::Wal;

impl Wal {
    /// Sets the memtables' recovery watermark to `last` and wakes upkeep. Everything through `last` is visible; later
    /// records are at `at` in the WAL or beyond. Called for a [taken](crate::log_files::logs::WalFiles::takes_mark) mark.
    #[cold]
    pub(crate) fn pass_mark(&self, last: SeqNo, at: Position) {
        self.core.upkeep.raise_again();
        if self.tells_marks {
            self.mark_memtables(last, at);
        }
    }

    /// Sets the memtables' recovery watermark to `last`: everything through it is visible and in memtables. Later
    /// records are at `at` in the WAL or beyond (C1). Replay from there also needs the prepares without an end (P1).
    #[cold]
    pub(crate) fn mark_memtables(&self, last: SeqNo, at: Position) {
        let Some(at) = watermark::pack(self.core.logs.prepared.replay_from(last, at)) else { return };
        for family in self.core.families.load().iter() {
            let view = family.view();
            view.queue.iter().for_each(|entry| entry.mark_complete(last));
            view.mutable.memtable().mark(last, at);
        }
    }
}
