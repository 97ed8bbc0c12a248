"""The one place that sets the SDK up. Every test runs twice: over http and over https.

The server is not ours to start: PLEIAD_ENDPOINT, PLEIAD_ENDPOINT_HTTPS, PLEIAD_KEY and PLEIAD_CA_FILE say where it is.
The SDK is the published one, unmodified; a test that needs a trick to pass has found a bug in the server.
"""

import os
import sys
import uuid
from contextlib import contextmanager

import dataset
import pytest
from azure.cosmos import CosmosClient, PartitionKey, SSLConfiguration
from azure.cosmos.exceptions import CosmosHttpResponseError
from management import manage

sys.dont_write_bytecode = True

KEY = os.environ.get("PLEIAD_KEY", "")
CA_FILE = os.environ.get("PLEIAD_CA_FILE", "")
ENDPOINTS = {
    "http": os.environ.get("PLEIAD_ENDPOINT", ""),
    "https": os.environ.get("PLEIAD_ENDPOINT_HTTPS", ""),
}


def connect(scheme, key=KEY, **options):
    """A client of its own, with caches of its own."""
    if scheme == "https":
        # The SDK does not check certificates of localhost unless it is handed a CA; with one it does.
        options["ssl_config"] = SSLConfiguration()
        options["connection_verify"] = CA_FILE
    return CosmosClient(ENDPOINTS[scheme], key, **options)


def unique(prefix):
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


@contextmanager
def refused(status, sub_status=None):
    """The block must fail with this status, and this sub-status if one is given."""
    with pytest.raises(CosmosHttpResponseError) as caught:
        yield caught
    assert caught.value.status_code == status, caught.value
    if sub_status is not None:
        assert caught.value.sub_status == sub_status, caught.value


def header(response, name):
    return response.get_response_headers()[name]


def charge(response):
    return float(header(response, "x-ms-request-charge"))


def plain(item):
    """What the user wrote: the item without the properties the server adds."""
    return {name: value for name, value in item.items() if name not in SYSTEM_PROPERTIES}


SYSTEM_PROPERTIES = {"_rid", "_self", "_etag", "_ts", "_attachments"}


@pytest.fixture(scope="session", params=["http", "https"])
def scheme(request):
    if not ENDPOINTS[request.param]:
        pytest.skip(f"no {request.param} endpoint was given")
    return request.param


@pytest.fixture(scope="session")
def client(scheme):
    return connect(scheme)


@pytest.fixture(scope="module")
def database(client, request):
    """One database per module, gone when the module is done."""
    made = client.create_database(unique(request.module.__name__))
    yield made
    client.delete_database(made)


@pytest.fixture
def make(database):
    """make("/pk"), make(["/a", "/b"]), make("/pk", version=1, throughput=12000): a fresh container."""

    def create(path, version=2, throughput=None, **options):
        key = PartitionKey(path=path, version=version)
        return database.create_container(unique("c"), key, offer_throughput=throughput, **options)

    return create


@pytest.fixture
def container(make):
    return make("/pk")


@pytest.fixture
def repartition(database):
    """split(container), merge(container): the largest in two, all into one; each returns when it has happened."""

    def ask(method, container, path, body=None):
        endpoint = ENDPOINTS["http"] or ENDPOINTS["https"]
        return manage(endpoint, KEY, method, f"containers/{database.id}/{container.id}/{path}", body)

    class Steering:
        def split(self, container):
            ask("POST", container, "partitions/split?wait=true", {})

        def merge(self, container):
            ids = [one["id"] for one in ask("GET", container, "partitions")["partitions"]]
            ask("POST", container, "partitions/merge?wait=true", {"ids": ids})

    return Steering()


@pytest.fixture(scope="session")
def readings(client):
    """READINGS in five partitions, for tests that only read."""
    database = client.create_database(unique("readings"))
    key, indexing = PartitionKey("/pk"), dataset.policy("/mixed/?", compositeIndexes=dataset.COMPOSITE)
    container = database.create_container(
        "readings", key, indexing_policy=indexing, offer_throughput=dataset.THROUGHPUT
    )
    dataset.load(container)
    yield container
    client.delete_database(database)
