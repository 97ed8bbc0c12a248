"""Where a query goes and what it tells about its work (S101, S102, S103, S111, S112, S113); what is refused."""

import re

import pytest
from conftest import refused
from dataset import OF_ONE_KEY, ONE_KEY, RANGES, READINGS, THROUGHPUT, everywhere, load

METRICS, INDEXES, PLAN = "x-ms-documentdb-query-metrics", "x-ms-cosmos-index-utilization", "x-pleiad-query-plan"


class Told:
    """A response hook that keeps the headers of every answer."""

    def __init__(self):
        self.answers = []

    def __call__(self, headers, _):
        self.answers.append(dict(headers))

    def partitions(self):
        """How many partitions were visited, over all pages."""
        return sum(int(count) for answer in self.answers for count in re.findall(r" on (\d+) partition", answer[PLAN]))

    def charge(self):
        return sum(float(answer["x-ms-request-charge"]) for answer in self.answers)


def told(container, text, **options):
    headers = Told()
    rows = list(everywhere(container, text, populate_index_metrics=True, response_hook=headers, **options))
    return rows, headers


def test_s101_a_fixed_key_goes_to_one_partition(readings):
    rows, headers = told(readings, f"SELECT * FROM c WHERE c.pk = '{ONE_KEY}' AND c.kind = 'humidity'")
    assert len(rows) == sum(item["kind"] == "humidity" for item in OF_ONE_KEY)
    assert headers.partitions() == 1


def test_s102_without_a_key_every_partition_is_asked(readings):
    rows, headers = told(readings, "SELECT * FROM c WHERE c.kind = 'humidity'", max_item_count=1000)
    assert len(rows) == sum(item["kind"] == "humidity" for item in READINGS)
    assert headers.partitions() == RANGES


def test_s103_a_fan_out_must_be_asked_for(readings):
    with refused(400) as caught:
        list(readings.query_items("SELECT * FROM c", enable_cross_partition_query=False))
    assert "enablecrosspartition" in caught.value.message
    assert len(list(readings.query_items(f"SELECT * FROM c WHERE c.pk = '{ONE_KEY}'"))) == len(OF_ONE_KEY)


def test_s111_the_key_that_queries_filter_by(make):
    text = "SELECT * FROM c WHERE c.user = 'user 3'"
    items = [{"id": str(n), "user": f"user {n % 9}", "other": n} for n in range(60)]
    visited = []
    for path in ["/user", "/other"]:
        container = make(path, throughput=THROUGHPUT)
        load(container, items)
        rows, headers = told(container, text, max_item_count=1000)
        assert len(rows) == sum(item["user"] == "user 3" for item in items)
        visited.append(headers.partitions())
    assert visited == [1, RANGES]


def test_s112_with_id_as_key_an_id_is_in_one_partition(make):
    container = make("/id", throughput=THROUGHPUT)
    load(container, READINGS[:40])
    rows, headers = told(container, "SELECT VALUE c.n FROM c WHERE c.id = '0017'")
    assert (rows, headers.partitions()) == ([17], 1)


def test_s113_across_few_partitions_costs_little_more(make):
    container = make("/pk", throughput=12000)
    load(container, READINGS[:60])
    _, routed = told(container, f"SELECT * FROM c WHERE c.pk = '{ONE_KEY}'")
    _, across = told(container, "SELECT * FROM c WHERE c.floor = 7")
    assert across.charge() - routed.charge() < 3


def test_query_metrics(readings):
    headers = Told()
    text = "SELECT VALUE c.id FROM c WHERE c.metric > 10"
    rows = list(readings.query_items(text, partition_key=ONE_KEY, populate_query_metrics=True, response_hook=headers))
    metrics = dict(pair.split("=") for pair in headers.answers[0][METRICS].split(";"))
    assert int(metrics["outputDocumentCount"]) == len(rows) > 0
    assert int(metrics["retrievedDocumentCount"]) >= len(rows)
    assert float(metrics["totalExecutionTimeInMs"]) >= 0
    assert METRICS not in headers_of_a_plain_query(readings)


