"""Queries without ORDER BY and aggregates, over five partitions and over one key (S102, S104, S110)."""

import math

import pytest
from dataset import OF_ONE_KEY, ONE_KEY, RANGES, READINGS, bag, everywhere, ids, named
from conftest import plain

# filter, parameters, and the same filter in Python
FILTERS = [
    ("c.n = 17", {}, lambda c: c["n"] == 17),
    ("c.metric > 20", {}, lambda c: c["metric"] > 20),
    ("c.metric >= 5 AND c.metric < 10", {}, lambda c: 5 <= c["metric"] < 10),
    ("c.metric BETWEEN 5 AND 10", {}, lambda c: 5 <= c["metric"] <= 10),
    ("c.kind != 'pressure' AND NOT c.on", {}, lambda c: c["kind"] != "pressure" and not c["on"]),
    ("c.kind IN ('humidity', 'pressure') OR c.n < 9", {}, lambda c: c["kind"] in ("humidity", "pressure") or c["n"] < 9),
    ("c.n IN (1, 3, 5, 239, 1000)", {}, lambda c: c["n"] in (1, 3, 5, 239)),
    ("c.place.city = 'city 3' AND c.place.geo.x > 4", {}, lambda c: c["place"]["city"] == "city 3" and c["place"]["geo"]["x"] > 4),
    ("c['place']['geo'][\"y\"] < -200", {}, lambda c: c["place"]["geo"]["y"] < -200),
    ("c.tags[0] = 'blue'", {}, lambda c: c["tags"][:1] == ["blue"]),
    ("ARRAY_CONTAINS(c.tags, 'cold')", {}, lambda c: "cold" in c["tags"]),
    ("ARRAY_LENGTH(c.tags) = 3", {}, lambda c: len(c["tags"]) == 3),
    ("STARTSWITH(c.id, '01')", {}, lambda c: c["id"].startswith("01")),
    ("CONTAINS(c.kind, 'ERAT', true)", {}, lambda c: "erat" in c["kind"]),
    ("c.id LIKE '%7_'", {}, lambda c: c["id"][-2] == "7"),
    ("IS_DEFINED(c.mixed) = false", {}, lambda c: "mixed" not in c),
    ("IS_NULL(c.mixed)", {}, lambda c: c.get("mixed", 0) is None),
    ("IS_STRING(c.mixed) AND c.mixed > 'text 2'", {}, lambda c: isinstance(c.get("mixed"), str) and c["mixed"] > "text 2"),
    ("IS_ARRAY(c.mixed) OR IS_OBJECT(c.mixed)", {}, lambda c: isinstance(c.get("mixed"), (list, dict))),
    ("c.n % 10 = 3 AND FLOOR(c.metric) = c.metric", {}, lambda c: c["n"] % 10 == 3 and math.floor(c["metric"]) == c["metric"]),
    ("(c.on ? c.n : -c.n) > 230", {}, lambda c: c["on"] and c["n"] > 230),
    ("(c.mixed ?? 'none') = 'none'", {}, lambda c: "mixed" not in c),
    ("(c.kind || '!') = 'pressure!'", {}, lambda c: c["kind"] == "pressure"),
    ("c.pk = @pk", {"pk": ONE_KEY}, lambda c: c["pk"] == ONE_KEY),
    ("c.n > @least AND c.kind = @kind", {"least": 100, "kind": "humidity"}, lambda c: c["n"] > 100 and c["kind"] == "humidity"),
    ("ARRAY_CONTAINS(@wanted, c.n)", {"wanted": [2, 3, 5]}, lambda c: c["n"] in (2, 3, 5)),
    ("c.mixed = @value", {"value": None}, lambda c: c.get("mixed", 0) is None),
    ("c.mixed = @value", {"value": {"n": 7}}, lambda c: c.get("mixed") == {"n": 7}),
    ("c.n = 1000", {}, lambda c: False),
]


