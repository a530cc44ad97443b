#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What --explain says of a quantised net.onnx: the decision for each product, and that kernels are of bytes."""
import json
import sys

report = json.load(open(sys.argv[1]))
found = report["quantization"]
assert found["type"] == "int8" and found["method"] == "minmax" and found["runs"] == 7 and found["quantized"] == 6
nodes = {node["node"]: node for node in found["nodes"]}
assert list(nodes) == ["stem", "deep", "of_nothing", "of_fives", "y", "mixed", "wild"]
assert not nodes["wild"]["quantized"] and "infinities" in nodes["wild"]["reason"]
assert nodes["of_nothing"]["error_alone"] < 1e-6 and nodes["stem"]["channels"] == 8
for name, node in nodes.items():
    if node["quantized"]:
        span = node["input"]["high"] - node["input"]["low"]
        assert node["error_alone"] < 0.02 and node["error"] < 0.05, (name, node)
        assert span == 0 or abs(node["input"]["scale"] / (span / 255) - 1) < 1e-5, (name, node)
assert [output["output"] for output in found["outputs"]] == ["y", "mixed", "wild"]
assert found["outputs"][0]["error"] < 0.03, found["outputs"]
products = [kernel["product"] for kernel in report["kernels"] if "product" in kernel]
assert sum("summed in i32" in product for product in products) >= 5, products
