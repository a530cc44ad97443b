# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""precise_report.py EXPLANATION CHOSEN: what --precision auto says of net.onnx, and what it keeps."""
import json
import sys

found, chosen = json.load(open(sys.argv[1]))["precision"], json.load(open(sys.argv[2]))
assert chosen == {"precision": found["config"]} and found["config"] == ["bf16", "/fine/product=f32"], (chosen, found["config"])
assert found["budget"] == 0.02 and 1e-4 < found["error"] <= 0.02 and found["runs"] == 1 and found["data"] == "calibration", found
nodes = {node["nodes"][0]: node for node in found["nodes"]}
assert list(nodes) == ["/in/product", "/mid/product", "/out/product", "/fine/product"], nodes
fine = nodes.pop("/fine/product")
assert fine["type"] == "f32" and fine["error_alone"] > 0.02 and "alone it exceeds" in fine["reason"], fine
for node in nodes.values():
    assert node["type"] == "bf16" and 0 < node["error_alone"] <= found["error"] * 1.5 and "reason" not in node, node
assert nodes["/mid/product"]["flops"] == 4 * nodes["/in/product"]["flops"], nodes
assert [output["output"] for output in found["outputs"]] == ["y"] and found["outputs"][0]["error"] == found["error"], found["outputs"]
