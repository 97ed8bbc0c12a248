"""The code snippet in the README works as it is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[3] / "README.md"


def test_the_snippet_prints_the_stored_values():
    endpoint = os.environ.get("PLEIAD_ENDPOINT")
    if not endpoint:
        pytest.skip("no PLEIAD_ENDPOINT")
    (snippet,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    pasted = snippet.replace("http://localhost:8081", endpoint)
    done = subprocess.run([sys.executable, "-c", pasted], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("42\n[42]\n", 0), done.stderr
