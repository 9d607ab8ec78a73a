//! Rust's results as C's: handles, plain numbers, and memory for C to free with `free`.

use spillway::internal::name;
use std::ffi::{c_char, c_double, c_int, c_uchar};
use std::ptr;

use super::Handle;
use super::allocator;
use super::array::CSlice;
use super::call::die;
use crate::failure::Failure;

/// A result, and its substitute in C after an error.
pub trait IntoC {
    type C;
    const ABSENT: Self::C;

    fn into_c(self) -> Self::C;
}

macro_rules! plain {
    ($($type:ty = $absent:expr),+) => {$(
        impl IntoC for $type {
            type C = $type;
            const ABSENT: $type = $absent;

            #[inline]
            fn into_c(self) -> $type {
                self
            }
        }
    )+};
}

plain!(() = (), c_uchar = 0, c_int = 0, u32 = 0, i64 = 0, u64 = 0, usize = 0, c_double = 0.0);

impl IntoC for bool {
    type C = c_uchar;
    const ABSENT: c_uchar = 0;

    fn into_c(self) -> c_uchar {
        c_uchar::from(self)
    }
}

/// A handle owned by the caller.
impl<T: Handle> IntoC for Box<T> {
    type C = *mut T;
    const ABSENT: *mut T = ptr::null_mut();

    fn into_c(self) -> *mut T {
        Box::into_raw(self)
    }
}

impl<T: Handle> IntoC for Option<Box<T>> {
    type C = *mut T;
    const ABSENT: *mut T = ptr::null_mut();

    fn into_c(self) -> *mut T {
        self.map_or(ptr::null_mut(), Box::into_raw)
    }
}

impl IntoC for CSlice {
    type C = CSlice;
    const ABSENT: CSlice = CSlice::NONE;

    fn into_c(self) -> CSlice {
        self
    }
}

/// Memory for C to free with `free`; NULL for none.
pub struct Given<T>(*mut T);

impl<T> IntoC for Given<T> {
    type C = *mut T;
    const ABSENT: *mut T = ptr::null_mut();

    fn into_c(self) -> *mut T {
        self.0
    }
}

impl<T> Given<T> {
    pub const NONE: Given<T> = Given(ptr::null_mut());

    pub fn into_raw(self) -> *mut T {
        self.0
    }
}

impl Given<c_char> {
    /// A copy of bytes. Never NULL: to C, NULL is the absence of a value.
    #[inline]
    pub fn bytes(bytes: &[u8]) -> Self {
        // SAFETY: malloc may be called with any size; its result has room for the copy, and is not shared.
        unsafe {
            let copy: *mut c_char = allocated(libc::malloc(bytes.len().max(1)));
            ptr::copy_nonoverlapping(bytes.as_ptr(), copy.cast(), bytes.len());
            Given(copy)
        }
    }

    /// The bytes of a vector, without a copy.
    #[inline]
    pub fn vector(bytes: Vec<u8>) -> Self {
        if bytes.capacity() == 0 {
            return Given::bytes(&[]);
        }
        Given(allocator::release(bytes).cast())
    }

    /// A copy of text, with a zero byte at the end.
    pub fn text(text: impl AsRef<[u8]>) -> Self {
        let mut bytes = text.as_ref().to_vec();
        bytes.push(0);
        Given::vector(bytes)
    }
}

impl<T> Given<*mut T> {
    /// An array of pointers.
    pub fn pointers(pointers: &[*mut T]) -> Self {
        // SAFETY: as of `bytes`; malloc aligns for pointers.
        unsafe {
            let copy: *mut *mut T = allocated(libc::malloc(size_of_val(pointers).max(1)));
            ptr::copy_nonoverlapping(pointers.as_ptr(), copy, pointers.len());
            Given(copy)
        }
    }
}

fn allocated<T>(memory: *mut libc::c_void) -> *mut T {
    if memory.is_null() {
        die("out of memory");
    }
    memory.cast()
}

