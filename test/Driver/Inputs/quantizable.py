#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A network to quantise, net.onnx, and calibration data, good and bad, in the current folder.

Open batch; a residual sum, a pool, a grouped convolution, a MatMul with a batch, a Gemm with a transposed weight; values that are 0 everywhere, that are
5 everywhere, and that are infinite; a filter channel of zeros, and one of tiny weights beside a large bias.
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

rng = np.random.default_rng(0)
nodes, constants = [], []


def constant(name, *shape, values=None):
    array = rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:])) if values is None else np.array(values)
    constants.append(numpy_helper.from_array(array.astype(np.float32), name))
    return array


def node(op, inputs, output, **attrs):
    nodes.append(helper.make_node(op, inputs.split(), [output], name=output, **attrs))


stem = constant("stem_w", 8, 3, 3, 3)
stem[2], stem[3] = 0, stem[3] * 1e-12
constants[-1] = numpy_helper.from_array(stem.astype(np.float32), "stem_w")
constant("stem_b", 8, values=[0.1, -0.2, 0.3, 1000, 0, 0, 0.5, -0.5])
constants.append(numpy_helper.from_array(np.array([1e-3 if i == 3 else 1 for i in range(8)], np.float32).reshape(1, 8, 1, 1), "unit"))
constant("deep_w", 8, 2, 3, 3)
constant("flat_w", 8, 8, 1, 1)
constant("flat_b", 8)
constant("head_w", 4, 8)
constant("head_b", 4)
constant("mix_w", 4, 4)
constant("zero", values=0)
constant("five", values=5)
node("Conv", "x stem_w stem_b", "stem", pads=[1, 1, 1, 1])
node("Mul", "stem unit", "even")
node("Relu", "even", "relu")
node("MaxPool", "relu", "pool", kernel_shape=[2, 2], strides=[2, 2])
node("Conv", "pool deep_w", "deep", pads=[1, 1, 1, 1], group=4)
node("Add", "deep pool", "sum")
node("Mul", "sum zero", "nothing")
node("Conv", "nothing flat_w flat_b", "of_nothing")
node("Add", "nothing five", "fives")
node("Conv", "fives flat_w", "of_fives")
node("Add", "sum of_nothing", "more")
node("Add", "more of_fives", "most")
node("GlobalAveragePool", "most", "mean")
node("Flatten", "mean", "rows")
node("Gemm", "rows head_w head_b", "y", transB=1)
node("MatMul", "y mix_w", "mixed")
node("Div", "mixed zero", "infinite")
node("MatMul", "infinite mix_w", "wild")
info = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
graph = helper.make_graph(nodes, "net", [info("x", ["batch", 3, 8, 8])],
                          [info("y", ["batch", 4]), info("mixed", ["batch", 4]), info("wild", ["batch", 4])], constants)
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), "net.onnx")

x = rng.standard_normal((6, 3, 8, 8)).astype(np.float32)
np.savez("data.npz", x=x)
np.savez("samples.npz", x=x[:, None])  # the same, run by run
np.savez("more.npz", x=x[:2] * 3)
np.savez("double.npz", x=x.astype(np.float64))
np.savez("other.npz", images=x)
np.savez("shape.npz", x=x[:, :2])
np.savez("none.npz", x=x[:0, None])
np.savez("empty.npz", x=x[:0])
x = x.copy()
x[1, 0, 0, 3] = np.nan
np.savez("nan.npz", x=x)

two = helper.make_graph([helper.make_node("MatMul", ["a", "mix_w"], ["p"], name="p"), helper.make_node("Add", ["p", "b"], ["q"])], "two",
                        [info("a", [2, 4]), info("b", [2, 4])], [info("q", [2, 4])], [c for c in constants if c.name == "mix_w"])
save(helper.make_model(two, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "two.onnx")
np.savez("uneven.npz", a=np.ones((6, 4), np.float32), b=np.ones((4, 4), np.float32))
np.savez("odd.npz", a=np.ones((5, 4), np.float32), b=np.ones((2, 4), np.float32))
np.savez("shared.npz", a=np.ones((6, 4), np.float32), b=np.ones((2, 4), np.float32))
sums = helper.make_graph([helper.make_node("Add", ["a", "a"], ["q"])], "sums", [info("a", [2, 4])], [info("q", [2, 4])])
save(helper.make_model(sums, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "sums.onnx")
