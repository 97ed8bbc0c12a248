//! Full-text search over several partitions and after a split. This SDK ranks by relevance only within one key, where
//! the server does all the work; the tests compute the expected results from the published formulas: BM25 (k1 1.2, b
//! 0.75) and RRF (60).

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{ContainerProperties, FullTextPath, FullTextPolicy};
use azure_data_cosmos::Query;

use crate::readings::{ask, load};
use crate::support::*;

both!(
    the_policy_is_stored,
    words_and_phrases_over_all_partitions,
    ranking_within_one_key_uses_statistics_of_the_container,
    hybrid_search_within_one_key,
    ranking_across_partitions_is_not_supported_by_this_sdk,
    unsupported_queries_are_400,
    splits_and_merges_do_not_change_the_results,
);

// No stop words and no two forms of one word: stemming changes nothing.
const WORDS: [&str; 8] = ["apple", "brick", "cloud", "drum", "elbow", "flint", "grape", "hammock"];
const DOCUMENTS: usize = 120;
const KEYS: usize = 4;
const ONE_KEY: &str = "key 3";

/// Documents have different lengths; each word is rarer than the one before it.
fn document(n: usize) -> Value {
    let words: Vec<&str> = (0..WORDS.len())
        .filter(|at| n % (at + 2) == 0)
        .flat_map(|at| std::iter::repeat_n(WORDS[at], n / (at + 1) % 3))
        .collect();
    let text = [words.clone(), vec!["filler"; n * 7 % 11]].concat().join(" ");
    let title = words[..words.len().min(3)].join(" ");
    let key = format!("key {}", n % KEYS);
    json!({"id": format!("{n:03}"), "pk": key, "n": n, "text": text, "title": title, "v": [n, n * n % 31]})
}

fn documents() -> Vec<Value> {
    (1..=DOCUMENTS).map(document).collect()
}

fn words<'a>(document: &'a Value, path: &str) -> Vec<&'a str> {
    document[path].as_str().expect("a text").split_whitespace().collect()
}

/// The score of each document.
fn bm25(path: &str, terms: &[&str]) -> Vec<f64> {
    let documents = documents();
    let texts: Vec<Vec<&str>> = documents.iter().map(|document| words(document, path)).collect();
    let all = texts.len() as f64;
    let average = texts.iter().map(Vec::len).sum::<usize>() as f64 / all;
    let score = |text: &Vec<&str>, term: &&str| {
        let hits = texts.iter().filter(|text| text.contains(term)).count() as f64;
        let rarity = (1.0 + (all - hits + 0.5) / (hits + 0.5)).ln();
        let count = text.iter().filter(|word| *word == term).count() as f64;
        rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * text.len() as f64 / average))
    };
    texts.iter().map(|text| terms.iter().map(|term| score(text, term)).sum()).collect()
}

/// The scores of one key's documents, with their index in `documents`.
fn in_one_key(scores: Vec<f64>) -> Vec<(usize, f64)> {
    scores.into_iter().enumerate().filter(|(at, _)| (at + 1) % KEYS == 3).collect()
}

/// Fused scores: equal scores share a rank.
fn rrf(components: [Vec<(usize, f64)>; 2]) -> Vec<(usize, f64)> {
    let ranks = components.map(|component| {
        let mut best: Vec<f64> = component.iter().map(|(_, score)| *score).collect();
        best.sort_by(|a, b| b.total_cmp(a));
        best.dedup();
        let rank = move |score: f64| best.iter().position(|other| *other == score).expect("a rank") + 1;
        component.into_iter().map(move |(at, score)| (at, 1.0 / (60 + rank(score)) as f64)).collect::<Vec<_>>()
    });
    let [first, second] = ranks;
    first.into_iter().zip(second).map(|((at, a), (_, b))| (at, a + b)).collect()
}

/// The rows are the best ones in descending order of score; items with equal scores are interchangeable.
#[track_caller]
fn check_order(rows: &[Value], scores: &[(usize, f64)], many: usize) {
    let rounded = |score: f64| (score * 1e9).round() as i64;
    let of = |row: &Value| {
        let n: usize = row.as_str().expect("an id").parse().expect("a number");
        scores.iter().find(|(at, _)| at + 1 == n).map(|(_, score)| rounded(*score))
    };
    let mut best: Vec<i64> = scores.iter().map(|(_, score)| rounded(*score)).collect();
    best.sort_by(|a, b| b.cmp(a));
    best.truncate(many);
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), best.into_iter().map(Some).collect::<Vec<_>>());
}

async fn filled(world: &World) -> ContainerClient {
    let definition = json!({
        "fullTextPolicy": {
            "defaultLanguage": "en-US",
            "fullTextPaths": [{"path": "/text"}, {"path": "/title", "language": "en-US"}],
        },
        "vectorEmbeddingPolicy": {
            "vectorEmbeddings": [
                {"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": "euclidean"},
            ],
        },
        "indexingPolicy": {
            "automatic": true, "indexingMode": "consistent",
            "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/v/*"}],
            "fullTextIndexes": [{"path": "/text"}, {"path": "/title"}],
            "vectorIndexes": [{"path": "/v", "type": "flat"}],
        },
    });
    let container = world.define(definition).await.unwrap();
    load(&container, &documents(), |item| item["pk"].as_str().unwrap_or_default().to_owned().into()).await;
    container
}

