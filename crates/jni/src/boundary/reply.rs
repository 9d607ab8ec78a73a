//! Rust's results as Java's.

use std::ptr;

use jni_sys::{jbyte, jdouble, jint, jlong, jobject};
use spillway::internal::Pinned;

use super::class::Class;
use super::env::Env;
use super::handle::{self, Held};
use super::object::Object;
use crate::fault::Fault;

/// A type of results in Java, with the value that stands in under an exception.
pub trait Raw {
    const ABSENT: Self;
}

macro_rules! raw {
    ($($type:ty = $absent:expr),+) => {$( impl Raw for $type { const ABSENT: $type = $absent; } )+};
}

raw!(() = (), bool = false, jbyte = 0, jint = 0, jlong = 0, jdouble = 0.0, jobject = ptr::null_mut());

/// A result of a native.
pub trait IntoJava: Sized {
    type Raw: Raw;
    /// The type in a descriptor.
    #[cfg_attr(not(test), allow(dead_code, reason = "compared with the jars' lists by a test"))]
    const DESCRIPTOR: &'static str;

    fn into_java(self, env: Env<'_>) -> Result<Self::Raw, Fault>;
}

macro_rules! plain {
    ($($type:ty: $descriptor:literal),+) => {$(
        impl IntoJava for $type {
            type Raw = $type;
            const DESCRIPTOR: &'static str = $descriptor;

            #[inline]
            fn into_java(self, _env: Env<'_>) -> Result<$type, Fault> {
                Ok(self)
            }
        }
    )+};
}

plain!((): "V", bool: "Z", jbyte: "B", jint: "I", jlong: "J", jdouble: "D");

/// A new handle.
impl<T: Held> IntoJava for Box<T> {
    type Raw = jlong;
    const DESCRIPTOR: &'static str = "J";

    fn into_java(self, _env: Env<'_>) -> Result<jlong, Fault> {
        Ok(handle::open(self))
    }
}

/// 0 for none.
impl<T: Held> IntoJava for Option<Box<T>> {
    type Raw = jlong;
    const DESCRIPTOR: &'static str = "J";

    fn into_java(self, _env: Env<'_>) -> Result<jlong, Fault> {
        Ok(self.map_or(0, handle::open))
    }
}

/// Results that are objects.
macro_rules! objects {
    ($($type:ty: $descriptor:literal = |$value:ident, $env:ident| $make:expr;)+) => {$(
        impl IntoJava for $type {
            type Raw = jobject;
                    const DESCRIPTOR: &'static str = $descriptor;

            #[inline]
            fn into_java(self, $env: Env<'_>) -> Result<jobject, Fault> {
                let $value = self;
                let object: Option<Object<'_>> = $make;
                Ok(object.map_or(ptr::null_mut(), Object::raw))
            }
        }
    )+};
}

/// Arrays of these.
static BYTE_ARRAY: Class = Class::new(c"[B");
static STRING: Class = Class::new(c"java/lang/String");

objects! {
    Pinned: "[B" = |value, env| Some(env.new_bytes(&value)?);
    Option<Pinned>: "[B" = |value, env| value.map(|value| env.new_bytes(&value)).transpose()?;
    Vec<u8>: "[B" = |value, env| Some(env.new_bytes(&value)?);
    Option<Vec<u8>>: "[B" = |value, env| value.map(|value| env.new_bytes(&value)).transpose()?;
    String: "Ljava/lang/String;" = |value, env| Some(env.new_text(&value)?);
    Option<String>: "Ljava/lang/String;" = |value, env| value.map(|value| env.new_text(&value)).transpose()?;
    Vec<i64>: "[J" = |value, env| Some(env.new_longs(&value)?);
    Vec<i32>: "[I" = |value, env| Some(env.new_ints(&value)?);
    Vec<Vec<u8>>: "[[B" =
        |value, env| Some(env.new_array(&BYTE_ARRAY, value.into_iter(), |value| env.new_bytes(&value).map(Some))?);
    Vec<Option<Pinned>>: "[[B" = |value, env| {
        Some(env.new_array(&BYTE_ARRAY, value.into_iter(), |value| value.map(|value| env.new_bytes(&value)).transpose())?)
    };
    Vec<String>: "[Ljava/lang/String;" =
        |value, env| Some(env.new_array(&STRING, value.into_iter(), |value| env.new_text(&value).map(Some))?);
}

/// An object for Java, made by the native: its reference ends with the call.
pub struct Made(jobject);

impl From<Object<'_>> for Made {
    fn from(object: Object<'_>) -> Made {
        Made(object.raw())
    }
}

/// A byte array of borrowed bytes.
pub struct ByteArray(jobject);

impl ByteArray {
    #[inline]
    pub fn of(env: Env<'_>, bytes: &[u8]) -> Result<ByteArray, Fault> {
        env.new_bytes(bytes).map(|array| ByteArray(array.raw()))
    }
}

/// An array of objects.
pub struct ArrayOf(jobject);

impl From<Object<'_>> for ArrayOf {
    fn from(object: Object<'_>) -> ArrayOf {
        ArrayOf(object.raw())
    }
}

macro_rules! references {
    ($($type:ty: $descriptor:literal = |$value:ident| $raw:expr;)+) => {$(
        impl IntoJava for $type {
            type Raw = jobject;
            const DESCRIPTOR: &'static str = $descriptor;

            #[inline]
            fn into_java(self, _env: Env<'_>) -> Result<jobject, Fault> {
                let $value = self;
                Ok($raw)
            }
        }
    )+};
}

references! {
    Made: "L*" = |object| object.0;
    Option<Made>: "L*" = |object| object.map_or(ptr::null_mut(), |object| object.0);
    ByteArray: "[B" = |array| array.0;
    ArrayOf: "[*" = |array| array.0;
    Option<ArrayOf>: "[*" = |array| array.map_or(ptr::null_mut(), |array| array.0);
}
