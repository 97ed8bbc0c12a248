//! A minimal client: runs the rewritten query on each partition and merges as the plan says.
//!
//! Proves that plans give the results of their queries (S102, S107): the merged result of several partitions equals the
//! result of one partition with all items.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use pleiad_model::env::ManualEnv;
use pleiad_model::{Object, Value, json};
use proptest::prelude::*;

use crate::Parameters;

fn run(text: &str, items: &[Value]) -> Vec<Value> {
    let query = crate::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let rows = query.run_over(&Parameters::default(), &ManualEnv::default(), items.iter());
    let rows = rows.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    rows.iter().map(|row| json::parse(row).unwrap()).collect()
}

fn run_plan(text: &str, partitions: &[Vec<Value>]) -> Vec<Value> {
    let info = super::info(text);
    let rewritten = info.get("rewrittenQuery").and_then(Value::as_str).unwrap();
    let sent = if rewritten.is_empty() { text } else { rewritten };
    let sent = sent.replace("{documentdb-formattableorderbyquery-filter}", "true");
    let rows: Vec<Value> = partitions.iter().flat_map(|items| run(&sent, items)).collect();
    let has = |name: &str| info.get(name).is_some_and(|v| v.as_array().is_some_and(|list| !list.is_empty()));
    let merged = if has("orderBy") {
        sort(rows, &info)
    } else if has("groupByExpressions") || has("groupByAliases") {
        group(rows, &info)
    } else if has("aggregates") {
        let kind = info.get("aggregates").and_then(Value::as_array).and_then(|kinds| kinds[0].as_str()).unwrap();
        fold(kind, rows.iter().map(|row| &row.as_array().unwrap()[0])).into_iter().collect()
    } else {
        rows
    };
    count(distinct(merged, &info), &info)
}

