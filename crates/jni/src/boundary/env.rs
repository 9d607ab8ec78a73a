//! The environment of a call: JNI's functions with Rust's types.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use jni_sys::{JNINativeInterface_, jarray, jint, jlong, jobject, jsize, jvalue};

use super::class::Class;
use super::object::{Object, Value};
use crate::fault::Fault;

/// The environment as the JVM passes it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct RawEnv<'j> {
    env: NonNull<jni_sys::JNIEnv>,
    call: PhantomData<&'j ()>,
}

/// The environment of a call of a native, or of an attached thread's callback.
#[derive(Clone, Copy)]
pub struct Env<'j> {
    raw: RawEnv<'j>,
    this: jobject,
}

/// Calls a function of the environment's table.
macro_rules! jni {
    ($env:expr, $function:ident $(, $argument:expr)*) => {{
        let env = $env.pointer();
        ((**env).v1_6.$function)(env $(, $argument)*)
    }};
}
pub(super) use jni;

impl<'j> Env<'j> {
    /// # Safety
    /// The environment of this thread and the object of the call, for as long as `'j`.
    pub unsafe fn new(raw: RawEnv<'j>, this: jobject) -> Env<'j> {
        Env { raw, this }
    }

    /// # Safety
    /// As of `new`.
    pub unsafe fn of_pointer(env: NonNull<c_void>) -> Env<'j> {
        Env { raw: RawEnv { env: env.cast(), call: PhantomData }, this: ptr::null_mut() }
    }

