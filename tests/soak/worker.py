"""One client of the soak test: writes, reads, queries and follows the change feed with the Python SDK until its input ends.

Invariants: an acknowledged write is visible, once and in its latest version; a query returns every item that existed before it
started, and no item twice; the change feed returns the changes of a key in their order, each once. Differences are listed in the
line of JSON that it prints at the end. worker.js does the same with the JavaScript SDK.
"""

import base64
import json
import logging
import os
import random
import sys
import threading
import time

from azure.core.exceptions import AzureError
from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceExistsError, CosmosResourceNotFoundError

NAME = "python"
WRITERS, KEYS, SLOTS, LIVE = 2, 40, 12, 500
TEXT = "x" * 700
# A killed server closes its connections, and SDKs report that.
IS_KILLED = os.environ.get("SOAK_KILLED") == "1"
RETRY_S = 0.05
# When a merged range is split at another point, this SDK applies its position to both halves completely, and not only
# to the part it had read: it returns some changes again. All changes arrive, and no item returns to an older version:
# more cannot be required.
REPEATS = os.environ.get("SOAK_MERGED") == "1"
EMPTY_PAGES_MIN = 3  # minimum number of consecutive empty pages of the change feed


class Item:
    """The state of one item: the acknowledged version and the latest requested one."""

    def __init__(self, id, pk, slot, rank):
        self.id, self.pk, self.slot, self.rank = id, pk, slot, rank
        self.acknowledged, self.requested, self.deleting = 0, 0, False

    def body(self, version):
        return {"id": self.id, "pk": self.pk, "slot": self.slot, "rank": self.rank, "n": version, "text": TEXT}


class Ledger:
    """Shared by all actors. A writer changes only its own items."""

    def __init__(self):
        self.items, self.differences = {}, []
        self.counts, self.longest_ms, self.stopping = {}, {}, threading.Event()

    def differs(self, text):
        self.differences.append(text)
        if len(self.differences) > 20:
            self.stopping.set()

    def acknowledged_items(self, predicate=lambda item: True):
        """The items that must exist, with their acknowledged versions."""
        return {item.id: item.acknowledged for item in list(self.items.values()) if item.acknowledged and not item.deleting and predicate(item)}

    def timed(self, what, request):
        """Sends the request until a server answers: once, unless servers are killed."""
        while True:
            started = time.monotonic()
            try:
                return request()
            except CosmosHttpResponseError:
                raise
            except (AzureError, ConnectionError) as error:
                if not IS_KILLED:
                    raise
                self.counts["retries"] = self.counts.get("retries", 0) + 1
                time.sleep(RETRY_S)
            finally:
                took = round((time.monotonic() - started) * 1000)
                self.longest_ms[what] = max(self.longest_ms.get(what, 0), took)
                self.counts[what] = self.counts.get(what, 0) + 1


def connect():
    """A separate client, which learns of every split by itself."""
    client = CosmosClient(os.environ["PLEIAD_ENDPOINT"], os.environ["PLEIAD_KEY"])
    return client.get_database_client("soak").get_container_client("items")


def write(ledger, number):
    """Writes under keys that no other writer uses, so that the order of their changes is known."""
    container, rng, version, own_items = connect(), random.Random(f"{number}"), 0, []
    while not ledger.stopping.is_set():
        version += 1
        if len(own_items) < LIVE or rng.random() < 0.1:
            own_items.append(create(ledger, container, number, version, rng))
        elif rng.random() < 0.8:
            replace(ledger, container, rng.choice(own_items), version, rng)
        else:
            delete(ledger, container, own_items.pop(rng.randrange(len(own_items))))


def create(ledger, container, number, version, rng):
    pk, slot = f"{NAME}-{number}-{rng.randrange(KEYS)}", f"{NAME}-{rng.randrange(SLOTS)}"
    item = Item(f"{NAME}-{number}-{version}", pk, slot, rng.randrange(1000))
    ledger.items[item.id] = item
    item.requested = version
    try:
        ledger.timed("create", lambda: container.create_item(item.body(version)))
    except CosmosResourceExistsError:
        # The first attempt got no response, but was executed.
        if not IS_KILLED:
            ledger.differs(f"create {item.id}: it exists already")
    item.acknowledged = version
    return item


def replace(ledger, container, item, version, rng):
    item.requested = version
    if rng.random() < 0.5:
        ledger.timed("replace", lambda: container.replace_item(item.id, item.body(version)))
    else:
        ledger.timed("upsert", lambda: container.upsert_item(item.body(version)))
    item.acknowledged = version


def delete(ledger, container, item):
    item.deleting = True
    try:
        ledger.timed("delete", lambda: container.delete_item(item.id, item.pk))
    except CosmosResourceNotFoundError:
        if not IS_KILLED:
            ledger.differs(f"delete {item.id}: it was acknowledged and does not exist")


def read(ledger):
    container, rng = connect(), random.Random("read")
    while not ledger.stopping.is_set():
        item = ledger.items.get(rng.choice(list(ledger.items) or [""]))
        if item is None or not item.acknowledged or item.deleting:
            time.sleep(0.001)
            continue
        acknowledged = item.acknowledged
        try:
            found = ledger.timed("read", lambda: container.read_item(item.id, item.pk))["n"]
            if not acknowledged <= found <= item.requested:
                ledger.differs(f"read {item.id}: version {found}, but {acknowledged} was acknowledged and {item.requested} requested")
        except CosmosResourceNotFoundError:
            if not item.deleting:
                ledger.differs(f"read {item.id}: version {acknowledged} was acknowledged and does not exist")


