# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""precise_numbers.py TYPE=EXPLANATION...: the errors that --precision auto says of one.onnx's product, of which --target cuda has types that
are emulated, are those of rounded operands."""
import json
import sys

import numpy as np
import onnx
from onnx import numpy_helper


def cut(x, bits, carry):
    """f32 without its last bits."""
    return ((x.view(np.uint32).astype(np.uint64) + carry(x.view(np.uint32).astype(np.uint64))) >> bits << bits).astype(np.uint32).view(np.float32)


ROUND = {
    "bf16": lambda x: cut(x, 16, lambda u: 0x7FFF + ((u >> np.uint64(16)) & np.uint64(1))),  # ties to even
    "tf32": lambda x: cut(x, 13, lambda u: np.uint64(0x1000)),  # ties away from zero
    "f16": lambda x: x.astype(np.float16).astype(np.float32),
}

x = np.load("one.npz")["x"]
w = numpy_helper.to_array(onnx.load("one.onnx").graph.initializer[0])
exact = x.astype(np.float64) @ w
for argument in sys.argv[1:]:
    kind, path = argument.split("=")
    found = json.load(open(path))["precision"]
    left, right = (x if kind == "f16" else ROUND[kind](x)), ROUND[kind](w)
    error = np.abs(left.astype(np.float64) @ right - exact).max() / np.abs(exact).max()
    (node,) = found["nodes"]
    assert node["type"] == kind, (kind, node)
    assert abs(node["error_alone"] / error - 1) < 0.02, (kind, node, error)
