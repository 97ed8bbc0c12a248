"""Stored procedures, triggers and user-defined functions: S114 to S118, S120; the scripts are in PLEIAD_SCRIPTS."""

import os
import uuid
from pathlib import Path
from urllib.parse import unquote

import pytest
from azure.cosmos.documents import TriggerOperation, TriggerType

from conftest import plain, refused

SCRIPTS = Path(os.environ["PLEIAD_SCRIPTS"])


def source(name):
    return (SCRIPTS / f"{name}.js").read_text()


def store(container, name, body=None):
    container.scripts.create_stored_procedure({"id": name, "body": body or source(name)})
    return lambda key, *arguments, **more: container.scripts.execute_stored_procedure(
        name, partition_key=key, params=list(arguments), **more
    )


def trigger(container, name, kind, operation=TriggerOperation.All):
    container.scripts.create_trigger(
        {"id": name, "body": source(name), "triggerType": kind, "triggerOperation": operation}
    )


def test_stored_procedures_can_be_created_read_replaced_and_deleted(container):
    created = container.scripts.create_stored_procedure({"id": "s", "body": "function () {}"})
    with refused(409):
        container.scripts.create_stored_procedure({"id": "s", "body": "function () {}"})
    assert [s["id"] for s in container.scripts.list_stored_procedures()] == ["s"]
    found = container.scripts.query_stored_procedures(
        "SELECT * FROM root r WHERE r.id = @id", parameters=[{"name": "@id", "value": "s"}]
    )
    assert [s["_rid"] for s in found] == [created["_rid"]]
    replaced = container.scripts.replace_stored_procedure(created, {"id": "s", "body": "function () { return 1 }"})
    assert replaced["_etag"] != created["_etag"]
    assert container.scripts.get_stored_procedure("s")["body"] == "function () { return 1 }"
    container.scripts.delete_stored_procedure(replaced)
    with refused(404):
        container.scripts.get_stored_procedure("s")


def test_triggers_and_functions_can_be_created_read_replaced_and_deleted(container):
    scripts = container.scripts
    created = scripts.create_trigger(
        {"id": "t", "body": "function () {}", "triggerType": TriggerType.Pre, "triggerOperation": TriggerOperation.All}
    )
    assert (created["triggerType"], created["triggerOperation"]) == (TriggerType.Pre, TriggerOperation.All)
    scripts.replace_trigger("t", {**plain(created), "body": "function () { 1 }"})
    assert scripts.get_trigger("t")["body"] == "function () { 1 }"
    scripts.delete_trigger("t")
    assert list(scripts.list_triggers()) == []
    created = scripts.create_user_defined_function({"id": "u", "body": "x => x"})
    scripts.replace_user_defined_function(created, {"id": "u", "body": "x => -x"})
    assert [u["body"] for u in scripts.list_user_defined_functions()] == ["x => -x"]
    scripts.delete_user_defined_function("u")
    with refused(404):
        scripts.get_user_defined_function("u")


def test_s114_a_procedure_is_atomic(container):
    body = """function (fails) {
        __.createDocument(__.getSelfLink(), { id: '1', pk: 'a' });
        __.createDocument(__.getSelfLink(), { id: '2', pk: 'a' }, () => { if (fails) throw new Error('no') });
    }"""
    run = store(container, "two", body)
    with refused(400) as caught:
        run("a", True)
    assert "Error: no" in caught.value.message
    assert list(container.read_all_items()) == []
    run("a", False)
    assert sorted(item["id"] for item in container.read_all_items()) == ["1", "2"]


def test_s115_a_procedure_needs_a_key(container):
    store(container, "empty", "function () {}")
    with refused(400):
        container.scripts.execute_stored_procedure("empty")


def test_s116_a_procedure_cannot_write_other_keys(container):
    run = store(container, "other", "function () { __.createDocument(__.getSelfLink(), { id: '1', pk: 'b' }) }")
    with refused(400):
        run("a")
    assert list(container.read_all_items()) == []


def test_results_logs_and_errors(container):
    run = store(container, "say", "function (x) { console.log('got %s', x); getContext().getResponse().setBody(x) }")
    for value in [1, "two", [3], {"four": 4}, None, True]:
        assert run("a", value) == value
    run("a", "ü", enable_script_logging=True)
    headers = container.client_connection.last_response_headers
    assert unquote(headers["x-ms-documentdb-script-log-results"]) == "got ü"
    failing = store(container, "fails", "function () {\n  throw new Error(ErrorCodes.Conflict, 'mine')\n}")
    with refused(400, 409) as caught:
        failing("a")
    assert "mine" in caught.value.message and "fails:2" in caught.value.message
    with refused(400):
        store(container, "broken", "function (")("a")


