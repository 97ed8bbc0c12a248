//! What the parts below could do if nothing stood on them.

pub mod http; // the listener and the signature, and a constant answer
pub mod store; // the same bytes, committed by nobody's request
