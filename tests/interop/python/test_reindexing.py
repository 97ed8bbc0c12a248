"""Index transformation: queries work throughout, and the container reports the progress."""

from conftest import refused
from dataset import READINGS, THROUGHPUT, everywhere, indexed, load, policy


def test_a_new_policy_is_applied_and_progress_is_reported(make, database):
    container = make("/pk", throughput=THROUGHPUT, indexing_policy={"indexingMode": "none", "automatic": False})
    load(container, READINGS[:60])
    text = "SELECT VALUE c.n FROM c ORDER BY c.n"
    with refused(400):
        list(everywhere(container, text))
    database.replace_container(container, container.read()["partitionKey"], indexing_policy=policy())
    progress = indexed(container)
    assert progress == sorted(progress) and progress[-1] == 100
    assert list(everywhere(container, text)) == [item["n"] for item in READINGS[:60]]


def test_queries_return_the_same_rows_under_every_policy(make, database):
    container = make("/pk", throughput=THROUGHPUT)
    load(container, READINGS[:60])
    key = container.read()["partitionKey"]
    text = "SELECT VALUE c.n FROM c WHERE c.metric > 10 AND c.kind = 'humidity'"
    expected = [item["n"] for item in READINGS[:60] if item["metric"] > 10 and item["kind"] == "humidity"]
    for new in [policy(excludedPaths=[{"path": "/metric/?"}]), {"indexingMode": "none", "automatic": False}, policy("/kind/?")]:
        database.replace_container(container, key, indexing_policy=new)
        assert sorted(everywhere(container, text, enable_scan_in_query=True)) == expected