/// Frees memory allocated by C, or given to C.
///
/// # Safety
/// NULL, or memory of `malloc` no longer in use.
pub unsafe fn free<T>(memory: *mut T) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(memory.cast()) }
}

/// Frees an array of `len` texts and the texts.
pub fn free_texts(list: FreedArray, len: usize) {
    if list.0.is_null() {
        return;
    }
    // SAFETY: K1: `Given::pointers` made it of `len` texts.
    unsafe {
        for at in 0..len {
            free(*list.0.add(at));
        }
        free(list.0);
    }
}

/// An array of texts returned by the caller.
pub struct FreedArray(*mut *mut c_char);

impl super::argument::FromC for FreedArray {
    type Parameter = *mut *mut c_char;
    type Raw = *mut *mut c_char;

    unsafe fn from_c(raw: Self::Raw, _place: super::argument::Place) -> Self {
        FreedArray(raw)
    }
}

/// An array of handles returned by the caller, with the handles.
pub struct FreedHandles<T>(*mut *mut T);

impl<T: Handle> super::argument::FromC for FreedHandles<T> {
    type Parameter = *mut *mut T;
    type Raw = *mut *mut T;

    unsafe fn from_c(raw: Self::Raw, _place: super::argument::Place) -> Self {
        FreedHandles(raw)
    }
}

impl<T: Handle> FreedHandles<T> {
    pub fn free(self, len: usize) {
        if self.0.is_null() {
            return;
        }
        // SAFETY: K1: `Given::pointers` made it of `len` handles from `Box::into_raw`.
        unsafe {
            for at in 0..len {
                drop(Box::from_raw(*self.0.add(at)));
            }
            free(self.0);
        }
    }
}

/// Memory of `malloc` returned by the caller.
pub struct Freed(*mut libc::c_void);

impl super::argument::FromC for Freed {
    type Parameter = *mut libc::c_void;
    type Raw = *mut libc::c_void;

    unsafe fn from_c(raw: Self::Raw, _place: super::argument::Place) -> Self {
        Freed(raw)
    }
}

impl Drop for Freed {
    fn drop(&mut self) {
        // SAFETY: K1: NULL, or memory of `malloc` given up by the caller.
        unsafe { free(self.0) }
    }
}

/// Bytes owned by the handle: C reads them until the handle changes.
pub struct Lent(*const c_char);

impl Lent {
    pub const NONE: Lent = Lent(ptr::null());
    /// No bytes, and not NULL: callers may make a slice of it.
    pub const EMPTY: Lent = Lent(c"".as_ptr());

    #[inline]
    pub fn of(bytes: &[u8]) -> Lent {
        Lent(bytes.as_ptr().cast())
    }
}

/// A handle owned by another one, which C does not destroy.
pub struct LentPart<T>(*const T);

impl<T: Handle> LentPart<T> {
    /// NULL without a part.
    pub fn of(part: Option<&T>) -> Self {
        LentPart(part.map_or(ptr::null(), ptr::from_ref))
    }
}

impl<T: Handle> IntoC for LentPart<T> {
    type C = *const T;
    const ABSENT: *const T = ptr::null();

    fn into_c(self) -> *const T {
        self.0
    }
}

impl IntoC for Lent {
    type C = *const c_char;
    const ABSENT: *const c_char = ptr::null();

    #[inline]
    fn into_c(self) -> *const c_char {
        self.0
    }
}

/// `char** errptr`. NULL drops the message.
#[derive(Clone, Copy)]
pub struct ErrorSlot(*mut *mut c_char);

impl ErrorSlot {
    /// # Safety
    /// NULL, or a place with NULL or memory of `malloc` in it, used by this call only (K4).
    #[inline]
    pub unsafe fn new(place: *mut *mut c_char) -> Self {
        ErrorSlot(place)
    }

    /// Stores a message. Frees an earlier one.
    #[cold]
    pub fn save(self, failure: &Failure) {
        if self.0.is_null() {
            return;
        }
        let message = Given::text(name::bytes(&failure.to_string())).into_raw();
        // SAFETY: the promise of `new`.
        unsafe { free(self.0.replace(message)) }
    }
}
