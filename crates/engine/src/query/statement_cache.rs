//! Statement cache: parsed and compiled queries, by their text.
//!
//! Applications send the same few queries again and again, most of them with different parameters. Parsing depends on
//! nothing but the text, so its result is cached for all clients and accounts. The compiled block is cached as well, if
//! the text is self-contained: nothing in it depends on a request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use pleiad_model::Result;
use pleiad_sql::block::Block;
use pleiad_sql::compile::{BindContext, compile};
use pleiad_sql::parse::ast::{Expr, ExprKind, Select};
use pleiad_sql::{Parameters, check};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// A parsed text takes a few dozen times the memory of the text.
const CACHED_TEXT_BYTES_MAX: u64 = 256 << 10;
/// Longer texts are not cached: they are full of values, and the next one has different values.
const TEXT_BYTES_MAX: usize = 2 << 10;
/// The assumed length of a text, to size the cache; also the fixed weight of an entry.
const TEXT_BYTES_ASSUMED: u64 = 128;

/// How much of the names of unbound parameters is logged.
const LOGGED_CHARS_MAX: usize = 200;

static CACHE: LazyLock<Cache<String, Arc<Statement>, TextWeighter>> = LazyLock::new(|| {
    let texts = (CACHED_TEXT_BYTES_MAX / TEXT_BYTES_ASSUMED) as usize;
    Cache::with_weighter(texts, CACHED_TEXT_BYTES_MAX, TextWeighter)
});

pub struct Statement {
    pub select: Select,
    /// The names of the parameters.
    parameters: Vec<String>,
    /// Unbound parameters were logged.
    is_logged: AtomicBool,
    /// Set at the first use, if it is the same for all requests.
    block: OnceLock<Arc<Block>>,
}

/// Like `check::parse_and_check`, with the cache in front.
pub fn get_or_parse(text: &str) -> Result<Arc<Statement>> {
    let read = || check::parse_and_check(text).map(|select| Arc::new(Statement::new(select)));
    if text.len() > TEXT_BYTES_MAX {
        return read();
    }
    if let Some(known) = CACHE.get(text) {
        return Ok(known);
    }
    let statement = read()?;
    CACHE.insert(text.to_owned(), statement.clone());
    Ok(statement)
}

impl Statement {
    fn new(select: Select) -> Self {
        let parameters = check::parameter_names(&select).into_iter().map(str::to_owned).collect();
        Statement { select, parameters, is_logged: AtomicBool::new(false), block: OnceLock::new() }
    }

    /// The parameters that a request does not bind; they are undefined.
    pub fn unbound(&self, bound: &Parameters) -> Vec<&str> {
        self.parameters.iter().map(String::as_str).filter(|name| !bound.contains(name)).collect()
    }

    /// Logs unbound parameters, once while the statement is cached: an application sends its queries again and again.
    pub fn log_unbound(&self, bound: &Parameters, container: &str) {
        let unbound = self.unbound(bound);
        if !unbound.is_empty() && !self.is_logged.swap(true, Ordering::Relaxed) {
            let parameters: String = unbound.join(", ").chars().take(LOGGED_CHARS_MAX).collect();
            tracing::info!(container, parameters, "a query has parameters without a value; they are undefined");
        }
    }

    /// Like `compile`, with the cache in front.
    pub fn block(&self, text: &str, bind: BindContext<'_>) -> Result<Arc<Block>> {
        if let Some(known) = self.block.get() {
            return Ok(known.clone());
        }
        let block = Arc::new(compile(&self.select, text, bind)?);
        if is_self_contained(&self.select) {
            let _ = self.block.set(block.clone()); // a concurrent request's block is equal
        }
        Ok(block)
    }
}

/// Parameters have different values next time; functions depend on the container, or on the time.
fn is_self_contained(select: &Select) -> bool {
    select.each_scalar(&mut check_self_contained).is_ok()
}

fn check_self_contained(expr: &Expr) -> Result<(), ()> {
    match expr.kind {
        ExprKind::Parameter(_) | ExprKind::Call { .. } | ExprKind::UserCall { .. } | ExprKind::Subquery { .. } => {
            Err(())
        }
        _ => expr.each_child(&mut check_self_contained),
    }
}

#[derive(Clone)]
struct TextWeighter;

impl Weighter<String, Arc<Statement>> for TextWeighter {
    fn weight(&self, text: &String, _: &Arc<Statement>) -> u64 {
        text.len() as u64 + TEXT_BYTES_ASSUMED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed_texts_are_cached_and_errors_are_not() {
        let text = "SELECT VALUE c.kept FROM c";
        assert!(Arc::ptr_eq(&get_or_parse(text).unwrap(), &get_or_parse(text).unwrap()));
        assert_eq!(get_or_parse("SELECT").err(), check::parse_and_check("SELECT").err());
        let long = format!("SELECT VALUE '{}'", "x".repeat(TEXT_BYTES_MAX));
        assert!(!Arc::ptr_eq(&get_or_parse(&long).unwrap(), &get_or_parse(&long).unwrap()));
    }

    #[test]
    fn unbound_parameters_are_those_that_the_request_does_not_name() {
        let statement = get_or_parse("SELECT * FROM c WHERE c.a = @a AND c.b IN (@b, @c, @a)").unwrap();
        let given = pleiad_model::json::parse(br#"[{"name": "@b"}, {"name": "@d", "value": 1}]"#).unwrap();
        assert_eq!(statement.unbound(&Parameters::from_value(Some(&given)).unwrap()), ["@a", "@c"]);
        statement.log_unbound(&Parameters::default(), "c");
        assert!(statement.is_logged.load(Ordering::Relaxed));
    }

    #[test]
    fn blocks_are_cached_for_self_contained_texts_only() {
        let self_contained = |text: &str| is_self_contained(&get_or_parse(text).unwrap().select);
        assert!(self_contained(
            "SELECT TOP 3 c.a, [c.b, {\"d\": 1 + 2}] AS e FROM c JOIN x IN c.l WHERE x.y = 'z' ORDER BY c.a"
        ));
        for open in [
            "SELECT TOP @n c.a FROM c",
            "SELECT c.a FROM c OFFSET @n LIMIT 1",
            "SELECT * FROM c WHERE c.a = 1 AND c.b IN (1, @b)",
            "SELECT * FROM c WHERE c[@name] = 1",
            "SELECT * FROM c ORDER BY c[@name]",
            "SELECT VALUE {\"at\": GetCurrentTimestampStatic()} FROM c",
            "SELECT VALUE COUNT(1) FROM c",
            "SELECT VALUE udf.f(c) FROM c",
            "SELECT * FROM c WHERE EXISTS(SELECT VALUE 1 FROM x IN c.l WHERE x = @x)",
        ] {
            assert!(!self_contained(open), "{open}");
        }
    }
}
