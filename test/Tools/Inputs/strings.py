# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""strings.py FOLDER: a model of host functions alone, whose values are strings and sequences, with inputs;
a sine of float64. strings.py FOLDER check: its outputs."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

folder = sys.argv[1]
words = np.array(["a", "bc", ""], dtype=object)
numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
if len(sys.argv) == 2:
    nodes = [
        h.make_node("StringConcat", ["s", "s"], ["t"]),
        h.make_node("SequenceConstruct", ["x", "x"], ["q"]),
        h.make_node("SequenceInsert", ["q", "x"], ["r"]),
        h.make_node("SequenceLength", ["r"], ["n"]),
    ]
    values = [h.make_tensor_value_info("s", T.STRING, [3]), h.make_tensor_value_info("x", T.FLOAT, [2, 3])]
    outputs = [h.make_tensor_value_info("t", T.STRING, [3]), h.make_tensor_value_info("n", T.INT64, [])]
    model = h.make_model(h.make_graph(nodes, "g", values, outputs), opset_imports=[h.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, os.path.join(folder, "strings.onnx"))
    wide = h.make_graph([h.make_node("Sin", ["x"], ["y"])], "f", *([h.make_tensor_value_info(n, T.DOUBLE, [5])] for n in "xy"))
    onnx.save(h.make_model(wide, opset_imports=[h.make_opsetid("", 20)], ir_version=9), os.path.join(folder, "f64.onnx"))
    for name, value in (("s", words), ("x", numbers)):
        onnx.save_tensor(onnx.numpy_helper.from_array(value, name), os.path.join(folder, name + ".pb"))
else:
    got = [onnx.numpy_helper.to_array(onnx.load_tensor(os.path.join(folder, f"output_{i}.pb"))) for i in range(2)]
    assert [s.decode() if isinstance(s, bytes) else s for s in got[0].tolist()] == ["aa", "bcbc", ""], got
    assert got[1] == 3, got
