//! What an operator asks of a live database: one [`Observation`] of everything.
//!
//! Plain data, below the engine: the reports of `database` fill it in.
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! let db = spillway::Db::open(dir.path().join("db"))?;
//! db.put("key", "value")?;
//! let observed = db.observe();
//! assert_eq!(observed.writes.map(|writes| writes.keys), Some(1));
//! assert_eq!(observed.families[0].name, "default");
//! # Ok::<(), spillway::Error>(())
//! ```

mod advice;
pub(crate) mod events;
mod metrics;
mod observation;
#[cfg(feature = "observe")]
pub(crate) mod socket;
pub(crate) mod trace;

pub use self::advice::{Advice, AdviceSeverity};
pub use self::events::{EVENTS_MAX, ObservedEvent, ObservedEventKind, ObservedEvents, ObservedPart};
pub use self::observation::*;
#[cfg(feature = "observe")]
pub use self::socket::{Attached, CLIENTS_MAX, SOCKET_NAME};
pub use self::trace::{InTrace, TRACE_ID_MAX, in_trace};
