"""One client of the soak: writes, reads, queries and follows the change feed through the Python SDK until its input ends.

It believes nothing but what it was told: an acknowledged write is there, in its last version and once; a query has every item that was
there before it began and no item twice; the change feed tells a key's changes in their order, each once. Whatever differs is in
the line of JSON that it prints at the end. worker.js does the same with the JavaScript SDK.
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
# Servers that are killed hang up on their clients, and SDKs say so.
IS_KILLED = os.environ.get("SOAK_KILLED") == "1"
AWAY_S = 0.05
# When a merged range is split elsewhere, this SDK shows its position to all of both halves, and not only to where it had been: it
# gives some changes again. All come, and no item goes back to an older version: that is all that can be asked of it.
REPEATS = os.environ.get("SOAK_MERGED") == "1"
SILENT_AFTER = 3  # empty answers of the change feed in a row, at least


class Item:
    """What we know of one: the version we were told is there, and the one that we have asked for."""

    def __init__(self, id, pk, slot, rank):
        self.id, self.pk, self.slot, self.rank = id, pk, slot, rank
        self.told, self.tried, self.leaving = 0, 0, False

    def body(self, version):
        return {"id": self.id, "pk": self.pk, "slot": self.slot, "rank": self.rank, "n": version, "text": TEXT}


class Ledger:
    """Shared by the actors. A writer changes its own items only."""

    def __init__(self):
        self.items, self.differences = {}, []
        self.counts, self.longest_ms, self.stopping = {}, {}, threading.Event()

    def differs(self, text):
        self.differences.append(text)
        if len(self.differences) > 20:
            self.stopping.set()

    def settled(self, wanted=lambda item: True):
        """The items that are certainly there, and their versions."""
        return {item.id: item.told for item in list(self.items.values()) if item.told and not item.leaving and wanted(item)}

    def timed(self, what, ask):
        """Asks until somebody answers: once, unless servers are killed."""
        while True:
            began = time.monotonic()
            try:
                return ask()
            except CosmosHttpResponseError:
                raise
            except (AzureError, ConnectionError) as error:
                if not IS_KILLED:
                    raise
                self.counts["away"] = self.counts.get("away", 0) + 1
                time.sleep(AWAY_S)
            finally:
                took = round((time.monotonic() - began) * 1000)
                self.longest_ms[what] = max(self.longest_ms.get(what, 0), took)
                self.counts[what] = self.counts.get(what, 0) + 1


def connect():
    """A client of its own, which hears of every split by itself."""
    client = CosmosClient(os.environ["PLEIAD_ENDPOINT"], os.environ["PLEIAD_KEY"])
    return client.get_database_client("soak").get_container_client("items")


def write(ledger, number):
    """Its keys are nobody else's, so that it knows the order of their changes."""
    container, chance, version, mine = connect(), random.Random(f"{number}"), 0, []
    while not ledger.stopping.is_set():
        version += 1
        if len(mine) < LIVE or chance.random() < 0.1:
            mine.append(create(ledger, container, number, version, chance))
        elif chance.random() < 0.8:
            replace(ledger, container, chance.choice(mine), version, chance)
        else:
            delete(ledger, container, mine.pop(chance.randrange(len(mine))))


def create(ledger, container, number, version, chance):
    pk, slot = f"{NAME}-{number}-{chance.randrange(KEYS)}", f"{NAME}-{chance.randrange(SLOTS)}"
    item = Item(f"{NAME}-{number}-{version}", pk, slot, chance.randrange(1000))
    ledger.items[item.id] = item
    item.tried = version
    try:
        ledger.timed("create", lambda: container.create_item(item.body(version)))
    except CosmosResourceExistsError:
        # Nobody answered the first time, and yet it was done.
        if not IS_KILLED:
            ledger.differs(f"create {item.id}: it is there already")
    item.told = version
    return item


def replace(ledger, container, item, version, chance):
    item.tried = version
    if chance.random() < 0.5:
        ledger.timed("replace", lambda: container.replace_item(item.id, item.body(version)))
    else:
        ledger.timed("upsert", lambda: container.upsert_item(item.body(version)))
    item.told = version


def delete(ledger, container, item):
    item.leaving = True
    try:
        ledger.timed("delete", lambda: container.delete_item(item.id, item.pk))
    except CosmosResourceNotFoundError:
        if not IS_KILLED:
            ledger.differs(f"delete {item.id}: it was acknowledged and is not there")


def read(ledger):
    container, chance = connect(), random.Random("read")
    while not ledger.stopping.is_set():
        item = ledger.items.get(chance.choice(list(ledger.items) or [""]))
        if item is None or not item.told or item.leaving:
            time.sleep(0.001)
            continue
        told = item.told
        try:
            found = ledger.timed("read", lambda: container.read_item(item.id, item.pk))["n"]
            if not told <= found <= item.tried:
                ledger.differs(f"read {item.id}: version {found}, and {told} was acknowledged, {item.tried} asked for")
        except CosmosResourceNotFoundError:
            if not item.leaving:
                ledger.differs(f"read {item.id}: version {told} was acknowledged and is not there")


