"""Full-text and hybrid search over several partitions. This SDK collects the statistics, runs the components and fuses them;
the tests compute the expected results from the published formulas: BM25 (k1 1.2, b 0.75) and RRF (60)."""

import math
import time

import pytest
from conftest import refused, unique
from dataset import THROUGHPUT, everywhere, load

# No stop words and no two forms of one word: stemming changes nothing.
WORDS = ["apple", "brick", "cloud", "drum", "elbow", "flint", "grape", "hammock"]


def document(n):
    """Documents have different lengths; each word is rarer than the one before it."""
    words = [WORDS[at] for at in range(len(WORDS)) for _ in range(n // (at + 1) % 3) if n % (at + 2) == 0]
    text = " ".join(words + ["filler"] * (n * 7 % 11))
    return {"id": f"{n:03}", "pk": f"key {n % 17}", "n": n, "text": text, "title": " ".join(words[:3]), "v": [n, n * n % 31]}


DOCUMENTS = [document(n) for n in range(1, 121)]
POLICY = {
    "defaultLanguage": "en-US",
    "fullTextPaths": [{"path": "/text", "language": "en-US"}, {"path": "/title", "language": "en-US"}],
}
INDEXING = {
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": "/v/*"}],
    "fullTextIndexes": [{"path": "/text"}, {"path": "/title"}],
    "vectorIndexes": [{"path": "/v", "type": "flat"}],
}
VECTORS = {
    "vectorEmbeddings": [{"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": "euclidean"}]
}


def bm25(path, terms, documents=DOCUMENTS):
    """The score of each document, by id."""
    texts = {doc["id"]: doc[path].split() for doc in documents}
    average = sum(map(len, texts.values())) / len(texts)
    scores = dict.fromkeys(texts, 0.0)
    for term in terms:
        hits = sum(term in words for words in texts.values())
        rarity = math.log(1 + (len(texts) - hits + 0.5) / (hits + 0.5))
        for id, words in texts.items():
            count = words.count(term)
            scores[id] += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(words) / average))
    return scores


def distances(vector):
    return {doc["id"]: -math.dist(doc["v"], vector) for doc in DOCUMENTS}


def rrf(components, weights=None):
    """Fused scores, by id: equal scores share a rank."""
    fused = dict.fromkeys(components[0], 0.0)
    for scores, weight in zip(components, weights or [1] * len(components)):
        ranks = {score: rank for rank, score in enumerate(sorted(set(scores.values()), reverse=True), 1)}
        for id, score in scores.items():
            fused[id] += weight / (60 + ranks[score])
    return fused


def check_order(rows, scores, many):
    """The rows are the best ones in descending order of score; items with equal scores are interchangeable."""
    got = [round(scores[row["id"]], 9) for row in rows]
    assert got == [round(score, 9) for score in sorted(scores.values(), reverse=True)[:many]]


@pytest.fixture(scope="module")
def texts(database):
    from azure.cosmos import PartitionKey

    container = database.create_container(
        unique("c"),
        PartitionKey("/pk"),
        offer_throughput=THROUGHPUT,
        indexing_policy=INDEXING,
        full_text_policy=POLICY,
        vector_embedding_policy=VECTORS,
    )
    load(container, DOCUMENTS)
    return container


@pytest.mark.parametrize("terms", [["hammock"], ["apple"], ["drum", "elbow"], ["cloud", "zeppelin"]])
def test_contains(texts, terms):
    of = {doc["id"]: set(doc["text"].split()) for doc in DOCUMENTS}
    quoted = ", ".join(f"'{term}'" for term in terms)
    for function, test in [("All", all), ("Any", any)]:
        text = f"SELECT VALUE c.id FROM c WHERE FullTextContains{function}(c.text, {quoted})"
        want = sorted(id for id, words in of.items() if test(term in words for term in terms))
        assert sorted(everywhere(texts, text)) == want
    phrase = sorted(doc["id"] for doc in DOCUMENTS if " ".join(terms) in doc["text"])
    assert sorted(everywhere(texts, f"SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, '{' '.join(terms)}')")) == phrase


@pytest.mark.parametrize("terms", [["hammock"], ["apple"], ["drum", "elbow", "flint"]])
def test_ranked_by_bm25_of_the_whole_container(texts, terms):
    quoted = ", ".join(f"'{term}'" for term in terms)
    rows = list(everywhere(texts, f"SELECT TOP 30 c.id FROM c ORDER BY RANK FullTextScore(c.text, {quoted})"))
    check_order(rows, bm25("text", terms), 30)


def test_a_query_within_one_key_uses_statistics_of_the_container(texts):
    text = "SELECT TOP 10 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'cloud', 'grape')"
    rows = list(texts.query_items(text, partition_key="key 3"))
    scores = bm25("text", ["cloud", "grape"])
    check_order(rows, {doc["id"]: scores[doc["id"]] for doc in DOCUMENTS if doc["pk"] == "key 3"}, 10)


def test_offset_limit_and_parameters(texts):
    text = "SELECT c.id FROM c WHERE c.n < @n ORDER BY RANK FullTextScore(c.text, @term) OFFSET 5 LIMIT 10"
    parameters = [{"name": "@n", "value": 100}, {"name": "@term", "value": "brick"}]
    rows = list(everywhere(texts, text, parameters=parameters))
    scores = {id: score for id, score in bm25("text", ["brick"]).items() if int(id) < 100}
    want = sorted(scores.values(), reverse=True)[5:15]
    assert [round(scores[row["id"]], 9) for row in rows] == [round(score, 9) for score in want]


@pytest.mark.parametrize("size", [None, 7])
@pytest.mark.parametrize("weights", [None, [3, 1], [0.5, 2]])
def test_fused_scores(texts, weights, size):
    last = f", {weights}" if weights else ""
    text = (
        "SELECT TOP 20 c.id FROM c "
        f"ORDER BY RANK RRF(FullTextScore(c.text, 'cloud', 'drum'), FullTextScore(c.title, 'elbow'){last})"
    )
    rows = list(everywhere(texts, text, max_item_count=size))
    check_order(rows, rrf([bm25("text", ["cloud", "drum"]), bm25("title", ["elbow"])], weights), 20)


def test_text_and_vectors(texts):
    text = "SELECT TOP 15 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'grape'), VectorDistance(c.v, [60, 12]))"
    rows = list(everywhere(texts, text))
    check_order(rows, rrf([bm25("text", ["grape"]), distances([60, 12])]), 15)


def test_unsupported_queries_are_400(texts):
    for text in [
        "SELECT TOP 3 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'grape') DESC",
        "SELECT TOP 3 c.id, FullTextScore(c.text, 'grape') AS s FROM c",
        "SELECT TOP 3 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'a'), FullTextScore(c.title, 'b'), [1])",
    ]:
        with refused(400):
            list(everywhere(texts, text))


def test_the_order_is_the_same_after_a_split(make):
    """The ranges that the client has cached no longer exist at the second query."""
    container = make("/pk", throughput=12000, indexing_policy=INDEXING, full_text_policy=POLICY, vector_embedding_policy=VECTORS)
    load(container, DOCUMENTS)
    text = "SELECT TOP 20 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'drum', 'elbow')"
    check_order(list(everywhere(container, text)), bm25("text", ["drum", "elbow"]), 20)
    before = len(list(container.read_feed_ranges()))
    container.replace_throughput(30000)
    for _ in range(200):
        if len(list(container.read_feed_ranges(force_refresh=True))) > before:
            break
        time.sleep(0.1)
    check_order(list(everywhere(container, text)), bm25("text", ["drum", "elbow"]), 20)
