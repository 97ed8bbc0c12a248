//! The items of the query benchmark: a catalogue of products, 1 KB each, with the shapes that documents have (texts,
//! numbers, a list of words, an object, a list of objects).
//!
//! Invariant: item `n` is the same in every run and for every system. Its text contains no tab, backslash or line end,
//! so that every system can load one file with a line per item. Every change of this file changes `fingerprint`, and
//! with it the directory in which loaded data is cached.
//!
//! ```text
//! {"id":"item-000000000007","pk":"seller-04711","category":"garden","title":"…","brand":"…","price":512.25,
//!  "quantity":17,"created":"2023-05-04T10:20:30Z","active":true,"weight":1.5,"tags":["altan","bemin","corlo"],
//!  "address":{"city":"Lyon","zip":"12345"},"ratings":[{"score":4,"by":"user-00042"}],"description":"…"}
//! ```

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use crate::item::scramble;

pub const ITEM_BYTES: usize = 1024;
const PARTITION_KEYS: u64 = 10_000;
/// The number of zip codes, which have five digits and start at 10000: in a million items, twenty share one.
const ZIPS: u64 = 50_000;
const TAGS: u64 = 200;

const CATEGORIES: [&str; 50] = [
    "garden", "kitchen", "books", "music", "games", "tools", "toys", "shoes", "bags", "watches", "lamps", "chairs",
    "tables", "beds", "sofas", "rugs", "curtains", "paint", "plants", "seeds", "pets", "baby", "sports", "camping",
    "cycling", "running", "swimming", "fishing", "hiking", "skiing", "phones", "laptops", "tablets", "cameras",
    "drones", "printers", "cables", "audio", "video", "office", "paper", "pens", "art", "craft", "sewing", "coffee",
    "tea", "spices", "snacks", "health",
];
const CITIES: [&str; 20] = [
    "Lyon", "Oslo", "Porto", "Turin", "Graz", "Ghent", "Bergen", "Malmo", "Basel", "Leeds", "Osaka", "Pune", "Quito",
    "Lagos", "Perth", "Austin", "Boston", "Denver", "Seattle", "Toronto",
];
const BRANDS: [&str; 8] = ["Acme", "Borealis", "Cirrus", "Delta", "Evergreen", "Fathom", "Granite", "Horizon"];
const ONSETS: [&str; 10] = ["al", "be", "cor", "dun", "es", "fal", "gri", "hu", "is", "jo"];
const CODAS: [&str; 20] = [
    "ba", "cen", "dor", "fi", "gan", "hil", "jin", "ka", "lo", "min", "nor", "pel", "qua", "rin", "sta", "tan", "um",
    "ver", "wil", "zen",
];
/// Step sizes that visit no word twice: they share no factor with `TAGS`.
const STEPS: [u64; 8] = [1, 3, 7, 9, 11, 13, 17, 19];

/// Text from which descriptions are cut, longer than a block of a store.
static PROSE: LazyLock<String> = LazyLock::new(|| {
    (0..32_768).fold(String::new(), |mut text, n| {
        let chance = scramble(n ^ 0x7E17);
        text.push_str(&word(chance % TAGS));
        text.push_str(if chance >> 32 & 7 == 0 { ", " } else { " " });
        text
    })
});

/// The `n`-th word of the vocabulary.
fn word(n: u64) -> String {
    format!("{}{}", ONSETS[(n / 20) as usize % 10], CODAS[(n % 20) as usize])
}

pub fn partition_key(n: u64) -> String {
    format!("seller-{:05}", scramble(n) % PARTITION_KEYS)
}