    /// The object whose native is called; the class of a static one.
    pub fn this(self) -> Result<Object<'j>, Fault> {
        Object::new(self.this).ok_or_else(|| Fault::illegal("a callback has no object"))
    }

    #[inline]
    pub(super) fn pointer(self) -> *mut *const JNINativeInterface_ {
        self.raw.env.as_ptr()
    }

    /// J4: an exception is pending.
    #[inline]
    pub fn is_pending(self) -> bool {
        // SAFETY: the environment of this thread.
        unsafe { jni!(self, ExceptionCheck) }
    }

    /// # Errors
    /// `Pending` after a call that threw.
    #[inline]
    pub fn check(self) -> Result<(), Fault> {
        if self.is_pending() { Err(Fault::Pending) } else { Ok(()) }
    }

    /// Runs `call`. Local references made by it end with it, so its result has none.
    pub fn framed<R>(self, call: impl FnOnce(Env<'j>) -> Result<R, Fault>) -> Result<R, Fault> {
        const ROOM: jint = 32;
        // SAFETY: any room; without memory an exception is pending.
        if unsafe { jni!(self, PushLocalFrame, ROOM) } != 0 {
            return Err(Fault::Pending);
        }
        let result = call(self);
        // SAFETY: allowed with an exception pending; ends the frame above.
        unsafe { jni!(self, PopLocalFrame, ptr::null_mut()) };
        result
    }

    /// Prints and ends a pending exception; false if there was none.
    pub fn describe_pending(self) -> bool {
        let is_pending = self.is_pending();
        if is_pending {
            // SAFETY: both are allowed with an exception pending.
            unsafe {
                jni!(self, ExceptionDescribe);
                jni!(self, ExceptionClear);
            }
        }
        is_pending
    }

    pub fn clear_pending(self) {
        // SAFETY: allowed with an exception pending, and without.
        unsafe { jni!(self, ExceptionClear) }
    }

    /// Throws an exception object.
    pub fn throw_object(self, exception: Object<'j>) {
        // SAFETY: a live reference to a throwable, no exception pending.
        unsafe { jni!(self, Throw, exception.raw()) };
    }

    /// Throws a new exception of the JDK's by its class's name.
    pub fn throw_named(self, class: &CStr, message: &str) {
        let message: Vec<u8> = message.bytes().filter(|&byte| byte != 0).chain([0]).collect();
        // SAFETY: names and messages end with a zero byte; no exception is pending before.
        unsafe {
            let found = jni!(self, FindClass, class.as_ptr());
            if !found.is_null() {
                jni!(self, ThrowNew, found, message.as_ptr().cast());
                jni!(self, DeleteLocalRef, found);
            }
        }
    }

    /// A local reference, or the pending exception of the call that made none.
    fn made(self, object: jobject) -> Result<Object<'j>, Fault> {
        Object::new(object).ok_or(Fault::Pending)
    }

    #[inline]
    pub fn array_len(self, array: Object<'_>) -> usize {
        // SAFETY: J1: an array.
        let len = unsafe { jni!(self, GetArrayLength, array.raw()) };
        usize::try_from(len).unwrap_or(0)
    }

    /// Copies bytes of an array.
    ///
    /// # Errors
    /// `ArrayIndexOutOfBoundsException` is pending.
    #[inline]
    pub fn read_bytes(self, array: Object<'_>, offset: jint, room: &mut [u8]) -> Result<(), Fault> {
        let len = jsize::try_from(room.len()).map_err(|_| Fault::illegal("an array is longer than 2 GiB"))?;
        // SAFETY: J1: a byte array; the JVM checks the bounds; the room has `len` bytes.
        unsafe { jni!(self, GetByteArrayRegion, array.raw(), offset, len, room.as_mut_ptr().cast()) };
        self.check()
    }

    /// Copies bytes into an array.
    ///
    /// # Errors
    /// `ArrayIndexOutOfBoundsException` is pending.
    #[inline]
    pub fn write_bytes(self, array: Object<'_>, offset: jint, bytes: &[u8]) -> Result<(), Fault> {
        let len = jsize::try_from(bytes.len()).map_err(|_| Fault::too_long())?;
        // SAFETY: as of `read_bytes`; the array is written only.
        unsafe { jni!(self, SetByteArrayRegion, array.raw(), offset, len, bytes.as_ptr().cast()) };
        self.check()
    }

    /// The bytes of a whole array.
    pub fn bytes(self, array: Object<'_>) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; self.array_len(array)];
        self.read_bytes(array, 0, &mut bytes)?;
        Ok(bytes)
    }

    /// A new byte array: one copy.
    ///
    /// # Errors
    /// Longer than Java's arrays, or no memory.
    #[inline]
    pub fn new_bytes(self, bytes: &[u8]) -> Result<Object<'j>, Fault> {
        let len = jsize::try_from(bytes.len()).map_err(|_| Fault::too_long())?;
        // SAFETY: any length that is not negative.
        let array = self.made(unsafe { jni!(self, NewByteArray, len) })?;
        // SAFETY: as of `write_bytes`; the array has room, so nothing throws.
        unsafe { jni!(self, SetByteArrayRegion, array.raw(), 0, len, bytes.as_ptr().cast()) };
        Ok(array)
    }

    /// The text of a string; a lone surrogate becomes U+FFFD.
    pub fn text(self, string: Object<'_>) -> Result<String, Fault> {
        // SAFETY: J1: a string.
        let len = unsafe { jni!(self, GetStringLength, string.raw()) };
        let mut units = vec![0u16; usize::try_from(len).unwrap_or(0)];
        // SAFETY: the room has as many units as the string.
        unsafe { jni!(self, GetStringRegion, string.raw(), 0, len, units.as_mut_ptr()) };
        self.check()?;
        Ok(String::from_utf16_lossy(&units))
    }

    pub fn new_text(self, text: &str) -> Result<Object<'j>, Fault> {
        let units: Vec<u16> = text.encode_utf16().collect();
        let len = jsize::try_from(units.len()).map_err(|_| Fault::too_long())?;
        // SAFETY: as many units as the length says.
        self.made(unsafe { jni!(self, NewString, units.as_ptr(), len) })
    }

    pub fn longs(self, array: Object<'_>) -> Result<Vec<i64>, Fault> {
        let mut numbers = vec![0i64; self.array_len(array)];
        // SAFETY: J1: an array of longs; the room has its length.
        unsafe { jni!(self, GetLongArrayRegion, array.raw(), 0, numbers.len() as jsize, numbers.as_mut_ptr()) };
        self.check()?;
        Ok(numbers)
    }

    pub fn ints(self, array: Object<'_>) -> Result<Vec<i32>, Fault> {
        let mut numbers = vec![0i32; self.array_len(array)];
        // SAFETY: J1: an array of ints; the room has its length.
        unsafe { jni!(self, GetIntArrayRegion, array.raw(), 0, numbers.len() as jsize, numbers.as_mut_ptr()) };
        self.check()?;
        Ok(numbers)
    }

    pub fn new_longs(self, numbers: &[i64]) -> Result<Object<'j>, Fault> {
        let len = jsize::try_from(numbers.len()).map_err(|_| Fault::too_long())?;
        // SAFETY: any length that is not negative.
        let array = self.made(unsafe { jni!(self, NewLongArray, len) })?;
        // SAFETY: the array has this length.
        unsafe { jni!(self, SetLongArrayRegion, array.raw(), 0, len, numbers.as_ptr()) };
        Ok(array)
    }

    pub fn new_ints(self, numbers: &[i32]) -> Result<Object<'j>, Fault> {
        let len = jsize::try_from(numbers.len()).map_err(|_| Fault::too_long())?;
        // SAFETY: any length that is not negative.
        let array = self.made(unsafe { jni!(self, NewIntArray, len) })?;
        // SAFETY: the array has this length.
        unsafe { jni!(self, SetIntArrayRegion, array.raw(), 0, len, numbers.as_ptr()) };
        Ok(array)
    }

    pub fn set_ints(self, array: Object<'_>, numbers: &[i32]) -> Result<(), Fault> {
        let len = jsize::try_from(numbers.len()).map_err(|_| Fault::too_long())?;
        // SAFETY: J1: an array of ints; the JVM checks the bounds.
        unsafe { jni!(self, SetIntArrayRegion, array.raw(), 0, len, numbers.as_ptr()) };
        self.check()
    }

    pub fn set_longs(self, array: Object<'_>, numbers: &[i64]) -> Result<(), Fault> {
        let len = jsize::try_from(numbers.len()).map_err(|_| Fault::too_long())?;
        // SAFETY: J1: an array of longs; the JVM checks the bounds.
        unsafe { jni!(self, SetLongArrayRegion, array.raw(), 0, len, numbers.as_ptr()) };
        self.check()
    }

    /// Calls `each` with every element of an array; the reference ends with the call.
    pub fn each_element(
        self,
        array: Object<'_>,
        mut each: impl FnMut(Option<Object<'j>>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        for at in 0..self.array_len(array) {
            // SAFETY: J1: an array of objects; the index is within it.
            let element = Object::new(unsafe { jni!(self, GetObjectArrayElement, array.raw(), at as jsize) });
            self.check()?;
            each(element)?;
            if let Some(element) = element {
                self.delete(element);
            }
        }
        Ok(())
    }

    /// The elements of an array as `convert` reads them. Null is refused.
    pub fn elements<T>(
        self,
        array: Object<'_>,
        mut convert: impl FnMut(Object<'j>) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut elements = Vec::with_capacity(self.array_len(array));
        self.each_element(array, |element| {
            let element = element.ok_or_else(|| Fault::illegal("an element of an array is null"))?;
            elements.push(convert(element)?);
            Ok(())
        })?;
        Ok(elements)
    }

    /// A new array of objects of a class. Each element's reference ends once it is stored; `None` is null.
    pub fn new_array<T>(
        self,
        class: &Class,
        items: impl ExactSizeIterator<Item = T>,
        mut make: impl FnMut(T) -> Result<Option<Object<'j>>, Fault>,
    ) -> Result<Object<'j>, Fault> {
        let len = jsize::try_from(items.len()).map_err(|_| Fault::too_long())?;
        let class = class.get(self)?;
        // SAFETY: a class, and a length that is not negative.
        let array = self.made(unsafe { jni!(self, NewObjectArray, len, class.raw(), ptr::null_mut()) })?;
        for (at, item) in (0..).zip(items) {
            if let Some(element) = make(item)? {
                self.set_element(array, at, element)?;
                self.delete(element);
            }
        }
        Ok(array)
    }

    pub fn set_element(self, array: Object<'_>, at: jsize, element: Object<'_>) -> Result<(), Fault> {
        // SAFETY: an array of objects; the JVM checks bounds and class.
        unsafe { jni!(self, SetObjectArrayElement, array.raw() as jarray, at, element.raw()) };
        self.check()
    }

    /// Ends a local reference early: loops must not gather them.
    pub fn delete(self, object: Object<'j>) {
        // SAFETY: a live local reference, given up by the caller.
        unsafe { jni!(self, DeleteLocalRef, object.raw()) }
    }

    /// Address and capacity of a direct buffer; `None` for any other buffer.
    #[inline]
    pub fn direct(self, buffer: Object<'_>) -> Option<(NonNull<u8>, usize)> {
        // SAFETY: J1: a buffer.
        let (address, capacity) = unsafe {
            (jni!(self, GetDirectBufferAddress, buffer.raw()), jni!(self, GetDirectBufferCapacity, buffer.raw()))
        };
        Some((NonNull::new(address.cast())?, usize::try_from(capacity).ok()?))
    }

    /// A copy of a direct buffer's bytes; `None` for any other buffer.
    pub fn copy_direct(self, buffer: Object<'_>) -> Option<Vec<u8>> {
        let (start, capacity) = self.direct(buffer)?;
        // SAFETY: the buffer's bytes; J3: unchanged during the call.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), capacity) }.to_vec())
    }

    /// Copies as much as there is room for to the begin of a direct buffer.
    pub fn fill_direct(self, buffer: Object<'_>, bytes: &[u8]) {
        if let Some((start, capacity)) = self.direct(buffer) {
            // SAFETY: within the buffer, which is Java's: no bytes of ours overlap.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.as_ptr(), bytes.len().min(capacity)) };
        }
    }

    /// A direct buffer over memory of ours.
    ///
    /// # Safety
    /// The memory outlives Java's use of the buffer.
    pub unsafe fn new_direct(self, bytes: *mut u8, len: usize) -> Result<Object<'j>, Fault> {
        // SAFETY: the caller's promise.
        self.made(unsafe { jni!(self, NewDirectByteBuffer, bytes.cast(), len as jlong) })
    }

    /// The JVM's arguments.
    pub(super) fn values(arguments: &[Value<'_>]) -> smallvec::SmallVec<[jvalue; 12]> {
        arguments.iter().map(|argument| argument.raw()).collect()
    }
}
