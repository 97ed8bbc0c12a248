"""Bearer tokens and roles: a TokenCredential, as azure-identity would be one, and what its principal may do."""

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
    """RS256, by hand: the suite has no library for it."""
    key = json.loads((TOKENS / "private_key.json").read_text())
    header = {"typ": "JWT", "alg": "RS256", "kid": key["kid"]}
    signed = b".".join(part(json.dumps(piece).encode()) for piece in (header, claims))
    digest = SHA256_PREFIX + hashlib.sha256(signed).digest()
    size = (number(key["n"]).bit_length() + 7) // 8
    padded = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
    signature = pow(int.from_bytes(padded, "big"), number(key["d"]), number(key["n"]))
    return b".".join([signed, part(signature.to_bytes(size, "big"))]).decode()


class Credential:
    def __init__(self, principal, lives_s=3600, **claims):
        self.claims = {"iss": "https://issuer.example/", "aud": "https://cosmos.azure.com", "oid": principal, **claims}
        self.lives_s = lives_s

    def get_token(self, *scopes, **_):
        assert scopes
        expires_s = int(time.time()) + self.lives_s
        # Were it told the truth, the SDK would not send a token that has expired.
        return AccessToken(sign({**self.claims, "exp": expires_s}), int(time.time()) + 3600)


@pytest.fixture
def shop(scheme, make):
    if scheme == "http":
        pytest.skip("the SDK sends bearer tokens over https only")
    container = make("/pk", throughput=30000)
    for n in range(6):
        container.create_item({"id": str(n), "pk": "ab"[n % 2], "n": n})
    return container


def carrying(scheme, database, container, credential):
    client = connect(scheme, credential)
    return client.get_database_client(database.id).get_container_client(container.id)


def test_a_reader_reads_and_does_not_write(scheme, database, shop):
    mine = carrying(scheme, database, shop, Credential("reader"))
    assert mine.read_item("0", "a")["n"] == 0
    query = "SELECT VALUE c.n FROM c ORDER BY c.n"
    assert list(mine.query_items(query, enable_cross_partition_query=True)) == list(range(6))
    assert len(list(mine.query_items_change_feed(start_time="Beginning"))) == 6
    assert len(list(mine.read_all_items())) == 6
    with refused(403, 5302) as caught:
        mine.create_item({"id": "new", "pk": "a"})
    assert "[reader]" in str(caught.value) and "items/create" in str(caught.value)
    with refused(403, 5302):
        mine.upsert_item({"id": "0", "pk": "a"})
    with refused(403, 5302):
        mine.delete_item("0", "a")


def test_a_role_holds_behind_a_split(scheme, database, shop, repartition):
    mine = carrying(scheme, database, shop, Credential("reader"))
    assert len(list(mine.read_all_items())) == 6
    repartition.split(shop)
    assert mine.read_item("1", "b")["n"] == 1
    query = "SELECT VALUE c.n FROM c ORDER BY c.n"
    assert list(mine.query_items(query, enable_cross_partition_query=True)) == list(range(6))
    with refused(403, 5302):
        mine.delete_item("0", "a")


def test_a_contributor_writes_and_does_not_manage(scheme, database, shop):
    mine = carrying(scheme, database, shop, Credential("contributor"))
    mine.upsert_item({"id": "new", "pk": "a"})
    mine.patch_item("new", "a", [{"op": "add", "path": "/n", "value": 1}])
    mine.execute_item_batch([("read", ("new",)), ("delete", ("new",))], partition_key="a")
    client = connect(scheme, Credential("contributor"))
    with refused(403, 5300):
        client.create_database(unique("d"))
    with refused(403, 5300):
        client.get_database_client(database.id).delete_container(shop.id)
    with refused(403, 5300):
        mine.get_throughput()


def test_a_role_of_ones_own_allows_what_it_says(scheme, database, shop):
    mine = carrying(scheme, database, shop, Credential("collector"))
    mine.create_item({"id": "new", "pk": "a"})
    with refused(403, 5302):
        mine.read_item("new", "a")
    with refused(403, 5302):
        mine.execute_item_batch([("create", ({"id": "newer", "pk": "a"},)), ("delete", ("new",))], partition_key="a")
    assert shop.read_item("new", "a")["pk"] == "a"


def test_a_group_counts_and_a_stranger_does_not(scheme, database, shop):
    mine = carrying(scheme, database, shop, Credential("somebody", groups=["reader"]))
    assert mine.read_item("0", "a")["n"] == 0
    with refused(403, 5301):
        carrying(scheme, database, shop, Credential("somebody")).read_item("0", "a")


@pytest.mark.parametrize("wrong", [{"lives_s": -3600}, {"aud": "https://vault.azure.net"}, {"iss": "https://other.example/"}])
def test_a_token_that_is_not_good_is_401(scheme, database, shop, wrong):
    with refused(401):
        carrying(scheme, database, shop, Credential("reader", **wrong)).read_item("0", "a")
