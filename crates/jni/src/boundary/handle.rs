//! Handles: the `long` of a Java object for its object here.
//!
//! A handle is kind, generation and index of a slot. Slots are never freed, and a closed one has another generation: a
//! handle that was closed, or never given, is found out at the price of one comparison.

use std::any::type_name;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::fault::Fault;

/// A type with handles.
///
/// # Safety
/// `KIND` is not 0, below 128, and of this type only. [`held!`] gives them.
pub unsafe trait Held: Sized + 'static {
    const KIND: u8;
}

/// The kind of a handle's number, open or not.
pub fn kind(handle: i64) -> u8 {
    (handle as u64 >> 56) as u8
}

/// Gives handles to types: each its own kind. `close_any` closes a handle of whatever type.
macro_rules! held {
    ($($kind:ident = $type:ty),+ $(,)?) => {
        #[repr(u8)]
        enum Kind { None = 0, $($kind),+ }
        const _: u8 = Kind::None as u8;

        $(
            // SAFETY: the enum gives each type another number; the assertion bounds them.
            unsafe impl $crate::boundary::handle::Held for $type {
                const KIND: u8 = { assert!((Kind::$kind as u8) < 128); Kind::$kind as u8 };
            }
        )+

        /// Closes an open handle, whatever its type.
        pub fn close_any(handle: i64) {
            let kind = $crate::boundary::handle::kind(handle);
            $( if kind == <$type as $crate::boundary::handle::Held>::KIND {
                drop($crate::boundary::handle::close::<$type>(handle));
            } )+
        }
    };
}
pub(crate) use held;

const CHUNK: usize = 1 << 12;
const CHUNKS: usize = 1 << 14;
const GENERATIONS: u64 = 1 << 24;

struct Slot {
    /// The handle while open, else 0.
    handle: AtomicU64,
    object: AtomicPtr<()>,
}

/// A closed slot, with the generation of its next handle.
struct Free {
    index: u32,
    generation: u64,
}

struct Unused {
    closed: Vec<Free>,
    /// Slots from here on were never used.
    next: u32,
}

static SLOTS: [AtomicPtr<Slot>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];
static UNUSED: Mutex<Unused> = Mutex::new(Unused { closed: Vec::new(), next: 0 });

#[inline]
fn slot(index: usize) -> Option<&'static Slot> {
    let chunk = SLOTS.get(index / CHUNK)?.load(Ordering::Acquire);
    // SAFETY: null, or an array of `CHUNK` slots that lives for ever.
    (!chunk.is_null()).then(|| unsafe { &*chunk.add(index % CHUNK) })
}

fn free_slot() -> Free {
    let mut unused = UNUSED.lock();
    if let Some(closed) = unused.closed.pop() {
        return closed;
    }
    let index = unused.next;
    let chunk = index as usize / CHUNK;
    let place = SLOTS.get(chunk).expect("more than 67 million handles are open: RocksDB objects are not closed");
    if place.load(Ordering::Acquire).is_null() {
        let slots: Vec<Slot> =
            (0..CHUNK).map(|_| Slot { handle: AtomicU64::new(0), object: AtomicPtr::new(ptr::null_mut()) }).collect();
        place.store(Box::leak(slots.into_boxed_slice()).as_mut_ptr(), Ordering::Release);
    }
    unused.next += 1;
    Free { index, generation: 1 }
}

/// A new handle.
pub fn open<T: Held>(object: Box<T>) -> i64 {
    let Free { index, generation } = free_slot();
    let handle = u64::from(T::KIND) << 56 | generation << 32 | u64::from(index);
    let slot = slot(index as usize).expect("made by `free_slot`");
    slot.object.store(Box::into_raw(object).cast(), Ordering::Relaxed);
    slot.handle.store(handle, Ordering::Release);
    handle as i64
}

#[inline]
fn find<T: Held>(handle: i64) -> Option<(*mut T, &'static Slot)> {
    let handle = handle as u64;
    let slot = slot((handle & u64::from(u32::MAX)) as usize)?;
    let is_open = slot.handle.load(Ordering::Acquire) == handle && handle >> 56 == u64::from(T::KIND);
    is_open.then(|| (slot.object.load(Ordering::Relaxed).cast(), slot))
}

/// The object of an open handle.
///
/// # Safety
/// J2: no call changes or closes the object meanwhile.
///
/// # Errors
/// The handle is closed, or of another type.
#[inline]
pub unsafe fn get<'a, T: Held>(handle: i64) -> Result<&'a T, Fault> {
    // SAFETY: an open slot of this kind has a box of `T`; J2.
    find::<T>(handle).map(|(object, _)| unsafe { &*object }).ok_or_else(|| closed::<T>(handle))
}

/// Calls `use_it` with the object of an open handle that only natives of its owner use.
///
/// # Errors
/// As of `get`.
pub fn with<T: Held, R>(handle: i64, use_it: impl FnOnce(&T) -> R) -> Result<R, Fault> {
    // SAFETY: J2: the owner's call is one of the object.
    unsafe { get(handle) }.map(use_it)
}

/// # Safety
/// J2: no other call uses the object meanwhile.
///
/// # Errors
/// As of `get`.
#[inline]
pub unsafe fn get_mut<'a, T: Held>(handle: i64) -> Result<&'a mut T, Fault> {
    // SAFETY: an open slot of this kind has a box of `T`; J2.
    find::<T>(handle).map(|(object, _)| unsafe { &mut *object }).ok_or_else(|| closed::<T>(handle))
}

/// Ends a handle; `None` if it is closed.
pub fn close<T: Held>(handle: i64) -> Option<Box<T>> {
    let (object, slot) = find::<T>(handle)?;
    let number = handle as u64;
    slot.handle.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Relaxed).ok()?;
    let generation = (number >> 32) % GENERATIONS + 1;
    if generation < GENERATIONS {
        UNUSED.lock().closed.push(Free { index: (number & u64::from(u32::MAX)) as u32, generation });
    }
    // SAFETY: the box of `open`; the exchange let only this call have it.
    Some(unsafe { Box::from_raw(object) })
}

#[cold]
fn closed<T>(handle: i64) -> Fault {
    let name = type_name::<T>().rsplit("::").next().unwrap_or_default();
    let what = if handle == 0 { "no" } else { "a closed" };
    Fault::State(format!("{what} handle in place of an open one ({name}): a RocksDB object is used after its close()"))
}

#[cfg(test)]
mod tests {
    use capi::options::Options;
    use capi::write_options::WriteSettings;

    use super::*;

    #[test]
    fn handles_are_told_apart() {
        let number = open(Box::new(Options::default()));
        let write = open(Box::new(WriteSettings::default()));
        // SAFETY: this thread alone knows the handles.
        unsafe {
            assert!(get::<Options>(number).is_ok() && get::<WriteSettings>(write).is_ok());
            assert!(get::<WriteSettings>(number).is_err(), "another type");
            assert!(get::<Options>(0).is_err() && get::<Options>(-1).is_err() && get::<Options>(12345).is_err());
            assert!(close::<WriteSettings>(number).is_none() && close::<Options>(number).is_some());
            assert!(get::<Options>(number).is_err() && close::<Options>(number).is_none(), "closed");
        }
        let next = open(Box::new(Options::default()));
        assert_ne!(next, number, "a slot's next handle is another number");
        assert!(close::<Options>(number).is_none() && close::<Options>(next).is_some());
        assert!(close::<WriteSettings>(write).is_some());
    }
}
