use pleiad_model::policy::{Geospatial, VectorEmbedding};

use super::*;
use crate::{Parameters, check};

const FEATURES: &str = "Top,OffsetAndLimit,NonStreamingOrderBy,HybridSearch,WeightedRankFusion";

fn plan_with(text: &str, embeddings: &[VectorEmbedding], features: &str) -> Result<Value> {
    let parameters = json::parse(
        br#"[{"name": "@term", "value": "run"}, {"name": "@v", "value": [1, 2]}, {"name": "@w", "value": [2, -1]}]"#,
    )?;
    let parameters = Parameters::from_value(Some(&parameters))?;
    let geospatial = Geospatial::Geography;
    let bind = BindContext { parameters: &parameters, geospatial, embeddings, full_text: None, started_ms: None };
    super::super::query_plan(text, bind, None, features)
}

fn info(text: &str) -> Value {
    let plan = plan_with(text, &[], FEATURES).unwrap_or_else(|error| panic!("{text}: {error}"));
    plan.get("hybridSearchQueryInfo").unwrap_or_else(|| panic!("{text}")).clone()
}

fn member<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split('.').fold(value, |value, step| match step.parse::<usize>() {
        Ok(at) => &value.as_array().unwrap()[at],
        Err(_) => value.get(step).unwrap_or_else(|| panic!("no {step} in {}", json::to_string(value))),
    })
}

#[track_caller]
fn check_member(info: &Value, path: &str, want: &str) {
    assert_eq!(json::to_string(member(info, path)), want, "{path}");
}

const SWIM_RUN: &str = r#"_FullTextScore(c.text, ["swim","run"], {documentdb-formattablehybridsearchquery-totaldocumentcount}, {documentdb-formattablehybridsearchquery-totalwordcount-0}, {documentdb-formattablehybridsearchquery-hitcountsarray-0})"#;

