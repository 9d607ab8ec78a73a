//! C's arrays: several parameters, in any order, of one argument.

use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;
use std::slice;

use super::Handle;
use super::argument::{FromC, Place, bytes_at};

/// The length of a call's arrays. Only C makes one, so K2 covers its use.
#[derive(Clone, Copy)]
pub struct Count(usize);

impl Count {
    pub fn get(self) -> usize {
        self.0
    }
}

impl FromC for Count {
    type Parameter = usize;
    type Raw = usize;

    unsafe fn from_c(raw: usize, _place: Place) -> Count {
        Count(raw)
    }
}

/// The same for an `int` in C.
#[derive(Clone, Copy)]
pub struct IntCount(Count);

impl FromC for IntCount {
    type Parameter = c_int;
    type Raw = c_int;

    unsafe fn from_c(raw: c_int, _place: Place) -> IntCount {
        IntCount(Count(usize::try_from(raw).unwrap_or(0)))
    }
}

impl From<IntCount> for Count {
    fn from(count: IntCount) -> Count {
        count.0
    }
}

/// An array read by the call.
#[derive(Clone, Copy)]
pub struct Array<T> {
    first: *const T,
    place: Place,
}

impl<T> FromC for Array<T> {
    type Parameter = *const T;
    type Raw = *const T;

    unsafe fn from_c(first: *const T, place: Place) -> Array<T> {
        Array { first, place }
    }
}

impl<T> Array<T> {
    /// The elements; the caller states that there are `count`.
    pub fn elements<'a>(self, count: impl Into<Count>) -> &'a [T] {
        let Count(len) = count.into();
        if self.first.is_null() {
            if len > 0 {
                self.place.is_null();
            }
            return &[];
        }
        // SAFETY: K2: pointer and count come from one call.
        unsafe { slice::from_raw_parts(self.first, len) }
    }
}

impl<T: Handle> Array<*const T> {
    /// The handles in an array of them; NULL among them ends the process.
    pub fn handles<'a>(self, count: impl Into<Count>) -> impl ExactSizeIterator<Item = &'a T>
    where
        T: 'a,
    {
        let place = self.place;
        // SAFETY: K1, K5, of each element.
        self.elements(count).iter().map(move |&handle| unsafe { FromC::from_c(handle, place) })
    }
}

impl Array<*const c_char> {
    /// The texts in an array of them.
    pub fn texts<'a>(self, count: impl Into<Count>) -> impl ExactSizeIterator<Item = &'a CStr> {
        let place = self.place;
        // SAFETY: K3, of each element.
        self.elements(count).iter().map(move |&text| unsafe { FromC::from_c(text, place) })
    }

    /// The byte strings with the lengths in `sizes`.
    pub fn byte_strings<'a>(self, sizes: Array<usize>, count: Count) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let place = self.place;
        let both = self.elements(count).iter().zip(sizes.elements(count));
        // SAFETY: K2, of each element.
        both.map(move |(&bytes, &len)| unsafe { FromC::from_c((bytes, len), place) })
    }
}

/// One byte string passed in parts.
pub struct Parts {
    pub count: IntCount,
    pub parts: Array<*const c_char>,
    pub lens: Array<usize>,
}

impl Parts {
    pub fn joined(self) -> Vec<u8> {
        let parts: Vec<&[u8]> = self.parts.byte_strings(self.lens, self.count.into()).collect();
        parts.concat()
    }
}

/// `rocksdb_slice_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CSlice {
    data: *const c_char,
    size: usize,
}

impl CSlice {
    pub const NONE: CSlice = CSlice { data: std::ptr::null(), size: 0 };
    /// No bytes, and not NULL: callers may make a slice of it.
    pub const EMPTY: CSlice = CSlice { data: c"".as_ptr(), size: 0 };

    pub fn of(bytes: &[u8]) -> CSlice {
        CSlice { data: bytes.as_ptr().cast(), size: bytes.len() }
    }
}

impl Array<CSlice> {
    pub fn slices<'a>(self, count: Count) -> impl ExactSizeIterator<Item = &'a [u8]> {
        // SAFETY: K2, of each element; for NULL `bytes_at` returns an empty slice.
        self.elements(count).iter().map(|slice| unsafe { bytes_at(slice.data, slice.size) })
    }
}

/// An array filled by the call.
pub struct OutArray<T> {
    first: *mut T,
    place: Place,
}

impl<T> FromC for OutArray<T> {
    type Parameter = *mut T;
    type Raw = *mut T;

    unsafe fn from_c(first: *mut T, place: Place) -> OutArray<T> {
        OutArray { first, place }
    }
}

impl<T> OutArray<T> {
    /// Room for `count` results.
    pub fn room<'a>(self, count: impl Into<Count>) -> &'a mut [MaybeUninit<T>] {
        let Count(len) = count.into();
        if self.first.is_null() {
            if len > 0 {
                self.place.is_null();
            }
            return &mut [];
        }
        // SAFETY: K4, K2: room for `len` results, with any contents before.
        unsafe { slice::from_raw_parts_mut(self.first.cast(), len) }
    }
}
