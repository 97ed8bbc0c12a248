"""Client of the management API (docs/management.md): partitions, jobs, throughput."""

import base64
import hashlib
import hmac
import http.client
import json
from email.utils import formatdate


class Management:
    """Every request opens its own connection: the server may have been killed since the last one."""

    def __init__(self, server, key):
        self.server, self.key = server, base64.b64decode(key)

    def request(self, method, path, body=None):
        """The response, or None if the server returns an error."""
        path, date = f"_pleiad/v1/{path}", formatdate(usegmt=True)
        signed = f"{method.lower()}\npleiad\n{path.split('?')[0]}\n{date.lower()}\n\n"
        signature = base64.b64encode(hmac.new(self.key, signed.encode(), hashlib.sha256).digest()).decode()
        headers = {"x-ms-date": date, "authorization": f"type=master&ver=1.0&sig={signature}"}
        connection = http.client.HTTPConnection("localhost", self.server.port, timeout=30)
        try:
            connection.request(method, f"/{path}", json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            text = response.read()
            return json.loads(text) if response.status < 300 else None
        finally:
            connection.close()

    def partitions(self):
        return self.request("GET", "containers/soak/items/partitions")["partitions"]

    def jobs(self):
        return self.request("GET", "jobs")["jobs"]

    def merge(self, ids):
        """None if the partitions are no longer neighbours, or a job already works on them."""
        return self.request("POST", "containers/soak/items/partitions/merge", {"ids": ids})

    def reserve(self, ru):
        return self.request("PUT", "containers/soak/items/throughput", {"throughput": ru})

    def create(self):
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        return self.request("PUT", "containers/soak/items", {"partitionKey": key, "throughput": 400})