async fn the_policy_is_stored(world: World) {
    let policy = FullTextPolicy::new("en-US")
        .with_full_text_path("/text")
        .with_full_text_path(FullTextPath::new("/summary").with_language("de-DE"));
    let properties = ContainerProperties::new(unique("c"), "/pk".into()).with_full_text_policy(policy.clone());
    let name = properties.id.to_string();
    world.database.create_container(properties, None).await.unwrap();
    let container = world.database.container_client(name, None).await.unwrap();
    let read = container.read(None).await.unwrap().into_model().unwrap().full_text_policy.expect("a policy");
    assert_eq!(read.default_language, policy.default_language);
    assert_eq!(read.full_text_paths.len(), 2);
    assert_eq!(read.full_text_paths[1], policy.full_text_paths[1]);
}

async fn check_words(container: &ContainerClient) {
    let filters: [(&str, fn(&[&str], &str) -> bool); 4] = [
        ("FullTextContains(c.text, 'hammock')", |words, _| words.contains(&"hammock")),
        ("FullTextContains(c.text, 'apple apple')", |_, text| text.contains("apple apple")),
        ("FullTextContainsAll(c.text, 'cloud', 'flint')", |words, _| {
            words.contains(&"cloud") && words.contains(&"flint")
        }),
        ("FullTextContainsAny(c.text, @one, 'grape')", |words, _| words.contains(&"flint") || words.contains(&"grape")),
    ];
    for (filter, matches) in filters {
        let text = format!("SELECT VALUE c.id FROM c WHERE {filter} ORDER BY c.id");
        let query = Query::from(text.as_str()).with_parameter("@one", "flint").unwrap();
        let all = documents();
        let expected = all.iter().filter(|one| matches(&words(one, "text"), one["text"].as_str().unwrap()));
        let expected: Vec<Value> = expected.map(|document| document["id"].clone()).collect();
        assert!(!expected.is_empty());
        assert_eq!(ask(container, query, FeedScope::full_container()).await.unwrap(), expected, "{filter}");
    }
}

async fn words_and_phrases_over_all_partitions(world: World) {
    check_words(&filled(&world).await).await;
}

async fn check_ranked(container: &ContainerClient) {
    for terms in [vec!["hammock"], vec!["apple"], vec!["drum", "elbow", "flint"]] {
        let quoted: Vec<String> = terms.iter().map(|term| format!("'{term}'")).collect();
        let score = format!("FullTextScore(c.text, {})", quoted.join(", "));
        let text = format!("SELECT TOP 15 VALUE c.id FROM c ORDER BY RANK {score}");
        let rows = ask(container, text.as_str(), FeedScope::partition(ONE_KEY)).await.unwrap();
        check_order(&rows, &in_one_key(bm25("text", &terms)), 15);
    }
}

async fn ranking_within_one_key_uses_statistics_of_the_container(world: World) {
    check_ranked(&filled(&world).await).await;
}

async fn hybrid_search_within_one_key(world: World) {
    let container = filled(&world).await;
    let scores = "FullTextScore(c.text, 'cloud', 'drum'), FullTextScore(c.title, 'elbow')";
    let text = format!("SELECT TOP 12 VALUE c.id FROM c ORDER BY RANK RRF({scores})");
    let rows = ask(&container, text.as_str(), FeedScope::partition(ONE_KEY)).await.unwrap();
    let components = [bm25("text", &["cloud", "drum"]), bm25("title", &["elbow"])];
    check_order(&rows, &rrf(components.map(in_one_key)), 12);

    let distance = |document: &Value| {
        let at = |n: usize| document["v"][n].as_f64().expect("a number");
        -(at(0) - 60.0).hypot(at(1) - 12.0)
    };
    let scores = "FullTextScore(c.text, 'grape'), VectorDistance(c.v, [60, 12])";
    let text = format!("SELECT TOP 12 VALUE c.id FROM c ORDER BY RANK RRF({scores})");
    let rows = ask(&container, text.as_str(), FeedScope::partition(ONE_KEY)).await.unwrap();
    let components = [bm25("text", &["grape"]), documents().iter().map(distance).collect()];
    check_order(&rows, &rrf(components.map(in_one_key)), 12);
}

/// The SDK neither requests statistics from the partitions nor fuses scores, and returns an error.
async fn ranking_across_partitions_is_not_supported_by_this_sdk(world: World) {
    let container = filled(&world).await;
    let text = "SELECT TOP 3 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'grape')";
    assert!(ask(&container, text, FeedScope::full_container()).await.is_err());
}

async fn unsupported_queries_are_400(world: World) {
    let container = filled(&world).await;
    for text in [
        "SELECT TOP 3 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'grape') DESC",
        "SELECT TOP 3 c.id, FullTextScore(c.text, 'grape') AS s FROM c",
        "SELECT TOP 3 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'a'), FullTextScore(c.title, 'b'), [1])",
    ] {
        refused(ask(&container, text, FeedScope::partition(ONE_KEY)).await, 400);
    }
}

async fn splits_and_merges_do_not_change_the_results(world: World) {
    let container = filled(&world).await;
    for _ in 0..2 {
        world.split(&container).await;
        check_words(&container).await;
        check_ranked(&container).await;
    }
    world.merge(&container).await;
    check_words(&container).await;
    check_ranked(&container).await;
}
