//! `RocksIterator`.

use capi::family::FamilyHandle;
use capi::iterator::Iterator;
use capi::read_options::ReadSettings;
use capi::snapshot::SnapshotHandle;
use spillway::internal::indexed::Move;

use crate::boundary::argument::{Bytes, Direct, DirectRoom, Handles, Head, Room};
use crate::boundary::natives;
use crate::boundary::reply::ByteArray;
use crate::database::Db;
use crate::database::children::{Child, Children};

/// An iterator. It ends with its database: Java does not close it after that.
pub struct Walk {
    pub iterator: Box<Iterator>,
    parent: Children,
}

impl Child for Walk {
    fn parent(&self) -> &Children {
        &self.parent
    }
}

impl Walk {
    /// The handle of an iterator.
    pub fn open(database: &Db, iterator: Box<Iterator>) -> i64 {
        Walk::beside(database.children(), iterator)
    }

    /// The handle of an iterator among others of its database.
    pub fn beside(siblings: &Children, iterator: Box<Iterator>) -> i64 {
        siblings.adopt(Box::new(Walk { iterator, parent: siblings.clone() }))
    }

    /// The handle of an iterator over this one, whose handle is closed.
    pub fn replace(self, make: impl FnOnce(Box<Iterator>) -> Box<Iterator>) -> i64 {
        Walk::beside(&self.parent, make(self.iterator))
    }
}

impl Db {
    /// An iterator over a family, or over the default one.
    fn walk(&self, family: Option<&FamilyHandle>, options: Option<&ReadSettings>) -> i64 {
        let family = self.family(family);
        match options {
            Some(options) => Walk::open(self, Iterator::new(self, family, options)),
            None => Walk::open(self, Iterator::new(self, family, &ReadSettings::default())),
        }
    }
}

/// Natives of `RocksDB` that make iterators.
pub mod made {
    use super::*;

    natives! { "RocksDB";
        "iterator__JJJ" | "iteratorCF__JJJ" =>
        fn(_env, database: &Db, family: Option<&FamilyHandle>, options: Option<&ReadSettings>) -> i64 {
            Ok(database.walk(family, options))
        }

        "iterator__J" => fn(_env, database: &Db) -> i64 {
            Ok(database.walk(None, None))
        }

        "iterator__JJ" => fn(_env, database: &Db, options: Option<&ReadSettings>) -> i64 {
            Ok(database.walk(None, options))
        }

        "iteratorCF__JJ" => fn(_env, database: &Db, family: Option<&FamilyHandle>) -> i64 {
            Ok(database.walk(family, None))
        }

        "iterators" => fn(_env, database: &Db, families: Handles, options: Option<&ReadSettings>) -> Vec<i64> {
            let families = families.get::<FamilyHandle>()?;
            Ok(families.into_iter().map(|family| database.walk(Some(family), options)).collect())
        }
    }
}

natives! { "RocksIterator";
    "disposeInternal" | "disposeInternalJni" => fn(_env, handle: i64) -> () {
        Walk::close(handle);
        Ok(())
    }

    "isValid0" | "isValid0Jni" => fn(_env, walk: &Walk) -> bool {
        Ok(walk.iterator.valid())
    }

    "seekToFirst0" | "seekToFirst0Jni" => fn(_env, walk: &mut Walk) -> () {
        walk.iterator.go(Move::First);
        Ok(())
    }

    "seekToLast0" | "seekToLast0Jni" => fn(_env, walk: &mut Walk) -> () {
        walk.iterator.go(Move::Last);
        Ok(())
    }

    "next0" | "next0Jni" => fn(_env, walk: &mut Walk) -> () {
        walk.iterator.go(Move::Next);
        Ok(())
    }

    "prev0" | "prev0Jni" => fn(_env, walk: &mut Walk) -> () {
        walk.iterator.go(Move::Prev);
        Ok(())
    }

    "seek0" | "seek0Jni" => fn(_env, walk: &mut Walk, key[len]: Head) -> () {
        walk.iterator.go(Move::To(&key));
        Ok(())
    }

    "seekByteArray0" | "seekByteArray0Jni" => fn(_env, walk: &mut Walk, key[offset, len]: Bytes) -> () {
        walk.iterator.go(Move::To(&key));
        Ok(())
    }

    "seekDirect0" | "seekDirect0Jni" => fn(_env, walk: &mut Walk, key[offset, len]: Direct<'_>) -> () {
        walk.iterator.go(Move::To(&key));
        Ok(())
    }

    "seekForPrev0" | "seekForPrev0Jni" => fn(_env, walk: &mut Walk, key[len]: Head) -> () {
        walk.iterator.go(Move::ToOrBefore(&key));
        Ok(())
    }

    "seekForPrevByteArray0" | "seekForPrevByteArray0Jni" => fn(_env, walk: &mut Walk, key[offset, len]: Bytes) -> () {
        walk.iterator.go(Move::ToOrBefore(&key));
        Ok(())
    }

    "seekForPrevDirect0" | "seekForPrevDirect0Jni" => fn(_env, walk: &mut Walk, key[offset, len]: Direct<'_>) -> () {
        walk.iterator.go(Move::ToOrBefore(&key));
        Ok(())
    }

    "status0" | "status0Jni" => fn(_env, walk: &Walk) -> () {
        Ok(walk.iterator.status()?)
    }

    "refresh0" | "refresh0Jni" => fn(_env, walk: &mut Walk) -> () {
        walk.iterator.refresh();
        Ok(walk.iterator.status()?)
    }

    "refresh1" => fn(_env, walk: &mut Walk, snapshot: &SnapshotHandle) -> () {
        walk.iterator.refresh_at(Some(snapshot.snapshot()));
        Ok(walk.iterator.status()?)
    }

    "key0" => fn(env, walk: &Walk) -> ByteArray {
        ByteArray::of(env, walk.iterator.key())
    }

    "value0" => fn(env, walk: &Walk) -> ByteArray {
        ByteArray::of(env, walk.iterator.value())
    }

    "keyByteArray0" => fn(env, walk: &Walk, room[at, size]: Room<'_>) -> i32 {
        room.fill(env, walk.iterator.key())
    }

    "valueByteArray0" => fn(env, walk: &Walk, room[at, size]: Room<'_>) -> i32 {
        room.fill(env, walk.iterator.value())
    }

    "keyDirect0" => fn(_env, walk: &Walk, room[at, size]: DirectRoom) -> i32 {
        room.fill(walk.iterator.key())
    }

    "valueDirect0" => fn(_env, walk: &Walk, room[at, size]: DirectRoom) -> i32 {
        room.fill(walk.iterator.value())
    }
}
