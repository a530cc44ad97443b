#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write artifacts with manifests of odd shapes to a folder, and check that tc-inspect shows each as text and as JSON, and that
tc-bench draws what it can of those that speak of kernels."""
import json
import subprocess
import sys

MANIFESTS = [
    '{"host_functions": 7}',
    '{"host_functions": [1, {"name": 5, "library": [2]}]}',
    '{"host_functions": "x", "kernels": {}}',
    '{"kernels": [[1], 2], "functions": 3}',
    '{"functions": [{"inputs": [{"name": 1, "range": [0]}]}]}',
    '{"functions": [{"first_kernel": 0, "outputs": [{"name": 3, "from": [0, 99, -1, "x", 1e30, null]}, 5, {"from": [0]}, {"name": "y"}]}],'
    ' "kernels": [{"name": "k_axpb", "reads": [0, 7, "x", {}, -3, 1e99, "x"], "strategy": 4}, 8]}',
    '{"functions": [{"first_kernel": 18446744073709551615}], "kernels": [{"name": "k_axpb"}]}',
    '{"functions": [7, {"first_kernel": -1}, {"first_kernel": 4294967296, "outputs": {}}], "kernels": [1, 2, 3]}',
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
    if "first_kernel" in manifest:
        subprocess.run(["tc-bench", path + ".bin", "--threads", "1", "--seconds", "0", "--peers", "none", "--html", path + ".html"],
                       check=True, stdout=subprocess.DEVNULL)
        with open(path + ".html") as page:
            assert ("data-kernel" in page.read()) == ('"reads"' in manifest), path
