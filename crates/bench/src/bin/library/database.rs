//! An open database, its default family.

use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr;

use base::{Error, ErrorKind, Result};
use bench::store::Store;

use super::Options;
use super::call::{Owned, c_bytes, c_path, c_text, checked, failure, lent, take_text};
use super::cursor::Iter;
use super::table::{Functions, Handle, Own};

/// An open database; closed when dropped.
pub struct Database {
    functions: &'static Functions,
    handle: *mut Handle,
    /// The default family.
    family: *mut Handle,
    reads: Owned,
    writes: Owned,
}

// SAFETY: RocksDB's contract: a database and its family handles may be used by any number of threads at once, without a lock. The
// option handles are only read (see `Owned`).
unsafe impl Send for Database {}
// SAFETY: as for `Send`.
unsafe impl Sync for Database {}

/// Changes to be written together.
pub struct Batch(Owned);

/// How writes and reads are done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    pub sync: bool,
    pub verify_checksums: bool,
}

/// How tables are ingested.
struct Habit<'a> {
    may_flush: bool,
    moved: bool,
    /// Spillway's mode.
    mode: Option<(&'a Own, &'a str)>,
}

impl Default for Habit<'_> {
    fn default() -> Self {
        Habit { may_flush: true, moved: false, mode: None }
    }
}

impl Database {
    /// # Errors
    /// The error of the library.
    pub fn open(options: &Options, path: &Path, habits: Habits) -> Result<Database> {
        let functions = options.functions;
        // SAFETY: a create function without arguments, and its destroy function.
        let mut reads = unsafe { Owned::new((functions.readoptions_create)(), functions.readoptions_destroy) }?;
        // SAFETY: a create function without arguments, and its destroy function.
        let mut writes = unsafe { Owned::new((functions.writeoptions_create)(), functions.writeoptions_destroy) }?;
        // SAFETY: live option handles, not used elsewhere yet.
        unsafe {
            (functions.readoptions_set_verify_checksums)(reads.get_mut(), habits.verify_checksums.into());
            (functions.writeoptions_set_sync)(writes.get_mut(), habits.sync.into());
        }
        let (name, default) = (c_path(path)?, c_text("default")?);
        let (names, handles) = ([default.as_ptr()], [options.handle.get()]);
        let mut family = ptr::null_mut();
        let handle = checked(functions, "open_column_families", |failed| {
            // SAFETY: a live options handle; one name, one options handle and room for one family handle, as the number says; C
            // strings that live until the call returns.
            unsafe {
                (functions.open_column_families)(
                    options.handle.get(),
                    name.as_ptr(),
                    1,
                    names.as_ptr(),
                    handles.as_ptr(),
                    &mut family,
                    failed,
                )
            }
        })
        .map_err(|e| e.at_path(path))?;
        if handle.is_null() || family.is_null() {
            return Err(Error::new(ErrorKind::Io, "the library returned a null handle without a message").at_path(path));
        }
        Ok(Database { functions, handle, family, reads, writes })
    }

    /// Writes the memtable to tables, and waits.
    pub fn flush(&self) -> Result<()> {
        let functions = self.functions;
        // SAFETY: a create function without arguments, and its destroy function.
        let mut options = unsafe { Owned::new((functions.flushoptions_create)(), functions.flushoptions_destroy) }?;
        // SAFETY: a live handle, not used elsewhere.
        unsafe { (functions.flushoptions_set_wait)(options.get_mut(), 1) };
        checked(functions, "flush", |failed| {
            // SAFETY: a live database and options.
            unsafe { (functions.flush)(self.handle, options.get(), failed) }
        })
    }

    /// Compacts everything, and waits. The C API reports no failure.
    pub fn compact(&self) {
        // SAFETY: a live database; no keys are the ends of all keys.
        unsafe { (self.functions.compact_range)(self.handle, ptr::null(), 0, ptr::null(), 0) };
    }

    /// A property's text, if the library knows it.
    pub fn property(&self, name: &str) -> Result<Option<String>> {
        let name = c_text(name)?;
        // SAFETY: a live database and a C string; the result is null or a text owned by us, used once.
        unsafe {
            let text = (self.functions.property_value)(self.handle, name.as_ptr());
            Ok((!text.is_null()).then(|| take_text(self.functions, text)))
        }
    }

