#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write artifacts with manifests of odd shapes to a folder, and check that tc-inspect shows each as text and as JSON."""
import json
import subprocess
import sys

MANIFESTS = [
    '{"host_functions": 7}',
    '{"host_functions": [1, {"name": 5, "library": [2]}]}',
    '{"host_functions": "x", "kernels": {}}',
    '{"kernels": [[1], 2], "functions": 3}',
    '{"functions": [{"inputs": [{"name": 1, "range": [0]}]}]}',
    "[" * 100000,
    '{"a":' * 5000 + "1" + "}" * 5000,
    "[1]",
    "no JSON",
    "",
]
for number, manifest in enumerate(MANIFESTS):
    path = f"{sys.argv[1]}/{number}"
    with open(path + ".json", "w") as f:
        f.write(manifest)
    subprocess.run(["tc-test-artifact", "basic", path + ".bin", path + ".json"], check=True)
    subprocess.run(["tc-inspect", path + ".bin"], check=True, stdout=subprocess.DEVNULL)
    json.loads(subprocess.run(["tc-inspect", "--json", path + ".bin"], check=True, capture_output=True).stdout)
    subprocess.run(["tc-run", path + ".bin", "--random-inputs"], check=True, stdout=subprocess.DEVNULL)
