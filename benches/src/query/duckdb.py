"""Asks DuckDB what arrives on standard input, a statement per line as a JSON string; see duckdb.rs."""

import json
import sys
import time

import duckdb

connection = duckdb.connect(sys.argv[1])
connection.execute("SET enable_progress_bar = false")
for line in sys.stdin:
    statement = json.loads(line)
    begun = time.perf_counter()
    try:
        rows = connection.execute(statement).fetchall()
        told = {"ms": (time.perf_counter() - begun) * 1e3, "rows": rows}
    except Exception as error:
        told = {"error": str(error)}
    print(json.dumps(told, default=str))
    print(sys.argv[2], flush=True)
