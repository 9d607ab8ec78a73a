//! The engine as tests use it. Tests name its types through this module alone, so a change of the engine's interface is
//! met here.

pub use spillway::internal::Database as Db;
pub use spillway::internal::*;
