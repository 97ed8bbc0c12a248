"""Query routing and metrics (S101, S102, S103, S111, S112, S113); rejected queries."""

import re

import pytest
from conftest import refused
from dataset import OF_ONE_KEY, ONE_KEY, RANGES, READINGS, THROUGHPUT, everywhere, load

METRICS, INDEXES, PLAN = "x-ms-documentdb-query-metrics", "x-ms-cosmos-index-utilization", "x-pleiad-query-plan"


class RecordedHeaders:
    """A response hook that records the headers of every response."""

    def __init__(self):
        self.responses = []

    def __call__(self, headers, _):
        self.responses.append(dict(headers))

    def partitions(self):
        """The number of partitions that were read, over all pages."""
        return sum(int(count) for response in self.responses for count in re.findall(r" on (\d+) partition", response[PLAN]))

    def charge(self):
        return sum(float(response["x-ms-request-charge"]) for response in self.responses)


def run_query(container, text, **options):
    headers = RecordedHeaders()
    rows = list(everywhere(container, text, populate_index_metrics=True, response_hook=headers, **options))
    return rows, headers


def test_s101_a_filter_on_the_key_is_routed_to_one_partition(readings):
    rows, headers = run_query(readings, f"SELECT * FROM c WHERE c.pk = '{ONE_KEY}' AND c.kind = 'humidity'")
    assert len(rows) == sum(item["kind"] == "humidity" for item in OF_ONE_KEY)
    assert headers.partitions() == 1


def test_s102_without_a_key_all_partitions_are_read(readings):
    rows, headers = run_query(readings, "SELECT * FROM c WHERE c.kind = 'humidity'", max_item_count=1000)
    assert len(rows) == sum(item["kind"] == "humidity" for item in READINGS)
    assert headers.partitions() == RANGES


def test_s103_a_cross_partition_query_must_be_enabled(readings):
    with refused(400) as caught:
        list(readings.query_items("SELECT * FROM c", enable_cross_partition_query=False))
    assert "enablecrosspartition" in caught.value.message
    assert len(list(readings.query_items(f"SELECT * FROM c WHERE c.pk = '{ONE_KEY}'"))) == len(OF_ONE_KEY)


def test_s111_a_filter_on_the_partition_key_path_reads_one_partition(make):
    text = "SELECT * FROM c WHERE c.user = 'user 3'"
    items = [{"id": str(n), "user": f"user {n % 9}", "other": n} for n in range(60)]
    visited = []
    for path in ["/user", "/other"]:
        container = make(path, throughput=THROUGHPUT)
        load(container, items)
        rows, headers = run_query(container, text, max_item_count=1000)
        assert len(rows) == sum(item["user"] == "user 3" for item in items)
        visited.append(headers.partitions())
    assert visited == [1, RANGES]


def test_s112_with_id_as_key_a_filter_on_id_reads_one_partition(make):
    container = make("/id", throughput=THROUGHPUT)
    load(container, READINGS[:40])
    rows, headers = run_query(container, "SELECT VALUE c.n FROM c WHERE c.id = '0017'")
    assert (rows, headers.partitions()) == ([17], 1)


def test_s113_a_query_across_few_partitions_costs_little_more(make):
    container = make("/pk", throughput=12000)
    load(container, READINGS[:60])
    _, routed = run_query(container, f"SELECT * FROM c WHERE c.pk = '{ONE_KEY}'")
    _, across = run_query(container, "SELECT * FROM c WHERE c.floor = 7")
    assert across.charge() - routed.charge() < 3


def test_query_metrics(readings):
    headers = RecordedHeaders()
    text = "SELECT VALUE c.id FROM c WHERE c.metric > 10"
    rows = list(readings.query_items(text, partition_key=ONE_KEY, populate_query_metrics=True, response_hook=headers))
    metrics = dict(pair.split("=") for pair in headers.responses[0][METRICS].split(";"))
    assert int(metrics["outputDocumentCount"]) == len(rows) > 0
    assert int(metrics["retrievedDocumentCount"]) >= len(rows)
    assert float(metrics["totalExecutionTimeInMs"]) >= 0
    assert METRICS not in headers_of_a_plain_query(readings)


