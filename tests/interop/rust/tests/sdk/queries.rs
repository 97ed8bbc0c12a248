//! Queries with every clause, over five partitions and over one key (S101, S102, S104, S107 to S110).
//!
//! This SDK has no aggregates and no GROUP BY across partitions; within one key the server does all the work.

use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::Query;

use crate::readings::*;
use crate::support::*;

both!(
    the_readings_are_in_five_partitions,
    s101_s102_s104_filters,
    s102_s104_parameters,
    s110_projections_and_query_text_of_linq_providers,
    joins_and_subqueries,
    s108_order_by_is_global,
    order_by_values_of_every_type,
    s107_the_same_order_for_every_page_size,
    s109_top_offset_and_limit_are_global,
    rows_are_ordered_by_vector_distance,
    distinct,
    aggregates_and_groups_over_one_key,
    aggregates_and_groups_across_partitions_are_not_supported_by_this_sdk,
    invalid_queries_are_400,
);

/// The two scopes of every query, with the items in them.
fn scopes() -> [(FeedScope, Vec<Value>); 2] {
    [(FeedScope::full_container(), readings()), (FeedScope::partition(ONE_KEY), of_one_key())]
}

fn number(item: &Value, name: &str) -> f64 {
    item[name].as_f64().expect("a number")
}

async fn the_readings_are_in_five_partitions(world: World) {
    let container = world.readings().await;
    let ranges = container.read_feed_ranges(None).await.unwrap();
    assert_eq!(ranges.len(), RANGES);
    let mut rows = Vec::new();
    for range in ranges {
        let part = ask_with(&container, "SELECT * FROM c", FeedScope::range(range), pages_of(7)).await.unwrap();
        assert!(!part.is_empty());
        rows.extend(part.into_iter().map(plain));
    }
    assert_eq!(bag(rows), bag(readings()));
}

async fn s101_s102_s104_filters(world: World) {
    type Predicate = fn(&Value) -> bool;
    let filters: [(&str, Predicate); 14] = [
        ("c.n = 17", |c| c["n"] == 17),
        ("c.metric > 20", |c| number(c, "metric") > 20.0),
        ("c.metric >= 5 AND c.metric < 10", |c| (5.0..10.0).contains(&number(c, "metric"))),
        ("c.metric BETWEEN 5 AND 10", |c| (5.0..=10.0).contains(&number(c, "metric"))),
        ("c.kind != 'pressure' AND NOT c.on", |c| c["kind"] != "pressure" && c["on"] == false),
        ("c.kind IN ('humidity', 'pressure') OR c.n < 9", |c| c["kind"] != "temperature" || number(c, "n") < 9.0),
        ("c.place.city = 'city 3' AND c['place'].geo[\"x\"] > 4", |c| {
            c["place"]["city"] == "city 3" && number(&c["place"]["geo"], "x") > 4.0
        }),
        ("ARRAY_CONTAINS(c.tags, 'cold')", |c| c["tags"].as_array().unwrap().contains(&json!("cold"))),
        ("STARTSWITH(c.id, '01')", |c| c["id"].as_str().unwrap().starts_with("01")),
        ("c.id LIKE '%7_'", |c| c["id"].as_str().unwrap().as_bytes()[2] == b'7'),
        ("NOT IS_DEFINED(c.mixed)", |c| c.get("mixed").is_none()),
        ("IS_NULL(c.mixed) OR IS_OBJECT(c.mixed)", |c| c.get("mixed").is_some_and(|m| m.is_null() || m.is_object())),
        ("c.pk = 'device 7'", |c| c["pk"] == ONE_KEY),
        ("c.n = 1000", |_| false),
    ];
    let container = world.readings().await;
    for (filter, matches) in filters {
        for (scope, items) in scopes() {
            let got = ask(&container, format!("SELECT * FROM c WHERE {filter}"), scope).await.unwrap();
            assert_eq!(bag(got.into_iter().map(plain)), bag(items.into_iter().filter(matches)), "{filter}");
        }
    }
}

