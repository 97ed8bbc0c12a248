"""Executes statements in DuckDB: one JSON string per line on standard input; see duckdb.rs."""

import json
import sys
import time

import duckdb

connection = duckdb.connect(sys.argv[1])
connection.execute("SET enable_progress_bar = false")
for line in sys.stdin:
    statement = json.loads(line)
    started = time.perf_counter()
    try:
        rows = connection.execute(statement).fetchall()
        reply = {"ms": (time.perf_counter() - started) * 1e3, "rows": rows}
    except Exception as error:
        reply = {"error": str(error)}
    print(json.dumps(reply, default=str))
    print(sys.argv[2], flush=True)
