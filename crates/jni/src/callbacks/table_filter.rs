//! Table filters of Java: `AbstractTableFilter`.

use std::sync::Arc;

use capi::read_options::ReadSettings;
use spillway::internal::TableFilter;
use spillway::internal::dump::Properties;

use super::Callback;
use crate::boundary::class::{Class, Method};
use crate::boundary::natives;
use crate::boundary::object::Value;
use crate::collections::find_maps;
use crate::files::properties::{find_properties, properties};

/// Says which tables an iterator reads. Read options keep it when the handle is closed.
pub struct Chooser(TableFilter);

static FILTER: Class = Class::new(c"org/rocksdb/AbstractTableFilter");
static TAKES: Method = Method::new(&FILTER, c"filter", c"(Lorg/rocksdb/TableProperties;)Z");

natives! { "AbstractTableFilter";
    /// After an exception a table is read.
    "createNewTableFilter" => fn(env) -> Box<Chooser> {
        TAKES.find(env)?;
        find_properties(env)?;
        find_maps(env)?;
        let object = Callback::of_this(env)?;
        let takes = move |table: &Properties| {
            let asked = object.call(|env, object| {
                env.framed(|env| TAKES.boolean(env, object, &[Value::Object(properties(env, table)?)]))
            });
            asked.unwrap_or(true)
        };
        Ok(Box::new(Chooser(Arc::new(takes))))
    }
}

pub mod set {
    use super::*;

    natives! { "ReadOptions";
        "setTableFilter" => fn(_env, options: &mut ReadSettings, filter: Option<&Chooser>) -> () {
            options.options.table_filter = filter.map(|filter| filter.0.clone());
            Ok(())
        }
    }
}