def query(ledger):
    container, turn = connect(), 0
    while not ledger.stopping.is_set():
        turn += 1
        slot = f"{NAME}-{turn % SLOTS}"
        ordered = " ORDER BY c.rank" if turn % 2 else ""
        before = ledger.settled(lambda item: item.slot == slot)
        text = f"SELECT c.id, c.n, c.rank FROM c WHERE c.slot = @slot{ordered}"
        rows = ledger.timed("whole query", lambda: walk(container, text, slot))
        compare(ledger, f"query{ordered} of {slot}", before, rows)
        ranks = [row["rank"] for row in rows]
        if ordered and ranks != sorted(ranks):
            ledger.differs(f"query{ordered} of {slot}: not in order")


def walk(container, text, slot):
    """In small pages, so that partitions change in the middle."""
    parameters = [{"name": "@slot", "value": slot}]
    return list(container.query_items(text, parameters=parameters, enable_cross_partition_query=True, max_item_count=7))


def compare(ledger, what, before, rows):
    found = {row["id"]: row["n"] for row in rows}
    if len(found) != len(rows):
        seen = [row["id"] for row in rows]
        ledger.differs(f"{what}: twice: {sorted({id for id in seen if seen.count(id) > 1})[:5]}")
    for id, version in before.items():
        item = ledger.items[id]
        if id not in found and not item.leaving:
            ledger.differs(f"{what}: {id} is missing, version {version} was acknowledged")
        elif id in found and not version <= found[id] <= item.tried:
            ledger.differs(f"{what}: {id} in version {found[id]}, {version} was acknowledged")


class Follower:
    """Reads the change feed of the container, and goes on where it stopped."""

    def __init__(self, ledger, writers):
        self.ledger, self.writers, self.container, self.here = ledger, writers, connect(), None
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
        """Until nothing more comes. After merges that takes as many empty answers as the SDK's continuation has places: it lists a range
        once for each that it came from, by the hundred, and calls an answer empty as soon as it meets a range for the second time."""
        empty = 0
        while empty < SILENT_AFTER or (self.missing() and empty < self.places()):
            empty = 0 if self.turn() else empty + 1

    def missing(self):
        return {id: version for id, version in self.ledger.settled().items() if self.by_item.get(id) != version}

    def places(self):
        return len(json.loads(base64.b64decode(self.here))["continuation"]["continuation"])

    def turn(self):
        changes, self.here = self.ledger.timed("catching up", self.page)
        for change in changes:
            self.saw(change)
        return len(changes)

    def page(self):
        since = {"continuation": self.here} if self.here else {"start_time": "Beginning"}
        changes = list(self.container.query_items_change_feed(**since, max_item_count=50))
        return changes, self.container.client_connection.last_response_headers["etag"]

    def saw(self, change):
        id, key, version = change["id"], change["pk"], change["n"]
        if not id.startswith(NAME):
            return
        seen, latest = self.by_item.get(id, 0), self.by_key.get(key, 0)
        if version < seen or (version <= latest and not REPEATS):
            self.ledger.differs(f"change feed: {id} in version {version}, after {seen} of the item and {latest} of key {key}")
        self.by_item[id], self.by_key[key] = version, max(latest, version)


def watched(ledger, what, actor):
    """An actor's end is nothing to be overlooked."""
    try:
        actor()
    except Exception as error:  # whatever an SDK can raise is what we are here to see
        ledger.differs(f"{what}: {type(error).__name__}: {str(error)[:600]}")
        ledger.stopping.set()


def check_all(ledger):
    """When everybody is done: each item, and no other."""
    container = connect()
    rows = ledger.timed("list", lambda: list(container.read_all_items(max_item_count=100)))
    compare(ledger, "at the end", ledger.settled(), [row for row in rows if row["id"].startswith(NAME)])
    for row in rows:
        item = ledger.items.get(row["id"])
        if row["id"].startswith(NAME) and (item is None or item.leaving):
            ledger.differs(f"at the end: {row['id']} is there and was deleted")


def main():
    logging.getLogger("azure").setLevel(logging.CRITICAL)  # it tells of every split that it has hidden
    ledger = Ledger()
    actor = lambda what, run: threading.Thread(target=watched, args=(ledger, what, run))
    writers = [actor(f"writer {number}", lambda number=number: write(ledger, number)) for number in range(WRITERS)]
    others = [("reader", lambda: read(ledger)), ("querier", lambda: query(ledger)), ("follower", Follower(ledger, writers).run)]
    threads = writers + [actor(what, run) for what, run in others]
    threading.Thread(target=lambda: (sys.stdin.read(), ledger.stopping.set()), daemon=True).start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    watched(ledger, "at the end", lambda: check_all(ledger))
    report = {"sdk": NAME, "items": len(ledger.settled()), "counts": ledger.counts, "longest_ms": ledger.longest_ms}
    print(json.dumps({**report, "differences": ledger.differences}), flush=True)


if __name__ == "__main__":
    main()
