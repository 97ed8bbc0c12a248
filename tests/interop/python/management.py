"""Client of the management API (docs/management.md): splits, jobs, snapshots, copies."""

import base64
import hashlib
import hmac
import json
import urllib.request
from email.utils import formatdate
from urllib.parse import quote, urlsplit


def manage(endpoint, key, method, path, body=None):
    """The response as JSON; an error response raises."""
    path, date = f"_pleiad/v1/{path}", formatdate(usegmt=True)
    signed = f"{method.lower()}\npleiad\n{path.split('?')[0]}\n{date.lower()}\n\n"
    signature = base64.b64encode(hmac.new(base64.b64decode(key), signed.encode(), hashlib.sha256).digest()).decode()
    headers = {"x-ms-date": date, "authorization": quote(f"type=master&ver=1.0&sig={signature}", safe="")}
    base = urlsplit(endpoint)
    url = f"{base.scheme}://{base.netloc}/{quote(path, safe='/?=')}"
    data = json.dumps(body).encode() if body is not None else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, data, headers, method=method), timeout=60) as response:
        text = response.read()
        return json.loads(text) if text else None
