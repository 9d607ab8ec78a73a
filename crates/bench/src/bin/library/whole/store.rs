//! An open database of any kind, and its families.

use std::ffi::{CString, c_char, c_int};
use std::path::Path;
use std::ptr;
use std::rc::Rc;

use super::held::{Answer, Counted, Held, path, text, told};
use super::setup::{Library, Setup};
use crate::library::call::{c_bytes, take_text};
use crate::library::table::Handle;

/// How a database is opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Plain,
    ReadOnly,
    Optimistic,
    Pessimistic,
}

/// An open database; closed when it, its families, iterators, snapshots and transactions are dropped.
pub struct Store {
    pub(super) library: Library,
    pub kind: Kind,
    /// The handle of its kind.
    pub(super) whole: Counted,
    /// The handle for calls that know no transactions; the same where there are none.
    pub(super) base: Counted,
    pub(super) writes: Counted,
    /// For writes without the log.
    pub(super) unlogged: Counted,
}

/// A family of a database.
#[derive(Clone)]
pub struct Family {
    pub(super) handle: Counted,
    pub(super) setup: Setup,
}

/// A manual compaction of a range.
#[derive(Clone, Debug)]
pub struct Compaction {
    pub from: Option<Vec<u8>>,
    pub to: Option<Vec<u8>>,
    pub exclusive: bool,
    /// `bottommost_level_compaction`.
    pub bottommost: u8,
    pub target_level: Option<i32>,
}

/// How tables are ingested.
#[derive(Clone, Copy, Debug)]
pub struct Ingest {
    pub moved: bool,
    pub snapshots: bool,
    pub number_in_file: bool,
}

impl Store {
    /// Opens the families named, in their order.
    ///
    /// # Errors
    /// The library's.
    pub fn open(kind: Kind, dir: &Path, named: &[(String, Setup)]) -> Answer<(Store, Vec<Family>)> {
        let library = named.first().ok_or("no family")?.1.library;
        let names: Vec<CString> = named.iter().map(|(name, _)| text(name)).collect();
        let mut families: Vec<*mut Handle> = vec![ptr::null_mut(); named.len()];
        let at = open_handles(kind, &path(dir), named, &names, &mut families)?;
        let calls = library.calls;
        let close = match kind {
            Kind::Plain | Kind::ReadOnly => library.functions.close,
            Kind::Optimistic => calls.optimistictransactiondb_close,
            Kind::Pessimistic => calls.transactiondb_close,
        };
        // SAFETY: just opened, with its close function; comparators live for ever.
        let whole = unsafe { Held::new(at, close, &[])? };
        let base = base_of(library, kind, &whole)?;
        let families = families.into_iter().zip(named).map(|(at, (_, setup))| {
            // SAFETY: just made, with its destroy function; it is destroyed before its database.
            let handle = unsafe { Held::new(at, library.functions.column_family_handle_destroy, &[&whole, &base])? };
            Ok(Family { handle, setup: setup.clone() })
        });
        let families = families.collect::<Answer<Vec<_>>>()?;
        let (writes, unlogged) = (write_options(library, false)?, write_options(library, true)?);
        Ok((Store { library, kind, whole, base, writes, unlogged }, families))
    }

    /// The names of a closed database's families, in the library's order.
    ///
    /// # Errors
    /// The library's.
    pub fn list(setup: &Setup, dir: &Path) -> Answer<Vec<String>> {
        let (library, dir) = (setup.library, path(dir));
        let mut length = 0;
        let list = told(library.functions, |failed| {
            // SAFETY: live options, a C string, and two places to write to.
            unsafe { (library.calls.list_column_families)(setup.options.at(), dir.as_ptr(), &mut length, failed) }
        })?;
        // SAFETY: as many C strings as the library said, read before they are destroyed.
        unsafe {
            let names = (0..length).map(|at| std::ffi::CStr::from_ptr(*list.add(at)).to_string_lossy().into_owned());
            let names = names.collect();
            (library.calls.list_column_families_destroy)(list, length);
            Ok(names)
        }
    }

