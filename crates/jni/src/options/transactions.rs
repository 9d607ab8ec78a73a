//! Options of transactions and their databases.

use capi::transactions::locking::{DB_ROWS, DbSettings, ROWS, TransactionSettings};
use capi::transactions::{OptimisticSettings, database};

use crate::boundary::settings::{Signed, settings};

pub mod of_database {
    use super::*;

    settings! { ["TransactionDBOptions"], DbSettings, [DB_ROWS];
        Signed, set "setMaxNumLocks", get "getMaxNumLocks" => "max_num_locks";
        i64, set "setNumStripes", get "getNumStripes" => "num_stripes";
        Signed, set "setTransactionLockTimeout", get "getTransactionLockTimeout" => "transaction_lock_timeout";
        Signed, set "setDefaultLockTimeout", get "getDefaultLockTimeout" => "default_lock_timeout";
        i8, set "setWritePolicy", get "getWritePolicy" => "write_policy";
    }
}

pub mod pessimistic {
    use super::*;

    settings! { ["TransactionOptions"], TransactionSettings, [ROWS];
        bool, set "setSetSnapshot", get "isSetSnapshot" => "set_snapshot";
        bool, set "setDeadlockDetect", get "isDeadlockDetect" => "deadlock_detect";
        Signed, set "setLockTimeout", get "getLockTimeout" => "lock_timeout";
        Signed, set "setExpiration", get "getExpiration" => "expiration";
        Signed, set "setDeadlockDetectDepth", get "getDeadlockDetectDepth" => "deadlock_detect_depth";
        i64, set "setMaxWriteBatchSize", get "getMaxWriteBatchSize" => "max_write_batch_size";
    }
}

pub mod optimistic {
    use super::*;

    settings! { ["OptimisticTransactionOptions"], OptimisticSettings, [database::ROWS];
        bool, set "setSetSnapshot", get "isSetSnapshot" => "set_snapshot";
    }
}

pub mod order {
    use super::*;
    use crate::boundary::natives;
    use crate::callbacks::comparator::Order;

    natives! { "OptimisticTransactionOptions";
        /// Transactions order their keys as their families do.
        "setComparator" => fn(_env, _options: &mut OptimisticSettings, _order: &Order) -> () {
            Ok(())
        }
    }
}