def test_bulk_import_and_delete_resume(container):
    load, clear = store(container, "bulkImport"), store(container, "bulkDelete")
    documents = [{"id": str(n), "pk": "a", "n": n} for n in range(300)]
    done = 0
    while done < len(documents):
        done += load("a", documents[done:])
    assert done == 300
    deleted, more = 0, True
    while more:
        result = clear("a", "SELECT * FROM c WHERE c.n < 250")
        deleted, more = deleted + result["deleted"], result["continuation"]
    assert deleted == 250
    assert len(list(container.query_items("SELECT c.id FROM c", partition_key="a"))) == 50


def test_swapping_is_atomic(container):
    swap = store(container, "swapItems")
    container.create_item({"id": "anna", "pk": "team", "item": "sword"})
    container.create_item({"id": "ben", "pk": "team", "item": "shield"})
    assert swap("team", "anna", "ben") is True
    assert container.read_item("anna", "team")["item"] == "shield"
    with refused(400) as caught:
        swap("team", "anna", "missing")
    assert "Unable to find both players" in caught.value.message
    assert container.read_item("ben", "team")["item"] == "sword"


def test_aggregate(container):
    for n in range(120):
        container.create_item({"id": str(n), "pk": "a", "n": n})
    container.create_item({"id": "x", "pk": "a"})
    assert store(container, "aggregate")("a", "n") == {"count": 120, "sum": 7140, "mean": 59.5}


def test_s120_one_summary_per_device(make):
    readings = make("/deviceId")
    latest = store(readings, "setLatestStateAcrossReadings")
    for n, value in enumerate([105, 104, 107]):
        readings.create_item({"id": f"XMS-001-{n}", "deviceId": "XMS-0001", "metricValue": value})
        state = latest("XMS-0001", f"XMS-001-{n}")
        assert (state["readings"], state["latestValue"]) == (n + 1, value)
    assert readings.read_item("state", "XMS-0001")["total"] == 316
    with refused(400):
        latest("XMS-0001", "missing")


def test_s118_a_post_trigger_updates_metadata(container):
    trigger(container, "updateMetadata", TriggerType.Post, TriggerOperation.Create)
    with refused(400):
        container.create_item({"id": "1", "pk": "a"}, post_trigger_include="updateMetadata")
    assert list(container.read_all_items()) == []
    container.create_item({"id": "_metadata", "pk": "a", "createdDocuments": 0, "createdNames": ""})
    for name in ["1", "2"]:
        container.create_item({"id": name, "pk": "a"}, post_trigger_include="updateMetadata")
    assert plain(container.read_item("_metadata", "a"))["createdNames"] == " 1 2"
    with refused(400):
        container.upsert_item({"id": "1", "pk": "a"}, post_trigger_include="updateMetadata")


def test_a_pre_trigger_validates_and_changes_an_item(container):
    trigger(container, "validateItem", TriggerType.Pre)
    created = container.create_item({"id": "1", "pk": "a", "name": "n"}, pre_trigger_include="validateItem")
    assert created["timestamp"] > 1_600_000_000_000
    with refused(400) as caught:
        container.replace_item("1", {"id": "1", "pk": "a"}, pre_trigger_include="validateItem")
    assert "An item needs a name." in caught.value.message
    with refused(400):
        container.create_item({"id": "2", "pk": "a"}, pre_trigger_include="missing")


@pytest.mark.parametrize("partitions", [None, 30_000])
def test_functions_in_queries(make, partitions):
    container = make("/pk", throughput=partitions)
    container.scripts.create_user_defined_function({"id": "tax", "body": source("tax")})
    for n, income in enumerate([500, 5000, 50_000]):
        container.create_item({"id": str(n), "pk": str(n), "income": income})
    query = lambda text: list(container.query_items(text, enable_cross_partition_query=True))
    assert sorted(query("SELECT VALUE udf.tax(c.income) FROM c")) == [50, 1000, 20_000]
    assert query("SELECT VALUE c.id FROM c WHERE udf.tax(c.income) > 60 ORDER BY c.income DESC") == ["2", "1"]
    assert query("SELECT VALUE SUM(udf.tax(c.income)) FROM c") == [21_050]
    with refused(400):
        query("SELECT VALUE udf.missing(c.income) FROM c")


def test_sessions_see_what_a_procedure_wrote(container):
    run = store(container, "make", "function (id) { __.createDocument(__.getSelfLink(), { id: id, pk: 'a' }) }")
    for _ in range(10):
        name = uuid.uuid4().hex
        run("a", name)
        assert container.read_item(name, "a")["id"] == name