    pub fn create_family(&self, name: &str, setup: &Setup) -> Answer<Family> {
        let (calls, name) = (self.library.calls, text(name));
        let at = told(self.library.functions, |failed| {
            // SAFETY: a live database of the kind that the function is for, live options and a C string.
            unsafe {
                match self.kind {
                    Kind::Pessimistic => (calls.transactiondb_create_column_family)(
                        self.whole.at(),
                        setup.options.at(),
                        name.as_ptr(),
                        failed,
                    ),
                    _ => (calls.create_column_family)(self.base.at(), setup.options.at(), name.as_ptr(), failed),
                }
            }
        })?;
        let keeps = [&self.whole, &self.base];
        // SAFETY: just made, with its destroy function; it is destroyed before its database.
        let handle = unsafe { Held::new(at, self.library.functions.column_family_handle_destroy, &keeps)? };
        Ok(Family { handle, setup: setup.clone() })
    }

    pub fn drop_family(&self, family: &Family) -> Answer<()> {
        told(self.library.functions, |failed| {
            // SAFETY: a live database and a family of it.
            unsafe { (self.library.calls.drop_column_family)(self.base.at(), family.handle.at(), failed) }
        })
    }

    /// Writes the family's memtable to tables, and waits.
    pub fn flush(&self, family: &Family) -> Answer<()> {
        let functions = self.library.functions;
        // SAFETY: a create function without arguments, and its destroy function.
        let options = unsafe { Held::new((functions.flushoptions_create)(), functions.flushoptions_destroy, &[])? };
        told(functions, |failed| {
            // SAFETY: live handles: options, a database, and a family of it.
            unsafe {
                (functions.flushoptions_set_wait)(options.at(), 1);
                (self.library.calls.flush_cf)(self.base.at(), options.at(), family.handle.at(), failed);
            }
        })
    }

    /// Compacts a range, and waits. The C API reports no failure.
    pub fn compact(&self, family: &Family, how: &Compaction) -> Answer<()> {
        let calls = self.library.calls;
        let end = |key: &Option<Vec<u8>>| key.as_ref().map_or((ptr::null(), 0), |key| (c_bytes(key), key.len()));
        let ((from, from_length), (to, to_length)) = (end(&how.from), end(&how.to));
        // SAFETY: live handles: options made here, a database, and a family of it; keys with their lengths, or null for no end.
        unsafe {
            let options = Held::new((calls.compactoptions_create)(), calls.compactoptions_destroy, &[])?;
            let at = options.at();
            (calls.compactoptions_set_exclusive_manual_compaction)(at, how.exclusive.into());
            (calls.compactoptions_set_bottommost_level_compaction)(at, how.bottommost);
            if let Some(level) = how.target_level {
                (calls.compactoptions_set_change_level)(at, 1);
                (calls.compactoptions_set_target_level)(at, level);
            }
            let (base, family) = (self.base.at(), family.handle.at());
            (calls.compact_range_cf_opt)(base, family, at, from, from_length, to, to_length);
        }
        Ok(())
    }

    /// A property's text, if the library knows it.
    pub fn property(&self, name: &str) -> Option<String> {
        let name = text(name);
        // SAFETY: a live database and a C string; the result is null or a text owned by us, used once.
        unsafe {
            let text = (self.library.functions.property_value)(self.base.at(), name.as_ptr());
            (!text.is_null()).then(|| take_text(self.library.functions, text))
        }
    }

    pub fn checkpoint(&self, dir: &Path, log_bytes: u64) -> Answer<()> {
        let (functions, calls, dir) = (self.library.functions, self.library.calls, path(dir));
        let made = told(functions, |failed| {
            // SAFETY: a live database of the kind that the function is for.
            unsafe {
                match self.kind {
                    Kind::Pessimistic => (calls.transactiondb_checkpoint_object_create)(self.whole.at(), failed),
                    _ => (calls.checkpoint_object_create)(self.base.at(), failed),
                }
            }
        })?;
        // SAFETY: just made, with its destroy function; it is destroyed before its database.
        let checkpoint = unsafe { Held::new(made, calls.checkpoint_object_destroy, &[&self.whole, &self.base])? };
        told(functions, |failed| {
            // SAFETY: a live checkpoint object and a C string.
            unsafe { (calls.checkpoint_create)(checkpoint.at(), dir.as_ptr(), log_bytes, failed) }
        })
    }

