//! Java's collections.

use std::collections::BTreeMap;

use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::object::{Object, Value};
use crate::fault::Fault;

static HASH_MAP: Class = Class::new(c"java/util/HashMap");
static NEW_MAP: Method = Method::constructor(&HASH_MAP, c"(I)V");
static PUT: Method = Method::new(&HASH_MAP, c"put", c"(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;");

static ARRAY_LIST: Class = Class::new(c"java/util/ArrayList");
static NEW_LIST: Method = Method::constructor(&ARRAY_LIST, c"(I)V");
static ADD: Method = Method::new(&ARRAY_LIST, c"add", c"(Ljava/lang/Object;)Z");

static LONG: Class = Class::new(c"java/lang/Long");
static LONG_OF: Method = Method::fixed(&LONG, c"valueOf", c"(J)Ljava/lang/Long;");

/// A `Long`.
pub fn boxed_long<'j>(env: Env<'j>, number: i64) -> Result<Object<'j>, Fault> {
    LONG_OF.object_fixed(env, &[Value::Long(number)])?.ok_or_else(|| Fault::illegal("Long.valueOf gave null"))
}

/// Looks up what maps need, for callbacks (J5).
pub fn find_maps(env: Env<'_>) -> Result<(), Fault> {
    NEW_MAP.find(env)?;
    PUT.find(env)
}

/// An `ArrayList`. The references of its elements end once they are in it.
pub fn list<'j, T>(
    env: Env<'j>,
    items: impl ExactSizeIterator<Item = T>,
    mut make: impl FnMut(T) -> Result<Object<'j>, Fault>,
) -> Result<Object<'j>, Fault> {
    let list = NEW_LIST.make(env, &[Value::Int(i32::try_from(items.len()).unwrap_or(i32::MAX))])?;
    for item in items {
        let element = make(item)?;
        ADD.boolean(env, list, &[Value::Object(element)])?;
        env.delete(element);
    }
    Ok(list)
}

/// A `HashMap`. The references of its keys and values end once they are in it.
pub fn map<'j, T>(
    env: Env<'j>,
    items: impl ExactSizeIterator<Item = T>,
    mut make: impl FnMut(T) -> Result<(Object<'j>, Object<'j>), Fault>,
) -> Result<Object<'j>, Fault> {
    let room = i32::try_from(items.len() * 2).unwrap_or(i32::MAX);
    let map = NEW_MAP.make(env, &[Value::Int(room)])?;
    for item in items {
        let (key, value) = make(item)?;
        if let Some(replaced) = PUT.object(env, map, &[Value::Object(key), Value::Object(value)])? {
            env.delete(replaced);
        }
        env.delete(key);
        env.delete(value);
    }
    Ok(map)
}

pub fn string_map<'j>(env: Env<'j>, pairs: &BTreeMap<String, String>) -> Result<Object<'j>, Fault> {
    map(env, pairs.iter(), |(key, value)| Ok((env.new_text(key)?, env.new_text(value)?)))
}