def test_query_metrics_tell_what_functions_take(make):
    container = make("/pk")
    load(container, READINGS[:3])
    slow = "function slow(n) { const end = Date.now() + 3; while (Date.now() < end) {} return n; }"
    container.scripts.create_user_defined_function({"id": "slow", "body": slow})
    headers = Told()
    text = "SELECT VALUE udf.slow(c.n) FROM c"
    assert len(list(everywhere(container, text, populate_query_metrics=True, response_hook=headers))) == 3
    metrics = dict(pair.split("=") for pair in headers.answers[-1][METRICS].split(";"))
    assert float(metrics["userFunctionExecuteTimeInMs"]) >= 3
    assert float(metrics["VMExecutionTimeInMs"]) >= float(metrics["userFunctionExecuteTimeInMs"])


def headers_of_a_plain_query(container):
    headers = Told()
    list(container.query_items("SELECT VALUE 1 FROM c", partition_key=ONE_KEY, response_hook=headers))
    return headers.answers[0]


def test_index_metrics(readings):
    """The SDK decodes this header before anyone sees it."""
    _, headers = told(readings, "SELECT * FROM c WHERE c.n = 7")
    used = headers.answers[0][INDEXES]["UtilizedSingleIndexes"]
    assert [index["IndexSpec"] for index in used] == ["/n/?"]
    _, headers = told(readings, "SELECT TOP 1 * FROM c ORDER BY c.kind, c.metric DESC")
    used = headers.answers[-1][INDEXES]["UtilizedCompositeIndexes"]
    assert [index["IndexSpecs"] for index in used] == [["/kind ASC", "/metric DESC"]]
    assert INDEXES not in headers_of_a_plain_query(readings)


def test_query_advice(readings):
    """The SDK knows the words of each rule."""
    headers = Told()
    text = "SELECT * FROM c WHERE CONTAINS(c.kind, 'humid')"
    list(readings.query_items(text, partition_key=ONE_KEY, populate_query_advice=True, response_hook=headers))
    assert headers.answers[0]["x-ms-cosmos-query-advice"].startswith("QA1002: If you are matching on a string prefix")
    assert "x-ms-cosmos-query-advice" not in headers_of_a_plain_query(readings)


def test_a_query_is_charged(readings):
    few, many = Told(), Told()
    list(readings.query_items("SELECT * FROM c WHERE c.n = 7", partition_key=ONE_KEY, response_hook=few))
    list(everywhere(readings, "SELECT * FROM c", response_hook=many, max_item_count=1000))
    assert 0 < few.charge() < many.charge()


REFUSED = [
    ("SELECT * FORM c", "SC1001"),
    ("SELECT * FROM c WHERE", "SC1001"),
    ("SELECT * FROM c WHERE c.n = 'open", "SC1"),
    ("SELECT c.value FROM c", "SC1001"),
    ("SELECT * FROM c WHERE d.n = 1", "SC2001"),
    ("SELECT NO_SUCH(c.n) FROM c", "SC2005"),
    ("SELECT ABS(c.n, 1) FROM c", "SC2050"),
]


@pytest.mark.parametrize("text, code", REFUSED)
@pytest.mark.parametrize("scope", [{"partition_key": ONE_KEY}, {"enable_cross_partition_query": True}], ids=["one", "all"])
def test_a_query_that_makes_no_sense_is_400_and_says_where(readings, text, code, scope):
    with refused(400) as caught:
        list(readings.query_items(text, **scope))
    assert code in caught.value.message
    assert '"location"' in caught.value.message


def test_a_parameter_that_was_not_given_is_undefined(readings):
    assert list(readings.query_items("SELECT * FROM c WHERE c.n = @n", partition_key=ONE_KEY)) == []
    with refused(400) as caught:
        list(readings.query_items("SELECT TOP @n * FROM c", partition_key=ONE_KEY))
    assert "SC2060" in caught.value.message


def test_queries_over_databases_containers_and_offers_still_work(client, database, make):
    one, _ = make("/pk", throughput=500), make("/pk")
    assert [db["id"] for db in client.query_databases("SELECT * FROM r WHERE r.id = @id", [{"name": "@id", "value": database.id}])] == [database.id]
    assert [c["id"] for c in database.query_containers(f"SELECT * FROM r WHERE r.id = '{one.id}'")] == [one.id]
    assert one.get_throughput().offer_throughput == 500
