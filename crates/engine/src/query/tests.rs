//! Every plan gives what a scan of all items gives (S100 to S110): queries by chance over items by chance, against the
//! same query over the same items in memory.

mod nearest; // the nearest to a vector
mod order; // rows in the order of keys that some items lack
mod plan; // the exam, by seeds
