//! Slices: bytes of our own, copied from Java's arrays and buffers.

use std::cmp::Ordering;

use crate::boundary::argument::Whole;
use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::object::{Object, Value};
use crate::boundary::reply::{ByteArray, Made};
use crate::fault::Fault;

/// A `Slice` or a `DirectSlice`.
#[derive(Default)]
pub struct Slice {
    buffer: Vec<u8>,
    /// The slice is what follows.
    start: usize,
    len: usize,
}

impl Slice {
    pub fn new(buffer: Vec<u8>) -> Box<Slice> {
        let len = buffer.len();
        Box::new(Slice { buffer, start: 0, len })
    }

    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.start + self.len).unwrap_or_default()
    }

    fn clear(&mut self) {
        *self = Slice::default();
    }

    fn remove_prefix(&mut self, len: i32) -> Result<(), Fault> {
        let len = usize::try_from(len).ok().filter(|len| *len <= self.len);
        let len = len.ok_or_else(|| Fault::illegal("a slice is shorter than the prefix to remove"))?;
        self.start += len;
        self.len -= len;
        Ok(())
    }

    fn set_len(&mut self, len: i32) -> Result<(), Fault> {
        let len = usize::try_from(len).ok().filter(|len| *len <= self.buffer.len() - self.start);
        self.len = len.ok_or_else(|| Fault::illegal("a slice's buffer is shorter than its new length"))?;
        Ok(())
    }
}

/// Bytes of a direct buffer, copied.
fn of_buffer(env: Env<'_>, buffer: Object<'_>) -> Result<Vec<u8>, Fault> {
    env.copy_direct(buffer).ok_or_else(|| Fault::illegal("Could not access DirectBuffer"))
}

static BYTE_BUFFER: Class = Class::new(c"java/nio/ByteBuffer");
static ALLOCATE_DIRECT: Method = Method::fixed(&BYTE_BUFFER, c"allocateDirect", c"(I)Ljava/nio/ByteBuffer;");

/// A new direct buffer with a copy: it may outlive the slice.
fn new_buffer<'j>(env: Env<'j>, bytes: &[u8]) -> Result<Object<'j>, Fault> {
    let len = i32::try_from(bytes.len()).map_err(|_| Fault::too_long())?;
    let buffer = ALLOCATE_DIRECT.object_fixed(env, &[Value::Int(len)])?.ok_or(Fault::OutOfMemory)?;
    env.fill_direct(buffer, bytes);
    Ok(buffer)
}

pub mod any {
    use super::*;

    natives! { "AbstractSlice";
        "createNewSliceFromString" => fn(_env, text: String) -> Box<Slice> {
            Ok(Slice::new(text.into_bytes()))
        }

        "size0" => fn(_env, slice: &Slice) -> i32 {
            i32::try_from(slice.len).map_err(|_| Fault::too_long())
        }

        "empty0" => fn(_env, slice: &Slice) -> bool {
            Ok(slice.len == 0)
        }

        "toString0" => fn(_env, slice: &Slice, as_hex: bool) -> String {
            if as_hex {
                return Ok(slice.bytes().iter().map(|byte| format!("{byte:02X}")).collect());
            }
            Ok(String::from_utf8_lossy(slice.bytes()).into_owned())
        }

        "compare0" => fn(_env, slice: &Slice, other: &Slice) -> i32 {
            Ok(match slice.bytes().cmp(other.bytes()) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            })
        }

        "startsWith0" => fn(_env, slice: &Slice, prefix: &Slice) -> bool {
            Ok(slice.bytes().starts_with(prefix.bytes()))
        }
    }
}

pub mod of_array {
    use super::*;

    natives! { "Slice";
        "createNewSlice0" => fn(_env, data: Whole, offset: i32) -> Box<Slice> {
            let rest = usize::try_from(offset).ok().and_then(|offset| data.get(offset..));
            rest.map(|rest| Slice::new(rest.to_vec())).ok_or_else(|| Fault::illegal("an offset is outside of the array"))
        }

        "createNewSlice1" => fn(_env, data: Whole) -> Box<Slice> {
            Ok(Slice::new(data.to_vec()))
        }

        "data0" => fn(env, slice: &Slice) -> ByteArray {
            ByteArray::of(env, slice.bytes())
        }

        "clear0" => fn(_env, slice: &mut Slice, _owns_buffer: bool, _offset: i64) -> () {
            slice.clear();
            Ok(())
        }

        "removePrefix0" => fn(_env, slice: &mut Slice, len: i32) -> () {
            slice.remove_prefix(len)
        }

        /// The buffer ends with the slice, which Java disposes of next.
        "disposeInternalBuf" => fn(_env, _handle: i64, _offset: i64) -> () {
            Ok(())
        }
    }
}

pub mod of_buffer {
    use super::*;

    natives! { "DirectSlice";
        "createNewDirectSlice0" => fn(env, buffer: Object<'_>, len: i32) -> Box<Slice> {
            let mut slice = Slice::new(super::of_buffer(env, buffer)?);
            slice.set_len(len)?;
            Ok(slice)
        }

        /// Up to a zero byte, if there is one.
        "createNewDirectSlice1" => fn(env, buffer: Object<'_>) -> Box<Slice> {
            let mut bytes = super::of_buffer(env, buffer)?;
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            bytes.truncate(end);
            Ok(Slice::new(bytes))
        }

        "data0" => fn(env, slice: &Slice) -> Made {
            new_buffer(env, slice.bytes()).map(Made::from)
        }

        "get0" => fn(_env, slice: &Slice, at: i32) -> i8 {
            let byte = usize::try_from(at).ok().and_then(|at| slice.bytes().get(at));
            byte.map(|byte| *byte as i8).ok_or_else(|| Fault::illegal("an offset is outside of the slice"))
        }

        "clear0" => fn(_env, slice: &mut Slice, _owns_buffer: bool, _offset: i64) -> () {
            slice.clear();
            Ok(())
        }

        "removePrefix0" => fn(_env, slice: &mut Slice, len: i32) -> () {
            slice.remove_prefix(len)
        }

        "setLength0" => fn(_env, slice: &mut Slice, len: i32) -> () {
            slice.set_len(len)
        }

        "disposeInternalBuf" => fn(_env, _handle: i64, _offset: i64) -> () {
            Ok(())
        }
    }
}
