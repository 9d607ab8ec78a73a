//! Natives that `WriteBatch` and `WriteBatchWithIndex` share.

/// Exports them for a class; the list of them is `NATIVES`.
macro_rules! changes {
    ($class:literal, $Batch:ty) => {
        $crate::boundary::natives! { $class;
            "putJni__J_3BI_3BI" | "put__J_3BI_3BI" =>
            fn(_env, batch: &mut $Batch, key[len]: Head, value[size]: Head) -> () {
                batch.change(None, ValueKind::Value, &key, &value)
            }

            "putJni__J_3BI_3BIJ" | "put__J_3BI_3BIJ" =>
            fn(_env, batch: &mut $Batch, key[len]: Head, value[size]: Head, family: &FamilyHandle) -> () {
                batch.change(Some(family), ValueKind::Value, &key, &value)
            }

            "putDirectJni" | "putDirect" => fn(
                _env,
                batch: &mut $Batch,
                key[offset, len]: Direct<'_>,
                value[at, size]: Direct<'_>,
                family: Option<&FamilyHandle>,
            ) -> () {
                batch.change(family, ValueKind::Value, &key, &value)
            }

            "mergeJni__J_3BI_3BI" | "merge__J_3BI_3BI" =>
            fn(_env, batch: &mut $Batch, key[len]: Head, operand[size]: Head) -> () {
                batch.change(None, ValueKind::Merge, &key, &operand)
            }

            "mergeJni__J_3BI_3BIJ" | "merge__J_3BI_3BIJ" =>
            fn(_env, batch: &mut $Batch, key[len]: Head, operand[size]: Head, family: &FamilyHandle) -> () {
                batch.change(Some(family), ValueKind::Merge, &key, &operand)
            }

            "deleteJni__J_3BI" | "delete__J_3BI" => fn(_env, batch: &mut $Batch, key[len]: Head) -> () {
                batch.change(None, ValueKind::Deletion, &key, &[])
            }

            "deleteJni__J_3BIJ" | "delete__J_3BIJ" =>
            fn(_env, batch: &mut $Batch, key[len]: Head, family: &FamilyHandle) -> () {
                batch.change(Some(family), ValueKind::Deletion, &key, &[])
            }

            "deleteDirectJni" | "deleteDirect" =>
            fn(_env, batch: &mut $Batch, key[offset, len]: Direct<'_>, family: Option<&FamilyHandle>) -> () {
                batch.change(family, ValueKind::Deletion, &key, &[])
            }

            "singleDeleteJni__J_3BI" | "singleDelete__J_3BI" => fn(_env, batch: &mut $Batch, key[len]: Head) -> () {
                batch.change(None, ValueKind::SingleDeletion, &key, &[])
            }

            "singleDeleteJni__J_3BIJ" | "singleDelete__J_3BIJ" =>
            fn(_env, batch: &mut $Batch, key[len]: Head, family: &FamilyHandle) -> () {
                batch.change(Some(family), ValueKind::SingleDeletion, &key, &[])
            }

            "deleteRangeJni__J_3BI_3BI" | "deleteRange__J_3BI_3BI" =>
            fn(_env, batch: &mut $Batch, start[len]: Head, end[size]: Head) -> () {
                batch.change(None, ValueKind::RangeDeletion, &start, &end)
            }

            "deleteRangeJni__J_3BI_3BIJ" | "deleteRange__J_3BI_3BIJ" =>
            fn(_env, batch: &mut $Batch, start[len]: Head, end[size]: Head, family: &FamilyHandle) -> () {
                batch.change(Some(family), ValueKind::RangeDeletion, &start, &end)
            }

            "putLogDataJni" | "putLogData" => fn(_env, batch: &mut $Batch, blob[len]: Head) -> () {
                batch.put_log_data(&blob);
                Ok(())
            }

            "clear0Jni" | "clear0" => fn(_env, batch: &mut $Batch) -> () {
                batch.clear();
                Ok(())
            }

            "setSavePoint0Jni" | "setSavePoint0" => fn(_env, batch: &mut $Batch) -> () {
                batch.set_savepoint();
                Ok(())
            }

            "rollbackToSavePoint0Jni" | "rollbackToSavePoint0" => fn(_env, batch: &mut $Batch) -> () {
                batch.rollback_to_savepoint()
            }

            "popSavePointJni" | "popSavePoint" => fn(_env, batch: &mut $Batch) -> () {
                batch.pop_savepoint()
            }

            /// 0 for no limit.
            "setMaxBytesJni" | "setMaxBytes" => fn(_env, batch: &mut $Batch, bytes_max: i64) -> () {
                batch.set_bytes_max(usize::try_from(bytes_max).unwrap_or(usize::MAX));
                Ok(())
            }

            "count0Jni" | "count0" => fn(_env, batch: &$Batch) -> i32 {
                Ok(batch.read(|batch| i32::try_from(batch.count()).unwrap_or(i32::MAX)))
            }

            "disposeInternalJni" | "disposeInternal" => fn(_env, batch: Closed<$Batch>) -> () {
                drop(batch.0);
                Ok(())
            }
        }
    };
}

/// Of `WriteBatch`.
pub mod plain {
    use capi::family::FamilyHandle;
    use spillway::internal::ValueKind;

    use crate::batch::Batch;
    use crate::boundary::argument::{Closed, Direct, Head};

    changes!("WriteBatch", Batch);
}

/// Of `WriteBatchWithIndex`.
pub mod indexed {
    use capi::family::FamilyHandle;
    use spillway::internal::ValueKind;

    use crate::batch::indexed::Indexed;
    use crate::boundary::argument::{Closed, Direct, Head};

    changes!("WriteBatchWithIndex", Indexed);
}
