//! model: the words every other crate speaks. No I/O, no clock, no protocol numbers.
//!
//! Read in this order.

pub mod env; // where time and chance come from
pub mod error; // what a caller can do about a failure
pub mod consistency; // how much a read may lag behind
pub mod etag; // one version of one resource
pub mod number; // JSON numbers, exact as integers, compared as doubles
pub mod value; // one JSON value
pub mod memcomparable; // bytes that compare as values do
pub mod json; // text to value and back
pub mod path; // which property
pub mod percent; // names as paths write them
pub mod partition_key; // which logical partition, and where it hashes to
pub mod partition_map; // who owns which range of the hash space
pub mod resource_id; // the `_rid` family
pub mod item; // what an item may be called and contain
pub mod patch; // a change of an item, told by its parts
pub mod policy; // a container's definition and its policies

pub use consistency::Consistency;
pub use error::{Error, ExceededLimit, Kind, Result, Throttle};
pub use number::Number;
pub use value::{Object, Value};
