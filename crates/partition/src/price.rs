//! Request charges in request units: pure functions of the work done.
//!
//! The figures are the vendor's published ones; `docs/ru.md` explains them. Sizes are those of the item's JSON text
//! without system properties, so that a 1,024-byte item costs exactly the published charge.

/// (KB, point read, size part of a create). Between rows the charge is interpolated linearly.
const TABLE: [(f64, f64, f64); 12] = [
    (1.0, 1.00, 4.95),
    (2.0, 1.04, 6.29),
    (4.0, 1.14, 6.67),
    (8.0, 1.33, 7.04),
    (16.0, 1.67, 9.52),
    (32.0, 2.19, 11.23),
    (64.0, 4.76, 22.67),
    (128.0, 9.95, 48.19),
    (256.0, 20.28, 98.29),
    (512.0, 40.95, 184.57),
    (1024.0, 145.90, 625.00),
    (2048.0, 291.80, 1250.00),
];

/// One index term, a (path, value) pair, added or removed.
pub const TERM_RU: f64 = 0.2;
/// A read that finds nothing, or only the version that the client already has.
pub const MISS_RU: f64 = 1.0;
/// A request about databases, containers, offers or ranges.
pub const METADATA_RU: f64 = 1.0;
/// A change to a database, container or offer.
pub const METADATA_WRITE_RU: f64 = 5.0;

/// A point read of `bytes` of JSON.
pub fn read(bytes: usize) -> f64 {
    interpolate(bytes, |row| row.1)
}

/// A create of `bytes` of JSON with `terms` index entries.
pub fn create(bytes: usize, terms: usize) -> f64 {
    size_part(bytes) + TERM_RU * terms as f64
}

/// A replace: both versions are charged, and every term that changed.
pub fn replace(old_bytes: usize, new_bytes: usize, removed_terms: usize, added_terms: usize) -> f64 {
    size_part(old_bytes) + size_part(new_bytes) + TERM_RU * (removed_terms + added_terms) as f64
}

/// Deleting all items of a partition key. The purge in the background is not charged.
pub const DELETE_BY_KEY_RU: f64 = 5.0;

/// What each patch operation adds to the charge of a replace.
pub const PATCH_OPERATION_RU: f64 = 0.4;

pub fn delete(bytes: usize, terms: usize) -> f64 {
    size_part(bytes) + TERM_RU * terms as f64
}

/// A feed page: about the sum of point reads, and at least one read without a result.
pub fn page(bytes_of_items: impl Iterator<Item = usize>) -> f64 {
    bytes_of_items.map(read).sum::<f64>().max(MISS_RU)
}

/// The base charge of a query in each partition it reads, even without results.
pub const QUERY_RU: f64 = 2.3;
/// An index row that a query reads, a kilobyte of items it loads, and a kilobyte of rows it returns.
const QUERY_INDEX_ROW_RU: f64 = 0.001;
const QUERY_LOADED_KB_RU: f64 = 0.05;
const QUERY_OUTPUT_KB_RU: f64 = 0.65;
/// A call of a stored procedure or trigger, and each millisecond beyond the free ones.
const SCRIPT_RU: f64 = 1.0;
const SCRIPT_MS_RU: f64 = 0.01;
const SCRIPT_MS_FREE: u64 = 200;
/// A call of a user-defined function.
const FUNCTION_CALL_RU: f64 = 0.005;

/// The reads of one query page in one partition.
pub fn query(items: u64, item_bytes: u64, index_rows: u64) -> f64 {
    // Four small items cost as much to load as one kilobyte of larger ones.
    let loaded = kb(item_bytes as f64).max(items as f64 / 4.0);
    QUERY_RU + QUERY_INDEX_ROW_RU * index_rows as f64 + QUERY_LOADED_KB_RU * loaded
}

/// The result rows of one query page.
pub fn rows(bytes: usize) -> f64 {
    QUERY_OUTPUT_KB_RU * kb(bytes as f64)
}

/// What user-defined functions add to a query.
pub fn function_calls(calls: u64) -> f64 {
    FUNCTION_CALL_RU * calls as f64
}

/// A script by its run time; its operations are charged separately.
pub fn script(elapsed_ms: u64) -> f64 {
    SCRIPT_RU + SCRIPT_MS_RU * elapsed_ms.saturating_sub(SCRIPT_MS_FREE) as f64
}

fn kb(bytes: f64) -> f64 {
    bytes / 1024.0
}

/// A write that was rejected after the lookup (409, 412): the lookup is charged.
pub fn rejected_write(bytes: usize) -> f64 {
    read(bytes)
}

fn size_part(bytes: usize) -> f64 {
    interpolate(bytes, |row| row.2)
}

fn interpolate(bytes: usize, column: impl Fn(&(f64, f64, f64)) -> f64) -> f64 {
    let kb = (bytes as f64 / 1024.0).max(TABLE[0].0);
    let pair = TABLE.windows(2).find(|pair| kb <= pair[1].0).unwrap_or(&TABLE[TABLE.len() - 2..]);
    let (low, high) = (&pair[0], &pair[1]);
    let share = (kb - low.0) / (high.0 - low.0);
    column(low) + share * (column(high) - column(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KB: usize = 1024;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.005
    }

    #[test]
    fn s88_a_one_kilobyte_read_costs_one() {
        assert_eq!(read(KB), 1.0);
        assert_eq!(read(1), 1.0);
    }

    #[test]
    fn s91_larger_items_cost_more() {
        let charges: Vec<f64> = [1, 4, 16, 64, 256].iter().map(|kb| read(kb * KB)).collect();
        assert!(charges.windows(2).all(|pair| pair[0] < pair[1]), "{charges:?}");
    }

    #[test]
    fn charges_at_the_published_sizes_are_exact() {
        for (kb, read_ru, create_ru) in TABLE {
            let bytes = kb as usize * KB;
            assert!(near(read(bytes), read_ru) && near(create(bytes, 0), create_ru), "{kb} KB");
        }
    }

    #[test]
    fn s87_writes_cost_more_than_reads_and_terms_count() {
        assert!(create(KB, 0) > read(KB));
        assert!(near(create(KB, 10), 6.95));
        assert!(near(replace(KB, KB, 2, 2), 10.7));
        assert!(near(delete(KB, 10), 6.95));
    }

    proptest! {
        #[test]
        fn price_never_falls_with_size(bytes in 0usize..4 << 20, more in 0usize..1 << 20) {
            prop_assert!(read(bytes + more) >= read(bytes));
            prop_assert!(create(bytes + more, 3) >= create(bytes, 3));
        }
    }
}
