//! Direct buffers over memory of ours, for callbacks.

use super::env::Env;
use super::object::{Global, Object};
use crate::fault::Fault;

/// A direct buffer with its memory. Java's side uses it during a callback only.
pub struct LentBuffer {
    buffer: Global,
    memory: Box<[u8]>,
}

impl LentBuffer {
    pub fn new(env: Env<'_>, room: usize) -> Result<LentBuffer, Fault> {
        let mut memory = vec![0; room].into_boxed_slice();
        // SAFETY: the memory lives as long as the buffer's reference here; a callback that keeps the buffer breaks
        // RocksDB's rule for comparators.
        let local = unsafe { env.new_direct(memory.as_mut_ptr(), room) }?;
        let buffer = Global::new(env, local).ok_or(Fault::OutOfMemory)?;
        env.delete(local);
        Ok(LentBuffer { buffer, memory })
    }

    pub fn room(&self) -> usize {
        self.memory.len()
    }

    /// The buffer with these bytes at its start.
    pub fn with(&mut self, bytes: &[u8]) -> Result<Object<'_>, Fault> {
        let room =
            self.memory.get_mut(..bytes.len()).ok_or_else(|| Fault::illegal("a key is longer than its buffer"))?;
        room.copy_from_slice(bytes);
        Ok(self.buffer.object())
    }
}
