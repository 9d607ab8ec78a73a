//! Classes, constructors, methods and fields, each looked up once (J5).

use std::ffi::CStr;
use std::sync::OnceLock;

use jni_sys::{jfieldID, jmethodID};

use super::env::{Env, jni};
use super::object::{Global, Object, Value};
use crate::fault::Fault;

/// A class, looked up at its first use.
pub struct Class {
    name: &'static CStr,
    found: OnceLock<Global>,
}

impl Class {
    pub const fn new(name: &'static CStr) -> Class {
        Class { name, found: OnceLock::new() }
    }

    /// # Errors
    /// `NoClassDefFoundError` is pending.
    pub fn get<'j>(&self, env: Env<'j>) -> Result<Object<'j>, Fault> {
        if let Some(found) = self.found.get() {
            return Ok(Object::new(found.object().raw()).expect("a reference is not null"));
        }
        // SAFETY: the name ends with a zero byte.
        let class = Object::new(unsafe { jni!(env, FindClass, self.name.as_ptr()) }).ok_or(Fault::Pending)?;
        let global = Global::new(env, class).ok_or(Fault::OutOfMemory)?;
        env.delete(class);
        let found = self.found.get_or_init(|| global);
        Ok(Object::new(found.object().raw()).expect("a reference is not null"))
    }
}

#[derive(Clone, Copy)]
struct MethodId(jmethodID);
// SAFETY: ids are plain numbers, valid in every thread while the class is loaded.
unsafe impl Send for MethodId {}
// SAFETY: as above.
unsafe impl Sync for MethodId {}

/// A method of a class, looked up at its first use. `<init>` is a constructor.
pub struct Method {
    class: &'static Class,
    name: &'static CStr,
    descriptor: &'static CStr,
    is_static: bool,
    found: OnceLock<MethodId>,
}

impl Method {
    pub const fn new(class: &'static Class, name: &'static CStr, descriptor: &'static CStr) -> Method {
        Method { class, name, descriptor, is_static: false, found: OnceLock::new() }
    }

    pub const fn fixed(class: &'static Class, name: &'static CStr, descriptor: &'static CStr) -> Method {
        Method { class, name, descriptor, is_static: true, found: OnceLock::new() }
    }

    pub const fn constructor(class: &'static Class, descriptor: &'static CStr) -> Method {
        Method::new(class, c"<init>", descriptor)
    }

    /// Looks the method up, for later calls on other threads.
    ///
    /// # Errors
    /// `NoSuchMethodError` is pending.
    pub fn find(&self, env: Env<'_>) -> Result<(), Fault> {
        self.id(env).map(drop)
    }

    fn id(&self, env: Env<'_>) -> Result<jmethodID, Fault> {
        if let Some(found) = self.found.get() {
            return Ok(found.0);
        }
        let class = self.class.get(env)?;
        // SAFETY: a class; name and descriptor end with zero bytes.
        let id = unsafe {
            if self.is_static {
                jni!(env, GetStaticMethodID, class.raw(), self.name.as_ptr(), self.descriptor.as_ptr())
            } else {
                jni!(env, GetMethodID, class.raw(), self.name.as_ptr(), self.descriptor.as_ptr())
            }
        };
        env.check()?;
        Ok(self.found.get_or_init(|| MethodId(id)).0)
    }

