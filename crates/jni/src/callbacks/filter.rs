//! Compaction filters: their factories in Java, and filters of ours.

use std::sync::Arc;

use spillway::internal::extend::{CompactionFilter, CompactionFilterContext, CompactionFilterFactory, FilterDecision};

use super::Callback;
use crate::boundary::argument::Closed;
use crate::boundary::class::{Class, Method};
use crate::boundary::handle;
use crate::boundary::natives;
use crate::boundary::object::Value;
use crate::fault::Fault;

/// A filter. Java's class has no method for it: filters are native.
pub struct Filter(pub Arc<dyn CompactionFilter>);

/// A factory; databases keep it when the handle is closed.
pub struct Factory(pub Arc<dyn CompactionFilterFactory>);

static FACTORY: Class = Class::new(c"org/rocksdb/AbstractCompactionFilterFactory");
static NAME: Method = Method::new(&FACTORY, c"name", c"()Ljava/lang/String;");
static CREATE: Method = Method::new(&FACTORY, c"createCompactionFilter", c"(ZZ)J");

struct JavaFactory {
    name: String,
    object: Callback,
}

impl CompactionFilterFactory for JavaFactory {
    fn name(&self) -> &str {
        &self.name
    }

    /// The filter is Java's no more. Without one, after an exception too, nothing is filtered.
    fn create(&self, context: CompactionFilterContext) -> Option<Arc<dyn CompactionFilter>> {
        let arguments = [Value::Bool(context.is_full), Value::Bool(context.is_manual)];
        let filter = self.object.call(|env, object| CREATE.long(env, object, &arguments))?;
        handle::close::<Filter>(filter).map(|filter| filter.0)
    }
}

/// Drops entries without a value.
struct RemoveEmptyValues;

impl CompactionFilter for RemoveEmptyValues {
    fn name(&self) -> &str {
        "RemoveEmptyValueCompactionFilter"
    }

    fn filter(&self, _level: usize, _key: &[u8], value: &[u8]) -> FilterDecision {
        if value.is_empty() { FilterDecision::Remove } else { FilterDecision::Keep }
    }
}

natives! { "AbstractCompactionFilterFactory";
    "createNewCompactionFilterFactory0" => fn(env) -> Box<Factory> {
        CREATE.find(env)?;
        let this = env.this()?;
        let name = NAME.object(env, this, &[])?.ok_or_else(|| Fault::illegal("a filter factory's name() is null"))?;
        Ok(Box::new(Factory(Arc::new(JavaFactory { name: env.text(name)?, object: Callback::of(env, this)? }))))
    }

    "disposeInternal" => fn(_env, factory: Closed<Factory>) -> () {
        drop(factory.0);
        Ok(())
    }
}

pub mod closing {
    use super::*;

    natives! { "AbstractCompactionFilter";
        "disposeInternal" => fn(_env, filter: Closed<Filter>) -> () {
            drop(filter.0);
            Ok(())
        }
    }
}

pub mod empty_values {
    use super::*;

    natives! { "RemoveEmptyValueCompactionFilter";
        "createNewRemoveEmptyValueCompactionFilter0" => fn(_env) -> Box<Filter> {
            Ok(Box::new(Filter(Arc::new(RemoveEmptyValues))))
        }
    }
}

/// The setters of filters.
pub mod set {
    use capi::options::Options;

    use super::*;

    natives! { "ColumnFamilyOptions";
        "setCompactionFilterHandle" => fn(_env, options: &mut Options, filter: &Filter) -> () {
            options.family.compaction_filter = Some(filter.0.clone());
            Ok(())
        }

        "setCompactionFilterFactoryHandle" => fn(_env, options: &mut Options, factory: &Factory) -> () {
            options.family.compaction_filter_factory = Some(factory.0.clone());
            Ok(())
        }
    }

    pub mod of_options {
        use super::*;

        natives! { "Options";
            "setCompactionFilterHandle" => fn(_env, options: &mut Options, filter: &Filter) -> () {
                options.family.compaction_filter = Some(filter.0.clone());
                Ok(())
            }

            "setCompactionFilterFactoryHandle" => fn(_env, options: &mut Options, factory: &Factory) -> () {
                options.family.compaction_filter_factory = Some(factory.0.clone());
                Ok(())
            }
        }
    }
}