def test_query_metrics_contain_the_time_of_functions(make):
    container = make("/pk")
    load(container, READINGS[:3])
    slow = "function slow(n) { const end = Date.now() + 3; while (Date.now() < end) {} return n; }"
    container.scripts.create_user_defined_function({"id": "slow", "body": slow})
    headers = RecordedHeaders()
    text = "SELECT VALUE udf.slow(c.n) FROM c"
    assert len(list(everywhere(container, text, populate_query_metrics=True, response_hook=headers))) == 3
    metrics = dict(pair.split("=") for pair in headers.responses[-1][METRICS].split(";"))
    assert float(metrics["userFunctionExecuteTimeInMs"]) >= 3
    assert float(metrics["VMExecutionTimeInMs"]) >= float(metrics["userFunctionExecuteTimeInMs"])


def headers_of_a_plain_query(container):
    headers = RecordedHeaders()
    list(container.query_items("SELECT VALUE 1 FROM c", partition_key=ONE_KEY, response_hook=headers))
    return headers.responses[0]


def test_index_metrics(readings):
    """The SDK decodes this header before the response hook gets it."""
    _, headers = run_query(readings, "SELECT * FROM c WHERE c.n = 7")
    used = headers.responses[0][INDEXES]["UtilizedSingleIndexes"]
    assert [index["IndexSpec"] for index in used] == ["/n/?"]
    _, headers = run_query(readings, "SELECT TOP 1 * FROM c ORDER BY c.kind, c.metric DESC")
    used = headers.responses[-1][INDEXES]["UtilizedCompositeIndexes"]
    assert [index["IndexSpecs"] for index in used] == [["/kind ASC", "/metric DESC"]]
    assert INDEXES not in headers_of_a_plain_query(readings)


def test_query_advice(readings):
    """The SDK contains the text of each rule."""
    headers = RecordedHeaders()
    text = "SELECT * FROM c WHERE CONTAINS(c.kind, 'humid')"
    list(readings.query_items(text, partition_key=ONE_KEY, populate_query_advice=True, response_hook=headers))
    assert headers.responses[0]["x-ms-cosmos-query-advice"].startswith("QA1002: If you are matching on a string prefix")
    assert "x-ms-cosmos-query-advice" not in headers_of_a_plain_query(readings)


def test_a_query_is_charged(readings):
    few, many = RecordedHeaders(), RecordedHeaders()
    list(readings.query_items("SELECT * FROM c WHERE c.n = 7", partition_key=ONE_KEY, response_hook=few))
    list(everywhere(readings, "SELECT * FROM c", response_hook=many, max_item_count=1000))
    assert 0 < few.charge() < many.charge()


INVALID = [
    ("SELECT * FORM c", "SC1001"),
    ("SELECT * FROM c WHERE", "SC1001"),
    ("SELECT * FROM c WHERE c.n = 'open", "SC1"),
    ("SELECT c.value FROM c", "SC1001"),
    ("SELECT * FROM c WHERE d.n = 1", "SC2001"),
    ("SELECT NO_SUCH(c.n) FROM c", "SC2005"),
    ("SELECT ABS(c.n, 1) FROM c", "SC2050"),
]


@pytest.mark.parametrize("text, code", INVALID)
@pytest.mark.parametrize("scope", [{"partition_key": ONE_KEY}, {"enable_cross_partition_query": True}], ids=["one", "all"])
def test_an_invalid_query_is_400_with_the_location(readings, text, code, scope):
    with refused(400) as caught:
        list(readings.query_items(text, **scope))
    assert code in caught.value.message
    assert '"location"' in caught.value.message


def test_a_missing_parameter_is_undefined(readings):
    assert list(readings.query_items("SELECT * FROM c WHERE c.n = @n", partition_key=ONE_KEY)) == []
    with refused(400) as caught:
        list(readings.query_items("SELECT TOP @n * FROM c", partition_key=ONE_KEY))
    assert "SC2060" in caught.value.message


def test_queries_over_databases_containers_and_offers_still_work(client, database, make):
    one, _ = make("/pk", throughput=500), make("/pk")
    assert [db["id"] for db in client.query_databases("SELECT * FROM r WHERE r.id = @id", [{"name": "@id", "value": database.id}])] == [database.id]
    assert [c["id"] for c in database.query_containers(f"SELECT * FROM r WHERE r.id = '{one.id}'")] == [one.id]
    assert one.get_throughput().offer_throughput == 500