@pytest.fixture(params=["every partition", "one key"])
def run_query(request, readings):
    """run_query(text, parameters) returns the rows; `run_query.items` are the items that the query reads."""

    def every(text, parameters=None, **options):
        return list(everywhere(readings, text, parameters, **options))

    def one(text, parameters=None, **options):
        return list(readings.query_items(text, parameters=parameters, partition_key=ONE_KEY, **options))

    selected = every if request.param == "every partition" else one
    selected.items = READINGS if request.param == "every partition" else OF_ONE_KEY
    return selected


def test_the_readings_are_in_five_partitions(readings):
    ranges = list(readings.read_feed_ranges())
    assert len(ranges) == RANGES
    spread = [len(list(readings.query_items("SELECT c.id FROM c", feed_range=one))) for one in ranges]
    assert sum(spread) == len(READINGS) and all(spread), spread


@pytest.mark.parametrize("text, parameters, wanted", FILTERS, ids=[text for text, _, _ in FILTERS])
def test_s102_s104_a_filter(run_query, text, parameters, wanted):
    got = run_query(f"SELECT * FROM c WHERE {text}", named(**parameters))
    assert bag(map(plain, got)) == bag(filter(wanted, run_query.items))


PROJECTIONS = [
    ("SELECT c.id, c.n FROM c", lambda c: {"id": c["id"], "n": c["n"]}),
    ("SELECT c.mixed FROM c", lambda c: {"mixed": c["mixed"]} if "mixed" in c else {}),
    ("SELECT c.place.city AS town, c.tags[0] AS tag FROM c", lambda c: {"town": c["place"]["city"], **({"tag": c["tags"][0]} if c["tags"] else {})}),
    ("SELECT VALUE c.n FROM c", lambda c: c["n"]),
    ("SELECT VALUE c.place FROM c", lambda c: c["place"]),
    ("SELECT VALUE {'double': c.n * 2, \"list\": [c.id, c.on]} FROM c", lambda c: {"double": c["n"] * 2, "list": [c["id"], c["on"]]}),
    ("SELECT VALUE [c.kind, c.metric + 0.5] FROM c", lambda c: [c["kind"], c["metric"] + 0.5]),
    ("SELECT UPPER(c.kind) AS loud, LENGTH(c.id) AS size FROM c", lambda c: {"loud": c["kind"].upper(), "size": 4}),
    ("SELECT VALUE 1 FROM c", lambda c: 1),
    ("SELECT c.n, 'x' AS text, null AS nothing FROM c", lambda c: {"n": c["n"], "text": "x", "nothing": None}),
    # S110: the text that LINQ providers generate
    ('SELECT VALUE root["n"] FROM root', lambda c: c["n"]),
    ('SELECT VALUE {"N": root["n"], "City": root["place"]["city"]} FROM root', lambda c: {"N": c["n"], "City": c["place"]["city"]}),
]


@pytest.mark.parametrize("text, row", PROJECTIONS, ids=[text for text, _ in PROJECTIONS])
def test_s110_a_projection(run_query, text, row):
    assert bag(run_query(text)) == bag(map(row, run_query.items))


def test_s110_query_text_of_linq_providers(run_query):
    got = run_query('SELECT VALUE root FROM root WHERE ((root["metric"] > 10.0) AND (root["kind"] = "humidity"))')
    wanted = [item for item in run_query.items if item["metric"] > 10 and item["kind"] == "humidity"]
    assert bag(map(plain, got)) == bag(wanted)


