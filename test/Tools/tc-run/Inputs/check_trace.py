#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check a Chrome trace: what viewers need is there, and spans of one track follow or hold each other.

usage: check_trace.py TRACE KERNEL RUNS     exit status 0: it has so many runs, each with the kernel
"""
import json
import sys

with open(sys.argv[1]) as f:
    events = json.load(f)["traceEvents"]
tracks = {}
for event in events:
    assert event["ph"] in "XM", event
    if event["ph"] == "X":
        assert event["ts"] >= 0 and event["dur"] >= 0 and event["name"], event
        tracks.setdefault((event["pid"], event["tid"]), []).append(event)
named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
assert set(tracks) <= named, (set(tracks), named)
for spans in tracks.values():
    # Times are in thousandths; rounding moves an end by less.
    open_until = []
    for span in sorted(spans, key=lambda span: (span["ts"], -span["dur"])):
        while open_until and open_until[-1] <= span["ts"] + 0.002:
            open_until.pop()
        end = span["ts"] + span["dur"]
        assert not open_until or end <= open_until[-1] + 0.002, span
        open_until.append(end)
runs = [event for event in events if event.get("cat") == "run"]
kernels = [event for event in events if event.get("cat") == "kernel" and event["name"] == sys.argv[2]]
assert len(runs) == len(kernels) == int(sys.argv[3]), (len(runs), len(kernels))
assert all(kernel["args"]["nodes"] for kernel in kernels)
