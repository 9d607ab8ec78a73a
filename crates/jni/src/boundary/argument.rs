//! Java's parameters as Rust's arguments.

use jni_sys::{jboolean, jbyte, jchar, jdouble, jint, jlong, jobject, jshort};
use smallvec::SmallVec;

use super::env::Env;
use super::handle::{self, Held};
use super::object::Object;
use crate::fault::Fault;

/// An argument made of one parameter, or of an array or buffer with its place in it.
pub trait FromJava: Sized {
    /// The first parameter.
    type Parameter;
    /// The parameter, or all.
    type Raw;
    /// The first parameter's type in a descriptor.
    #[cfg_attr(not(test), allow(dead_code, reason = "compared with the jars' lists by a test"))]
    const DESCRIPTOR: &'static str;

    /// # Safety
    /// J1 to J3 hold of `raw`, and of `Self` for as long as the native keeps it.
    ///
    /// # Errors
    /// A closed handle, a null in place of an object, a place outside an array; an exception of the JVM's.
    unsafe fn from_java(raw: Self::Raw, env: Env<'_>, name: &'static str) -> Result<Self, Fault>;
}

macro_rules! plain {
    ($($type:ty: $descriptor:literal),+) => {$(
        impl FromJava for $type {
            type Parameter = $type;
            type Raw = $type;
            const DESCRIPTOR: &'static str = $descriptor;

            #[inline]
            unsafe fn from_java(raw: $type, _env: Env<'_>, _name: &'static str) -> Result<$type, Fault> {
                Ok(raw)
            }
        }
    )+};
}

plain!(jbyte: "B", jchar: "C", jshort: "S", jint: "I", jlong: "J", jdouble: "D");

const _: () = assert!(size_of::<jboolean>() == 1);

/// Zero is false, anything else is true.
impl FromJava for bool {
    type Parameter = u8;
    type Raw = u8;
    const DESCRIPTOR: &'static str = "Z";

    #[inline]
    unsafe fn from_java(raw: u8, _env: Env<'_>, _name: &'static str) -> Result<bool, Fault> {
        Ok(raw != 0)
    }
}

impl<'j, T: Held> FromJava for &'j T {
    type Parameter = jlong;
    type Raw = jlong;
    const DESCRIPTOR: &'static str = "J";

    #[inline]
    unsafe fn from_java(raw: jlong, _env: Env<'_>, _name: &'static str) -> Result<&'j T, Fault> {
        // SAFETY: J2.
        unsafe { handle::get(raw) }
    }
}

/// 0 is none.
impl<'j, T: Held> FromJava for Option<&'j T> {
    type Parameter = jlong;
    type Raw = jlong;
    const DESCRIPTOR: &'static str = "J";

    #[inline]
    unsafe fn from_java(raw: jlong, _env: Env<'_>, _name: &'static str) -> Result<Option<&'j T>, Fault> {
        if raw == 0 {
            return Ok(None);
        }
        // SAFETY: J2.
        unsafe { handle::get(raw) }.map(Some)
    }
}

/// An optional object with its handle; 0 is none.
pub struct Given<'j, T> {
    pub handle: jlong,
    pub object: Option<&'j T>,
}

impl<'j, T: Held> FromJava for Given<'j, T> {
    type Parameter = jlong;
    type Raw = jlong;
    const DESCRIPTOR: &'static str = "J";

    unsafe fn from_java(raw: jlong, env: Env<'_>, name: &'static str) -> Result<Given<'j, T>, Fault> {
        // SAFETY: the caller's promise.
        let object = unsafe { FromJava::from_java(raw, env, name)? };
        Ok(Given { handle: raw, object })
    }
}

impl<'j, T: Held> FromJava for &'j mut T {
    type Parameter = jlong;
    type Raw = jlong;
    const DESCRIPTOR: &'static str = "J";

    #[inline]
    unsafe fn from_java(raw: jlong, _env: Env<'_>, _name: &'static str) -> Result<&'j mut T, Fault> {
        // SAFETY: J2.
        unsafe { handle::get_mut(raw) }
    }
}

/// An optional object that the call changes; 0 is none.
pub struct OptionalMut<'j, T>(pub Option<&'j mut T>);

impl<T: Held> FromJava for OptionalMut<'_, T> {
    type Parameter = jlong;
    type Raw = jlong;
    const DESCRIPTOR: &'static str = "J";

    unsafe fn from_java(raw: jlong, _env: Env<'_>, _name: &'static str) -> Result<Self, Fault> {
        if raw == 0 {
            return Ok(OptionalMut(None));
        }
        // SAFETY: J2.
        unsafe { handle::get_mut(raw) }.map(|object| OptionalMut(Some(object)))
    }
}

