"""Vector search: policies, VectorDistance, ordering by distance over several partitions and after a split."""

import math
import random
import time

import pytest
from conftest import refused
from dataset import indexed

DIMENSIONS = 8
EMBEDDINGS = {
    "vectorEmbeddings": [
        {"path": "/near", "dataType": "float32", "dimensions": DIMENSIONS, "distanceFunction": "euclidean"},
        {"path": "/alike", "dataType": "float32", "dimensions": DIMENSIONS, "distanceFunction": "cosine"},
        {"path": "/o/dot", "dataType": "int8", "dimensions": DIMENSIONS, "distanceFunction": "dotproduct"},
    ]
}
INDEXING = {
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": "/near/*"}, {"path": "/alike/*"}, {"path": "/o/dot/*"}, {"path": '/"_etag"/?'}],
    "vectorIndexes": [
        {"path": "/near", "type": "flat"},
        {"path": "/alike", "type": "diskANN"},
        {"path": "/o/dot", "type": "quantizedFlat"},
    ],
}


def numbers(seed):
    rng = random.Random(seed)
    return [rng.randint(-100, 100) for _ in range(DIMENSIONS)]


def item(n):
    vector = numbers(n)
    return {"id": str(n), "pk": str(n % 23), "n": n, "near": vector, "alike": vector, "o": {"dot": vector}}


def euclidean(a, b):
    return math.dist(a, b)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def cosine(a, b):
    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


METRICS = {"c.near": (euclidean, False), "c.alike": (cosine, True), "c.o.dot": (dot, True)}
ITEMS = 120
RANGES = 5


@pytest.fixture(scope="module")
def vectors(database):
    from azure.cosmos import PartitionKey

    container = database.create_container(
        "vectors",
        PartitionKey("/pk"),
        offer_throughput=30000,
        indexing_policy=INDEXING,
        vector_embedding_policy=EMBEDDINGS,
    )
    for n in range(ITEMS):
        container.create_item(item(n))
    container.create_item({"id": "none", "pk": "none", "n": -1})
    container.create_item({"id": "short", "pk": "short", "n": -1, "near": [1, 2]})
    return container


def expected(path, to, predicate=lambda n: True):
    metric, reverse = METRICS[path]
    return sorted((metric(numbers(n), to) for n in range(ITEMS) if predicate(n)), reverse=reverse)


def query(container, text, to, **options):
    parameters = [{"name": "@v", "value": to}]
    return list(container.query_items(text, parameters=parameters, enable_cross_partition_query=True, **options))


def distances(container, path, to, tail="", head="TOP 10"):
    text = f"SELECT {head} c.id, VectorDistance({path}, @v) AS d FROM c {tail} ORDER BY VectorDistance({path}, @v)"
    return [row["d"] for row in query(container, text, to)]


def check_nearest(container):
    for path in METRICS:
        to = numbers(5_000)
        assert distances(container, path, to) == pytest.approx(expected(path, to)[:10])
        filtered = distances(container, path, to, tail="WHERE c.n >= 60")
        assert filtered == pytest.approx(expected(path, to, lambda n: n >= 60)[:10])


def test_policies_are_stored(vectors):
    read = vectors.read()
    assert read["vectorEmbeddingPolicy"] == EMBEDDINGS
    assert read["indexingPolicy"]["vectorIndexes"] == INDEXING["vectorIndexes"]


def test_rows_are_ordered_by_distance_over_all_partitions(vectors):
    assert len(list(vectors.read_feed_ranges())) == RANGES
    check_nearest(vectors)


def test_offset_limit_and_literals(vectors):
    to = numbers(6_000)
    text = f"SELECT VALUE VectorDistance(c.near, {to}) FROM c ORDER BY VectorDistance(c.near, {to}) OFFSET 3 LIMIT 7"
    assert query(vectors, text, to) == pytest.approx(expected("c.near", to)[3:10])


def test_one_partition_key(vectors):
    to = numbers(7_000)
    text = "SELECT TOP 50 VALUE VectorDistance(c.alike, @v) FROM c ORDER BY VectorDistance(c.alike, @v)"
    found = list(vectors.query_items(text, parameters=[{"name": "@v", "value": to}], partition_key="7"))
    assert found == pytest.approx(expected("c.alike", to, lambda n: n % 23 == 7))


def test_a_call_may_override_the_distance_function(vectors):
    to = numbers(8_000)
    call = "VectorDistance(c.near, @v, true, {'distanceFunction': 'cosine', 'dataType': 'Float32'})"
    found = query(vectors, f"SELECT TOP 5 VALUE {call} FROM c ORDER BY {call}", to)
    assert found == pytest.approx(expected("c.alike", to)[:5])


def test_an_invalid_vector_has_no_distance(vectors):
    text = "SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(VectorDistance(c.near, @v))"
    assert sorted(query(vectors, text, numbers(1))) == ["none", "short"]


def test_a_sort_direction_is_400(vectors):
    with refused(400) as caught:
        query(vectors, "SELECT TOP 1 c.id FROM c ORDER BY VectorDistance(c.near, @v) DESC", numbers(1))
    assert "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported." in str(caught.value)


def test_an_option_out_of_range_is_400(vectors):
    with refused(400) as caught:
        call = "VectorDistance(c.near, @v, false, {'searchListSizeMultiplier': -100})"
        query(vectors, f"SELECT TOP 1 c.id FROM c ORDER BY {call}", numbers(1))
    assert "SC2213" in str(caught.value)


def test_without_a_limit_the_sdk_raises_an_error(vectors):
    with pytest.raises(ValueError):
        query(vectors, "SELECT c.id FROM c ORDER BY VectorDistance(c.near, @v)", numbers(1))


def test_adding_an_index_does_not_change_the_results(database, make):
    container = make("/pk", vector_embedding_policy=EMBEDDINGS)
    for n in range(ITEMS):
        container.create_item(item(n))
    check_nearest(container)
    from azure.cosmos import PartitionKey

    database.replace_container(
        container, PartitionKey("/pk"), indexing_policy=INDEXING, vector_embedding_policy=EMBEDDINGS
    )
    check_nearest(container)
    indexed(container)
    check_nearest(container)


def test_a_split_does_not_change_the_results(vectors):
    """The last test of this module: it changes the container."""
    vectors.replace_throughput(60000)
    for _ in range(300):
        check_nearest(vectors)
        if len(list(vectors.read_feed_ranges(force_refresh=True))) > RANGES:
            break
        time.sleep(0.1)
    else:
        pytest.fail("nothing was split")
    check_nearest(vectors)
    vectors.upsert_item(item(3) | {"near": numbers(9_000)})
    assert distances(vectors, "c.near", numbers(9_000), head="TOP 1") == [0]
