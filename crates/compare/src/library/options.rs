//! Option handles.

use base::Result;

use super::call::{Owned, c_text, checked};
use super::table::Functions;

/// What a database or a table writer is made with.
pub struct Options {
    pub(super) functions: &'static Functions,
    pub(super) handle: Owned,
    /// What they name.
    environment: Option<Owned>,
}

impl Options {
    fn defaults(functions: &'static Functions) -> Result<Options> {
        // SAFETY: a create function without arguments, and the function that undoes it.
        let handle = unsafe { Owned::new((functions.options_create)(), functions.options_destroy) }?;
        Ok(Options { functions, handle, environment: None })
    }

    /// The library's defaults, changed by an option string.
    ///
    /// # Errors
    /// `InvalidArgument`: the library does not take the string; its message says what of it.
    pub fn from_text(functions: &'static Functions, text: &str) -> Result<Options> {
        let base = Options::defaults(functions)?;
        let mut made = Options::defaults(functions)?;
        let given = c_text(text)?;
        let (from, to) = (base.handle.get(), made.handle.get_mut());
        checked(functions, "get_options_from_string", |failed| {
            // SAFETY: two different option handles, a C string that lives until the call returns, and the place for a message.
            unsafe { (functions.get_options_from_string)(from, given.as_ptr(), to, failed) }
        })
        .map_err(|e| e.context(format!("options {text:?}")))?;
        Ok(made)
    }

    /// Has compactions give way to all other threads where processors are short.
    ///
    /// # Errors
    /// `InvalidArgument`: the library makes no environment.
    pub fn lower_compactions(&mut self) -> Result<()> {
        let functions = self.functions;
        // SAFETY: a create function without arguments, and the function that undoes it.
        let mut environment = unsafe { Owned::new((functions.create_default_env)(), functions.env_destroy) }?;
        // SAFETY: live handles; libraries share the default environment among all handles of it, so that it outlives databases.
        unsafe {
            (functions.env_lower_thread_pool_cpu_priority)(environment.get_mut());
            (functions.options_set_env)(self.handle.get_mut(), environment.get_mut());
        }
        self.environment = Some(environment);
        Ok(())
    }
}
