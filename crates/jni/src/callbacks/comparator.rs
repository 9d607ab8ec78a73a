//! Comparators of Java: `AbstractComparator`.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::Arc;

use spillway::internal::{Comparator, UserOrder};

use super::Callback;
use crate::boundary::argument::Closed;
use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::lent::LentBuffer;
use crate::boundary::natives;
use crate::boundary::object::{Object, Value};
use crate::fault::Fault;

/// A key order: of Java's, or one of ours.
pub struct Order {
    pub order: UserOrder,
    uses_direct_buffers: bool,
}

/// `ComparatorOptions`.
pub struct ComparatorOptions {
    pub reused_synchronisation_type: i8,
    pub use_direct_buffer: bool,
    /// Longer keys get a new buffer. Below 0: every key does.
    pub max_reused_buffer_size: i32,
}

impl Default for ComparatorOptions {
    fn default() -> Self {
        const ADAPTIVE_MUTEX: i8 = 1;
        const REUSED_BYTES: i32 = 64;
        ComparatorOptions {
            reused_synchronisation_type: ADAPTIVE_MUTEX,
            use_direct_buffer: true,
            max_reused_buffer_size: REUSED_BYTES,
        }
    }
}

static COMPARATOR: Class = Class::new(c"org/rocksdb/AbstractComparator");
static BRIDGE: Class = Class::new(c"org/rocksdb/AbstractComparatorJniBridge");
static BUFFER: Class = Class::new(c"java/nio/ByteBuffer");
static NAME: Method = Method::new(&COMPARATOR, c"name", c"()Ljava/lang/String;");
static COMPARE: Method = Method::fixed(
    &BRIDGE,
    c"compareInternal",
    c"(Lorg/rocksdb/AbstractComparator;Ljava/nio/ByteBuffer;ILjava/nio/ByteBuffer;I)I",
);
static WRAP: Method = Method::fixed(&BUFFER, c"wrap", c"([B)Ljava/nio/ByteBuffer;");

/// Names our key order as Java's bridge does a buffer that holds one key alone.
const WHOLE: i32 = -1;

thread_local! {
    /// The two keys of a comparison: a thread compares one pair at a time.
    static KEYS: RefCell<Option<[LentBuffer; 2]>> = const { RefCell::new(None) };
}

struct JavaOrder {
    name: String,
    object: Callback,
    uses_direct_buffers: bool,
    reused_bytes: usize,
}

impl JavaOrder {
    fn compare_lent(&self, env: Env<'_>, object: Object<'_>, a: &[u8], b: &[u8]) -> Result<i32, Fault> {
        KEYS.with_borrow_mut(|keys| {
            let keys = match keys {
                Some(keys) if keys.iter().all(|key| key.room() == self.reused_bytes) => keys,
                keys => {
                    keys.insert([LentBuffer::new(env, self.reused_bytes)?, LentBuffer::new(env, self.reused_bytes)?])
                }
            };
            let [first, second] = keys;
            let (first, second) = (first.with(a)?, second.with(b)?);
            let (a_len, b_len) = (Value::Int(a.len() as i32), Value::Int(b.len() as i32));
            COMPARE.int_fixed(env, &[Value::Object(object), Value::Object(first), a_len, Value::Object(second), b_len])
        })
    }

    /// Each key in a buffer of its own.
    fn compare_new(&self, env: Env<'_>, object: Object<'_>, a: &[u8], b: &[u8]) -> Result<i32, Fault> {
        if self.uses_direct_buffers {
            let (mut first, mut second) = (LentBuffer::new(env, a.len())?, LentBuffer::new(env, b.len())?);
            let (first, second) = (first.with(a)?, second.with(b)?);
            return self.compare_whole(env, object, first, second);
        }
        let wrapped = |key: &[u8]| {
            let array = env.new_bytes(key)?;
            let buffer = WRAP.object_fixed(env, &[Value::Object(array)])?;
            env.delete(array);
            buffer.ok_or_else(|| Fault::illegal("ByteBuffer.wrap gave null"))
        };
        let (first, second) = (wrapped(a)?, wrapped(b)?);
        let order = self.compare_whole(env, object, first, second);
        env.delete(first);
        env.delete(second);
        order
    }

    fn compare_whole(
        &self,
        env: Env<'_>,
        object: Object<'_>,
        first: Object<'_>,
        second: Object<'_>,
    ) -> Result<i32, Fault> {
        let whole = Value::Int(WHOLE);
        COMPARE.int_fixed(env, &[Value::Object(object), Value::Object(first), whole, Value::Object(second), whole])
    }
}

impl Comparator for JavaOrder {
    fn name(&self) -> &str {
        &self.name
    }

    /// Equal after an exception, as in RocksDB.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let fits = self.uses_direct_buffers && a.len().max(b.len()) <= self.reused_bytes;
        let order = self.object.call(|env, object| {
            if fits { self.compare_lent(env, object, a, b) } else { self.compare_new(env, object, a, b) }
        });
        order.map_or(Ordering::Equal, |order| order.cmp(&0))
    }

    /// The method's behaviour is unknown.
    fn equal_keys_can_differ(&self) -> bool {
        true
    }
}

natives! { "AbstractComparator";
    "createNewComparator" => fn(env, options: &ComparatorOptions) -> Box<Order> {
        COMPARE.find(env)?;
        WRAP.find(env)?;
        let this = env.this()?;
        let name = NAME.object(env, this, &[])?.ok_or_else(|| Fault::illegal("a comparator's name() is null"))?;
        let order = JavaOrder {
            name: env.text(name)?,
            object: Callback::of(env, this)?,
            uses_direct_buffers: options.use_direct_buffer,
            reused_bytes: usize::try_from(options.max_reused_buffer_size).unwrap_or(0),
        };
        Ok(Box::new(Order {
            order: UserOrder::Custom(Arc::new(order)),
            uses_direct_buffers: options.use_direct_buffer,
        }))
    }

    "usingDirectBuffers" => fn(_env, order: &Order) -> bool {
        Ok(order.uses_direct_buffers)
    }
}

/// Comparators by native code, of a program's own library.
pub mod native {
    use super::*;

    natives! { "NativeComparatorWrapper";
        "disposeInternal" => fn(_env, order: Closed<Order>) -> () {
            drop(order.0);
            Ok(())
        }
    }
}

impl Order {
    /// An order of ours.
    pub fn of(order: UserOrder) -> Box<Order> {
        Box::new(Order { order, uses_direct_buffers: false })
    }
}
