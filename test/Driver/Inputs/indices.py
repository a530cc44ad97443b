"""indices.py FOLDER: an embedding of five rows, inputs in range and out of it. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

os.chdir(sys.argv[1])
table = np.arange(15, dtype=np.float32).reshape(5, 3)
graph = helper.make_graph([helper.make_node("Gather", ["table", "ids"], ["rows"], name="lookup")], "g",
                          [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])],
                          [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 3])],
                          [numpy_helper.from_array(table, "table")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), "gather.onnx")
good = np.array([0, 4, -5, -1, 2], np.int64)
np.savez("good.npz", ids=good)
np.savez("good_out.npz", rows=table[good])
np.savez("wild.npz", ids=np.array([0, 5], np.int64))
