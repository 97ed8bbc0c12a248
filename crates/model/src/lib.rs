//! model: the data types that all other crates share. No I/O, no protocol numbers; time and randomness only in `env`.
//!
//! Read in this order.

pub mod env; // time and randomness
pub mod consistency; // the five consistency levels
pub mod etag; // version tags of resources
pub mod number; // JSON numbers, exact as integers, compared as doubles
pub mod value; // one JSON value
pub mod resource_id; // the `_rid` family
pub mod error; // errors, classified by the caller's reaction
pub mod memcomparable; // encoding whose byte order is the order of the values
pub mod json; // JSON parser and writer
pub mod path; // property paths
pub mod percent; // percent-encoding of path segments
pub mod item; // validation of ids, names and time to live
pub mod partition_key; // partition keys and their position in the hash space
pub mod partition_map; // EPK ranges and their owners
pub mod patch; // partial update of an item
pub mod policy; // a container's definition and its policies

pub use consistency::Consistency;
pub use error::{Error, ErrorDetail, ExceededLimit, Fact, Kind, Result, Throttle};
pub use number::Number;
pub use value::{Object, Value};
