//! Known functions that are not supported.
//!
//! Guarantees: a call is rejected with the function's name; it is not reported as an unknown function, and it never
//! returns a wrong result.

use pleiad_model::Error;

use super::Function;

macro_rules! unsupported {
    ($($name:literal),+ $(,)?) => {
        &[$(Function::at_least($name, 0, |_, _| Err(Error::unsupported(concat!("The query function ", $name))))),+]
    };
}

#[rustfmt::skip]
pub const FUNCTIONS: &[Function] = unsupported![
    // Names in queries that client libraries generate, without documentation of their meaning.
    "HASH", "ANY", "_COMPARE_OBJECTS", "_COMPARE_BSON_BINARYDATA", "_PROXY_PROJECTION",
    "_M_EVAL_EQ", "_M_EVAL_GT", "_M_EVAL_GTE", "_M_EVAL_IN", "_M_EVAL_LT", "_M_EVAL_LTE", "_M_EVAL_NEQ", "_M_EVAL_NIN",
    // Values of the Cassandra API's types.
    "C_BINARY", "C_FLOAT32", "C_FLOAT64", "C_GUID", "C_INT8", "C_INT16", "C_INT32", "C_INT64", "C_UINT32", "C_LIST",
    "C_LISTCONTAINS", "C_MAP", "C_MAPCONTAINS", "C_MAPCONTAINSKEY", "C_MAPCONTAINSVALUE", "C_SET", "C_SETCONTAINS",
    "C_TUPLE", "C_UDT",
];
