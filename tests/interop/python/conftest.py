"""Sets up the SDK for all tests. Every test runs twice: over http and over https.

xtask starts the server; PLEIAD_ENDPOINT, PLEIAD_ENDPOINT_HTTPS, PLEIAD_KEY and PLEIAD_CA_FILE say where it is.
The SDK is the published one, unmodified; a test that needs a workaround to pass has found a bug in the server.
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
    """A separate client, with its own caches."""
    if scheme == "https":
        # The SDK checks the certificate of localhost only if it gets a CA.
        options["ssl_config"] = SSLConfiguration()
        options["connection_verify"] = CA_FILE
    return CosmosClient(ENDPOINTS[scheme], key, **options)


def unique(prefix):
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


@contextmanager
def refused(status, sub_status=None):
    """The block must fail with this status, and with this sub-status if one is given."""
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
    """The item as the user wrote it, without the properties that the server adds."""
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
    """One database per module, deleted when the module has finished."""
    created = client.create_database(unique(request.module.__name__))
    yield created
    client.delete_database(created)


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
    """split(container) splits the largest partition, merge(container) merges all; both return when it has happened."""

    def request_management(method, container, path, body=None):
        endpoint = ENDPOINTS["http"] or ENDPOINTS["https"]
        return manage(endpoint, KEY, method, f"containers/{database.id}/{container.id}/{path}", body)

    class Repartition:
        def split(self, container):
            request_management("POST", container, "partitions/split?wait=true", {})

        def merge(self, container):
            ids = [one["id"] for one in request_management("GET", container, "partitions")["partitions"]]
            request_management("POST", container, "partitions/merge?wait=true", {"ids": ids})

    return Repartition()


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