/// An object closed by the call. Closing twice does nothing, as for the objects of a closed database.
pub struct Closed<T>(pub Option<Box<T>>);

impl<T: Held> FromJava for Closed<T> {
    type Parameter = jlong;
    type Raw = jlong;
    const DESCRIPTOR: &'static str = "J";

    unsafe fn from_java(raw: jlong, _env: Env<'_>, _name: &'static str) -> Result<Closed<T>, Fault> {
        Ok(Closed(handle::close(raw)))
    }
}

/// A handle consumed by the call: required, and open.
impl<T: Held> FromJava for Box<T> {
    type Parameter = jlong;
    type Raw = jlong;
    const DESCRIPTOR: &'static str = "J";

    unsafe fn from_java(raw: jlong, _env: Env<'_>, name: &'static str) -> Result<Box<T>, Fault> {
        handle::close(raw).ok_or_else(|| Fault::State(format!("`{name}` is closed")))
    }
}

/// An object with its handle.
pub struct Numbered<'j, T> {
    pub object: &'j mut T,
    pub handle: jlong,
}

impl<T: Held> FromJava for Numbered<'_, T> {
    type Parameter = jlong;
    type Raw = jlong;
    const DESCRIPTOR: &'static str = "J";

    unsafe fn from_java(raw: jlong, _env: Env<'_>, _name: &'static str) -> Result<Self, Fault> {
        // SAFETY: J2.
        Ok(Numbered { object: unsafe { handle::get_mut(raw)? }, handle: raw })
    }
}

/// The objects of an array of handles.
pub struct Handles(pub Vec<jlong>);

impl Handles {
    /// # Errors
    /// One is closed, or of another type.
    pub fn get<T: Held>(&self) -> Result<Vec<&T>, Fault> {
        // SAFETY: J2, as for a single handle.
        self.0.iter().map(|&handle| unsafe { handle::get(handle) }).collect()
    }
}

impl FromJava for Handles {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "[J";

    unsafe fn from_java(raw: jobject, env: Env<'_>, name: &'static str) -> Result<Handles, Fault> {
        env.longs(required(raw, name)?).map(Handles)
    }
}

fn required<'j>(raw: jobject, name: &'static str) -> Result<Object<'j>, Fault> {
    Object::new(raw).ok_or_else(|| Fault::illegal(format!("`{name}` is null")))
}

/// Bytes of an array, copied to the stack if they are as few as a key.
pub struct Bytes(SmallVec<[u8; 128]>);

impl std::ops::Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Bytes {
    #[inline]
    fn copy(env: Env<'_>, array: Object<'_>, offset: jint, len: jint) -> Result<Bytes, Fault> {
        let len = usize::try_from(len).map_err(|_| Fault::illegal("a length is negative"))?;
        let mut bytes = SmallVec::from_elem(0, len);
        env.read_bytes(array, offset, &mut bytes)?;
        Ok(Bytes(bytes))
    }
}

impl FromJava for Bytes {
    type Parameter = jobject;
    type Raw = (jobject, jint, jint);
    const DESCRIPTOR: &'static str = "[B";

    #[inline]
    unsafe fn from_java((array, offset, len): Self::Raw, env: Env<'_>, name: &'static str) -> Result<Bytes, Fault> {
        Bytes::copy(env, required(array, name)?, offset, len)
    }
}

/// The same; null is none, whatever the place.
impl FromJava for Option<Bytes> {
    type Parameter = jobject;
    type Raw = (jobject, jint, jint);
    const DESCRIPTOR: &'static str = "[B";

    #[inline]
    unsafe fn from_java((array, offset, len): Self::Raw, env: Env<'_>, _name: &'static str) -> Result<Self, Fault> {
        Object::new(array).map(|array| Bytes::copy(env, array, offset, len)).transpose()
    }
}

/// The first bytes of an array: it comes with a length alone.
pub struct Head(Bytes);

impl std::ops::Deref for Head {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl FromJava for Head {
    type Parameter = jobject;
    type Raw = (jobject, jint);
    const DESCRIPTOR: &'static str = "[B";

    #[inline]
    unsafe fn from_java((array, len): Self::Raw, env: Env<'_>, name: &'static str) -> Result<Head, Fault> {
        Bytes::copy(env, required(array, name)?, 0, len).map(Head)
    }
}

/// The same; null is none. Stock natives take -1 for the length of none.
impl FromJava for Option<Head> {
    type Parameter = jobject;
    type Raw = (jobject, jint);
    const DESCRIPTOR: &'static str = "[B";

