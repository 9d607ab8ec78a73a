//! C's functions, called by the engine (K6): comparators, merge operators, compaction filters, prefix extractors, and
//! visitors of a batch. The calls are here; the engine's objects around them are in `extend`.

use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::ptr;

use spillway::internal::name;

use super::argument::{FromC, Place, bytes_at};
use super::{Handle, reply};

/// A callback's first argument, and its destructor.
pub struct State {
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: K6: callbacks can be called with their state by any thread, by several at once.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl State {
    /// State without a destructor.
    pub fn borrowed(state: StatePointer) -> State {
        State { state: state.0, destructor: None }
    }

    pub fn new(state: StatePointer, destructor: Destructor) -> State {
        State { state: state.0, destructor: destructor.0 }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: K6: called once, when no callback is called any more.
            unsafe { destructor(self.state) }
        }
    }
}

/// Arguments passed on unread.
macro_rules! opaque {
    ($( $(#[$doc:meta])* $name:ident($type:ty); )+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name($type);

        impl FromC for $name {
            type Parameter = $type;
            type Raw = $type;

            unsafe fn from_c(raw: $type, _place: Place) -> $name {
                $name(raw)
            }
        }
    )+};
}

opaque! {
    StatePointer(*mut c_void);
    Destructor(Option<unsafe extern "C" fn(*mut c_void)>);
    /// Returns less than, equal to or more than 0.
    Compare(Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int>);
    Name(Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>);
    FullMerge(Option<FullMergeFn>);
    PartialMerge(Option<PartialMergeFn>);
    /// Frees the result of a merge.
    DeleteValue(Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>);
    Filter(Option<FilterFn>);
    /// The prefix of a key: memory anywhere, alive as long as the state.
    Transform(Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut usize) -> *mut c_char>);
    InDomain(Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_uchar>);
    /// State, level, a line and its length.
    Log(Option<unsafe extern "C" fn(*mut c_void, c_uint, *mut c_char, usize)>);
    VisitPair(Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize)>);
    VisitKey(Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>);
    VisitFamilyPair(Option<unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize, *const c_char, usize)>);
    VisitFamilyKey(Option<unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize)>);
}

/// Makes a filter for a compaction: a handle from then on owned by the library, or NULL.
pub struct CreateFilter<C, F>(CreateFilterFn<C, F>);

impl<C: Handle, F: Handle> FromC for CreateFilter<C, F> {
    type Parameter = CreateFilterFn<C, F>;
    type Raw = CreateFilterFn<C, F>;

    unsafe fn from_c(raw: CreateFilterFn<C, F>, _place: Place) -> CreateFilter<C, F> {
        CreateFilter(raw)
    }
}

/// Takes the results of a lookup: state, their number, values and errors, at most one of them for each key.
pub struct TakeFound<V>(TakeFoundFn<V>);

impl<V: Handle> FromC for TakeFound<V> {
    type Parameter = TakeFoundFn<V>;
    type Raw = TakeFoundFn<V>;

    unsafe fn from_c(raw: TakeFoundFn<V>, _place: Place) -> TakeFound<V> {
        TakeFound(raw)
    }
}

/// A function never called, of any type.
pub struct Uncalled;

impl FromC for Uncalled {
    type Parameter = Option<unsafe extern "C" fn()>;
    type Raw = Self::Parameter;

    unsafe fn from_c(_raw: Self::Raw, _place: Place) -> Uncalled {
        Uncalled
    }
}

/// State, key, the value below or NULL, operands oldest first, and destinations of success and the result's length.
type FullMergeFn = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;

/// The same without a value below.
type PartialMergeFn = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;

/// State, level, key, value, and destinations of a new value, its length and its flag.
type FilterFn = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut c_uchar,
) -> c_uchar;

/// State and context.
type CreateFilterFn<C, F> = Option<unsafe extern "C" fn(*mut c_void, *mut C) -> *mut F>;

type TakeFoundFn<V> = Option<unsafe extern "C" fn(*mut c_void, usize, *mut *mut V, *mut *mut c_char)>;

