//! `rocksdb_column_family_handle_t`.

use std::sync::Arc;

use spillway::internal::Family;

use crate::boundary::handles;

/// A column family. Can outlive its database's handle.
pub struct FamilyHandle(pub Arc<Family>);

handles!(FamilyHandle);
