//! Texts that were read lately.
//!
//! Applications ask the same few questions over and over, with other parameters. To read a text depends on nothing else, so
//! what came of it is kept for whoever asks it next, in whatever account.

use std::sync::{Arc, LazyLock};

use pleiad_model::Result;
use pleiad_query::check;
use pleiad_query::language::ast::Select;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// A tree takes a few dozen times the room of its text.
const KEPT_TEXT_BYTES_MAX: u64 = 256 << 10;
/// Longer ones are full of values: the next one has others.
const TEXT_BYTES_MAX: usize = 2 << 10;
/// How long a text is, where that is not known.
const TEXT_BYTES: u64 = 128;

static KEPT: LazyLock<Cache<String, Arc<Select>, Length>> = LazyLock::new(|| {
    let texts = (KEPT_TEXT_BYTES_MAX / TEXT_BYTES) as usize;
    Cache::with_weighter(texts, KEPT_TEXT_BYTES_MAX, Length)
});

/// As `check::read`.
pub fn read(text: &str) -> Result<Arc<Select>> {
    if text.len() > TEXT_BYTES_MAX {
        return check::read(text).map(Arc::new);
    }
    if let Some(known) = KEPT.get(text) {
        return Ok(known);
    }
    let select = Arc::new(check::read(text)?);
    KEPT.insert(text.to_owned(), select.clone());
    Ok(select)
}

#[derive(Clone)]
struct Length;

impl Weighter<String, Arc<Select>> for Length {
    fn weight(&self, text: &String, _: &Arc<Select>) -> u64 {
        text.len() as u64 + TEXT_BYTES
    }
}
