"""Computed properties: queries return them, items do not contain them."""

import pytest
from conftest import refused
from dataset import indexed, policy

LOW = {"name": "low", "query": "SELECT VALUE LOWER(c.name) FROM c"}
TOTAL = {"name": "total", "query": "SELECT VALUE c.price * c.count FROM c"}


@pytest.fixture(params=[None, 30000], ids=["one partition", "three"])
def goods(make, request):
    container = make(
        "/pk",
        throughput=request.param,
        computed_properties=[LOW, TOTAL],
        indexing_policy=policy("/low/?", "/total/?"),
    )
    for n in range(40):
        name = ("Name" if n % 2 else "NAME") + str(n % 4)
        container.create_item({"id": str(n), "pk": str(n % 7), "name": name, "price": n, "count": 2})
    return container


def query(container, text):
    return list(container.query_items(text, enable_cross_partition_query=True))


def test_definitions_are_stored(goods):
    assert goods.read()["computedProperties"] == [LOW, TOTAL]


def test_in_select_and_not_in_star(goods):
    assert query(goods, "SELECT c.low, c.total FROM c WHERE c.id = '3'") == [{"low": "name3", "total": 6}]
    (item,) = query(goods, "SELECT * FROM c WHERE c.id = '3'")
    assert "low" not in item and "total" not in item
    assert "low" not in goods.read_item("3", "3")


def test_in_where(goods):
    assert len(query(goods, "SELECT VALUE c.id FROM c WHERE c.low = 'name3'")) == 10
    assert len(query(goods, "SELECT VALUE c.id FROM c WHERE c.total >= 40")) == 20


def test_in_order_by(goods):
    totals = query(goods, "SELECT VALUE c.total FROM c ORDER BY c.total DESC")
    assert totals == [2 * n for n in reversed(range(40))]


def test_in_group_by(goods):
    """Within one key: this SDK does not merge groups."""
    rows = goods.query_items("SELECT c.low, COUNT(1) AS n FROM c GROUP BY c.low", partition_key="3")
    lows = [f"name{n % 4}" for n in range(40) if n % 7 == 3]
    assert sorted((row["low"], row["n"]) for row in rows) == [(low, lows.count(low)) for low in sorted(set(lows))]


def test_replaced_definitions_take_effect(database, goods):
    changed = {"name": "low", "query": "SELECT VALUE UPPER(c.name) FROM c"}
    database.replace_container(
        goods,
        partition_key=goods.read()["partitionKey"],
        indexing_policy=policy("/low/?"),
        computed_properties=[changed],
    )
    assert len(query(goods, "SELECT VALUE c.id FROM c WHERE c.low = 'NAME3'")) == 10
    indexed(goods)
    assert len(query(goods, "SELECT VALUE c.id FROM c WHERE c.low = 'NAME3'")) == 10


def test_an_unknown_name_is_undefined(goods):
    assert query(goods, "SELECT VALUE c.nothing FROM c") == []


@pytest.mark.parametrize("computed", [
    {"name": "a", "query": "SELECT VALUE 1 FROM c"},
    [{"name": "id", "query": "SELECT VALUE 1 FROM c"}],
    [{"name": "a", "query": "SELECT c.b FROM c"}],
    [{"name": "a", "query": "SELECT VALUE c.b FROM c WHERE true"}],
    [{"name": "a", "query": "SELECT VALUE GetCurrentTicks() FROM c"}],
    [{"name": f"a{n}", "query": "SELECT VALUE 1 FROM c"} for n in range(21)],
])
def test_an_invalid_definition_is_400(make, computed):
    with refused(400):
        make("/pk", computed_properties=computed)
