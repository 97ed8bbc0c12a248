"""Session tokens: every response has one, only writes change it, and requests with one honour it."""

from conftest import connect, header, refused

TOKEN = "x-ms-session-token"


def test_a_token_contains_its_range_and_a_vector(container):
    token = header(container.create_item({"id": "x", "pk": "a"}), TOKEN)
    range_id, vector = token.split(":")
    assert range_id == "0"
    assert len(vector.split("#")) >= 2


def lsn(token):
    return int(token.split(":")[1].split("#")[1])


def test_a_write_increases_the_lsn_by_one(container):
    tokens = [header(container.upsert_item({"id": "x", "pk": "a", "n": n}), TOKEN) for n in range(5)]
    assert [lsn(token) - lsn(tokens[0]) for token in tokens] == [0, 1, 2, 3, 4]


def test_a_read_has_the_token_of_the_write_before_it(container):
    written = header(container.create_item({"id": "x", "pk": "a"}), TOKEN)
    assert header(container.read_item("x", "a"), TOKEN) == written
    assert header(container.read_item("x", "a"), TOKEN) == written


def test_a_rejected_write_does_not_change_the_token(container):
    written = header(container.create_item({"id": "x", "pk": "a"}), TOKEN)
    with refused(409):
        container.create_item({"id": "x", "pk": "a"})
    assert header(container.read_item("x", "a"), TOKEN) == written


def test_each_range_has_its_own_token(make):
    container = make("/pk", throughput=18000)
    tokens = [header(container.create_item({"id": "x", "pk": f"key {n}"}), TOKEN) for n in range(30)]
    assert {token.split(":")[0] for token in tokens} == {"0", "1", "2"}
    for n, token in enumerate(tokens):
        assert header(container.read_item("x", f"key {n}"), TOKEN).split(":")[0] == token.split(":")[0]


def test_another_client_reads_with_the_writers_token(container, database, scheme):
    written = header(container.create_item({"id": "x", "pk": "a"}), TOKEN)
    other = connect(scheme).get_database_client(database.id).get_container_client(container.id)
    assert other.read_item("x", "a", session_token=written)["id"] == "x"


def test_a_token_from_the_future_is_404_1002(container):
    token = header(container.create_item({"id": "x", "pk": "a"}), TOKEN)
    ahead = token.replace(f"#{lsn(token)}", f"#{lsn(token) + 1_000_000}", 1)
    with refused(404, 1002):
        container.read_item("x", "a", session_token=ahead)
    assert container.read_item("x", "a", session_token=token)["id"] == "x"
