"""The items of all query tests, and helpers that compute the expected results in plain Python.

READINGS are in a container with five partitions under 23 keys. `mixed` has every JSON type in turn, and is missing
from one item in eight. Expected results are computed from this list and never typed by hand.
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
    """The index has rows for items without a value only at a path that is included by name."""
    included = [{"path": path} for path in ("/*", *explicit)]
    return {"indexingMode": "consistent", "includedPaths": included, **more}


def load(container, items=READINGS):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(container.create_item, items))


def indexed(container):
    """Waits for the index transformation to finish; returns the reported progress values, in percent."""
    progress = []
    while not progress or progress[-1] < 100 and len(progress) < 200:
        time.sleep(0.05)
        headers = {}
        container.read(populate_quota_info=True, response_hook=lambda response_headers, _: headers.update(response_headers))
        progress.append(int(headers["x-ms-documentdb-collection-index-transformation-progress"]))
    return progress


def rank(value):
    """The sort key of a value in ORDER BY. A missing value is `...`; all arrays are equal, and so are all objects."""
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
    """A hashable form of the value: for results whose order is not guaranteed."""
    if isinstance(value, dict):
        return ("object", frozenset((name, frozen(inner)) for name, inner in value.items()))
    if isinstance(value, list):
        return ("array", tuple(frozen(inner) for inner in value))
    return (type(value) is bool, value)


def bag(values):
    """For results whose order is not guaranteed: equal if each value occurs equally often."""
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
