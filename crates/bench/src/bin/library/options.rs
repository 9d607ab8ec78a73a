//! Option handles.

use base::Result;

use super::call::{Owned, c_text, checked};
use super::table::Functions;

/// The options of a database or a table writer.
pub struct Options {
    pub(super) functions: &'static Functions,
    pub(super) handle: Owned,
    /// A file system in memory, if databases with these options have one. Databases are closed before their options go.
    memory: Option<Owned>,
}

impl Options {
    fn defaults(functions: &'static Functions) -> Result<Options> {
        // SAFETY: a create function without arguments, and its destroy function.
        let handle = unsafe { Owned::new((functions.options_create)(), functions.options_destroy) }?;
        Ok(Options { functions, handle, memory: None })
    }

    /// These options with an empty file system in memory.
    pub fn in_memory(mut self) -> Result<Options> {
        // SAFETY: a create function without arguments, and its destroy function.
        let mut memory = unsafe { Owned::new((self.functions.create_mem_env)(), self.functions.env_destroy) }?;
        // SAFETY: two live handles, used by no other thread yet; the file system lives as long as the options.
        unsafe { (self.functions.options_set_env)(self.handle.get_mut(), memory.get_mut()) };
        self.memory = Some(memory);
        Ok(self)
    }

    /// The library's defaults, changed by the option strings in order.
    ///
    /// # Errors
    /// `InvalidArgument`: the library refuses a string, with its message.
    pub fn from_texts(functions: &'static Functions, texts: &[String]) -> Result<Options> {
        texts.iter().try_fold(Options::defaults(functions)?, |base, text| base.changed(text))
    }

    fn changed(&self, text: &str) -> Result<Options> {
        let mut made = Options::defaults(self.functions)?;
        let given = c_text(text)?;
        let (from, to) = (self.handle.get(), made.handle.get_mut());
        checked(self.functions, "get_options_from_string", |failed| {
            // SAFETY: two different option handles, a C string alive until the call returns, and the place for a message.
            unsafe { (self.functions.get_options_from_string)(from, given.as_ptr(), to, failed) }
        })
        .map_err(|e| e.context(format!("options {text:?}")))?;
        Ok(made)
    }
}
