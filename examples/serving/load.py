#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads serve.py: clients that send one request after the other, each over one connection.

usage: load.py HOST:PORT INPUTS.npz [--clients 8] [--requests 200] [--expect OUTPUTS.npz]

Each request has one row of INPUTS, another in turn. Prints requests per second, the median and the 95th and 99th percentile of their time, and the mean batch.
With --expect, answers are compared with the rows of OUTPUTS (2e-5 of each one's largest value).
"""
import argparse
import http.client
import io
import re
import sys
import threading
import time

import numpy as np


def load(address, inputs, clients=8, requests=200, expected=None):
    """{"requests_per_s", "median_ms", "p95_ms", "p99_ms", "rows_per_batch", "wrong"}"""
    rows = len(next(iter(inputs.values())))
    bodies = []
    for row in range(rows):
        body = io.BytesIO()
        np.savez(body, **{name: array[row : row + 1] for name, array in inputs.items()})
        bodies.append(body.getvalue())
    times, wrong = [], []

    def client(first):
        connection = http.client.HTTPConnection(address)
        for index in range(first, first + requests):
            started = time.perf_counter()
            connection.request("POST", "/infer", bodies[index % rows])
            response = connection.getresponse()
            data = response.read()
            times.append(time.perf_counter() - started)
            if response.status != 200:
                wrong.append(data.decode(errors="replace").strip())
            elif expected is not None:
                for name, found in np.load(io.BytesIO(data)).items():
                    want = expected[name][index % rows : index % rows + 1]
                    if found.shape != want.shape or np.abs(found - want).max() > 2e-5 * np.abs(expected[name]).max():
                        wrong.append(f"row {index % rows} of {name}")

    def counts():
        connection = http.client.HTTPConnection(address)
        connection.request("GET", "/metrics")
        return {name: float(value) for name, value in re.findall(r"^tc_serving_(\w+)_total (\S+)$", connection.getresponse().read().decode(), re.M)}

    before = counts()
    started = time.perf_counter()
    threads = [threading.Thread(target=client, args=(i * requests,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, after = time.perf_counter() - started, counts()
    batches = after["batches"] - before["batches"]
    percentile = lambda p: float(np.percentile(times, p) * 1e3)
    return {"requests_per_s": len(times) / seconds, "median_ms": percentile(50), "p95_ms": percentile(95), "p99_ms": percentile(99),
            "rows_per_batch": (after["rows"] - before["rows"]) / batches if batches else 0.0, "wrong": wrong} # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("inputs")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--expect")
    options = parser.parse_args()
    found = load(options.address, dict(np.load(options.inputs)), options.clients, options.requests, dict(np.load(options.expect)) if options.expect else None)
    wrong = found.pop("wrong")
    print(", ".join(f"{name} {value:.2f}" for name, value in found.items()))
    for line in sorted(set(wrong))[:5]:
        print(f"wrong: {line}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
