//! The properties that hold for any query and any documents. Each function panics with the case that violates one.
//!
//! Fuzzers call them with their bytes, `cargo test` with a number of seeds.

use pleiad_model::env::ManualEnv;
use pleiad_model::json::lazy;
use pleiad_model::policy::Geospatial;
use pleiad_model::{Kind, Object, Result, Value, json};
use pleiad_spatial::Geometry;
use pleiad_spatial::cells::{self, Space};

use super::{Choices, TestQuery, document, holds, query};
use crate::block::{Block, Output};
use crate::check;
use crate::compile::{BindContext, compile};
use crate::document::SlotValue;
use crate::expr::{Context, MemoryBudget};
use crate::index_predicate;
use crate::query_plan::query_plan;
use crate::run::{Finished, Flow, PageSize, PageStart, ResumePoint, RowPipeline};

const ROW_BYTES_MAX: usize = 8 << 20;

/// All features that clients list.
const FEATURES: &str = "Aggregate,NonValueAggregate,MultipleAggregates,CountIf,ListAndSetAggregate,GroupBy,DCount,\
                        Distinct,OrderBy,MultipleOrderBy,NonStreamingOrderBy,HybridSearch,WeightedRankFusion,\
                        OffsetAndLimit,Top,CompositeAggregate";

/// Any text is a query or an error; the queries of its plan, if it has one, parse; a query runs in bounded time
/// and memory, without an internal error.
pub fn any_text_is_a_query_or_an_error(text: &str) {
    let parameters = Default::default();
    let env = ManualEnv::default();
    let bind = BindContext {
        parameters: &parameters,
        geospatial: Geospatial::Geography,
        embeddings: &[],
        full_text: None,
        started_ms: Some(0),
    };
    if let Ok(plan) = query_plan(text, bind, None, FEATURES) {
        check_components(&plan);
        let rewritten = plan.get("queryInfo").and_then(|info| info.get("rewrittenQuery")).and_then(Value::as_str);
        if let Some(rewritten) = rewritten.filter(|text| !text.is_empty()) {
            // SDKs replace this placeholder with their own filter.
            let rewritten = rewritten.replace("{documentdb-formattableorderbyquery-filter}", "true");
            assert!(check::parse_and_check(&rewritten).is_ok(), "the rewritten query does not parse: {rewritten}");
        }
    }
    let Ok(query) = crate::parse(text) else { return };
    let rows: Vec<Value> = (0..3).map(|seed| Value::from(document(&mut Choices::of_seed(seed)))).collect();
    if let Err(error) = query.run_over(&parameters, &env, rows.iter()) {
        assert!(error.kind != Kind::Internal, "{error}");
    }
}

/// Checks the component queries of a hybrid search plan, filled in as SDKs do.
fn check_components(plan: &Value) {
    let Some(info) = plan.get("hybridSearchQueryInfo") else { return };
    let components = info.get("componentQueryInfos").and_then(Value::as_array).unwrap_or_default();
    for text in components.iter().filter_map(|component| component.get("rewrittenQuery")?.as_str()) {
        let mut filled = text.replace("{documentdb-formattableorderbyquery-filter}", "true");
        filled = filled.replace("{documentdb-formattablehybridsearchquery-totaldocumentcount}", "3");
        for at in 0..components.len() {
            let placeholder = |of: &str| format!("{{documentdb-formattablehybridsearchquery-{of}-{at}}}");
            filled = filled.replace(&placeholder("totalwordcount"), "3").replace(&placeholder("hitcountsarray"), "[1]");
        }
        assert!(check::parse_and_check(&filled).is_ok(), "a component query does not parse: {filled}");
    }
}

/// An item for which the filter is true satisfies the index predicate.
pub fn an_index_misses_nothing(choices: &mut Choices<'_>) {
    let geospatial = geospatial_type(choices);
    let documents = choices.list(1, 8, |choices| Value::from(document(choices)));
    let test_query = query(choices, &documents);
    let Some(block) = compiled(&test_query, geospatial) else { return };
    let Some(predicate) = index_predicate::index_predicate(&block) else { return };
    for document in &documents {
        let cx = context(geospatial);
        let mut pipeline = RowPipeline::new(&block, context(geospatial), first_page(), unlimited_size());
        let rows = pipeline
            .add_item(1, SlotValue::Value(document))
            .and_then(|_| pipeline.finish(None))
            .map(|done| done.rows.len());
        let found = !matches!(block.output, Output::Groups(..)) && matches!(rows, Ok(1..));
        assert!(
            !found || holds(&predicate, document, &cx),
            "{test_query}\n  is true of {}\n  but the index predicate is {predicate}",
            json::to_string(document)
        );
    }
}

