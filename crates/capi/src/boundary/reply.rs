//! Rust's results as C's: handles, plain numbers, and memory that C frees with `free`.

use std::ffi::{c_char, c_double, c_int, c_uchar};
use std::ptr;

use super::Handle;
use super::allocator;
use super::array::CSlice;
use super::call::die;
use crate::failure::Failure;

/// A result, and what C gets instead where there is none because of an error.
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

/// A handle that the caller owns.
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

/// Memory that C frees with `free`; NULL for none.
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
    /// A copy of bytes. Never NULL: C takes that for the absence of a value.
    #[inline]
    pub fn bytes(bytes: &[u8]) -> Self {
        // SAFETY: malloc may be called with any size; what it returns has room for the copy, and is nobody else's.
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

    /// A copy of text, with the zero byte that ends it.
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

/// Frees what C allocated, or was given.
///
/// # Safety
/// NULL, or memory of `malloc` that nobody uses any more.
pub unsafe fn free<T>(memory: *mut T) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(memory.cast()) }
}

/// Frees an array of `len` texts and the texts.
pub fn free_texts(list: FreedArray, len: usize) {
    if list.0.is_null() {
        return;
    }
    // SAFETY: K1: what `Given::pointers` made of `len` texts.
    unsafe {
        for at in 0..len {
            free(*list.0.add(at));
        }
        free(list.0);
    }
}

/// An array of texts that the caller gives back.
pub struct FreedArray(*mut *mut c_char);

impl super::argument::FromC for FreedArray {
    type Parameter = *mut *mut c_char;
    type Raw = *mut *mut c_char;

    unsafe fn from_c(raw: Self::Raw, _place: super::argument::Place) -> Self {
        FreedArray(raw)
    }
}

/// An array of handles that the caller gives back, with the handles.
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
        // SAFETY: K1: what `Given::pointers` made of `len` handles that `Box::into_raw` returned.
        unsafe {
            for at in 0..len {
                drop(Box::from_raw(*self.0.add(at)));
            }
            free(self.0);
        }
    }
}

/// Memory of `malloc` that the caller gives back.
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
        // SAFETY: K1: NULL, or memory of `malloc` that the caller gives up.
        unsafe { free(self.0) }
    }
}

/// Bytes that stay the handle's: C reads them until the handle changes.
pub struct Lent(*const c_char);

impl Lent {
    pub const NONE: Lent = Lent(ptr::null());
    /// No bytes, of which callers may make a slice of their own: not NULL.
    pub const EMPTY: Lent = Lent(c"".as_ptr());

    #[inline]
    pub fn of(bytes: &[u8]) -> Lent {
        Lent(bytes.as_ptr().cast())
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
    /// NULL, or a place that holds NULL or memory of `malloc`, and that only this call uses (K4).
    #[inline]
    pub unsafe fn new(place: *mut *mut c_char) -> Self {
        ErrorSlot(place)
    }

    /// Puts a message in place of the one that may be there, which is freed.
    #[cold]
    pub fn save(self, failure: &Failure) {
        if self.0.is_null() {
            return;
        }
        let message = Given::text(failure.to_string()).into_raw();
        // SAFETY: the promise of `new`.
        unsafe { free(self.0.replace(message)) }
    }
}
