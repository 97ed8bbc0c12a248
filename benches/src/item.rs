//! The items that loads write and read: 1 KB of JSON with twelve indexed properties, spread over many partition keys.
//!
//! Invariant: item `n` is the same in every run and for every system. Generating it costs next to nothing.

use std::fmt::Write;
use std::sync::LazyLock;

pub const ITEM_BYTES: usize = 1024;
pub const PARTITION_KEYS: u64 = 10_000;

/// Text from which notes are cut: long enough that neighboring items share nothing a compressor could use.
static NOTES: LazyLock<String> = LazyLock::new(|| {
    (0..8192).fold(String::new(), |mut text, n| {
        let _ = write!(text, "{:016x}", scramble(n)); // into a String: cannot fail
        text
    })
});

pub fn id(n: u64) -> String {
    format!("item-{n:012}")
}

pub fn partition_key(n: u64) -> String {
    format!("key-{:06}", scramble(n) % PARTITION_KEYS)
}

/// Appends the item's JSON text, exactly `ITEM_BYTES` long.
pub fn write_body(n: u64, out: &mut String) {
    let random = scramble(n ^ 0x5EED);
    let start = out.len();
    let kind = ["order", "return", "quote"][(random % 3) as usize];
    let status = ["open", "paid", "sent", "done"][(random >> 8 & 3) as usize];
    let country = ["DE", "FR", "IN", "JP", "US"][(random >> 16 & 0xFF) as usize % 5];
    let (count, cents, active) = (random >> 24 & 0xFF, random >> 32 & 0xFFFF, random & 1 == 0);
    let (day, second) = (random >> 40 & 15, random >> 48 & 63);
    let _ = write!(
        out,
        r#"{{"id":"item-{n:012}","pk":"key-{:06}","customer":"customer-{:05}","kind":"{kind}","status":"{status}","country":"{country}","count":{count},"total":{}.5,"active":{active},"createdAt":"2024-03-{:02}T10:20:{:02}Z","rating":{},"note":""#,
        scramble(n) % PARTITION_KEYS,
        random % 50_000,
        cents,
        day + 10,
        second % 60,
        random % 5,
    ); // into a String: cannot fail
    let padding = (start + ITEM_BYTES).saturating_sub(out.len() + 2);
    let from = (random >> 20) as usize % (NOTES.len() - ITEM_BYTES);
    out.push_str(&NOTES[from..from + padding]);
    out.push_str("\"}");
}

/// A well-distributed pseudo-random number for each `n` (the finaliser of splitmix64).
pub fn scramble(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_one_kilobyte_of_json_with_twelve_properties() {
        for n in [0, 1, 7, 999_999_999_999] {
            let mut text = String::new();
            write_body(n, &mut text);
            let item: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!((text.len(), item.as_object().unwrap().len()), (ITEM_BYTES, 12));
            assert_eq!((item["id"].as_str(), item["pk"].as_str()), (Some(&*id(n)), Some(&*partition_key(n))));
        }
    }
}
