"""Items are read exactly as they were written: numbers, escapes, depth, order."""

import json

import pytest
from conftest import connect, plain

NUMBERS = [
    0, 1, -1, 0.1, -0.5, 1.5, 105.00, 1e21, 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308,
    2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 0.30000000000000004, 3.141592653589793,
]  # fmt: skip

STRINGS = [
    "",
    "plain",
    'quote " and backslash \\ and slash /',
    "\b\f\n\r\t",
    "".join(chr(code) for code in range(0x20)),
    "\x7f\x80\u00a0\u2028\u2029\ufeff\uffff",
    "é e\u0301 日本 हिन्दी",
    "😀👩‍👩‍👧𝔘",
    "<script>&amp;</script>",
    "null",
    "\\u0041",
]

NESTED = {
    "empty": {"object": {}, "list": [], "string": ""},
    "mixed": [None, True, False, 0, "", [], {}, [[[]]], {"a": {"b": {"c": [1, [2, [3]]]}}}],
    "names": {"": 1, " ": 2, "a.b": 3, "a/b": 4, "$": 5, "日本": 6, "😀": 7, 'q"': 8, "id": 9, "_rid": 10},
}


@pytest.fixture(params=["escaped", "raw utf-8"])
def writer(request, scheme, database, container):
    """The SDK escapes everything beyond ASCII, or on request sends UTF-8 unescaped."""
    client = connect(scheme, enable_compact_utf8_item_writes=request.param == "raw utf-8")
    return client.get_database_client(database.id).get_container_client(container.id)


def check_round_trip(container, value):
    item = {"id": "x", "pk": "a", "value": value}
    assert plain(container.create_item(dict(item))) == item
    read = plain(container.read_item("x", "a"))
    assert read == item
    assert json.dumps(read["value"]) == json.dumps(value)
    [listed] = container.read_all_items()
    assert plain(listed) == item


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers(container, number):
    item = {"id": "x", "pk": "a", "value": number}
    container.create_item(dict(item))
    assert container.read_item("x", "a")["value"] == number


def test_strings(writer):
    check_round_trip(writer, STRINGS)


def test_nested(writer):
    check_round_trip(writer, NESTED)


def test_a_hundred_levels_deep(container):
    deep = "bottom"
    for _ in range(50):
        deep = [{"down": deep}]
    check_round_trip(container, deep)


def test_a_thousand_properties_in_order(container):
    item = {"id": "x", "pk": "a", **{f"property {n * 7919 % 1000}": n for n in range(1000)}}
    container.create_item(dict(item))
    assert list(plain(container.read_item("x", "a"))) == list(item)


def test_key_values_in_any_script(writer):
    for key in ["é", "日本", "😀", 'q"uo\\te', "a\tb", "\u2028", "\x01"]:
        writer.create_item({"id": "x", "pk": key})
        assert writer.read_item("x", key)["pk"] == key