def query(ledger):
    container, turn = connect(), 0
    while not ledger.stopping.is_set():
        turn += 1
        slot = f"{NAME}-{turn % SLOTS}"
        ordered = " ORDER BY c.rank" if turn % 2 else ""
        before = ledger.acknowledged_items(lambda item: item.slot == slot)
        text = f"SELECT c.id, c.n, c.rank FROM c WHERE c.slot = @slot{ordered}"
        rows = ledger.timed("whole query", lambda: run_query(container, text, slot))
        compare(ledger, f"query{ordered} of {slot}", before, rows)
        ranks = [row["rank"] for row in rows]
        if ordered and ranks != sorted(ranks):
            ledger.differs(f"query{ordered} of {slot}: not in order")


def run_query(container, text, slot):
    """Uses small pages, so that partitions change between them."""
    parameters = [{"name": "@slot", "value": slot}]
    return list(container.query_items(text, parameters=parameters, enable_cross_partition_query=True, max_item_count=7))


def compare(ledger, what, before, rows):
    found = {row["id"]: row["n"] for row in rows}
    if len(found) != len(rows):
        seen = [row["id"] for row in rows]
        ledger.differs(f"{what}: twice: {sorted({id for id in seen if seen.count(id) > 1})[:5]}")
    for id, version in before.items():
        item = ledger.items[id]
        if id not in found and not item.deleting:
            ledger.differs(f"{what}: {id} is missing, version {version} was acknowledged")
        elif id in found and not version <= found[id] <= item.requested:
            ledger.differs(f"{what}: {id} in version {found[id]}, {version} was acknowledged")


class Follower:
    """Reads the change feed of the container, and resumes from its last continuation."""

    def __init__(self, ledger, writers):
        self.ledger, self.writers, self.container, self.continuation = ledger, writers, connect(), None
        self.by_item, self.by_key = {}, {}

    def run(self):
        while not self.ledger.stopping.is_set():
            self.turn()
        for writer in self.writers:
            writer.join()
        self.catch_up()
        for id, version in self.missing().items():
            self.ledger.differs(f"change feed: {id} was last seen in version {self.by_item.get(id)}, it is {version}")

    def catch_up(self):
        """Reads until no more changes arrive. After merges that takes as many empty pages as the SDK's continuation has entries: it lists
        a range once for each range that was merged into it, hundreds of times, and returns an empty page at the first range that repeats."""
        empty = 0
        while empty < EMPTY_PAGES_MIN or (self.missing() and empty < self.continuation_entries()):
            empty = 0 if self.turn() else empty + 1

    def missing(self):
        return {id: version for id, version in self.ledger.acknowledged_items().items() if self.by_item.get(id) != version}

    def continuation_entries(self):
        return len(json.loads(base64.b64decode(self.continuation))["continuation"]["continuation"])

    def turn(self):
        changes, self.continuation = self.ledger.timed("catching up", self.page)
        for change in changes:
            self.check_change(change)
        return len(changes)

    def page(self):
        since = {"continuation": self.continuation} if self.continuation else {"start_time": "Beginning"}
        changes = list(self.container.query_items_change_feed(**since, max_item_count=50))
        return changes, self.container.client_connection.last_response_headers["etag"]

    def check_change(self, change):
        id, key, version = change["id"], change["pk"], change["n"]
        if not id.startswith(NAME):
            return
        seen, latest = self.by_item.get(id, 0), self.by_key.get(key, 0)
        if version < seen or (version <= latest and not REPEATS):
            self.ledger.differs(f"change feed: {id} in version {version}, after {seen} of the item and {latest} of key {key}")
        self.by_item[id], self.by_key[key] = version, max(latest, version)


def run_actor(ledger, what, actor):
    """Reports an actor's failure and stops the others."""
    try:
        actor()
    except Exception as error:  # every exception of an SDK is a difference
        ledger.differs(f"{what}: {type(error).__name__}: {str(error)[:600]}")
        ledger.stopping.set()


def check_all(ledger):
    """After all actors have finished: all acknowledged items exist, and no others."""
    container = connect()
    rows = ledger.timed("list", lambda: list(container.read_all_items(max_item_count=100)))
    compare(ledger, "at the end", ledger.acknowledged_items(), [row for row in rows if row["id"].startswith(NAME)])
    for row in rows:
        item = ledger.items.get(row["id"])
        if row["id"].startswith(NAME) and (item is None or item.deleting):
            ledger.differs(f"at the end: {row['id']} exists and was deleted")


def main():
    logging.getLogger("azure").setLevel(logging.CRITICAL)  # it logs every split that it handled
    ledger = Ledger()
    actor = lambda what, run: threading.Thread(target=run_actor, args=(ledger, what, run))
    writers = [actor(f"writer {number}", lambda number=number: write(ledger, number)) for number in range(WRITERS)]
    others = [("reader", lambda: read(ledger)), ("querier", lambda: query(ledger)), ("follower", Follower(ledger, writers).run)]
    threads = writers + [actor(what, run) for what, run in others]
    threading.Thread(target=lambda: (sys.stdin.read(), ledger.stopping.set()), daemon=True).start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run_actor(ledger, "at the end", lambda: check_all(ledger))
    report = {"sdk": NAME, "items": len(ledger.acknowledged_items()), "counts": ledger.counts, "longest_ms": ledger.longest_ms}
    print(json.dumps({**report, "differences": ledger.differences}), flush=True)


if __name__ == "__main__":
    main()