    pub fn ingest(&self, family: &Family, files: &[&Path], how: Ingest) -> Answer<()> {
        let (functions, calls) = (self.library.functions, self.library.calls);
        let names: Vec<CString> = files.iter().map(|file| path(file)).collect();
        let at: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        // SAFETY: a create function without arguments, and its destroy function; setters of live options.
        let options = unsafe {
            let made = (functions.ingestexternalfileoptions_create)();
            let options = Held::new(made, functions.ingestexternalfileoptions_destroy, &[])?;
            (functions.ingestexternalfileoptions_set_move_files)(made, how.moved.into());
            (calls.ingestexternalfileoptions_set_snapshot_consistency)(made, how.snapshots.into());
            (calls.ingestexternalfileoptions_set_write_global_seqno)(made, how.number_in_file.into());
            options
        };
        told(functions, |failed| {
            // SAFETY: live handles: a database, a family of it and options; as many C strings as the number says.
            unsafe {
                let (base, family) = (self.base.at(), family.handle.at());
                (calls.ingest_external_file_cf)(base, family, at.as_ptr(), at.len(), options.at(), failed);
            }
        })
    }
}

impl Family {
    pub fn setup(&self) -> &Setup {
        &self.setup
    }
}

fn open_handles(
    kind: Kind,
    dir: &CString,
    named: &[(String, Setup)],
    names: &[CString],
    families: &mut [*mut Handle],
) -> Answer<*mut Handle> {
    let setup = &named.first().ok_or("no family")?.1;
    let (functions, calls) = (setup.library.functions, setup.library.calls);
    let (own, dir) = (setup.options.at().cast_const(), dir.as_ptr());
    let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    let options: Vec<*const Handle> = named.iter().map(|(_, setup)| setup.options.at().cast_const()).collect();
    let number = c_int::try_from(named.len()).map_err(|e| e.to_string())?;
    let (names, options, families) = (names.as_ptr(), options.as_ptr(), families.as_mut_ptr());
    told(functions, |failed| {
        // SAFETY: live option handles; as many names, options and places for families as the number says; C strings that live
        // until the call returns.
        unsafe {
            match kind {
                Kind::Plain => (functions.open_column_families)(own, dir, number, names, options, families, failed),
                Kind::ReadOnly => {
                    (calls.open_for_read_only_column_families)(own, dir, number, names, options, families, 0, failed)
                }
                Kind::Optimistic => (calls.optimistictransactiondb_open_column_families)(
                    own, dir, number, names, options, families, failed,
                ),
                Kind::Pessimistic => {
                    let locks = (calls.transactiondb_options_create)();
                    (calls.transactiondb_options_set_default_lock_timeout)(locks, 1);
                    (calls.transactiondb_options_set_transaction_lock_timeout)(locks, 1);
                    let opened = (calls.transactiondb_open_column_families)(
                        own, locks, dir, number, names, options, families, failed,
                    );
                    (calls.transactiondb_options_destroy)(locks);
                    opened
                }
            }
        }
    })
}

/// The handle for calls that know no transactions.
fn base_of(library: Library, kind: Kind, whole: &Counted) -> Answer<Counted> {
    let calls = library.calls;
    // SAFETY: a live database of the kind that the function is for; the handle made is ended by the matching function, before it.
    unsafe {
        match kind {
            Kind::Plain | Kind::ReadOnly => Ok(Rc::clone(whole)),
            Kind::Optimistic => Held::new(
                (calls.optimistictransactiondb_get_base_db)(whole.at()),
                calls.optimistictransactiondb_close_base_db,
                &[whole],
            ),
            Kind::Pessimistic => {
                Held::new((calls.transactiondb_get_base_db)(whole.at()), calls.transactiondb_close_base_db, &[whole])
            }
        }
    }
}

fn write_options(library: Library, unlogged: bool) -> Answer<Counted> {
    let functions = library.functions;
    // SAFETY: a create function without arguments, and its destroy function; a setter of live options.
    unsafe {
        let options = Held::new((functions.writeoptions_create)(), functions.writeoptions_destroy, &[])?;
        (library.calls.writeoptions_disable_WAL)(options.at(), unlogged.into());
        Ok(options)
    }
}
