"""Unique keys: values that may occur once in a logical partition."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import connect, refused

POLICY = {"uniqueKeys": [{"paths": ["/mail"]}, {"paths": ["/name/first", "/name/last"]}]}


@pytest.fixture(params=[None, 30000], ids=["one partition", "three"])
def people(make, request):
    return make("/dept", throughput=request.param, unique_key_policy=POLICY)


def person(n, dept="a", **more):
    return {"id": str(n), "dept": dept, "mail": f"{n}@x", "name": {"first": f"f{n}", "last": "l"}, **more}


def test_the_policy_is_stored(people):
    assert people.read()["uniqueKeyPolicy"]["uniqueKeys"] == POLICY["uniqueKeys"]


def test_a_duplicate_value_is_409(people):
    people.create_item(person(1))
    with refused(409) as caught:
        people.create_item(person(2, mail="1@x"))
    assert "unique index" in caught.value.message
    with refused(409):
        people.upsert_item(person(2, name={"first": "f1", "last": "l"}))
    people.create_item(person(2))
    with refused(409):
        people.replace_item("2", person(2, mail="1@x"))


def test_s12_the_scope_is_the_logical_partition(people):
    for dept in ["a", "b", "c", "d"]:
        people.create_item(person(1, dept))
    assert len(list(people.read_all_items())) == 4


def test_a_missing_value_counts_as_null_and_is_unique(people):
    people.create_item({"id": "1", "dept": "a"})
    with refused(409):
        people.create_item({"id": "2", "dept": "a", "mail": None, "name": {"first": "x"}})


def test_a_value_is_free_after_its_item_is_deleted_or_changed(people):
    people.create_item(person(1))
    people.replace_item("1", person(1, mail="new@x"))
    people.create_item(person(2, mail="1@x"))
    people.delete_item("2", "a")
    people.create_item(person(3, mail="1@x"))


def test_of_many_concurrent_creates_one_succeeds(scheme, people, database):
    containers = [connect(scheme).get_database_client(database.id).get_container_client(people.id) for _ in range(4)]

    def attempt(n):
        try:
            containers[n % 4].create_item(person(n, mail="wanted@x"))
            return 1
        except Exception as error:
            assert error.status_code == 409
            return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(40))) == 1


def test_the_policy_cannot_be_changed(database, people):
    with refused(403):
        database.replace_container(people, partition_key=people.read()["partitionKey"])