fn raw(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

impl Name {
    /// The text of the name's bytes; empty without a function or a name.
    pub fn of(self, state: &State) -> String {
        let Some(name) = self.0 else { return String::new() };
        // SAFETY: K6, and K3 of the returned name.
        unsafe {
            let name = name(state.state);
            if name.is_null() { String::new() } else { name::text(CStr::from_ptr(name).to_bytes()).into_owned() }
        }
    }
}

impl Compare {
    #[inline]
    pub fn call(self, state: &State, a: &[u8], b: &[u8]) -> Ordering {
        let Some(compare) = self.0 else { return a.cmp(b) };
        // SAFETY: K6.
        unsafe { compare(state.state, raw(a), a.len(), raw(b), b.len()) }.cmp(&0)
    }
}

impl DeleteValue {
    /// Copies the result of a merge, and frees it; `None` if the merge failed.
    ///
    /// # Safety
    /// K6: `len` bytes at `merged`, or NULL, to be freed as the operator's maker said.
    unsafe fn take(self, state: &State, merged: *mut c_char, len: usize, success: c_uchar) -> Option<Vec<u8>> {
        // SAFETY: the caller's promise; for NULL `bytes_at` returns an empty slice.
        let copy = (success != 0).then(|| unsafe { bytes_at(merged, len) }.to_vec());
        match self.0 {
            _ if merged.is_null() => {}
            // SAFETY: K6: this function frees the result.
            Some(delete) => unsafe { delete(state.state, merged, len) },
            // SAFETY: K6: without a function of its own the memory is malloc's.
            None => unsafe { reply::free(merged) },
        }
        copy
    }
}

/// Operands as C takes them.
struct Operands {
    bytes: Vec<*const c_char>,
    lens: Vec<usize>,
    count: c_int,
}

impl Operands {
    fn of(operands: &[&[u8]]) -> Option<Operands> {
        let count = c_int::try_from(operands.len()).ok()?;
        let bytes = operands.iter().map(|operand| raw(operand)).collect();
        Some(Operands { bytes, lens: operands.iter().map(|operand| operand.len()).collect(), count })
    }
}

impl FullMerge {
    pub fn call(
        self,
        state: &State,
        delete: DeleteValue,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let (merge, operands) = (self.0?, Operands::of(operands)?);
        let (below, below_len) = existing.map_or((ptr::null(), 0), |value| (raw(value), value.len()));
        let (mut success, mut len) = (0, 0);
        let (bytes, lens) = (operands.bytes.as_ptr(), operands.lens.as_ptr());
        // SAFETY: K6; the arrays have `count` elements and outlive the call.
        unsafe {
            let merged = merge(
                state.state,
                raw(key),
                key.len(),
                below,
                below_len,
                bytes,
                lens,
                operands.count,
                &mut success,
                &mut len,
            );
            delete.take(state, merged, len, success)
        }
    }
}

impl PartialMerge {
    pub fn call(self, state: &State, delete: DeleteValue, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let (merge, operands) = (self.0?, Operands::of(operands)?);
        let (mut success, mut len) = (0, 0);
        let (bytes, lens) = (operands.bytes.as_ptr(), operands.lens.as_ptr());
        // SAFETY: K6; the arrays have `count` elements and outlive the call.
        unsafe {
            let merged = merge(state.state, raw(key), key.len(), bytes, lens, operands.count, &mut success, &mut len);
            delete.take(state, merged, len, success)
        }
    }
}

/// A filter's decision on a value.
pub enum Filtered {
    Keep,
    Remove,
    Change(Vec<u8>),
}

impl Filter {
    pub fn call(self, state: &State, level: usize, key: &[u8], value: &[u8]) -> Filtered {
        let Some(filter) = self.0 else { return Filtered::Keep };
        let level = c_int::try_from(level).unwrap_or(c_int::MAX);
        let (mut changed, mut len, mut has_changed) = (ptr::null_mut(), 0, 0);
        // SAFETY: K6; a new value stays the filter's, and lives until its next call.
        unsafe {
            let (k, v) = (raw(key), raw(value));
            let remove =
                filter(state.state, level, k, key.len(), v, value.len(), &mut changed, &mut len, &mut has_changed);
            match (remove != 0, has_changed != 0) {
                (true, _) => Filtered::Remove,
                (false, true) => Filtered::Change(bytes_at(changed, len).to_vec()),
                (false, false) => Filtered::Keep,
            }
        }
    }
}

impl<C: Handle, F: Handle> CreateFilter<C, F> {
    pub fn call(&self, state: &State, context: &mut C) -> Option<Box<F>> {
        // SAFETY: K6, and K1 of the returned filter.
        unsafe {
            let filter = self.0?(state.state, context);
            (!filter.is_null()).then(|| Box::from_raw(filter))
        }
    }
}

impl<V: Handle> TakeFound<V> {
    /// Gives values and errors to the function. Without a function they are freed.
    pub fn call(&self, state: &State, values: Vec<Option<Box<V>>>, errors: Vec<reply::Given<c_char>>) {
        let Some(take) = self.0 else { return };
        let count = values.len().min(errors.len());
        let mut values: Vec<*mut V> =
            values.into_iter().map(|value| value.map_or(ptr::null_mut(), Box::into_raw)).collect();
        let mut errors: Vec<*mut c_char> = errors.into_iter().map(reply::Given::into_raw).collect();
        // SAFETY: K6; both arrays have `count` elements and outlive the call.
        unsafe { take(state.state, count, values.as_mut_ptr(), errors.as_mut_ptr()) }
    }
}

impl InDomain {
    pub fn call(self, state: &State, key: &[u8]) -> bool {
        // SAFETY: K6.
        self.0.is_none_or(|in_domain| unsafe { in_domain(state.state, raw(key), key.len()) } != 0)
    }
}

impl Transform {
    /// The length of the key's prefix; `None` if the function returns no prefix of the key.
    pub fn prefix_len(self, state: &State, key: &[u8]) -> Option<usize> {
        let transform = self.0?;
        let mut len = 0;
        // SAFETY: K6; the returned prefix is read before any other call.
        let prefix = unsafe {
            let prefix = transform(state.state, raw(key), key.len(), &mut len);
            bytes_at(prefix, if prefix.is_null() { 0 } else { len })
        };
        key.starts_with(prefix).then_some(prefix.len())
    }
}

impl Log {
    /// The line is the function's own copy: C may change it.
    pub fn call(self, state: &State, level: u8, line: &str) {
        if let Some(log) = self.0 {
            let mut line = line.as_bytes().to_vec();
            let len = line.len();
            line.push(0); // for readers that expect a C string
            // SAFETY: K6.
            unsafe { log(state.state, level.into(), line.as_mut_ptr().cast(), len) }
        }
    }
}

impl VisitPair {
    pub fn call(self, state: StatePointer, key: &[u8], value: &[u8]) {
        if let Some(visit) = self.0 {
            // SAFETY: K6.
            unsafe { visit(state.0, raw(key), key.len(), raw(value), value.len()) }
        }
    }
}

impl VisitKey {
    pub fn call(self, state: StatePointer, key: &[u8]) {
        if let Some(visit) = self.0 {
            // SAFETY: K6.
            unsafe { visit(state.0, raw(key), key.len()) }
        }
    }
}

impl VisitFamilyPair {
    pub fn call(self, state: StatePointer, family: u32, key: &[u8], value: &[u8]) {
        if let Some(visit) = self.0 {
            // SAFETY: K6.
            unsafe { visit(state.0, family, raw(key), key.len(), raw(value), value.len()) }
        }
    }
}

impl VisitFamilyKey {
    pub fn call(self, state: StatePointer, family: u32, key: &[u8]) {
        if let Some(visit) = self.0 {
            // SAFETY: K6.
            unsafe { visit(state.0, family, raw(key), key.len()) }
        }
    }
}
