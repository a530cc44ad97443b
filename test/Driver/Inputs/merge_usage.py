"""merge_usage.py A B: what two processes ran of one artifact. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import json
import sys

usage, other = (json.load(open(path)) for path in sys.argv[1:])
for mine, theirs in zip(usage["functions"], other["functions"]):
    for entry, more in zip(mine["entries"], theirs["entries"]):
        entry["runs"] += more["runs"]
        entry["time_ns"] += more["time_ns"]
    mine["sizes"] += theirs["sizes"]
print(json.dumps(usage))
