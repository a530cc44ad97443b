# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes net.onnx, one of whose products loses all that counts when it is rounded, models that leave nothing to choose, and data."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(0)
F = np.float32


def save(name, nodes, inputs, outputs, constants, types={}):
    info = lambda n, dims: helper.make_tensor_value_info(n, types.get(n, TensorProto.FLOAT), dims)
    graph = helper.make_graph(nodes, name, [info(n, d) for n, d in inputs.items()], [info(n, d) for n, d in outputs.items()],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), name + ".onnx")


def node(kind, inputs, output, name="", **attrs):
    return helper.make_node(kind, inputs.split(), output.split(), name=name or output, **attrs)


# 1 + x / 256 by weights of about 1, less what the ones give: rounded to bf16, whose step at 1 is 1 / 128, little of x is left.
weights = {name: (rng.standard_normal(shape) / shape[0] ** 0.5).astype(F) for name, shape in
           {"in_w": (64, 256), "mid_w": (256, 256), "out_w": (256, 64), "fine_w": (64, 64)}.items()}
fine = np.ones(64, np.float64) @ weights["fine_w"].astype(np.float64)
constants = dict(weights, one=F(1), step=F(1 / 256), many=F(256), offset=fine.astype(F))
nodes = [
    node("MatMul", "x in_w", "a", "/in/product"), node("Relu", "a", "b", "/in/relu"),
    node("MatMul", "b mid_w", "c", "/mid/product"), node("Relu", "c", "d", "/mid/relu"),
    node("MatMul", "d out_w", "e", "/out/product"),
    node("Mul", "x step", "f"), node("Add", "f one", "g"), node("MatMul", "g fine_w", "h", "/fine/product"),
    node("Sub", "h offset", "i"), node("Mul", "i many", "j"), node("Add", "e j", "y"),
]
save("net", nodes, {"x": ["n", 64]}, {"y": ["n", 64]}, constants)
np.savez("data.npz", x=rng.standard_normal((9, 64)).astype(F))
np.savez("samples.npz", x=rng.standard_normal((3, 5, 64)).astype(F))
np.savez("other.npz", z=np.ones((2, 64), F))

save("sums", [node("Add", "x x", "y")], {"x": ["n", 64]}, {"y": ["n", 64]}, {})
save("nothing", [node("MatMul", "x in_w", "a"), node("Div", "a zero", "y")], {"x": ["n", 64]}, {"y": ["n", 256]}, dict(in_w=weights["in_w"] * 0, zero=F(0)))
# A convolution whose filter is an input, and one of two channels for each group: nothing narrow.
save("wide", [node("Conv", "x w", "a", "given"), node("Conv", "a g", "y", "grouped", group=4)], {"x": [1, 4, 8, 8], "w": [8, 4, 3, 3]}, {"y": [1, 8, 4, 4]},
     dict(g=rng.standard_normal((8, 2, 3, 3)).astype(F)))
# One product, whose error numpy tells; sizes that likely ones are not.
save("one", [node("MatMul", "x mid_w", "y")], {"x": ["n", 256]}, {"y": ["n", 256]}, dict(mid_w=weights["mid_w"]))
np.savez("one.npz", x=rng.standard_normal((1, 256)).astype(F))
save("thirds", [node("Reshape", "x shape", "a"), node("MatMul", "a in_w", "y")], {"x": ["n", 64]}, {"y": ["m", "k", 256]},
     dict(in_w=weights["in_w"], shape=np.array([3, -1, 64], np.int64)))
# What Winograd's algorithm takes, which is another order of sums.
save("image", [node("Conv", "x i", "y", pads=[1, 1, 1, 1])], {"x": [1, 32, 28, 28]}, {"y": [1, 32, 28, 28]}, dict(i=rng.standard_normal((32, 32, 3, 3)).astype(F)))
# In a branch and a loop.
inner = lambda name, nodes, inputs, outputs: helper.make_graph(nodes, name, inputs, outputs)
value = lambda n, kind, dims: helper.make_tensor_value_info(n, kind, dims)
then = inner("then", [node("MatMul", "x fine_w", "t", "/then/product")], [], [value("t", TensorProto.FLOAT, ["n", 64])])
other = inner("other", [node("Mul", "x many", "o")], [], [value("o", TensorProto.FLOAT, ["n", 64])])
body = inner("body", [node("MatMul", "v fine_w", "w", "/loop/product"), node("Identity", "c", "c2")],
             [value("k", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("v", TensorProto.FLOAT, ["n", 64])],
             [value("c2", TensorProto.BOOL, []), value("w", TensorProto.FLOAT, ["n", 64])])
save("branch", [node("If", "flag", "a", "/if", then_branch=then, else_branch=other), node("Loop", "trips yes a", "y", "/loop", body=body)],
     {"x": ["n", 64], "flag": []}, {"y": ["n", 64]}, dict(fine_w=weights["fine_w"], many=F(256), trips=np.int64(3), yes=np.bool_(True)),
     {"flag": TensorProto.BOOL})
np.savez("branch.npz", x=rng.standard_normal((4, 64)).astype(F), flag=np.bool_(True))
# One node's name is that of two products.
save("twice", [node("MatMul", "x in_w", "a", "same"), node("Relu", "a", "b"), node("MatMul", "b out_w", "y", "same")], {"x": [4, 64]}, {"y": [4, 64]},
     {name: weights[name] for name in ("in_w", "out_w")})
# Names with characters of patterns and lists.
save("names", [node("MatMul", "x in_w", "a", "a[0],*"), node("Relu", "a", "b"), node("MatMul", "b out_w", "y", "a0")], {"x": [4, 64]}, {"y": [4, 64]},
     {name: weights[name] for name in ("in_w", "out_w")})
