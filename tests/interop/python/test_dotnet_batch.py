"""The batch and bulk requests of the .NET SDK, byte by byte: HybridRow records, built here from the format alone.

There is no suite with that SDK yet; these tests send what it sends.
"""

import base64
import hashlib
import hmac
import json
import struct
import urllib.parse
import zlib
from email.utils import formatdate

import requests
from conftest import CA_FILE, ENDPOINTS, KEY

SEGMENT, RECORD, OPERATION, RESULT = 2147473648, 2147473649, 2145473648, 2145473649
CREATE, PATCH, READ, DELETE, REPLACE, UPSERT = 0, 1, 2, 4, 5, 20


def length_prefixed(data):
    length, out = len(data), b""
    while length >= 0x80:
        out += bytes([length & 0x7F | 0x80])
        length >>= 7
    return out + bytes([length]) + data


def operation(kind, key=None, id=None, body=None, if_match=None, minimal=False):
    body = json.dumps(body).encode() if body is not None else None
    texts = [key.encode() if key else None, None, id.encode() if id else None, None, body]
    present = 0b11 | sum(4 << at for at, text in enumerate(texts) if text is not None)
    row = struct.pack("<BIBii", 0x81, OPERATION, present, kind, 2)
    row += b"".join(length_prefixed(text) for text in texts if text is not None)
    if minimal:
        row += bytes([3, 12])  # true, field 12
    if if_match:
        row += bytes([20, 9]) + length_prefixed(if_match.encode())
    return row


def stream(rows):
    out = struct.pack("<BIBi", 0x81, SEGMENT, 1, 10)
    for row in rows:
        out += struct.pack("<BIiI", 0x81, RECORD, len(row), zlib.crc32(row)) + row
    return out


def read_length_prefixed(data, at):
    length = shift = 0
    while True:
        byte, at = data[at], at + 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return data[at:at + length], at + length
        shift += 7


def results(data):
    assert struct.unpack_from("<BIBi", data) == (0x81, SEGMENT, 1, 10)
    at, found = 10, []
    while at < len(data):
        version, schema, length, checksum = struct.unpack_from("<BIiI", data, at)
        row, at = data[at + 13:at + 13 + length], at + 13 + length
        assert (version, schema, checksum) == (0x81, RECORD, zlib.crc32(row))
        version, schema, present, status, substatus = struct.unpack_from("<BIBii", row)
        assert (version, schema, present & 3) == (0x81, RESULT, 3)
        result, offset = {"status": status, "substatus": substatus}, 14
        for bit, name in [(4, "etag"), (8, "body")]:
            if present & bit:
                result[name], offset = read_length_prefixed(row, offset)
        while offset < len(row):
            kind, name = row[offset], row[offset + 1]
            size, form = {11: (4, "<I"), 16: (8, "<d")}[kind]
            result[{5: "retry", 6: "charge"}[name]], = struct.unpack_from(form, row, offset + 2)
            offset += 2 + size
        found.append(result)
    return found


def post(scheme, container, rows, **headers):
    """One request, as the .NET SDK sends it."""
    link = container.container_link
    date = formatdate(usegmt=True)
    signed = hmac.new(base64.b64decode(KEY), f"post\ndocs\n{link}\n{date.lower()}\n\n".encode(), hashlib.sha256).digest()
    token = urllib.parse.quote(f"type=master&ver=1.0&sig={base64.b64encode(signed).decode()}", safe="")
    headers = {"authorization": token, "x-ms-date": date, "x-ms-version": "2020-07-15",
               "x-ms-cosmos-is-batch-request": "True"} | {name.replace("_", "-"): value for name, value in headers.items()}
    url = f"{ENDPOINTS[scheme].rstrip('/')}/{link}/docs"
    return requests.post(url, data=stream(rows), headers=headers, verify=CA_FILE or True, timeout=30)


def test_a_transactional_batch(scheme, container):
    first = container.create_item({"id": "old", "pk": "a"})
    response = post(scheme, container, [
        operation(CREATE, body={"id": "new", "pk": "a", "n": 1}),
        operation(UPSERT, body={"id": "quiet", "pk": "a"}, minimal=True),
        operation(REPLACE, id="old", body={"id": "old", "pk": "a", "n": 2}, if_match=first["_etag"]),
        operation(PATCH, id="new", body={"operations": [{"op": "incr", "path": "/n", "value": 1}]}),
        operation(READ, id="new"),
        operation(DELETE, id="quiet"),
    ], x_ms_cosmos_batch_atomic="True", x_ms_cosmos_batch_ordered="True", x_ms_documentdb_partitionkey='["a"]')
    assert response.status_code == 200
    found = results(response.content)
    assert [result["status"] for result in found] == [201, 201, 200, 200, 200, 204]
    assert json.loads(found[4]["body"])["n"] == 2
    assert found[4]["etag"].decode() == container.read_item("new", "a")["_etag"]
    assert "body" not in found[1] and "etag" in found[1] and "body" not in found[5]
    assert all(result["charge"] > 0 for result in found)


def test_a_failed_batch_is_207(scheme, container):
    container.create_item({"id": "existing", "pk": "a"})
    response = post(scheme, container, [
        operation(CREATE, body={"id": "new", "pk": "a"}),
        operation(CREATE, body={"id": "existing", "pk": "a"}),
    ], x_ms_cosmos_batch_atomic="True", x_ms_documentdb_partitionkey='["a"]')
    assert response.status_code == 207
    assert [result["status"] for result in results(response.content)] == [424, 409]


def test_bulk(scheme, container):
    rows = [operation(CREATE, key=f'["key {n}"]', body={"id": str(n), "pk": f"key {n}"}) for n in range(50)]
    rows.append(operation(READ, key='["missing"]', id="0"))
    response = post(scheme, container, rows, x_ms_cosmos_batch_continue_on_error="True")
    assert response.status_code == 207
    assert [result["status"] for result in results(response.content)] == [201] * 50 + [404]


def test_a_truncated_record_is_400(scheme, container):
    response = post(scheme, container, [operation(READ, id="x")[:-1]],
                  x_ms_cosmos_batch_atomic="True", x_ms_documentdb_partitionkey='["a"]')
    assert (response.status_code, response.json()["code"]) == (400, "BadRequest")
