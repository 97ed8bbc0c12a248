//! A sound shard has no problems; every single row that is taken away, added or changed makes one.

