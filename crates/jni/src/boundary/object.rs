//! References to Java's objects.

use std::marker::PhantomData;
use std::ptr::NonNull;

use jni_sys::{_jobject, jobject, jvalue};

use super::env::{Env, jni};
use super::thread;

/// A live reference to an object, until the call `'j` ends.
#[derive(Clone, Copy)]
pub struct Object<'j> {
    object: NonNull<_jobject>,
    call: PhantomData<&'j ()>,
}

impl<'j> Object<'j> {
    /// `None` for null. The reference is live for `'j`: J1, or a result of a JNI function.
    #[inline]
    pub(super) fn new(object: jobject) -> Option<Object<'j>> {
        NonNull::new(object).map(|object| Object { object, call: PhantomData })
    }

    #[inline]
    pub(super) fn raw(self) -> jobject {
        self.object.as_ptr()
    }
}

/// An argument of a method.
#[derive(Clone, Copy)]
pub enum Value<'j> {
    Bool(bool),
    Byte(i8),
    Int(i32),
    Long(i64),
    Double(f64),
    Object(Object<'j>),
    Null,
}

impl Value<'_> {
    pub(super) fn raw(self) -> jvalue {
        match self {
            Value::Bool(flag) => jvalue { z: flag },
            Value::Byte(number) => jvalue { b: number },
            Value::Int(number) => jvalue { i: number },
            Value::Long(number) => jvalue { j: number },
            Value::Double(number) => jvalue { d: number },
            Value::Object(object) => jvalue { l: object.raw() },
            Value::Null => jvalue { l: std::ptr::null_mut() },
        }
    }
}

impl<'j> From<Option<Object<'j>>> for Value<'j> {
    fn from(object: Option<Object<'j>>) -> Value<'j> {
        object.map_or(Value::Null, Value::Object)
    }
}

/// A reference that lives as long as this value, in any thread.
pub struct Global(NonNull<_jobject>);

// SAFETY: global references may be used by every thread.
unsafe impl Send for Global {}
// SAFETY: as above.
unsafe impl Sync for Global {}

impl Global {
    pub fn new(env: Env<'_>, object: Object<'_>) -> Option<Global> {
        // SAFETY: a live reference.
        NonNull::new(unsafe { jni!(env, NewGlobalRef, object.raw()) }).map(Global)
    }

    /// A local reference; `None` if the object is gone.
    pub fn local<'j>(&self, env: Env<'j>) -> Option<Object<'j>> {
        // SAFETY: a live reference.
        Object::new(unsafe { jni!(env, NewLocalRef, self.0.as_ptr()) })
    }

    pub fn object(&self) -> Object<'_> {
        Object { object: self.0, call: PhantomData }
    }
}

impl Drop for Global {
    fn drop(&mut self) {
        thread::attached(|env| {
            // SAFETY: made by `NewGlobalRef`, and given up here.
            unsafe { jni!(env, DeleteGlobalRef, self.0.as_ptr()) };
        });
    }
}