    unsafe fn from_java((array, len): Self::Raw, env: Env<'_>, _name: &'static str) -> Result<Self, Fault> {
        Object::new(array).map(|array| Bytes::copy(env, array, 0, len).map(Head)).transpose()
    }
}

/// A whole byte array.
pub struct Whole(Bytes);

impl std::ops::Deref for Whole {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl FromJava for Whole {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "[B";

    unsafe fn from_java(raw: jobject, env: Env<'_>, name: &'static str) -> Result<Whole, Fault> {
        let array = required(raw, name)?;
        let len = jint::try_from(env.array_len(array)).map_err(|_| Fault::too_long())?;
        Bytes::copy(env, array, 0, len).map(Whole)
    }
}

/// The same; null is none.
impl FromJava for Option<Whole> {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "[B";

    unsafe fn from_java(raw: jobject, env: Env<'_>, name: &'static str) -> Result<Option<Whole>, Fault> {
        if raw.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        unsafe { Whole::from_java(raw, env, name) }.map(Some)
    }
}

/// Room in a byte array for a value.
pub struct Room<'j> {
    array: Object<'j>,
    offset: jint,
    len: usize,
}

impl Room<'_> {
    /// Copies as much of a value as there is room for; the value's length.
    #[inline]
    pub fn fill(&self, env: Env<'_>, value: &[u8]) -> Result<jint, Fault> {
        let fits = value.get(..self.len.min(value.len())).unwrap_or_default();
        env.write_bytes(self.array, self.offset, fits)?;
        jint::try_from(value.len()).map_err(|_| Fault::too_long())
    }
}

impl<'j> FromJava for Room<'j> {
    type Parameter = jobject;
    type Raw = (jobject, jint, jint);
    const DESCRIPTOR: &'static str = "[B";

    #[inline]
    unsafe fn from_java((array, offset, len): Self::Raw, _env: Env<'_>, name: &'static str) -> Result<Self, Fault> {
        let len = usize::try_from(len).map_err(|_| Fault::illegal("a length is negative"))?;
        Ok(Room { array: required(array, name)?, offset, len })
    }
}

/// Bytes of a direct buffer, in place.
pub struct Direct<'j>(&'j [u8]);

impl std::ops::Deref for Direct<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0
    }
}

/// Address and length of a place in a direct buffer.
#[inline]
fn place(env: Env<'_>, buffer: Object<'_>, offset: jint, len: jint) -> Result<(*mut u8, usize), Fault> {
    let invalid =
        || Fault::Message("Invalid buffer: it is not direct, or is shorter than its offset and length say".to_owned());
    let (start, capacity) = env.direct(buffer).ok_or_else(invalid)?;
    let (offset, len) = (usize::try_from(offset).ok(), usize::try_from(len).ok());
    let (Some(offset), Some(len)) = (offset, len) else { return Err(invalid()) };
    if offset.checked_add(len).is_none_or(|end| end > capacity) {
        return Err(invalid());
    }
    // SAFETY: within the buffer, as checked above.
    Ok((unsafe { start.as_ptr().add(offset) }, len))
}

impl<'j> FromJava for Direct<'j> {
    type Parameter = jobject;
    type Raw = (jobject, jint, jint);
    const DESCRIPTOR: &'static str = "Ljava/nio/ByteBuffer;";

    #[inline]
    unsafe fn from_java((buffer, offset, len): Self::Raw, env: Env<'_>, name: &'static str) -> Result<Self, Fault> {
        let (start, len) = place(env, required(buffer, name)?, offset, len)?;
        // SAFETY: `len` bytes of the buffer; J3: unchanged during the call.
        Ok(Direct(unsafe { std::slice::from_raw_parts(start, len) }))
    }
}

/// Room in a direct buffer.
pub struct DirectRoom {
    start: *mut u8,
    len: usize,
}

impl DirectRoom {
    /// Copies as much of a value as there is room for; the value's length.
    #[inline]
    pub fn fill(&self, value: &[u8]) -> Result<jint, Fault> {
        let fits = self.len.min(value.len());
        // SAFETY: room of `len` bytes, of Java's memory, so no value of ours overlaps.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), self.start, fits) };
        jint::try_from(value.len()).map_err(|_| Fault::too_long())
    }
}

