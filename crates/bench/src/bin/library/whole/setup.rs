//! A library, and options for its databases.

use std::path::Path;
use std::ptr;

use super::callbacks;
use super::held::{Answer, Counted, Held, text, told};
use super::table::Calls;
use crate::library::Functions;

/// The functions of one library.
#[derive(Clone, Copy)]
pub struct Library {
    pub(super) functions: &'static Functions,
    pub(super) calls: &'static Calls,
    /// Never ended: background work may call it until a database is closed, whoever dropped its options.
    backwards: &'static Counted,
}

impl Library {
    /// # Errors
    /// As [`Functions::load`].
    pub fn load(path: &Path) -> base::Result<Library> {
        let (functions, calls) = (Functions::load(path)?, Calls::load(path)?);
        let backwards = comparator(calls).map_err(base::Error::unsupported)?;
        Ok(Library { functions, calls, backwards: Box::leak(Box::new(backwards)) })
    }
}

/// A merge operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Merging {
    Append,
    Count,
}

/// Options of a database and its families.
#[derive(Clone)]
pub struct Setup {
    pub(super) library: Library,
    pub(super) options: Counted,
    /// Where the order is backwards.
    pub(super) comparator: Option<&'static Counted>,
}

impl Setup {
    /// The library's defaults, changed by an option string.
    ///
    /// # Errors
    /// The library's.
    pub fn new(library: Library, changes: &str, merging: Merging, backwards: bool) -> Answer<Setup> {
        let functions = library.functions;
        // SAFETY: a create function without arguments, and its destroy function.
        let defaults = unsafe { Held::new((functions.options_create)(), functions.options_destroy, &[])? };
        let comparator = backwards.then_some(library.backwards);
        // SAFETY: as above.
        let options = unsafe { Held::new((functions.options_create)(), functions.options_destroy, &[])? };
        let changes = text(changes);
        told(functions, |failed| {
            // SAFETY: two different option handles, a C string alive until the call returns, and the place for a message.
            unsafe { (functions.get_options_from_string)(defaults.at(), changes.as_ptr(), options.at(), failed) };
        })?;
        let setup = Setup { library, options, comparator };
        setup.set_objects(merging);
        Ok(setup)
    }

    pub fn library(&self) -> Library {
        self.library
    }

    fn set_objects(&self, merging: Merging) {
        let calls = self.library.calls;
        // SAFETY: functions that need no state, of the signatures that the library calls. The options own the operator from here
        // on, and the comparator lives for ever.
        unsafe {
            let operator = match merging {
                Merging::Append => (calls.mergeoperator_create)(
                    ptr::null_mut(),
                    callbacks::end,
                    callbacks::append_full,
                    callbacks::append_partial,
                    callbacks::free_value,
                    callbacks::append_name,
                ),
                Merging::Count => (calls.mergeoperator_create)(
                    ptr::null_mut(),
                    callbacks::end,
                    callbacks::count_full,
                    callbacks::count_partial,
                    callbacks::free_value,
                    callbacks::count_name,
                ),
            };
            (calls.options_set_merge_operator)(self.options.at(), operator);
            if let Some(comparator) = self.comparator {
                (calls.options_set_comparator)(self.options.at(), comparator.at());
            }
        }
    }
}

fn comparator(calls: &Calls) -> Answer<Counted> {
    // SAFETY: functions that need no state, of the signatures that the library calls; and the matching destroy function.
    unsafe {
        let made = (calls.comparator_create)(
            ptr::null_mut(),
            callbacks::end,
            callbacks::compare_backwards,
            callbacks::backwards_name,
        );
        Held::new(made, calls.comparator_destroy, &[])
    }
}
