use super::*;

crate::exam!(exam => |_| Memory::new());