JOINS = [
    ("SELECT c.id, t AS tag FROM c JOIN t IN c.tags", lambda c: [{"id": c["id"], "tag": tag} for tag in c["tags"]]),
    ("SELECT VALUE p.grams FROM c JOIN p IN c.parts WHERE p.grams > 50", lambda c: [p["grams"] for p in c["parts"] if p["grams"] > 50]),
    ("SELECT t AS tag, p.name FROM c JOIN t IN c.tags JOIN p IN c.parts", lambda c: [{"tag": t, "name": p["name"]} for t in c["tags"] for p in c["parts"]]),
    ("SELECT VALUE t FROM t IN c.tags", lambda c: c["tags"]),
    ("SELECT VALUE p FROM c JOIN (SELECT VALUE q FROM q IN c.parts WHERE q.grams > 20) AS p", lambda c: [p for p in c["parts"] if p["grams"] > 20]),
    ("SELECT c.n, (SELECT VALUE COUNT(1) FROM t IN c.tags) AS tags FROM c", lambda c: [{"n": c["n"], "tags": len(c["tags"])}]),
    ("SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE p FROM p IN c.parts WHERE p.grams > 100)", lambda c: [c["n"]] if any(p["grams"] > 100 for p in c["parts"]) else []),
    ("SELECT VALUE ARRAY(SELECT VALUE p.grams FROM p IN c.parts) FROM c", lambda c: [[p["grams"] for p in c["parts"]]]),
    ("SELECT VALUE s.twice FROM c JOIN (SELECT VALUE {'twice': c.n * 2}) AS s", lambda c: [c["n"] * 2]),
]


@pytest.mark.parametrize("text, rows", JOINS, ids=[text for text, _ in JOINS])
def test_s102_a_join_or_a_subquery(run_query, text, rows):
    assert bag(run_query(text)) == bag(row for item in run_query.items for row in rows(item))


DISTINCTS = [
    ("SELECT DISTINCT VALUE c.kind FROM c", lambda c: c["kind"]),
    ("SELECT DISTINCT c.kind, c.on FROM c", lambda c: {"kind": c["kind"], "on": c["on"]}),
    ("SELECT DISTINCT VALUE c.place.city FROM c", lambda c: c["place"]["city"]),
    ("SELECT DISTINCT VALUE c.tags FROM c", lambda c: c["tags"]),
]


@pytest.mark.parametrize("text, row", DISTINCTS, ids=[text for text, _ in DISTINCTS])
def test_s102_distinct(run_query, text, row):
    assert bag(run_query(text)) == {value: 1 for value in bag(map(row, run_query.items))}


@pytest.mark.parametrize("size", [1, 2, 7, 1000, -1])
def test_the_page_size_does_not_change_the_rows(run_query, size):
    text = "SELECT VALUE c.id FROM c WHERE c.metric > 12"
    assert run_query(text, max_item_count=size) == run_query(text)


@pytest.mark.parametrize("text, count", [("TOP 10 VALUE c.n FROM c", 10), ("TOP 1000 VALUE c.n FROM c", 1000), ("TOP 0 VALUE c.n FROM c", 0)])
def test_top_without_order_by_returns_the_first_rows(run_query, text, count):
    assert run_query(f"SELECT {text}", max_item_count=3) == run_query("SELECT VALUE c.n FROM c")[:count]


@pytest.mark.parametrize("offset, limit", [(0, 5), (5, 7), (7, 1000), (0, 0), (1000, 10)])
def test_offset_limit_without_order_by_returns_a_part(run_query, offset, limit):
    got = run_query(f"SELECT VALUE c.n FROM c OFFSET {offset} LIMIT {limit}", max_item_count=3)
    assert got == run_query("SELECT VALUE c.n FROM c")[offset : offset + limit]


def test_offset_limit_and_top_as_parameters(run_query):
    all_rows = run_query("SELECT VALUE c.n FROM c")
    assert run_query("SELECT VALUE c.n FROM c OFFSET @o LIMIT @l", named(o=3, l=4)) == all_rows[3:7]
    assert run_query("SELECT TOP @n VALUE c.n FROM c", named(n=4)) == all_rows[:4]


def test_read_all_items_returns_every_item(readings):
    assert sorted(ids(readings.read_all_items(max_item_count=7))) == ids(READINGS)
