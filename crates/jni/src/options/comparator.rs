//! `ComparatorOptions`.

use crate::boundary::natives;
use crate::callbacks::comparator::ComparatorOptions;

natives! { "ComparatorOptions";
    "reusedSynchronisationType" => fn(_env, options: &ComparatorOptions) -> i8 {
        Ok(options.reused_synchronisation_type)
    }

    "setReusedSynchronisationType" => fn(_env, options: &mut ComparatorOptions, kind: i8) -> () {
        options.reused_synchronisation_type = kind;
        Ok(())
    }

    "useDirectBuffer" => fn(_env, options: &ComparatorOptions) -> bool {
        Ok(options.use_direct_buffer)
    }

    "setUseDirectBuffer" => fn(_env, options: &mut ComparatorOptions, is_direct: bool) -> () {
        options.use_direct_buffer = is_direct;
        Ok(())
    }

    "maxReusedBufferSize" => fn(_env, options: &ComparatorOptions) -> i32 {
        Ok(options.max_reused_buffer_size)
    }

    "setMaxReusedBufferSize" => fn(_env, options: &mut ComparatorOptions, bytes: i32) -> () {
        options.max_reused_buffer_size = bytes;
        Ok(())
    }
}
