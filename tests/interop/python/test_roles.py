"""Bearer tokens and roles: a TokenCredential, such as those of azure-identity, and the permissions of its principal."""

import base64
import hashlib
import json
import os
import time
from pathlib import Path

import pytest
from azure.core.credentials import AccessToken
from conftest import connect, refused, unique

TOKENS = Path(os.environ.get("PLEIAD_TOKENS", ""))
SHA256_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")


def part(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def number(text):
    return int.from_bytes(base64.urlsafe_b64decode(text + "=="), "big")


def sign(claims):
    """RS256, implemented here: the suite has no library for it."""
    key = json.loads((TOKENS / "private_key.json").read_text())
    header = {"typ": "JWT", "alg": "RS256", "kid": key["kid"]}
    signed = b".".join(part(json.dumps(piece).encode()) for piece in (header, claims))
    digest = SHA256_PREFIX + hashlib.sha256(signed).digest()
    size = (number(key["n"]).bit_length() + 7) // 8
    padded = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
    signature = pow(int.from_bytes(padded, "big"), number(key["d"]), number(key["n"]))
    return b".".join([signed, part(signature.to_bytes(size, "big"))]).decode()


class Credential:
    def __init__(self, principal, lifetime_s=3600, **claims):
        self.claims = {"iss": "https://issuer.example/", "aud": "https://cosmos.azure.com", "oid": principal, **claims}
        self.lifetime_s = lifetime_s

    def get_token(self, *scopes, **_):
        assert scopes
        expires_s = int(time.time()) + self.lifetime_s
        # With the real expiry time the SDK would not send an expired token.
        return AccessToken(sign({**self.claims, "exp": expires_s}), int(time.time()) + 3600)


@pytest.fixture
def shop(scheme, make):
    if scheme == "http":
        pytest.skip("the SDK sends bearer tokens over https only")
    container = make("/pk", throughput=30000)
    for n in range(6):
        container.create_item({"id": str(n), "pk": "ab"[n % 2], "n": n})
    return container


def container_with_credential(scheme, database, container, credential):
    client = connect(scheme, credential)
    return client.get_database_client(database.id).get_container_client(container.id)


def test_a_reader_may_read_and_not_write(scheme, database, shop):
    target = container_with_credential(scheme, database, shop, Credential("reader"))
    assert target.read_item("0", "a")["n"] == 0
    query = "SELECT VALUE c.n FROM c ORDER BY c.n"
    assert list(target.query_items(query, enable_cross_partition_query=True)) == list(range(6))
    assert len(list(target.query_items_change_feed(start_time="Beginning"))) == 6
    assert len(list(target.read_all_items())) == 6
    with refused(403, 5302) as caught:
        target.create_item({"id": "new", "pk": "a"})
    assert "[reader]" in str(caught.value) and "items/create" in str(caught.value)
    with refused(403, 5302):
        target.upsert_item({"id": "0", "pk": "a"})
    with refused(403, 5302):
        target.delete_item("0", "a")


def test_a_role_holds_after_a_split(scheme, database, shop, repartition):
    target = container_with_credential(scheme, database, shop, Credential("reader"))
    assert len(list(target.read_all_items())) == 6
    repartition.split(shop)
    assert target.read_item("1", "b")["n"] == 1
    query = "SELECT VALUE c.n FROM c ORDER BY c.n"
    assert list(target.query_items(query, enable_cross_partition_query=True)) == list(range(6))
    with refused(403, 5302):
        target.delete_item("0", "a")


def test_a_contributor_may_write_and_not_manage(scheme, database, shop):
    target = container_with_credential(scheme, database, shop, Credential("contributor"))
    target.upsert_item({"id": "new", "pk": "a"})
    target.patch_item("new", "a", [{"op": "add", "path": "/n", "value": 1}])
    target.execute_item_batch([("read", ("new",)), ("delete", ("new",))], partition_key="a")
    client = connect(scheme, Credential("contributor"))
    with refused(403, 5300):
        client.create_database(unique("d"))
    with refused(403, 5300):
        client.get_database_client(database.id).delete_container(shop.id)
    with refused(403, 5300):
        target.get_throughput()


def test_a_custom_role_allows_only_its_actions(scheme, database, shop):
    target = container_with_credential(scheme, database, shop, Credential("collector"))
    target.create_item({"id": "new", "pk": "a"})
    with refused(403, 5302):
        target.read_item("new", "a")
    with refused(403, 5302):
        target.execute_item_batch([("create", ({"id": "newer", "pk": "a"},)), ("delete", ("new",))], partition_key="a")
    assert shop.read_item("new", "a")["pk"] == "a"


def test_a_role_of_a_group_applies_and_a_principal_without_role_is_403(scheme, database, shop):
    target = container_with_credential(scheme, database, shop, Credential("unassigned", groups=["reader"]))
    assert target.read_item("0", "a")["n"] == 0
    with refused(403, 5301):
        container_with_credential(scheme, database, shop, Credential("unassigned")).read_item("0", "a")


@pytest.mark.parametrize("wrong", [{"lifetime_s": -3600}, {"aud": "https://vault.azure.net"}, {"iss": "https://other.example/"}])
def test_an_invalid_token_is_401(scheme, database, shop, wrong):
    with refused(401):
        container_with_credential(scheme, database, shop, Credential("reader", **wrong)).read_item("0", "a")