    /// A property's number, if the library knows it.
    pub fn number(&self, name: &str) -> Result<Option<u64>> {
        let name = c_text(name)?;
        let mut number = 0;
        // SAFETY: a live database, a C string and the place for the number.
        let unknown = unsafe { (self.functions.property_int)(self.handle, name.as_ptr(), &mut number) };
        Ok((unknown == 0).then_some(number))
    }

    /// Whether writes wait for the disk from now on.
    pub fn set_sync(&mut self, sync: bool) {
        // SAFETY: a live handle, used by no other thread (`&mut self`).
        unsafe { (self.functions.writeoptions_set_sync)(self.writes.get_mut(), sync.into()) };
    }

    /// Syncs the log, with everything written so far.
    pub fn sync_log(&self) -> Result<()> {
        checked(self.functions, "flush_wal", |failed| {
            // SAFETY: a live database.
            unsafe { (self.functions.flush_wal)(self.handle, 1, failed) }
        })
    }

    /// Makes table files part of the database. Without `may_flush` it fails if a memtable would have to be flushed first.
    pub fn ingest(&self, files: &[&Path], may_flush: bool) -> Result<()> {
        self.ingest_files(files, Habit { may_flush, ..Habit::default() })
    }

    /// As [`ingest`](Self::ingest), by links instead of copies: the files are gone afterwards.
    pub fn ingest_moved(&self, files: &[&Path]) -> Result<()> {
        self.ingest_files(files, Habit { moved: true, ..Habit::default() })
    }

    /// As [`ingest`](Self::ingest), in one of Spillway's modes; `own` is of the same library.
    pub fn ingest_in_mode(&self, files: &[&Path], own: &Own, mode: &str) -> Result<()> {
        self.ingest_files(files, Habit { mode: Some((own, mode)), ..Habit::default() })
    }

    fn ingest_files(&self, files: &[&Path], habit: Habit<'_>) -> Result<()> {
        let functions = self.functions;
        // SAFETY: a create function without arguments, and its destroy function.
        let mut options = unsafe {
            Owned::new((functions.ingestexternalfileoptions_create)(), functions.ingestexternalfileoptions_destroy)
        }?;
        // SAFETY: a live handle, not used elsewhere.
        unsafe {
            (functions.ingestexternalfileoptions_set_allow_blocking_flush)(options.get_mut(), habit.may_flush.into());
            (functions.ingestexternalfileoptions_set_move_files)(options.get_mut(), habit.moved.into());
        }
        if let Some((own, mode)) = habit.mode {
            let (at, name) = (options.get_mut(), c_text(mode)?);
            checked(functions, "set_mode", |failed| {
                // SAFETY: a live handle, not used elsewhere, and a C string that lives until the call returns.
                unsafe { (own.ingestexternalfileoptions_set_mode)(at, name.as_ptr(), failed) }
            })?;
        }
        let names = files.iter().map(|path| c_path(path)).collect::<Result<Vec<CString>>>()?;
        let names: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        checked(functions, "ingest_external_file", |failed| {
            // SAFETY: a live database and options; as many C strings as the number says, which live until the call returns.
            unsafe {
                (functions.ingest_external_file)(self.handle, names.as_ptr(), names.len(), options.get(), failed);
            }
        })
    }

    /// Passes the value of a pinned handle to `see`, then destroys the handle.
    ///
    /// # Safety
    /// `pinned` is a value handed out by the library, and not used afterwards.
    #[inline]
    unsafe fn see_pinned(&self, pinned: *mut Handle, see: impl FnOnce(&[u8])) {
        let mut length = 0;
        // SAFETY: the caller's promise; the bytes stay until the value is destroyed, which is once, below.
        unsafe {
            let at = (self.functions.pinnableslice_value)(pinned, &mut length);
            see(lent(at, length));
            (self.functions.pinnableslice_destroy)(pinned);
        }
    }

    /// The error of the first message of a call for many keys. Frees all messages.
    ///
    /// # Safety
    /// Each non-null pointer is a message handed out by the library, and not used afterwards.
    unsafe fn first_failure(&self, messages: Vec<*mut c_char>) -> Result<()> {
        let mut first = Ok(());
        for message in messages.into_iter().filter(|message| !message.is_null()) {
            // SAFETY: the caller's promise.
            let error = unsafe { failure(self.functions, "multi_get", message) };
            first = first.and(Err(error));
        }
        first
    }
}

/// Arrays of keys and of their lengths, for the C API.
struct Many {
    keys: Vec<*const c_char>,
    lengths: Vec<usize>,
}