/// Pages of any size, over items in any number of morsels, without the items that the index predicate excludes, return
/// what a single pass over all items returns.
pub fn pages_equal_a_single_pass(choices: &mut Choices<'_>) {
    let documents = choices.list(0, 12, |choices| Value::from(document(choices)));
    let test_query = query(choices, &documents);
    let size = PageSize { rows: 1 + choices.below(4), bytes: if choices.once_in(3) { 64 } else { 1 << 20 } };
    let morsels = 1 + choices.below(3);
    let Some(block) = compiled(&test_query, Geospatial::Geography) else { return };
    let whole = scan(&block, &documents, Geospatial::Geography).map(|whole| texts(&whole));
    let paged = paged_rows(&block, &documents, size, morsels);
    let documents_text = || documents.iter().map(json::to_string).collect::<Vec<_>>().join("\n  ");
    match (whole, paged) {
        (Ok(whole), Ok(paged)) => {
            assert_eq!(paged, whole, "{test_query}\n by {size:?} of {morsels} morsels over\n  {}", documents_text())
        }
        (Err(_), _) => {}
        (Ok(_), Err(error)) => panic!("{test_query}\n fails in pages: {error}\n  {}", documents_text()),
    }
}

fn geospatial_type(choices: &mut Choices<'_>) -> Geospatial {
    if choices.once_in(4) { Geospatial::Geometry } else { Geospatial::Geography }
}

pub fn compiled(test_query: &TestQuery, geospatial: Geospatial) -> Option<Block> {
    let select = check::parse_and_check(&test_query.text).ok()?;
    let parameters = test_query.parameters();
    compile(
        &select,
        &test_query.text,
        BindContext { parameters: &parameters, geospatial, embeddings: &[], full_text: None, started_ms: Some(0) },
    )
    .ok()
}

fn context(geospatial: Geospatial) -> Context<'static> {
    static ENV: std::sync::LazyLock<ManualEnv> = std::sync::LazyLock::new(ManualEnv::default);
    Context {
        env: &*ENV,
        started_ms: 0,
        geospatial,
        user_functions: None,
        memory: MemoryBudget::new(ROW_BYTES_MAX),
        interrupt: None,
    }
}

fn first_page() -> PageStart {
    PageStart::beginning(0, None)
}

fn unlimited_size() -> PageSize {
    PageSize { rows: usize::MAX, bytes: usize::MAX }
}

/// The rows of a single pass over all documents, in their order.
pub fn scan(block: &Block, documents: &[Value], geospatial: Geospatial) -> Result<Finished> {
    let start = PageStart::beginning(block.offset, block.take);
    let mut pipeline = RowPipeline::new(block, context(geospatial), start, unlimited_size());
    add_documents(&mut pipeline, block, documents.iter().enumerate(), 0)?;
    pipeline.finish(None)
}

/// The rows in a normal form. Which of several equal rows represents a group or a distinct row is unspecified, so equal
/// numbers are written alike; the order of values in a list is unspecified, so lists are sorted.
fn texts(finished: &Finished) -> Vec<String> {
    let text = |row: &[u8]| match json::parse(row) {
        Ok(value) => json::to_string(&normalized(value)),
        Err(_) => String::from_utf8_lossy(row).into_owned(),
    };
    finished.rows.iter().map(text).collect()
}

fn normalized(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64() + 0.0),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(normalized).collect();
            items.sort_by_cached_key(json::to_string);
            Value::Array(items)
        }
        Value::Object(object) => {
            let mut properties: Vec<(String, Value)> =
                object.iter().map(|(name, value)| (name.to_owned(), normalized(value.clone()))).collect();
            properties.sort_by(|(a, _), (b, _)| a.cmp(b));
            let mut sorted = Object::new();
            properties.into_iter().for_each(|(name, value)| sorted.set(name, value));
            sorted.into()
        }
        other => other,
    }
}

fn paged_rows(block: &Block, documents: &[Value], size: PageSize, morsels: usize) -> Result<Vec<String>> {
    let predicate = index_predicate::index_predicate(block);
    let cx = context(Geospatial::Geography);
    let items: Vec<(usize, &Value)> = documents
        .iter()
        .enumerate()
        .filter(|(_, document)| predicate.as_ref().is_none_or(|predicate| holds(predicate, document, &cx)))
        .collect();
    let is_stream = matches!(block.output, Output::Rows(_)) && !block.distinct && block.order.is_empty();
    let morsels = if is_stream || !block.reads_items { 1 } else { morsels };
    let mut start = PageStart::beginning(block.offset, block.take);
    let mut rows = Vec::new();
    for _ in 0..=10_000 {
        let finished = page(block, &items, &start, size, morsels)?;
        assert!(finished.rows.len() <= size.rows);
        rows.extend(texts(&finished));
        match finished.next {
            Some(next) => start = next,
            None => return Ok(rows),
        }
    }
    panic!("the pages do not end");
}