    /// A new object by this constructor.
    pub fn make<'j>(&self, env: Env<'j>, arguments: &[Value<'_>]) -> Result<Object<'j>, Fault> {
        let (class, id) = (self.class.get(env)?, self.id(env)?);
        let values = Env::values(arguments);
        // SAFETY: a constructor of this class, with the arguments of its descriptor.
        let object = unsafe { jni!(env, NewObjectA, class.raw(), id, values.as_ptr()) };
        env.check()?;
        Object::new(object).ok_or(Fault::OutOfMemory)
    }
}

/// Calls of an object's methods, by the type of result.
macro_rules! calls {
    ($($name:ident: $result:ty = $function:ident;)+) => {
        impl Method {$(
            /// # Errors
            /// The method threw: the exception is pending.
            pub fn $name(&self, env: Env<'_>, object: Object<'_>, arguments: &[Value<'_>]) -> Result<$result, Fault> {
                let (id, values) = (self.id(env)?, Env::values(arguments));
                // SAFETY: J1: the object is of the method's class; the arguments are those of its descriptor.
                let result = unsafe { jni!(env, $function, object.raw(), id, values.as_ptr()) };
                env.check()?;
                Ok(result)
            }
        )+}
    };
}

calls! {
    call: () = CallVoidMethodA;
    boolean: bool = CallBooleanMethodA;
    byte: i8 = CallByteMethodA;
    int: i32 = CallIntMethodA;
    long: i64 = CallLongMethodA;
}

impl Method {
    /// # Errors
    /// The method threw: the exception is pending.
    pub fn object<'j>(
        &self,
        env: Env<'j>,
        object: Object<'_>,
        arguments: &[Value<'_>],
    ) -> Result<Option<Object<'j>>, Fault> {
        let (id, values) = (self.id(env)?, Env::values(arguments));
        // SAFETY: J1: the object is of the method's class; the arguments are those of its descriptor.
        let result = unsafe { jni!(env, CallObjectMethodA, object.raw(), id, values.as_ptr()) };
        env.check()?;
        Ok(Object::new(result))
    }

    /// A static method's result.
    ///
    /// # Errors
    /// The method threw: the exception is pending.
    pub fn int_fixed(&self, env: Env<'_>, arguments: &[Value<'_>]) -> Result<i32, Fault> {
        let (class, id, values) = (self.class.get(env)?, self.id(env)?, Env::values(arguments));
        // SAFETY: a static method of this class, with the arguments of its descriptor.
        let result = unsafe { jni!(env, CallStaticIntMethodA, class.raw(), id, values.as_ptr()) };
        env.check()?;
        Ok(result)
    }

    /// A static method's result.
    ///
    /// # Errors
    /// The method threw: the exception is pending.
    pub fn object_fixed<'j>(&self, env: Env<'j>, arguments: &[Value<'_>]) -> Result<Option<Object<'j>>, Fault> {
        let (class, id, values) = (self.class.get(env)?, self.id(env)?, Env::values(arguments));
        // SAFETY: a static method of this class, with the arguments of its descriptor.
        let result = unsafe { jni!(env, CallStaticObjectMethodA, class.raw(), id, values.as_ptr()) };
        env.check()?;
        Ok(Object::new(result))
    }
}

struct FieldId(jfieldID);
// SAFETY: ids are plain numbers, valid in every thread while the class is loaded.
unsafe impl Send for FieldId {}
// SAFETY: as above.
unsafe impl Sync for FieldId {}

/// A static field with an object of its own class: a constant of an enum.
pub struct Constant {
    class: &'static Class,
    name: &'static CStr,
    descriptor: &'static CStr,
    found: OnceLock<FieldId>,
}

impl Constant {
    pub const fn new(class: &'static Class, name: &'static CStr, descriptor: &'static CStr) -> Constant {
        Constant { class, name, descriptor, found: OnceLock::new() }
    }

    pub fn get<'j>(&self, env: Env<'j>) -> Result<Object<'j>, Fault> {
        let class = self.class.get(env)?;
        if self.found.get().is_none() {
            // SAFETY: a class; name and descriptor end with zero bytes.
            let id = unsafe { jni!(env, GetStaticFieldID, class.raw(), self.name.as_ptr(), self.descriptor.as_ptr()) };
            env.check()?;
            self.found.get_or_init(|| FieldId(id));
        }
        let id = self.found.get().expect("set above").0;
        // SAFETY: a static field of this class with an object.
        let object = unsafe { jni!(env, GetStaticObjectField, class.raw(), id) };
        Object::new(object).ok_or_else(|| Fault::illegal("a constant of RocksDB's jar is null"))
    }
}