/// Appends the item's JSON text, exactly `ITEM_BYTES` long.
pub fn write_body(n: u64, out: &mut String) {
    let start = out.len();
    let random = |part: u64| scramble(n.wrapping_mul(64).wrapping_add(part) ^ 0xDA7A);
    let pick = |part: u64, from: &[&'static str]| from[random(part) as usize % from.len()];
    let cents = random(3) % 100_000;
    let day = random(5);
    // Into a String: cannot fail, here and below.
    let _ = write!(
        out,
        r#"{{"id":"item-{n:012}","pk":"{}","category":"{}","title":"{} {} {}","brand":"{}","price":{}.{:02},"quantity":{},"created":"{}-{:02}-{:02}T{:02}:{:02}:{:02}Z","active":{},"weight":{}.5,"tags":["#,
        partition_key(n),
        pick(0, &CATEGORIES),
        word(random(1) % TAGS),
        word(random(1) >> 32 & 127),
        n % 1000,
        pick(2, &BRANDS),
        cents / 100,
        cents % 100,
        random(4) % 1000,
        2020 + day % 5,
        1 + (day >> 8) % 12,
        1 + (day >> 16) % 28,
        (day >> 24) % 24,
        (day >> 32) % 60,
        (day >> 40) % 60,
        random(6) & 1 == 0,
        random(7) % 40,
    );
    write_tags(random(8), out);
    let _ = write!(
        out,
        r#"],"address":{{"city":"{}","zip":"{}"}},"ratings":["#,
        pick(9, &CITIES),
        10_000 + random(10) % ZIPS
    );
    for rating in 0..random(11) % 6 {
        let bits = random(12 + rating);
        let comma = if rating == 0 { "" } else { "," };
        let _ = write!(out, r#"{comma}{{"score":{},"by":"user-{:05}"}}"#, 1 + bits % 5, (bits >> 8) % 100_000);
    }
    out.push_str(r#"],"description":""#);
    pad(start, random(20), out);
}

/// Three to six different words.
fn write_tags(random: u64, out: &mut String) {
    let (first, step) = (random % TAGS, STEPS[(random >> 16 & 7) as usize]);
    for tag in 0..3 + (random >> 24) % 4 {
        let comma = if tag == 0 { "" } else { "," };
        let _ = write!(out, r#"{comma}"{}""#, word((first + tag * step) % TAGS));
    }
}

/// Fills the item up to its size with text, and closes it.
fn pad(start: usize, random: u64, out: &mut String) {
    let padding = (start + ITEM_BYTES).saturating_sub(out.len() + 2);
    let from = random as usize % (PROSE.len() - ITEM_BYTES);
    out.push_str(&PROSE[from..from + padding]);
    out.push_str("\"}");
}

/// Changes whenever the items do.
pub fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    (include_str!("data.rs"), include_str!("../item.rs")).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn item(n: u64) -> serde_json::Value {
        let mut text = String::new();
        write_body(n, &mut text);
        assert_eq!(text.len(), ITEM_BYTES);
        assert!(!text.contains(['\t', '\\', '\n']), "cannot be one line of a file: {text}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn an_item_is_one_kilobyte_of_json_with_fourteen_properties() {
        for n in (0..2000).chain([999_999, 999_999_999_999]) {
            let item = item(n);
            assert_eq!(item.as_object().unwrap().len(), 14);
            assert_eq!(item["pk"].as_str(), Some(&*partition_key(n)));
            assert!(item["description"].as_str().unwrap().len() > 100, "{item}");
        }
    }

    #[test]
    fn items_have_three_to_six_different_tags() {
        for n in 0..2000 {
            let item = item(n);
            let tags = item["tags"].as_array().unwrap();
            assert!((3..=6).contains(&tags.len()));
            assert_eq!(tags.iter().collect::<HashSet<_>>().len(), tags.len(), "{tags:?}");
        }
    }

    #[test]
    fn values_are_distributed_as_the_questions_expect() {
        let items: Vec<_> = (0..20_000).map(item).collect();
        let share =
            |is: &dyn Fn(&serde_json::Value) -> bool| items.iter().filter(|item| is(item)).count() * 100 / 20_000;
        assert!((45..55).contains(&share(&|item| item["quantity"].as_u64() > Some(500))));
        assert!((1..4).contains(&share(&|item| item["tags"].as_array().unwrap().contains(&"alba".into()))));
        assert_eq!(items.iter().map(|item| item["category"].as_str()).collect::<HashSet<_>>().len(), 50);
    }
}
