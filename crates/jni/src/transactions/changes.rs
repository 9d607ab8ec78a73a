//! Changes by a transaction. A key that Java assumes to be tracked is tracked again, which changes nothing.

use capi::family::FamilyHandle;
use spillway::internal::{Track, ValueKind};

use super::Txn;
use crate::batch::Batch;
use crate::boundary::argument::{Bytes, Direct, Head};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::fault::Fault;

use Track::{Tracked, Untracked};
use ValueKind::{Deletion, Merge, SingleDeletion, Value};

impl Txn {
    /// As [`change`](Self::change), with key and value in parts.
    fn change_parts(
        &mut self,
        env: Env<'_>,
        family: Option<&FamilyHandle>,
        change: (ValueKind, &[Vec<u8>], &[Vec<u8>]),
        track: Track,
    ) -> Result<(), Fault> {
        let (kind, key, value) = change;
        self.change(env, family, (kind, &key.concat(), &value.concat()), track)
    }
}

natives! { "Transaction";
    "put__J_3BII_3BII" => fn(env, txn: &mut Txn, key[offset, len]: Bytes, value[at, size]: Bytes) -> () {
        txn.change(env, None, (Value, &key, &value), Tracked)
    }

    "put__J_3BII_3BIIJZ" => fn(
        env,
        txn: &mut Txn,
        key[offset, len]: Bytes,
        value[at, size]: Bytes,
        family: &FamilyHandle,
        _is_tracked: bool,
    ) -> () {
        txn.change(env, Some(family), (Value, &key, &value), Tracked)
    }

    "put__J_3_3BI_3_3BI" =>
    fn(env, txn: &mut Txn, key: Vec<Vec<u8>>, _parts: i32, value: Vec<Vec<u8>>, _value_parts: i32) -> () {
        txn.change_parts(env, None, (Value, &key, &value), Tracked)
    }

    "put__J_3_3BI_3_3BIJZ" => fn(
        env,
        txn: &mut Txn,
        key: Vec<Vec<u8>>,
        _parts: i32,
        value: Vec<Vec<u8>>,
        _value_parts: i32,
        family: &FamilyHandle,
        _is_tracked: bool,
    ) -> () {
        txn.change_parts(env, Some(family), (Value, &key, &value), Tracked)
    }

    "putDirect__JLjava_nio_ByteBuffer_2IILjava_nio_ByteBuffer_2II" =>
    fn(env, txn: &mut Txn, key[offset, len]: Direct<'_>, value[at, size]: Direct<'_>) -> () {
        txn.change(env, None, (Value, &key, &value), Tracked)
    }

    "putDirect__JLjava_nio_ByteBuffer_2IILjava_nio_ByteBuffer_2IIJZ" => fn(
        env,
        txn: &mut Txn,
        key[offset, len]: Direct<'_>,
        value[at, size]: Direct<'_>,
        family: &FamilyHandle,
        _is_tracked: bool,
    ) -> () {
        txn.change(env, Some(family), (Value, &key, &value), Tracked)
    }

    "putUntracked__J_3BI_3BI" => fn(env, txn: &mut Txn, key[len]: Head, value[size]: Head) -> () {
        txn.change(env, None, (Value, &key, &value), Untracked)
    }

    "putUntracked__J_3BI_3BIJ" =>
    fn(env, txn: &mut Txn, key[len]: Head, value[size]: Head, family: &FamilyHandle) -> () {
        txn.change(env, Some(family), (Value, &key, &value), Untracked)
    }

    "putUntracked__J_3_3BI_3_3BI" =>
    fn(env, txn: &mut Txn, key: Vec<Vec<u8>>, _parts: i32, value: Vec<Vec<u8>>, _value_parts: i32) -> () {
        txn.change_parts(env, None, (Value, &key, &value), Untracked)
    }

    "putUntracked__J_3_3BI_3_3BIJ" => fn(
        env,
        txn: &mut Txn,
        key: Vec<Vec<u8>>,
        _parts: i32,
        value: Vec<Vec<u8>>,
        _value_parts: i32,
        family: &FamilyHandle,
    ) -> () {
        txn.change_parts(env, Some(family), (Value, &key, &value), Untracked)
    }

    "merge__J_3BII_3BII" => fn(env, txn: &mut Txn, key[offset, len]: Bytes, operand[at, size]: Bytes) -> () {
        txn.change(env, None, (Merge, &key, &operand), Tracked)
    }

    "merge__J_3BII_3BIIJZ" => fn(
        env,
        txn: &mut Txn,
        key[offset, len]: Bytes,
        operand[at, size]: Bytes,
        family: &FamilyHandle,
        _is_tracked: bool,
    ) -> () {
        txn.change(env, Some(family), (Merge, &key, &operand), Tracked)
    }

    "mergeDirect__JLjava_nio_ByteBuffer_2IILjava_nio_ByteBuffer_2II" =>
    fn(env, txn: &mut Txn, key[offset, len]: Direct<'_>, operand[at, size]: Direct<'_>) -> () {
        txn.change(env, None, (Merge, &key, &operand), Tracked)
    }

    "mergeDirect__JLjava_nio_ByteBuffer_2IILjava_nio_ByteBuffer_2IIJZ" => fn(
        env,
        txn: &mut Txn,
        key[offset, len]: Direct<'_>,
        operand[at, size]: Direct<'_>,
        family: &FamilyHandle,
        _is_tracked: bool,
    ) -> () {
        txn.change(env, Some(family), (Merge, &key, &operand), Tracked)
    }

    "mergeUntracked__J_3BII_3BIIJ" => fn(
        env,
        txn: &mut Txn,
        key[offset, len]: Bytes,
        operand[at, size]: Bytes,
        family: Option<&FamilyHandle>,
    ) -> () {
        txn.change(env, family, (Merge, &key, &operand), Untracked)
    }

    "mergeUntrackedDirect" => fn(
        env,
        txn: &mut Txn,
        key[offset, len]: Direct<'_>,
        operand[at, size]: Direct<'_>,
        family: Option<&FamilyHandle>,
    ) -> () {
        txn.change(env, family, (Merge, &key, &operand), Untracked)
    }

    "delete__J_3BI" => fn(env, txn: &mut Txn, key[len]: Head) -> () {
        txn.change(env, None, (Deletion, &key, &[]), Tracked)
    }

    "delete__J_3BIJZ" => fn(env, txn: &mut Txn, key[len]: Head, family: &FamilyHandle, _is_tracked: bool) -> () {
        txn.change(env, Some(family), (Deletion, &key, &[]), Tracked)
    }

    "delete__J_3_3BI" => fn(env, txn: &mut Txn, key: Vec<Vec<u8>>, _parts: i32) -> () {
        txn.change_parts(env, None, (Deletion, &key, &[]), Tracked)
    }

    "delete__J_3_3BIJZ" =>
    fn(env, txn: &mut Txn, key: Vec<Vec<u8>>, _parts: i32, family: &FamilyHandle, _is_tracked: bool) -> () {
        txn.change_parts(env, Some(family), (Deletion, &key, &[]), Tracked)
    }

    "deleteUntracked__J_3BI" => fn(env, txn: &mut Txn, key[len]: Head) -> () {
        txn.change(env, None, (Deletion, &key, &[]), Untracked)
    }

    "deleteUntracked__J_3BIJ" => fn(env, txn: &mut Txn, key[len]: Head, family: &FamilyHandle) -> () {
        txn.change(env, Some(family), (Deletion, &key, &[]), Untracked)
    }

    "deleteUntracked__J_3_3BI" => fn(env, txn: &mut Txn, key: Vec<Vec<u8>>, _parts: i32) -> () {
        txn.change_parts(env, None, (Deletion, &key, &[]), Untracked)
    }

    "deleteUntracked__J_3_3BIJ" =>
    fn(env, txn: &mut Txn, key: Vec<Vec<u8>>, _parts: i32, family: &FamilyHandle) -> () {
        txn.change_parts(env, Some(family), (Deletion, &key, &[]), Untracked)
    }

    "singleDelete__J_3BI" => fn(env, txn: &mut Txn, key[len]: Head) -> () {
        txn.change(env, None, (SingleDeletion, &key, &[]), Tracked)
    }

    "singleDelete__J_3BIJZ" =>
    fn(env, txn: &mut Txn, key[len]: Head, family: &FamilyHandle, _is_tracked: bool) -> () {
        txn.change(env, Some(family), (SingleDeletion, &key, &[]), Tracked)
    }

    "singleDelete__J_3_3BI" => fn(env, txn: &mut Txn, key: Vec<Vec<u8>>, _parts: i32) -> () {
        txn.change_parts(env, None, (SingleDeletion, &key, &[]), Tracked)
    }

    "singleDelete__J_3_3BIJZ" =>
    fn(env, txn: &mut Txn, key: Vec<Vec<u8>>, _parts: i32, family: &FamilyHandle, _is_tracked: bool) -> () {
        txn.change_parts(env, Some(family), (SingleDeletion, &key, &[]), Tracked)
    }

    "putLogData" => fn(_env, txn: &mut Txn, blob[len]: Head) -> () {
        txn.transaction.transaction.put_log_data(&blob);
        Ok(())
    }

    /// Adds a batch's changes, as tracked ones.
    "rebuildFromWriteBatch" => fn(env, txn: &mut Txn, batch: &Batch) -> () {
        // A copy: the batch may be the transaction's own.
        let batch = batch.written(|batch| Ok(batch.clone()))?;
        let database = txn.transaction.database.clone();
        txn.transaction.transaction.rebuild_from(&database.db, &batch)?;
        txn.notify(env)
    }
}