fn sort(mut rows: Vec<Value>, info: &Value) -> Vec<Value> {
    let directions = info.get("orderBy").and_then(Value::as_array).unwrap();
    let key = |row: &Value, at: usize| {
        let items = row.get("orderByItems").and_then(Value::as_array).unwrap();
        items[at].get("item").and_then(Value::as_number).map(|n| n.as_f64())
    };
    rows.sort_by(|a, b| {
        let by = |(at, direction): (usize, &Value)| {
            let order = key(a, at).partial_cmp(&key(b, at)).unwrap();
            if direction.as_str() == Some("Descending") { order.reverse() } else { order }
        };
        directions.iter().enumerate().map(by).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    rows.iter().filter_map(|row| row.get("payload").cloned()).collect()
}

fn group(rows: Vec<Value>, info: &Value) -> Vec<Value> {
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for row in rows {
        let key = row.get("groupByItems").map(json::to_string).unwrap_or_default();
        groups.entry(key).or_default().push(row);
    }
    groups.values().filter_map(|rows| group_row(rows, info)).collect()
}

fn group_row(rows: &[Value], info: &Value) -> Option<Value> {
    let payloads: Vec<&Value> = rows.iter().filter_map(|row| row.get("payload")).collect();
    if info.get("hasSelectValue") == Some(&Value::Bool(true)) {
        return match info.get("aggregates").and_then(Value::as_array).and_then(|kinds| kinds.first()) {
            Some(kind) => fold(kind.as_str()?, payloads.iter().map(|payload| &payload.as_array().unwrap()[0])),
            None => payloads.first().copied().cloned(),
        };
    }
    let mut row = Object::new();
    for (alias, kind) in info.get("groupByAliasToAggregateType")?.as_object()?.iter() {
        let values = || payloads.iter().filter_map(|payload| payload.get(alias));
        let value = match kind.as_str() {
            Some(kind) => fold(kind, values()),
            None => values().next().cloned(),
        };
        if let Some(value) = value {
            row.set(alias, value);
        }
    }
    Some(row.into())
}

/// Prefers `item2` to `item`; an aggregate without values is undefined.
fn fold<'v>(kind: &str, partials: impl Iterator<Item = &'v Value>) -> Option<Value> {
    let partials: Vec<&Value> = partials.filter_map(|partial| partial.get("item2").or(partial.get("item"))).collect();
    let numbers = |member: &str| -> Vec<f64> {
        partials.iter().filter_map(|p| p.get(member)).filter_map(|n| n.as_number()).map(|n| n.as_f64()).collect()
    };
    let plain: Vec<f64> = partials.iter().filter_map(|n| n.as_number()).map(|n| n.as_f64()).collect();
    match kind {
        "Count" | "Sum" | "CountIf" => Some(plain.iter().sum::<f64>().into()),
        "Min" => numbers("min").into_iter().reduce(f64::min).map(Value::from),
        "Max" => numbers("max").into_iter().reduce(f64::max).map(Value::from),
        "Average" => {
            let count: f64 = numbers("count").iter().sum();
            (count > 0.0).then(|| (numbers("sum").iter().sum::<f64>() / count).into())
        }
        other => panic!("{other}"),
    }
}

fn distinct(rows: Vec<Value>, info: &Value) -> Vec<Value> {
    let mut seen = std::collections::HashSet::new();
    let is_on = info.get("distinctType").and_then(Value::as_str) != Some("None");
    rows.into_iter().filter(|row| !is_on || seen.insert(json::to_string(row))).collect()
}

fn count(rows: Vec<Value>, info: &Value) -> Vec<Value> {
    let number = |name: &str| info.get(name).and_then(Value::as_i64).map(|n| n as usize);
    let take = number("top").or(number("limit")).unwrap_or(usize::MAX);
    rows.into_iter().skip(number("offset").unwrap_or(0)).take(take).collect()
}

/// Normalizes the spelling of numbers; sorts the rows unless the query orders them.
fn row_texts(rows: &[Value], ordered: bool) -> Vec<String> {
    let mut shown: Vec<String> = rows.iter().map(|row| json::to_string(row).replace(".0", "")).collect();
    if !ordered {
        shown.sort();
    }
    shown
}

const QUERIES: [&str; 19] = [
    "SELECT VALUE c.n FROM c WHERE c.n > 2",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE SUM(c.n) FROM c WHERE c.n > 2",
    "SELECT VALUE AVG(c.n) FROM c",
    "SELECT VALUE MIN(c.n) FROM c WHERE c.g = 1",
    "SELECT VALUE MAX(c.n) FROM c WHERE c.g = 1",
    "SELECT COUNT(1) AS n, AVG(c.n) AS m, MAX(c.n) AS x FROM c",
    "SELECT c.g, COUNT(1) AS n, AVG(c.n) AS m, MIN(c.n) AS l FROM c GROUP BY c.g",
    "SELECT VALUE c.g FROM c GROUP BY c.g",
    "SELECT c.g, SUM(c.n) AS s FROM c GROUP BY c.g ORDER BY c.g DESC",
    "SELECT VALUE SUM(c.n) FROM c WHERE IS_NUMBER(c.n) GROUP BY c.g",
    "SELECT DISTINCT c.g FROM c",
    "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n DESC",
    "SELECT VALUE c.n FROM c ORDER BY c.n",
    "SELECT c.n, c.g FROM c WHERE c.n >= 0 ORDER BY c.n DESC, c.g",
    "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC",
    "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g OFFSET 1 LIMIT 1",
    "SELECT VALUE r.n FROM (SELECT DISTINCT VALUE c FROM c) r WHERE r.n > 2",
    "SELECT VALUE SUM(r.n) FROM (SELECT DISTINCT * FROM c) r WHERE r.n > 2",
];

fn item() -> impl Strategy<Value = Value> {
    (prop::option::weighted(0.8, 0..6i64), prop::option::weighted(0.8, 0..3i64)).prop_map(|(n, g)| {
        let mut item = Object::new();
        n.into_iter().for_each(|n| item.set("n", n));
        g.into_iter().for_each(|g| item.set("g", g));
        item.into()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn merged_partitions_equal_one_partition(partitions in prop::collection::vec(prop::collection::vec(item(), 0..8), 1..4)) {
        let all = partitions.concat();
        for text in QUERIES {
            // Clients merge groups without an order.
            let ordered = text.contains("ORDER BY") && !text.contains("GROUP BY");
            prop_assert_eq!(row_texts(&run_plan(text, &partitions), ordered), row_texts(&run(text, &all), ordered), "{}", text);
        }
    }
}
