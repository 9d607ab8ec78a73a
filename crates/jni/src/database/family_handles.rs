//! `ColumnFamilyHandle`.

use capi::family::FamilyHandle;
use capi::options::Options;
use spillway::internal::name;

use crate::boundary::argument::Closed;
use crate::boundary::class::{Class, Method};
use crate::boundary::handle;
use crate::boundary::natives;
use crate::boundary::object::Value;
use crate::boundary::reply::Made;
use crate::callbacks::listener::tell_family_closed;

static DESCRIPTOR: Class = Class::new(c"org/rocksdb/ColumnFamilyDescriptor");
static NEW_DESCRIPTOR: Method = Method::constructor(&DESCRIPTOR, c"([BLorg/rocksdb/ColumnFamilyOptions;)V");
static OPTIONS: Class = Class::new(c"org/rocksdb/ColumnFamilyOptions");
static NEW_OPTIONS: Method = Method::constructor(&OPTIONS, c"(J)V");

natives! { "ColumnFamilyHandle";
    "disposeInternal" | "disposeInternalJni" => fn(_env, family: Closed<FamilyHandle>) -> () {
        if let Some(family) = family.0 {
            tell_family_closed(&family);
        }
        Ok(())
    }

    "getName" => fn(_env, family: &FamilyHandle) -> Vec<u8> {
        Ok(name::bytes(family.0.name()).into_owned())
    }

    "getID" => fn(_env, family: &FamilyHandle) -> i32 {
        Ok(family.0.id().0 as i32)
    }

    /// Name and options of now, for another open.
    "getDescriptor" => fn(env, family: &FamilyHandle) -> Made {
        let mut options = Options::default();
        options.family = (*family.0.options()).clone();
        let name = env.new_bytes(&name::bytes(family.0.name()))?;
        let options = NEW_OPTIONS.make(env, &[Value::Long(handle::open(Box::new(options)))])?;
        Ok(NEW_DESCRIPTOR.make(env, &[Value::Object(name), Value::Object(options)])?.into())
    }
}