async fn s102_s104_parameters(world: World) {
    let container = world.readings().await;
    let query =
        Query::from("SELECT * FROM c WHERE c.n > @least AND c.kind = @kind AND ARRAY_CONTAINS(@floors, c.floor)")
            .with_parameter("@least", 100)
            .and_then(|query| query.with_parameter("@kind", "humidity"))
            .and_then(|query| query.with_parameter("@floors", [1, 2]))
            .unwrap();
    for (scope, items) in scopes() {
        let matches =
            |c: &Value| number(c, "n") > 100.0 && c["kind"] == "humidity" && [1.0, 2.0].contains(&number(c, "floor"));
        let got = ask(&container, query.clone(), scope).await.unwrap();
        assert_eq!(bag(got.into_iter().map(plain)), bag(items.into_iter().filter(matches)));
    }
}

async fn s110_projections_and_query_text_of_linq_providers(world: World) {
    type Row = fn(&Value) -> Value;
    let texts: [(&str, Row); 7] = [
        ("SELECT c.id, c.n FROM c", |c| json!({"id": c["id"], "n": c["n"]})),
        ("SELECT c.place.city AS town FROM c", |c| json!({"town": c["place"]["city"]})),
        ("SELECT VALUE c.metric FROM c", |c| c["metric"].clone()),
        (
            "SELECT VALUE {'double': c.n * 2, \"list\": [c.id, c.on]} FROM c",
            |c| json!({"double": number(c, "n") * 2.0, "list": [c["id"], c["on"]]}),
        ),
        ("SELECT UPPER(c.kind) AS loud FROM c", |c| json!({"loud": c["kind"].as_str().unwrap().to_uppercase()})),
        ("SELECT VALUE root[\"n\"] FROM root", |c| c["n"].clone()),
        (
            "SELECT VALUE {\"N\": root[\"n\"], \"City\": root[\"place\"][\"city\"]} FROM root",
            |c| json!({"N": c["n"], "City": c["place"]["city"]}),
        ),
    ];
    let container = world.readings().await;
    for (text, row) in texts {
        for (scope, items) in scopes() {
            let got = ask(&container, text, scope).await.unwrap();
            assert_eq!(bag(got), bag(items.iter().map(row)), "{text}");
        }
    }
}

async fn joins_and_subqueries(world: World) {
    type Rows = fn(&Value) -> Vec<Value>;
    fn tags(c: &Value) -> Vec<Value> {
        c["tags"].as_array().unwrap().clone()
    }
    let texts: [(&str, Rows); 5] = [
        ("SELECT c.id, t AS tag FROM c JOIN t IN c.tags", |c| {
            tags(c).into_iter().map(|tag| json!({"id": c["id"], "tag": tag})).collect()
        }),
        ("SELECT VALUE t FROM t IN c.tags", tags),
        ("SELECT VALUE t FROM c JOIN (SELECT VALUE x FROM x IN c.tags WHERE x != 'cold') AS t", |c| {
            tags(c).into_iter().filter(|tag| tag != "cold").collect()
        }),
        ("SELECT c.n, (SELECT VALUE COUNT(1) FROM t IN c.tags) AS tags FROM c", |c| {
            vec![json!({"n": c["n"], "tags": tags(c).len()})]
        }),
        ("SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'blue')", |c| {
            if tags(c).contains(&json!("blue")) {
                vec![c["n"].clone()]
            } else {
                vec![]
            }
        }),
    ];
    let container = world.readings().await;
    for (text, rows) in texts {
        for (scope, items) in scopes() {
            let got = ask(&container, text, scope).await.unwrap();
            assert_eq!(bag(got), bag(items.iter().flat_map(rows)), "{text}");
        }
    }
}

/// Name, and whether it is descending.
type Keys = &'static [(&'static str, bool)];

const ORDERS: [(&str, Keys); 7] = [
    ("c.n", &[("n", false)]),
    ("c.n DESC", &[("n", true)]),
    ("c.metric DESC", &[("metric", true)]),
    ("c.kind ASC", &[("kind", false)]),
    ("c.on DESC", &[("on", true)]),
    ("c.kind, c.metric DESC", &[("kind", false), ("metric", true)]),
    ("c.floor DESC, c.n DESC", &[("floor", true), ("n", true)]),
];

