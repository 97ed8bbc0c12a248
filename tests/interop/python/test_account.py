"""Opening the account: what GET / promises, and who is let in."""

import base64
from urllib.parse import urlparse

import pytest
from conftest import ENDPOINTS, KEY, connect, refused


def test_account_can_be_read(client):
    account = client.get_database_account()
    assert account.ConsistencyPolicy["defaultConsistencyLevel"] == "Session"
    assert account.WritableLocations and account.ReadableLocations


def test_locations_lead_back_to_where_the_client_came_from(client, scheme):
    """An http client must not be sent to https, nor to another port."""
    asked = urlparse(ENDPOINTS[scheme])
    account = client.get_database_account()
    for location in account.WritableLocations + account.ReadableLocations:
        told = urlparse(location["databaseAccountEndpoint"])
        assert (told.scheme, told.hostname, told.port) == (asked.scheme, asked.hostname, asked.port)


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
