"""Opening the account: the response to GET /, and authentication."""

import base64
from urllib.parse import urlparse

import pytest
from conftest import ENDPOINTS, KEY, connect, refused


def test_account_can_be_read(client):
    account = client.get_database_account()
    assert account.ConsistencyPolicy["defaultConsistencyLevel"] == "Session"
    assert account.WritableLocations and account.ReadableLocations


def test_locations_are_the_endpoint_that_the_client_uses(client, scheme):
    """An http client must not be redirected to https, nor to another port."""
    used = urlparse(ENDPOINTS[scheme])
    account = client.get_database_account()
    for location in account.WritableLocations + account.ReadableLocations:
        returned = urlparse(location["databaseAccountEndpoint"])
        assert (returned.scheme, returned.hostname, returned.port) == (used.scheme, used.hostname, used.port)


@pytest.mark.parametrize(
    "key",
    [
        base64.b64encode(b"not the key of this account").decode(),
        ("A" if KEY[:1] != "A" else "B") + KEY[1:],
    ],
    ids=["another key", "one letter changed"],
)
def test_a_wrong_key_is_401(scheme, key):
    with refused(401):
        connect(scheme, key=key)