fn in_order(mut items: Vec<Value>, keys: Keys) -> Vec<Value> {
    items.sort_by(|a, b| {
        let orderings = keys.iter().map(|(name, descends)| {
            let ordering = compare(&a[name], &b[name]);
            if *descends {
                ordering.reverse()
            } else {
                ordering
            }
        });
        orderings.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
    items
}

async fn s108_order_by_is_global(world: World) {
    let container = world.readings().await;
    for (clause, keys) in ORDERS {
        for (scope, items) in scopes() {
            let text = format!("SELECT * FROM c ORDER BY {clause}");
            let got: Vec<Value> = ask_with(&container, text, scope, pages_of(7)).await.unwrap();
            let sort_keys = |list: &[Value]| -> Vec<Vec<Value>> {
                list.iter().map(|c| keys.iter().map(|(name, _)| in_floats(c[name].clone())).collect()).collect()
            };
            assert_eq!(sort_keys(&got), sort_keys(&in_order(items.clone(), keys)), "{clause}");
            assert_eq!(bag(got.into_iter().map(plain)), bag(items), "{clause}");
        }
    }
}

/// Across partitions this SDK merges values of every type except arrays and objects.
async fn order_by_values_of_every_type(world: World) {
    let container = world.readings().await;
    let scalar = |item: &Value| !item["mixed"].is_array() && !item["mixed"].is_object();
    let cases = [
        ("true", FeedScope::partition(ONE_KEY), of_one_key()),
        (
            "NOT IS_ARRAY(c.mixed) AND NOT IS_OBJECT(c.mixed)",
            FeedScope::full_container(),
            readings().into_iter().filter(scalar).collect(),
        ),
    ];
    for (filter, scope, items) in cases {
        let text = format!("SELECT * FROM c WHERE {filter} ORDER BY c.mixed");
        let got = ask_with(&container, text, scope, pages_of(7)).await.unwrap();
        assert_eq!(got.len(), items.len());
        let missing = items.iter().filter(|item| item.get("mixed").is_none()).count();
        assert!(got[..missing].iter().all(|item| item.get("mixed").is_none()), "missing values are first");
        assert!(got[missing..].is_sorted_by(|a, b| compare(&a["mixed"], &b["mixed"]).is_le()));
    }
}

async fn s107_the_same_order_for_every_page_size(world: World) {
    let container = world.readings().await;
    for text in [
        "SELECT VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c ORDER BY c.kind",
        "SELECT VALUE c.id FROM c ORDER BY c.floor DESC",
    ] {
        for (scope, items) in scopes() {
            let first = ask(&container, text, scope.clone()).await.unwrap();
            assert_eq!(first.len(), items.len());
            for rows in [1, 2, 7] {
                assert_eq!(ask_with(&container, text, scope.clone(), pages_of(rows)).await.unwrap(), first, "{text}");
            }
        }
    }
}

async fn s109_top_offset_and_limit_are_global(world: World) {
    let container = world.readings().await;
    for (scope, items) in scopes() {
        let numbers: Vec<Value> = items.iter().map(|item| item["n"].clone()).collect();
        let last: Vec<Value> = numbers.iter().rev().take(10).cloned().collect();
        let top = ask(&container, "SELECT TOP 10 VALUE c.n FROM c ORDER BY c.n DESC", scope.clone()).await.unwrap();
        assert_eq!(top, last);
        let text = "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 5";
        let part = ask_with(&container, text, scope.clone(), pages_of(2)).await.unwrap();
        assert_eq!(part, numbers[3..8]);
        let unordered = ask(&container, "SELECT VALUE c.n FROM c", scope.clone()).await.unwrap();
        assert_eq!(ask(&container, "SELECT TOP 4 VALUE c.n FROM c", scope.clone()).await.unwrap(), unordered[..4]);
        let part = ask(&container, "SELECT VALUE c.n FROM c OFFSET 2 LIMIT 5", scope).await.unwrap();
        assert_eq!(part, unordered[2..7]);
    }
}

async fn rows_are_ordered_by_vector_distance(world: World) {
    let container = world.readings().await;
    for (scope, items) in scopes() {
        let numbers: Vec<Value> = items.iter().map(|item| item["n"].clone()).collect();
        let distance = "VectorDistance([c.n, 1], [0, 1], false, {'distanceFunction': 'euclidean'})";
        let text = format!("SELECT TOP 5 VALUE c.n FROM c ORDER BY {distance}");
        assert_eq!(ask(&container, text.as_str(), scope).await.unwrap(), numbers[..5]);
    }
}

/// Without ORDER BY this SDK merges distinct rows only if their number is bounded.
async fn distinct(world: World) {
    let container = world.readings().await;
    for (scope, items) in scopes() {
        let mut kinds = bag(items.iter().map(|item| item["kind"].clone()));
        kinds.dedup();
        assert_eq!(
            bag(ask(&container, "SELECT DISTINCT TOP 100 VALUE c.kind FROM c", scope.clone()).await.unwrap()),
            kinds
        );
        let mut pairs = bag(items.iter().map(|item| json!({"kind": item["kind"], "on": item["on"]})));
        pairs.dedup();
        let got = ask_with(&container, "SELECT DISTINCT TOP 100 c.kind, c.on FROM c", scope.clone(), pages_of(2))
            .await
            .unwrap();
        assert_eq!(bag(got), pairs);
        let text = "SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind";
        let ordered = ask(&container, text, scope).await.unwrap();
        assert_eq!(ordered.iter().map(Value::to_string).collect::<Vec<_>>(), kinds);
    }
}

async fn aggregates_and_groups_over_one_key(world: World) {
    let (container, items) = (world.readings().await, of_one_key());
    let numbers: Vec<f64> = items.iter().map(|item| number(item, "n")).collect();
    let sum: f64 = numbers.iter().sum();
    let values = [
        ("COUNT(1)", numbers.len() as f64),
        ("SUM(c.n)", sum),
        ("AVG(c.n)", sum / numbers.len() as f64),
        ("MIN(c.n)", numbers.iter().copied().fold(f64::MAX, f64::min)),
        ("MAX(c.n)", numbers.iter().copied().fold(f64::MIN, f64::max)),
    ];
    let one = || FeedScope::partition(ONE_KEY);
    for (call, expected) in values {
        let got = ask(&container, format!("SELECT VALUE {call} FROM c"), one()).await.unwrap();
        assert_eq!(bag(got), bag([json!(expected)]), "{call}");
        let got = ask(&container, format!("SELECT {call} AS it FROM c"), one()).await.unwrap();
        assert_eq!(bag(got), bag([json!({"it": expected})]), "{call}");
    }
    let of = |kind: &str| items.iter().filter(|item| item["kind"] == kind).count();
    let expected = ["humidity", "pressure", "temperature"].map(|kind| json!({"kind": kind, "many": of(kind)}));
    let text = "SELECT c.kind, COUNT(1) AS many FROM c GROUP BY c.kind";
    for rows in [1, 2, 7] {
        assert_eq!(bag(ask_with(&container, text, one(), pages_of(rows)).await.unwrap()), bag(expected.clone()));
    }
}

async fn aggregates_and_groups_across_partitions_are_not_supported_by_this_sdk(world: World) {
    let container = world.readings().await;
    for text in [
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT SUM(c.n) AS sum FROM c",
        "SELECT c.kind, COUNT(1) AS many FROM c GROUP BY c.kind",
    ] {
        refused(ask(&container, text, FeedScope::full_container()).await, 400);
    }
}

async fn invalid_queries_are_400(world: World) {
    let container = world.readings().await;
    for (text, code) in [
        ("SELECT * FORM c", "SC1001"),
        ("SELECT c.value FROM c", "SC1001"),
        ("SELECT * FROM c WHERE d.n = 1", "SC2001"),
        ("SELECT NO_SUCH(c.n) FROM c", "SC2005"),
        ("SELECT ABS(c.n, 1) FROM c", "SC2050"),
        ("SELECT TOP @n * FROM c", "SC2060"),
        ("SELECT * FROM c ORDER BY c.kind, c.n", "composite"),
    ] {
        for (scope, _) in scopes() {
            let error = ask(&container, text, scope).await.expect_err(text);
            assert_eq!(status(&error).0, 400, "{text}: {error}");
            assert!(format!("{error:?}").contains(code) || error.to_string().contains(code), "{text}: {error:?}");
        }
    }
}
