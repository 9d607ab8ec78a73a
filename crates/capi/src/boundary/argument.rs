//! C's parameters as Rust's arguments.

use std::ffi::{CStr, c_char, c_double, c_int, c_uchar};
use std::ptr;
use std::slice;

use super::Handle;
use super::call::die;

/// Function and argument, for messages.
#[derive(Clone, Copy)]
pub struct Place {
    pub function: &'static str,
    pub argument: &'static str,
}

impl Place {
    #[cold]
    pub fn is_null(self) -> ! {
        die(&format!("{}: the argument `{}` is NULL", self.function, self.argument))
    }
}

/// An argument made of one parameter in C, or of a pointer and a length.
pub trait FromC: Sized {
    /// The parameter; of a pair, the pointer.
    type Parameter;
    /// The parameter, or both.
    type Raw;

    /// # Safety
    /// K1 to K5 hold of `raw`, and of `Self` for as long as the caller keeps it.
    unsafe fn from_c(raw: Self::Raw, place: Place) -> Self;
}

macro_rules! plain {
    ($($type:ty),+) => {$(
        impl FromC for $type {
            type Parameter = $type;
            type Raw = $type;

            #[inline]
            unsafe fn from_c(raw: $type, _place: Place) -> $type {
                raw
            }
        }
    )+};
}

plain!(c_int, u32, i64, u64, usize, c_double, c_char);

/// `unsigned char` and `bool`: zero is false, anything else is true.
impl FromC for bool {
    type Parameter = c_uchar;
    type Raw = c_uchar;

    #[inline]
    unsafe fn from_c(raw: c_uchar, _place: Place) -> bool {
        raw != 0
    }
}

impl<'a, T: Handle> FromC for &'a T {
    type Parameter = *const T;
    type Raw = *const T;

    #[inline]
    unsafe fn from_c(raw: *const T, place: Place) -> &'a T {
        // SAFETY: K1, K5: a handle in use, unchanged meanwhile.
        unsafe { raw.as_ref() }.unwrap_or_else(|| place.is_null())
    }
}

impl<'a, T: Handle> FromC for Option<&'a T> {
    type Parameter = *const T;
    type Raw = *const T;

    #[inline]
    unsafe fn from_c(raw: *const T, _place: Place) -> Option<&'a T> {
        // SAFETY: K1, K5: NULL, or a handle in use, unchanged meanwhile.
        unsafe { raw.as_ref() }
    }
}

impl<'a, T: Handle> FromC for &'a mut T {
    type Parameter = *mut T;
    type Raw = *mut T;

    #[inline]
    unsafe fn from_c(raw: *mut T, place: Place) -> &'a mut T {
        // SAFETY: K1, K5: a handle in use, and by this call alone.
        unsafe { raw.as_mut() }.unwrap_or_else(|| place.is_null())
    }
}

/// A handle destroyed or consumed by the call. NULL is none.
impl<T: Handle> FromC for Option<Box<T>> {
    type Parameter = *mut T;
    type Raw = *mut T;

    #[inline]
    unsafe fn from_c(raw: *mut T, _place: Place) -> Option<Box<T>> {
        // SAFETY: K1: `reply` made it of a box, once.
        (!raw.is_null()).then(|| unsafe { Box::from_raw(raw) })
    }
}

/// The same, required.
impl<T: Handle> FromC for Box<T> {
    type Parameter = *mut T;
    type Raw = *mut T;

    unsafe fn from_c(raw: *mut T, place: Place) -> Box<T> {
        if raw.is_null() {
            place.is_null();
        }
        // SAFETY: K1: `reply` made it of a box, once, and it is not NULL.
        unsafe { Box::from_raw(raw) }
    }
}

/// A handle whose contents the call replaces after its last use of its other arguments: they may be the same.
pub struct Replaced<T>(ptr::NonNull<T>);

impl<T: Handle> FromC for Replaced<T> {
    type Parameter = *mut T;
    type Raw = *mut T;

    unsafe fn from_c(raw: *mut T, place: Place) -> Replaced<T> {
        Replaced(ptr::NonNull::new(raw).unwrap_or_else(|| place.is_null()))
    }
}

impl<T> Replaced<T> {
    pub fn with(mut self, contents: T) {
        // SAFETY: K1, K5: a handle in use by this call alone; the call uses no other way to it after `self`.
        unsafe { *self.0.as_mut() = contents }
    }
}

impl<'a> FromC for &'a [u8] {
    type Parameter = *const c_char;
    type Raw = (*const c_char, usize);

    #[inline]
    unsafe fn from_c((bytes, len): Self::Raw, place: Place) -> &'a [u8] {
        if bytes.is_null() && len > 0 {
            place.is_null();
        }
        // SAFETY: K2, and NULL only if `len` is 0, as checked above.
        unsafe { bytes_at(bytes, len) }
    }
}

/// NULL is none, whatever the length.
impl<'a> FromC for Option<&'a [u8]> {
    type Parameter = *const c_char;
    type Raw = (*const c_char, usize);

    #[inline]
    unsafe fn from_c((bytes, len): Self::Raw, _place: Place) -> Option<&'a [u8]> {
        // SAFETY: K2, and not NULL.
        (!bytes.is_null()).then(|| unsafe { bytes_at(bytes, len) })
    }
}

/// # Safety
/// K2. NULL gives an empty slice, whatever `len`.
#[inline]
pub unsafe fn bytes_at<'a>(bytes: *const c_char, len: usize) -> &'a [u8] {
    if bytes.is_null() {
        return &[];
    }
    // SAFETY: not NULL, and the caller vouches for K2.
    unsafe { slice::from_raw_parts(bytes.cast(), len) }
}

impl<'a> FromC for &'a CStr {
    type Parameter = *const c_char;
    type Raw = *const c_char;

    unsafe fn from_c(raw: *const c_char, place: Place) -> &'a CStr {
        if raw.is_null() {
            place.is_null();
        }
        // SAFETY: K3, and not NULL.
        unsafe { CStr::from_ptr(raw) }
    }
}

/// NULL is none.
impl<'a> FromC for Option<&'a CStr> {
    type Parameter = *const c_char;
    type Raw = *const c_char;

    unsafe fn from_c(raw: *const c_char, _place: Place) -> Option<&'a CStr> {
        // SAFETY: K3, and not NULL.
        (!raw.is_null()).then(|| unsafe { CStr::from_ptr(raw) })
    }
}

/// Destination of one result; NULL drops it.
pub struct Out<T>(*mut T);

impl<T> FromC for Out<T> {
    type Parameter = *mut T;
    type Raw = *mut T;

    #[inline]
    unsafe fn from_c(raw: *mut T, _place: Place) -> Out<T> {
        Out(raw)
    }
}

impl<T: Copy> Out<T> {
    pub fn is_given(&self) -> bool {
        !self.0.is_null()
    }

    #[inline]
    pub fn set(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: K4: room for a result, with any contents before.
            unsafe { self.0.write(value) }
        }
    }
}