#[test]
fn one_full_text_score() {
    let info = info("SELECT TOP 10 * FROM c WHERE c.n > 1 ORDER BY RANK FullTextScore(c.text, 'swim', @term)");
    assert_eq!(
        member(&info, "globalStatisticsQuery").as_str().unwrap(),
        r#"SELECT COUNT(1) AS documentCount, [{"totalWordCount": SUM(_FullTextWordCount(c.text)), "hitCounts": [COUNTIF(FullTextContains(c.text, "swim")), COUNTIF(FullTextContains(c.text, "run"))]}] AS fullTextStatistics FROM c"#
    );
    let score = SWIM_RUN.replace("\",\"", "\", \"");
    assert_eq!(
        member(&info, "componentQueryInfos.0.rewrittenQuery").as_str().unwrap(),
        format!(
            r#"SELECT TOP 120 c._rid, [{{"item": {score}}}] AS orderByItems, {{"payload": c, "componentScores": [({score} ?? -1)]}} AS payload FROM c WHERE ((c.n > 1) AND ({ORDER_FILTER})) ORDER BY {score} DESC"#
        )
    );
    assert_eq!(member(&info, "componentQueryInfos.0.orderByExpressions.0").as_str().unwrap(), score);
    for (path, want) in [
        ("componentQueryInfos.0.top", "120"),
        ("componentQueryInfos.0.orderBy", r#"["Descending"]"#),
        ("componentQueryInfos.0.hasNonStreamingOrderBy", "true"),
        ("componentQueryInfos.0.aggregates", "[]"),
        ("componentWithoutPayloadQueryInfos", "[]"),
        ("projectionQueryInfo", "null"),
        ("componentWeights", "[]"),
        ("skip", "null"),
        ("take", "10"),
        ("requiresGlobalStatistics", "true"),
    ] {
        check_member(&info, path, want);
    }
}

#[test]
fn several_scores_with_weights() {
    let info = info(
        "SELECT c.id, c.a AS b FROM c ORDER BY RANK \
         RRF(FullTextScore(c.t, ['a']), VectorDistance(c.v, @v), FullTextScore(c.u, {'term': 'b', 'distance': 1}), [2, 0.5, -1]) \
         OFFSET 30 LIMIT 50",
    );
    for (path, want) in [
        ("componentWeights", "[2,0.5,1]"),
        ("skip", "30"),
        ("take", "50"),
        ("componentQueryInfos.0.top", "160"),
        ("componentQueryInfos.0.orderBy", r#"["Descending"]"#),
        ("componentQueryInfos.1.orderBy", r#"["Descending"]"#),
        ("componentQueryInfos.1.orderByExpressions", r#"["_VectorScore(c.v, @v)"]"#),
        // A negative weight sorts the lowest score first.
        ("componentQueryInfos.2.orderBy", r#"["Ascending"]"#),
    ] {
        check_member(&info, path, want);
    }
    let text = member(&info, "componentQueryInfos.1.rewrittenQuery").as_str().unwrap();
    assert!(
        text.contains(r#""payload": {"id": c.id, "b": c.a}"#) && text.ends_with("ORDER BY _VectorScore(c.v, @v) DESC"),
        "{text}"
    );
    // Placeholders of statistics are numbered over the components that need them.
    assert!(text.contains("totalwordcount-1}") && !text.contains("totalwordcount-2}"), "{text}");
    assert!(text.contains("(_VectorScore(c.v, @v) ?? -1e308)") && text.contains("?? 1.79769e+308"), "{text}");
}

#[test]
fn weights_can_be_a_parameter() {
    let fused = |weights: &str| {
        format!("SELECT TOP 1 * FROM c ORDER BY RANK RRF(FullTextScore(c.a, 'x'), FullTextScore(c.b, 'y'), {weights})")
    };
    assert_eq!(info(&fused("@w")), info(&fused("[2, -1]")));
    for wrong in ["@v2", "@term"] {
        assert!(plan_with(&fused(wrong), &[], FEATURES).unwrap_err().to_string().contains("SC2229"), "{wrong}");
    }
}

#[test]
fn a_component_has_at_most_as_many_rows_as_a_signed_number() {
    let info = info("SELECT * FROM c ORDER BY RANK FullTextScore(c.a, 'x') OFFSET 1 LIMIT 2147483647");
    check_member(&info, "skip", "1");
    check_member(&info, "take", "2147483647");
    check_member(&info, "componentQueryInfos.0.top", "2147483647");
}

#[test]
fn vectors_alone_need_no_statistics() {
    let info = info(
        "SELECT TOP 1 VALUE c.a FROM c ORDER BY RANK RRF(VectorDistance(c.v, [1]), VectorDistance(c.w, [2], true))",
    );
    check_member(&info, "requiresGlobalStatistics", "false");
    check_member(
        &info,
        "globalStatisticsQuery",
        r#""SELECT COUNT(1) AS documentCount, [] AS fullTextStatistics FROM c""#,
    );
    let text = member(&info, "componentQueryInfos.0.rewrittenQuery").as_str().unwrap();
    assert!(text.contains("AND IS_DEFINED(c.a)"), "{text}");
}

#[test]
fn without_a_limit_every_row_is_ranked() {
    let info = info("SELECT c.id FROM c ORDER BY RANK FullTextScore(c.t, 'a')");
    check_member(&info, "take", "null");
    check_member(&info, "componentQueryInfos.0.top", "null");
}

#[test]
fn required_client_features() {
    let missing = |text: &str, features: &str| plan_with(text, &[], features).unwrap_err().to_string();
    let text = "SELECT TOP 1 * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), FullTextScore(c.u, 'b'), [1, 2])";
    assert!(missing(text, "Top,NonStreamingOrderBy,HybridSearch").contains("WeightedRankFusion"));
    assert!(missing(text, "Top").contains("HybridSearch"));
}

#[test]
fn terms_are_constants() {
    let error = |text: &str| plan_with(text, &[], FEATURES).unwrap_err().to_string();
    for text in [
        "SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.t, c.u)",
        "SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.t, 7)",
        "SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.t, ['a', null])",
    ] {
        assert!(error(text).contains("string literals"), "{text}");
    }
}

/// Does what a client does: gather statistics, fill them in, run, fuse.
#[test]
fn every_query_of_a_plan_runs() {
    let items: Vec<Value> = [
        r#"{"_rid":"1","id":"a","t":"red fish and blue fish"}"#,
        r#"{"_rid":"2","id":"b","t":"a fish"}"#,
        r#"{"_rid":"3","id":"c","t":"no swimming"}"#,
        r#"{"_rid":"4","id":"d"}"#,
    ]
    .map(|item| json::parse(item.as_bytes()).unwrap())
    .into();
    let run = |text: &str| {
        let env = pleiad_model::env::ManualEnv::default();
        let rows = crate::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let rows = rows.run_over(&Parameters::default(), &env, items.iter()).unwrap();
        rows.iter().map(|row| json::parse(row).unwrap()).collect::<Vec<_>>()
    };
    let text = "SELECT TOP 3 c.id FROM c ORDER BY RANK FullTextScore(c.t, 'fish', 'swim')";
    let select = check::parse_and_check(text).unwrap();
    let parameters = Parameters::default();
    let geospatial = Geospatial::Geography;
    let bind = BindContext { parameters: &parameters, geospatial, embeddings: &[], full_text: None, started_ms: None };
    let counts = check::counts(&select, &parameters).unwrap();
    let hybrid = Hybrid::of(&select, text, bind, counts, ComponentFormat::Sorted).unwrap().unwrap();
    let mut statistics = GlobalStatistics::default();
    run(hybrid.statistics_query().unwrap()).iter().for_each(|row| statistics.add(row).unwrap());
    assert_eq!(statistics, GlobalStatistics { documents: 4, texts: vec![(6, vec![2, 1])] });
    let component = hybrid.component_queries(&statistics).next().unwrap();
    let rows: Vec<ScoredItem> = run(&component).iter().map(|row| parse_scored_row(row).unwrap()).collect();
    let ids: Vec<&str> = rows.iter().map(|row| row.payload.get("id").unwrap().as_str().unwrap()).collect();
    assert_eq!(ids, ["c", "b", "a", "d"], "the rarest term first, then the shortest text; without a text, last");
}

/// As the .NET and JavaScript clients request it: rows that are not merged in order, with scores of which the highest
/// is the best.
#[test]
fn unsorted_components() {
    let features = format!("{FEATURES},HybridSearchSkipOrderByRewrite");
    let text = "SELECT TOP 10 c.id FROM c WHERE c.n > 1 ORDER BY RANK RRF(FullTextScore(c.text, 'swim'), FullTextScore(c.t, 'run'), [1, -2])";
    let plan = plan_with(text, &[], &features).unwrap();
    let info = plan.get("hybridSearchQueryInfo").unwrap();
    for component in ["0", "1"] {
        for (path, want) in
            [("top", "null"), ("orderBy", "[]"), ("orderByExpressions", "[]"), ("hasNonStreamingOrderBy", "false")]
        {
            check_member(info, &format!("componentQueryInfos.{component}.{path}"), want);
        }
    }
    let text = member(info, "componentQueryInfos.1.rewrittenQuery").as_str().unwrap();
    assert!(text.starts_with(r#"SELECT TOP 120 c._rid, {"id": c.id} AS payload, [(_FullTextScore(c.text"#), "{text}");
    assert!(
        text.contains("?? -1), (-1 * (_FullTextScore(c.t") && text.contains("?? 1.79769e+308))] AS componentScores"),
        "{text}"
    );
    assert!(text.contains(" FROM c WHERE (c.n > 1) ORDER BY _FullTextScore(c.t"), "{text}");
    let single =
        plan_with("SELECT TOP 10 * FROM c ORDER BY RANK FullTextScore(c.text, 'swim')", &[], &features).unwrap();
    let single = single.get("hybridSearchQueryInfo").unwrap();
    check_member(single, "componentQueryInfos.0.orderBy", r#"["Descending"]"#);
}