impl Many {
    fn of(keys: &[&[u8]]) -> Many {
        Many {
            keys: keys.iter().map(|key| c_bytes(key)).collect(),
            lengths: keys.iter().map(|key| key.len()).collect(),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: both handles came from one open, iterators borrow this value and are gone, and only this closes it.
        unsafe {
            (self.functions.column_family_handle_destroy)(self.family);
            (self.functions.close)(self.handle);
        }
    }
}

impl Store for Database {
    type Batch = Batch;
    type Cursor<'a> = Iter<'a>;

    fn new_batch(&self) -> Result<Batch> {
        let functions = self.functions;
        // SAFETY: a create function without arguments, and its destroy function.
        unsafe { Owned::new((functions.writebatch_create)(), functions.writebatch_destroy) }.map(Batch)
    }

    #[inline]
    fn clear(&self, batch: &mut Batch) {
        // SAFETY: a live batch, used by no other thread (`&mut`); so in all changes.
        unsafe { (self.functions.writebatch_clear)(batch.0.get_mut()) };
    }

    #[inline]
    fn add_put(&self, batch: &mut Batch, key: &[u8], value: &[u8]) {
        let (at, put) = (batch.0.get_mut(), self.functions.writebatch_put);
        // SAFETY: as in `clear`; two pieces of memory with their lengths.
        unsafe { put(at, c_bytes(key), key.len(), c_bytes(value), value.len()) };
    }

    #[inline]
    fn add_delete(&self, batch: &mut Batch, key: &[u8]) {
        // SAFETY: as in `clear`; a piece of memory with its length.
        unsafe { (self.functions.writebatch_delete)(batch.0.get_mut(), c_bytes(key), key.len()) };
    }

    #[inline]
    fn write(&self, batch: &mut Batch) -> Result<()> {
        let at = batch.0.get_mut();
        checked(self.functions, "write", |failed| {
            // SAFETY: a live database and options, and a batch used by no other thread.
            unsafe { (self.functions.write)(self.handle, self.writes.get(), at, failed) }
        })
    }

    /// By `rocksdb_put`, as C programs do.
    #[inline]
    fn put(&self, _batch: &mut Batch, key: &[u8], value: &[u8]) -> Result<()> {
        let (put, writes) = (self.functions.put, self.writes.get());
        checked(self.functions, "put", |failed| {
            // SAFETY: a live database and options, and two pieces of memory with their lengths.
            unsafe { put(self.handle, writes, c_bytes(key), key.len(), c_bytes(value), value.len(), failed) }
        })
    }

    #[inline]
    fn get(&self, key: &[u8], see: impl FnMut(&[u8])) -> Result<bool> {
        let pinned = checked(self.functions, "get_pinned", |failed| {
            // SAFETY: a live database and options, and a piece of memory with its length.
            unsafe { (self.functions.get_pinned)(self.handle, self.reads.get(), c_bytes(key), key.len(), failed) }
        })?;
        if pinned.is_null() {
            return Ok(false);
        }
        // SAFETY: the call returned it, and it is used once.
        unsafe { self.see_pinned(pinned, see) };
        Ok(true)
    }

    /// By the batched call.
    fn multi_get(&self, keys: &[&[u8]], mut see: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let batched = self.functions.batched_multi_get_cf;
        let many = Many::of(keys);
        let mut values = vec![ptr::null_mut(); keys.len()];
        let mut failed = vec![ptr::null_mut(); keys.len()];
        // SAFETY: a live database, options and family; every array has as many elements as the number says.
        unsafe {
            let (at, lengths) = (many.keys.as_ptr(), many.lengths.as_ptr());
            let (reads, values) = (self.reads.get(), values.as_mut_ptr());
            batched(self.handle, reads, self.family, keys.len(), at, lengths, values, failed.as_mut_ptr(), false);
        }
        for (key, value) in keys.iter().zip(values) {
            if !value.is_null() {
                // SAFETY: the call put it there, and it is used once.
                unsafe { self.see_pinned(value, |value| see(key, value)) };
            }
        }
        // SAFETY: the call filled it, and the messages are used once.
        unsafe { self.first_failure(failed) }
    }

    fn cursor(&self) -> Result<Iter<'_>> {
        // SAFETY: a live database and options, both outliving the iterator, since it borrows this value; and its destroy function.
        let handle = unsafe {
            let made = (self.functions.create_iterator)(self.handle, self.reads.get());
            Owned::new(made, self.functions.iter_destroy)
        }?;
        Ok(Iter::new(self.functions, handle, self))
    }
}
