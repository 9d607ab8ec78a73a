//! Natives that RocksDB's own Java tests declare.

use capi::failure::{Code, Failure};
use spillway::internal::UserOrder;

use super::comparator::Order;
use crate::boundary::natives;
use crate::fault::Fault;

const TEST_MESSAGE: &str = "test message";
const NOT_SUPPORTED: Code = Code { code: 3, subcode: 0 };
const LOCK_TIMEOUT: Code = Code { code: 9, subcode: 2 };

natives! { "RocksDBExceptionTest";
    "raiseException" => fn(_env) -> () {
        Err(Fault::Message(TEST_MESSAGE.to_owned()))
    }

    "raiseExceptionWithStatusCode" => fn(_env) -> () {
        Err(Fault::Told(Some(TEST_MESSAGE), NOT_SUPPORTED))
    }

    "raiseExceptionNoMsgWithStatusCode" => fn(_env) -> () {
        Err(Fault::Told(None, NOT_SUPPORTED))
    }

    "raiseExceptionWithStatusCodeSubCode" => fn(_env) -> () {
        Err(Fault::Told(Some(TEST_MESSAGE), LOCK_TIMEOUT))
    }

    "raiseExceptionNoMsgWithStatusCodeSubCode" => fn(_env) -> () {
        Err(Fault::Told(None, LOCK_TIMEOUT))
    }

    "raiseExceptionWithStatusCodeState" => fn(_env) -> () {
        Err(Fault::Status(Failure::not_implemented(TEST_MESSAGE)))
    }
}

/// A string comparator of native code: the bytewise order.
pub mod comparator {
    use super::*;

    natives! { "NativeComparatorWrapperTest_00024NativeStringComparatorWrapper";
        "newStringComparator" => fn(_env) -> Box<Order> {
            Ok(Order::of(UserOrder::Bytewise))
        }
    }
}
