//! The objects of a program: merge operators and a comparator, as the library calls them back. They are pure functions of their
//! arguments, without state, and may run on any thread.

use std::ffi::{c_char, c_int};
use std::ptr;

use crate::library::call::lent;
use crate::library::table::{Bytes, Flag, Handle, Text};

/// Appends operands behind commas.
pub fn append(value: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
    let all: Vec<&[u8]> = value.into_iter().chain(operands.iter().copied()).collect();
    all.join(&b',')
}

/// Adds numbers of eight bytes, the lowest first; anything of another length counts as 0.
pub fn count(value: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
    let number = |bytes: &[u8]| <[u8; 8]>::try_from(bytes).map_or(0, u64::from_le_bytes);
    let sum = value.into_iter().chain(operands.iter().copied()).fold(0_u64, |sum, at| sum.wrapping_add(number(at)));
    sum.to_le_bytes().to_vec()
}

/// Lends the operands of a call.
///
/// # Safety
/// `at` and `lengths` have `number` entries each, of bytes unchanged while the result lives.
unsafe fn operands<'a>(at: *const Bytes, lengths: *const usize, number: c_int) -> Vec<&'a [u8]> {
    let number = usize::try_from(number).unwrap_or(0);
    // SAFETY: the caller's promise.
    (0..number).map(|index| unsafe { lent(*at.add(index), *lengths.add(index)) }).collect()
}

/// Hands a value to the library, which gives it back to [`free_value`].
///
/// # Safety
/// `success` and `length` are places to write to.
unsafe fn hand_over(value: Vec<u8>, success: *mut Flag, length: *mut usize) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe {
        *success = 1;
        *length = value.len();
    }
    Box::into_raw(value.into_boxed_slice()).cast()
}

/// `delete_value`.
pub extern "C" fn free_value(_state: *mut Handle, value: Bytes, length: usize) {
    if !value.is_null() {
        let bytes = ptr::slice_from_raw_parts_mut(value.cast_mut().cast::<u8>(), length);
        // SAFETY: the library gives back what `hand_over` gave it, once, with its length.
        drop(unsafe { Box::from_raw(bytes) });
    }
}

macro_rules! operator {
    ($full:ident, $partial:ident, $name:ident, $merge:ident, $text:literal) => {
        #[allow(clippy::too_many_arguments, reason = "RocksDB's signature")]
        pub extern "C" fn $full(
            _state: *mut Handle,
            _key: Bytes,
            _key_length: usize,
            value: Bytes,
            value_length: usize,
            at: *const Bytes,
            lengths: *const usize,
            number: c_int,
            success: *mut Flag,
            length: *mut usize,
        ) -> *mut c_char {
            // SAFETY: the contract of `full_merge`: a value or null, as many operands as stated, and two places to write to.
            unsafe {
                let value = (!value.is_null()).then(|| lent(value, value_length));
                hand_over($merge(value, &operands(at, lengths, number)), success, length)
            }
        }

        #[allow(clippy::too_many_arguments, reason = "RocksDB's signature")]
        pub extern "C" fn $partial(
            _state: *mut Handle,
            _key: Bytes,
            _key_length: usize,
            at: *const Bytes,
            lengths: *const usize,
            number: c_int,
            success: *mut Flag,
            length: *mut usize,
        ) -> *mut c_char {
            // SAFETY: the contract of `partial_merge`: as many operands as stated, and two places to write to.
            unsafe { hand_over($merge(None, &operands(at, lengths, number)), success, length) }
        }

        pub extern "C" fn $name(_state: *mut Handle) -> Text {
            $text.as_ptr()
        }
    };
}

operator!(append_full, append_partial, append_name, append, c"differential.append");
operator!(count_full, count_partial, count_name, count, c"differential.count");

/// `compare`, backwards.
pub extern "C" fn compare_backwards(
    _state: *mut Handle,
    left: Bytes,
    left_length: usize,
    right: Bytes,
    right_length: usize,
) -> c_int {
    // SAFETY: the contract of `compare`: two keys with their lengths.
    unsafe { lent(right, right_length).cmp(lent(left, left_length)) as c_int }
}

/// RocksDB's name of this order, so that a program without this comparator opens the directory too.
pub extern "C" fn backwards_name(_state: *mut Handle) -> Text {
    c"rocksdb.ReverseBytewiseComparator".as_ptr()
}

/// `destructor`: there is no state.
pub extern "C" fn end(_state: *mut Handle) {}
