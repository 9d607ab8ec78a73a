//! `RocksIterator`.

use capi::family::FamilyHandle;
use capi::iterator::Iterator;
use capi::read_options::ReadSettings;
use spillway::internal::indexed::Move;

use crate::boundary::argument::{Closed, Head};
use crate::boundary::natives;
use crate::boundary::reply::ByteArray;
use crate::database::Db;
use crate::database::children::Children;

/// An iterator, and the database that it ends with.
pub struct Walk {
    pub iterator: Iterator,
    parent: Children,
    handle: i64,
}

natives! { "RocksIterator";
    "isValid0" | "isValid0Jni" => fn(_env, walk: &Walk) -> bool {
        Ok(walk.iterator.valid())
    }

    "seekToFirst0" | "seekToFirst0Jni" => fn(_env, walk: &mut Walk) -> () {
        walk.iterator.go(Move::First);
        Ok(())
    }

    "next0" | "next0Jni" => fn(_env, walk: &mut Walk) -> () {
        walk.iterator.go(Move::Next);
        Ok(())
    }

    "seek0" | "seek0Jni" => fn(_env, walk: &mut Walk, key[len]: Head) -> () {
        walk.iterator.go(Move::To(&key));
        Ok(())
    }

    "key0" => fn(env, walk: &Walk) -> ByteArray {
        ByteArray::of(env, walk.iterator.key())
    }

    "value0" => fn(env, walk: &Walk) -> ByteArray {
        ByteArray::of(env, walk.iterator.value())
    }
}
