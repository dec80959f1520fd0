"""Ask a running service about each row of a table, and tell it whether it was right: `play_table.py mine.parquet`."""

import sys

import httpx
import numpy as np
import pandas

table = pandas.read_parquet(sys.argv[1])
rows = table.iloc[:, :-1].astype(object).where(table.iloc[:, :-1].notna(), None)  # null where a number is missing
classes = pandas.factorize(table.iloc[:, -1], sort=True)[0]  # the last column, as arms
right = []
with httpx.Client(base_url="http://localhost:8000") as service:
    for row, label in zip(rows.to_numpy().tolist(), classes, strict=True):
        made = service.post("/decide", json={"features": row}).raise_for_status().json()
        right.append(made["arm"] == label)
        service.post("/reward", json={"id": made["id"], "reward": int(right[-1])})
print(f"right in {np.mean(right):.1%} of {len(right)} rounds")
