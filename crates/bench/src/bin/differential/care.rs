//! Steps about files: flushes, compactions, families, checkpoints, other opens.

use std::path::PathBuf;

use base::Result;
use bench::folder;

use crate::library::whole::{Answer, Change, Compaction, Kind, Store};
use crate::step::{SLOTS, Shape};
use crate::view::Placed;
use crate::world::{NOTHING, World, family_name, told};

pub fn text<T>(result: Result<T>) -> Answer<T> {
    result.map_err(|error| format!("driver: {error}"))
}

impl World {
    pub fn flush(&self, family: usize) -> Answer<String> {
        let Some(family) = self.family(family) else { return Ok(NOTHING.to_owned()) };
        Ok(told(self.store()?.flush(family)))
    }

    /// Not beside transactions: a deletion of what was absent leaves no trace for ours, and RocksDB remembers it as a conflict.
    pub fn compact(&mut self, family: usize, how: &Compaction) -> Answer<String> {
        self.end_transactions();
        let Some(family) = self.family(family) else { return Ok(NOTHING.to_owned()) };
        Ok(told(self.store()?.compact(family, how)))
    }

    pub fn create_family(&mut self, family: usize) -> Answer<String> {
        // RocksDB's optimistic transactions cannot check their conflicts with a family younger than their snapshot.
        self.end_transactions();
        if self.family(family).is_some() {
            return Ok(NOTHING.to_owned());
        }
        let made = self.store()?.create_family(&family_name(family), &self.setup(family)?)?;
        *self.families.get_mut(family).ok_or("no slot")? = Some(made);
        Ok("created".to_owned())
    }

    pub fn drop_family(&mut self, family: usize) -> Answer<String> {
        self.end_transactions();
        let Some(handle) = self.families.get_mut(family).and_then(Option::take) else {
            return Ok(NOTHING.to_owned());
        };
        self.single.retain(|(of, _)| *of != family);
        // A batch that names it fails in both, but no later write succeeds in RocksDB.
        self.batches = [const { None }; SLOTS];
        self.indexed = [const { None }; SLOTS];
        self.cursors.iter_mut().flatten().for_each(Placed::forbid_refresh);
        Ok(told(self.store()?.drop_family(&handle)))
    }

    /// Makes a checkpoint, and returns its directory.
    pub fn copy(&mut self, log_bytes: u64) -> Answer<PathBuf> {
        self.made += 1;
        let dir = self.dir.with_extension(format!("checkpoint{}", self.made));
        self.store()?.checkpoint(&dir, log_bytes)?;
        Ok(dir)
    }

    pub fn checkpoint(&mut self, log_bytes: u64) -> Answer<String> {
        let dir = self.copy(log_bytes)?;
        let present = self.present();
        let told = {
            let (store, families) = self.opened(Kind::Plain, &dir, &present)?;
            let contents = families.iter().map(|family| crate::view::contents(family, &store));
            contents.collect::<Answer<Vec<_>>>()?.join("\n  ")
        };
        text(folder::remove(self.vfs.as_ref(), &dir))?;
        Ok(told)
    }

    pub fn reopen(&mut self, shape: &Shape) -> Answer<String> {
        let present = self.close();
        self.shape = shape.clone();
        let listed = Store::list(&self.setup(0)?, &self.dir)?;
        self.open(&present)?;
        Ok(format!("{} {}", listed.join(" "), self.scan()?))
    }

    pub fn look_read_only(&mut self) -> Answer<String> {
        let present = self.close();
        let told = {
            let (store, families) = self.opened(Kind::ReadOnly, &self.dir, &present)?;
            let contents = families.iter().map(|family| crate::view::contents(family, &store));
            let mut contents = contents.collect::<Answer<Vec<_>>>()?;
            let family = families.first().ok_or("no family")?;
            contents.push(told(store.change(family, &Change::Delete(b"a".to_vec()), false)));
            contents.push(told(store.flush(family)));
            contents.join("\n  ")
        };
        self.open(&present)?;
        Ok(told)
    }
}
