//! Threads of ours in the JVM: attached once, as daemons.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use jni_sys::{JNI_OK, JNI_VERSION_1_8, JavaVM};

use super::env::Env;

struct Vm(NonNull<JavaVM>);
// SAFETY: the JVM's interface may be used by every thread.
unsafe impl Send for Vm {}
// SAFETY: as above.
unsafe impl Sync for Vm {}

static VM: OnceLock<Vm> = OnceLock::new();

/// Ends the attachment with the thread.
struct Attached;

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(vm) = VM.get() {
            let vm = vm.0.as_ptr();
            // SAFETY: this thread was attached by `environment`, and no Java frame is on it any more.
            unsafe { ((**vm).v1_2.DetachCurrentThread)(vm) };
        }
    }
}

thread_local! {
    static ATTACHED: std::cell::Cell<Option<Attached>> = const { std::cell::Cell::new(None) };
}

/// The environment of this thread, attached if it was not. A daemon does not keep the JVM from its end.
fn environment<'j>() -> Option<Env<'j>> {
    let vm = VM.get()?.0.as_ptr();
    let mut env: *mut c_void = ptr::null_mut();
    // SAFETY: the JVM's interface, and room for a pointer.
    unsafe {
        if ((**vm).v1_2.GetEnv)(vm, &raw mut env, JNI_VERSION_1_8) != JNI_OK {
            if ((**vm).v1_4.AttachCurrentThreadAsDaemon)(vm, &raw mut env, ptr::null_mut()) != JNI_OK {
                return None;
            }
            // A thread at its end stays attached: its storage is gone.
            let _ = ATTACHED.try_with(|attached| attached.set(Some(Attached)));
        }
        NonNull::new(env).map(|env| Env::of_pointer(env))
    }
}

/// Runs `call` in the JVM; nothing if the JVM takes no more threads. Local references made by it end with it only on
/// threads that Java called: others delete theirs.
pub fn attached<R>(call: impl FnOnce(Env<'_>) -> R) -> Option<R> {
    environment().map(call)
}

/// The JVM loads the library.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the JVM's name")]
unsafe extern "system" fn JNI_OnLoad(vm: *mut JavaVM, _reserved: *mut c_void) -> jni_sys::jint {
    if let Some(vm) = NonNull::new(vm) {
        VM.get_or_init(|| Vm(vm));
        crate::loading::announce();
    }
    JNI_VERSION_1_8
}
