"""The items that every query test asks about, and what a query should make of them, in plain Python.

READINGS lie in a container of five partitions under 23 keys. `mixed` holds every JSON type in turn, and is absent
from one item in eight. Expectations are computed from this list and never typed by hand.
"""

import time
from concurrent.futures import ThreadPoolExecutor

RANGES = 5
THROUGHPUT = 6000 * RANGES
COMPOSITE = [
    [{"path": "/kind", "order": "ascending"}, {"path": "/metric", "order": "descending"}],
    [{"path": "/floor", "order": "ascending"}, {"path": "/n", "order": "ascending"}],
]
KINDS = ["humidity", "pressure", "temperature"]
TAGS = ["cold", "new", "loud", "blue", "far"]


def reading(n):
    item = {
        "id": f"{n:04}",
        "pk": f"device {n % 23}",
        "n": n,
        "metric": (n * 37 % 101) / 4,
        "kind": KINDS[n % 3],
        "floor": n % 5,
        "on": n % 2 == 0,
        "tags": [TAGS[(n + step) % 5] for step in range(n % 4)],
        "place": {"city": f"city {n % 7}", "geo": {"x": n % 10, "y": -n}},
        "parts": [{"name": f"part {n % 3}", "grams": n * step} for step in range(n % 3)],
    }
    if n % 8:
        item["mixed"] = [None, False, True, n / 2, f"text {n % 40:02}", [n], {"n": n}][n % 8 - 1]
    return item


READINGS = [reading(n) for n in range(240)]
ONE_KEY = "device 7"
OF_ONE_KEY = [item for item in READINGS if item["pk"] == ONE_KEY]


def policy(*explicit, **more):
    """The index has a row of items without a value only at a path that is included by name."""
    included = [{"path": path} for path in ("/*", *explicit)]
    return {"indexingMode": "consistent", "includedPaths": included, **more}


def load(container, items=READINGS):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(container.create_item, items))


def indexed(container):
    """Waits for a new policy's index; gives what the container told on the way, in percent."""
    told = []
    while not told or told[-1] < 100 and len(told) < 200:
        time.sleep(0.05)
        headers = {}
        container.read(populate_quota_info=True, response_hook=lambda answer, _: headers.update(answer))
        told.append(int(headers["x-ms-documentdb-collection-index-transformation-progress"]))
    return told


def rank(value):
    """Where a value stands in ORDER BY. Absent is `...`; arrays are alike among themselves, and objects too."""
    if value is ...:
        return (0,)
    if value is None:
        return (1,)
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, (int, float)):
        return (3, value)
    if isinstance(value, str):
        return (4, value.encode())
    return (5,) if isinstance(value, list) else (6,)


def frozen(value):
    """A value that can be in a set: for results whose order is not promised."""
    if isinstance(value, dict):
        return ("object", frozenset((name, frozen(inner)) for name, inner in value.items()))
    if isinstance(value, list):
        return ("array", tuple(frozen(inner) for inner in value))
    return (type(value) is bool, value)


def bag(values):
    """For results whose order is not promised: equal when the same values are there equally often."""
    counts = {}
    for value in values:
        counts[frozen(value)] = counts.get(frozen(value), 0) + 1
    return counts


def ids(items):
    return [item["id"] for item in items]


def everywhere(container, text, parameters=None, **options):
    return container.query_items(text, parameters=parameters, enable_cross_partition_query=True, **options)


def named(**parameters):
    return [{"name": f"@{name}", "value": value} for name, value in parameters.items()]
