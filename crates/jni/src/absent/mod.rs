//! Natives that are not there, as `list.rs` has them: written by the test `natives` with `UPDATE=1`.

use crate::boundary::absent;

include!("list.rs");