fn page(
    block: &Block,
    items: &[(usize, &Value)],
    start: &PageStart,
    size: PageSize,
    morsels: usize,
) -> Result<Finished> {
    let after = match start.at {
        ResumePoint::Item { docnum, .. } => docnum,
        _ => 0,
    };
    let mut total: Option<RowPipeline<'_>> = None;
    for morsel in 0..morsels {
        let mut pipeline = RowPipeline::new(block, context(Geospatial::Geography), start.clone(), size);
        let own = items.iter().filter(|(at, _)| at % morsels == morsel).map(|(at, document)| (*at, *document));
        if block.reads_items || start.at == ResumePoint::Beginning {
            add_documents(&mut pipeline, block, own, after)?;
        }
        match &mut total {
            Some(total) => total.merge(pipeline)?,
            none => *none = Some(pipeline),
        }
    }
    match total {
        Some(pipeline) => pipeline.finish(None),
        None => Ok(Finished { rows: Default::default(), next: None }),
    }
}

fn add_documents<'v>(
    pipeline: &mut RowPipeline<'_>,
    block: &Block,
    documents: impl Iterator<Item = (usize, &'v Value)>,
    after: u64,
) -> Result<()> {
    if !block.reads_items {
        return pipeline.add_constant_row().map(|_| ());
    }
    for (at, document) in documents {
        let docnum = at as u64 + 1;
        if docnum >= after && pipeline.add_item(docnum, SlotValue::Value(document))? == Flow::Stop {
            break;
        }
    }
    Ok(())
}

/// On valid JSON, lazy access returns the same values as the parser; on other bytes it does not panic.
pub fn lazy_json_agrees_with_the_parser(text: &[u8]) {
    for property in lazy::properties(text).take(64) {
        let _ = (lazy::string(property.name), lazy::scalar(property.value), lazy::json_type(property.value));
    }
    lazy::elements(text).take(64).for_each(|element| drop(lazy::scalar(element)));
    if let Ok(value) = json::parse(text) {
        // Writing the value again removes duplicate names.
        compare_lazy(json::to_string(&value).as_bytes(), &value);
    }
}

fn compare_lazy(text: &[u8], value: &Value) {
    match value {
        Value::Object(object) => {
            assert_eq!(lazy::properties(text).count(), object.len());
            for (name, value) in object.iter() {
                match lazy::property(text, name) {
                    Some(text) => compare_lazy(text, value),
                    None => panic!("no {name:?} in {}", String::from_utf8_lossy(text)),
                }
            }
        }
        Value::Array(items) => {
            assert_eq!(lazy::elements(text).count(), items.len());
            lazy::elements(text).zip(items).for_each(|(text, item)| compare_lazy(text, item));
        }
        scalar => assert_eq!(lazy::scalar(text).map(|read| json::to_string(&read)), Some(json::to_string(scalar))),
    }
}

/// A valid shape near a region has a cell that a search around the region reads.
pub fn spatial_search_finds_near_shapes(choices: &mut Choices<'_>) {
    let (own, region) = (random_geometry(choices), random_geometry(choices));
    let radius = [0.0, 1.0, 1_000.0, 250_000.0, 9_000_000.0][choices.below(5)];
    let kind = Geospatial::Geography;
    let (Ok(shape), Ok(around)) = (Geometry::parse(&own, kind), Geometry::parse(&region, kind)) else { return };
    let distance = shape.distance(&around);
    assert!(distance >= 0.0 && distance.is_finite(), "{distance} between {own:?} and {region:?}");
    assert!(!shape.within(&around) || shape.intersects(&around), "{own:?} within {region:?}");
    if distance > radius && !shape.intersects(&around) {
        return;
    }
    let space = Space::new(kind, None);
    let cells: Vec<Vec<u8>> = cells::cover(&shape, &space).iter().map(|cell| cell.to_bytes()).collect();
    let ranges = cells::search_ranges(&around, radius, &space);
    let is_read = |cell: &Vec<u8>| ranges.iter().any(|range| range.from <= *cell && *cell < range.to);
    let description = || format!("{} {distance} from {}", json::to_string(&own), json::to_string(&region));
    assert!(cells.iter().any(is_read), "a search within {radius} misses {}", description());
}

/// A point, a line or a box; often at a pole, at the antimeridian, or at the position of another one.
fn random_geometry(choices: &mut Choices<'_>) -> Value {
    let point = |choices: &mut Choices<'_>| {
        let x = [0.0, 5.0, 179.9999, -179.9999, 180.0, 90.0][choices.below(6)] + choices.below(16) as f64 / 1024.0;
        let y = [0.0, 5.0, 89.99, -89.99, 45.0, 90.0][choices.below(6)] - choices.below(16) as f64 / 1024.0;
        (x, y)
    };
    let position = |(x, y): (f64, f64)| Value::Array(vec![Value::from(x), Value::from(y)]);
    let shape =
        |kind: &str, coordinates: Value| Object::new().with("type", kind).with("coordinates", coordinates).into();
    let (x, y) = point(choices);
    match choices.below(3) {
        0 => shape("Point", position((x, y))),
        1 => {
            let end = point(choices);
            shape("LineString", Value::Array(vec![position((x, y)), position(end)]))
        }
        _ => {
            let (w, h) = (1.0 + choices.below(64) as f64, 1.0 + choices.below(32) as f64);
            let ring = [(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)].map(position).to_vec();
            shape("Polygon", Value::Array(vec![Value::Array(ring)]))
        }
    }
}