impl Env<'_> {
    /// The room of a whole direct buffer.
    pub fn direct_room(self, buffer: Object<'_>) -> Result<DirectRoom, Fault> {
        let capacity = self.direct(buffer).map_or(0, |(_, capacity)| capacity);
        let (start, len) = place(self, buffer, 0, jint::try_from(capacity).unwrap_or(jint::MAX))?;
        Ok(DirectRoom { start, len })
    }

    /// A copy of bytes of a direct buffer.
    pub fn direct_bytes(self, buffer: Object<'_>, offset: jint, len: jint) -> Result<Vec<u8>, Fault> {
        let (start, len) = place(self, buffer, offset, len)?;
        // SAFETY: `len` bytes of the buffer; J3: unchanged during the call.
        Ok(unsafe { std::slice::from_raw_parts(start, len) }.to_vec())
    }
}

impl FromJava for DirectRoom {
    type Parameter = jobject;
    type Raw = (jobject, jint, jint);
    const DESCRIPTOR: &'static str = "Ljava/nio/ByteBuffer;";

    #[inline]
    unsafe fn from_java((buffer, offset, len): Self::Raw, env: Env<'_>, name: &'static str) -> Result<Self, Fault> {
        let (start, len) = place(env, required(buffer, name)?, offset, len)?;
        Ok(DirectRoom { start, len })
    }
}

impl FromJava for String {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "Ljava/lang/String;";

    unsafe fn from_java(raw: jobject, env: Env<'_>, name: &'static str) -> Result<String, Fault> {
        env.text(required(raw, name)?)
    }
}

impl FromJava for Option<String> {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "Ljava/lang/String;";

    unsafe fn from_java(raw: jobject, env: Env<'_>, _name: &'static str) -> Result<Option<String>, Fault> {
        Object::new(raw).map(|string| env.text(string)).transpose()
    }
}

impl FromJava for Vec<i32> {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "[I";

    unsafe fn from_java(raw: jobject, env: Env<'_>, name: &'static str) -> Result<Vec<i32>, Fault> {
        env.ints(required(raw, name)?)
    }
}

impl FromJava for Vec<String> {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "[Ljava/lang/String;";

    unsafe fn from_java(raw: jobject, env: Env<'_>, name: &'static str) -> Result<Vec<String>, Fault> {
        env.elements(required(raw, name)?, |string| env.text(string))
    }
}

impl FromJava for Vec<Vec<u8>> {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "[[B";

    unsafe fn from_java(raw: jobject, env: Env<'_>, name: &'static str) -> Result<Vec<Vec<u8>>, Fault> {
        env.elements(required(raw, name)?, |array| env.bytes(array))
    }
}

impl<'j> FromJava for Object<'j> {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "L*";

    unsafe fn from_java(raw: jobject, _env: Env<'_>, name: &'static str) -> Result<Object<'j>, Fault> {
        required(raw, name)
    }
}

impl<'j> FromJava for Option<Object<'j>> {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "L*";

    unsafe fn from_java(raw: jobject, _env: Env<'_>, _name: &'static str) -> Result<Self, Fault> {
        Ok(Object::new(raw))
    }
}

/// Null is none.
impl FromJava for Option<Handles> {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "[J";

    unsafe fn from_java(raw: jobject, env: Env<'_>, _name: &'static str) -> Result<Option<Handles>, Fault> {
        Object::new(raw).map(|array| env.longs(array).map(Handles)).transpose()
    }
}

/// An array to fill, of a type of its own.
macro_rules! arrays {
    ($($(#[$doc:meta])* $type:ident: $descriptor:literal;)+) => {$(
        $(#[$doc])*
        pub struct $type<'j>(pub Object<'j>);

        impl<'j> FromJava for $type<'j> {
            type Parameter = jobject;
            type Raw = jobject;
            const DESCRIPTOR: &'static str = $descriptor;

            unsafe fn from_java(raw: jobject, _env: Env<'_>, name: &'static str) -> Result<Self, Fault> {
                required(raw, name).map($type)
            }
        }
    )+};
}

arrays! {
    /// Room for strings.
    Texts: "[Ljava/lang/String;";
    /// Room for numbers.
    Longs: "[J";
}

/// An array of objects.
pub struct Array<'j>(pub Object<'j>);

impl<'j> FromJava for Array<'j> {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "[*";

    unsafe fn from_java(raw: jobject, _env: Env<'_>, name: &'static str) -> Result<Self, Fault> {
        required(raw, name).map(Array)
    }
}

/// Room for numbers in an array of ints.
pub struct IntRoom<'j>(pub Object<'j>);

impl<'j> FromJava for IntRoom<'j> {
    type Parameter = jobject;
    type Raw = jobject;
    const DESCRIPTOR: &'static str = "[I";

    unsafe fn from_java(raw: jobject, _env: Env<'_>, name: &'static str) -> Result<Self, Fault> {
        required(raw, name).map(IntRoom)
    }
}
