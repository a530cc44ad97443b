# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write the models that tc-inspect is tried with to a folder."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]


def make(nodes, inputs, outputs, initializers=(), opsets=(("", 17),), **fields):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in initializers])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets], **fields)
    model.ir_version = 8
    return model


def tensor(name, dims, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


model = make(
    [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Add", ["c", "c"], ["d"]),
        helper.make_node("Frobnicate", ["d"], ["y0"], domain="my.ops"),
        helper.make_node("Add", ["y0", "y0"], ["y"]),
        helper.make_node("SequenceAt", ["s", "k"], ["t"]),
    ],
    [
        tensor("x", ["batch", 4]),
        tensor("i", [None], TensorProto.INT64),
        helper.make_tensor_sequence_value_info("s", TensorProto.DOUBLE, ["n", 2]),
    ],
    [tensor("y", ["batch", 3]), tensor("t", [2], TensorProto.DOUBLE)],
    [("w", np.ones((4, 3), np.float32)), ("b", np.ones(3, np.float32)), ("i", np.ones(1, np.int64)), ("k", np.array(0, np.int64))],
    (("", 17), ("my.ops", 1)),
    producer_name="maker",
    producer_version="1.2",
)
helper.set_model_props(model, {"task": "test"})
onnx.save(model, f"{folder}/model.onnx")
with open(f"{folder}/model.onnx", "rb") as f:
    data = f.read()
with open(f"{folder}/cut.onnx", "wb") as f:
    f.write(data[:-7])

# Guards of sizes, checks of indices, random numbers; four layers of two kernels.
layers = []
for i in range(4):
    layers.append(helper.make_node("Softmax", [f"h{i}"], [f"s{i}"], name=f"soft{i}"))
    layers.append(helper.make_node("MatMul", [f"s{i}", "w"], [f"h{i + 1}"], name=f"product{i}"))
guarded = make(
    [
        helper.make_node("Gather", ["x", "i"], ["g"], name="pick"),
        helper.make_node("RandomNormalLike", ["g"], ["r"], name="noise"),
        helper.make_node("Add", ["g", "r"], ["s"], name="sum"),
        helper.make_node("Concat", ["s", "z"], ["j"], axis=1, name="join"),
        *layers,
    ],
    [tensor("x", ["rows", 16]), tensor("i", ["k"], TensorProto.INT64), tensor("z", ["m", 4]), tensor("h0", [16, 16])],
    [tensor("j", ["out", 20]), tensor("h4", [16, 16])],
    [("w", np.eye(16, dtype=np.float32))],
)
onnx.save(guarded, f"{folder}/guarded.onnx")
