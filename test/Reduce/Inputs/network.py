"""network.py MODEL [DEFECT]: a network of dozens of nodes, with a defect in its midst. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 24
random = np.random.default_rng(7)
nodes, weights, functions = [], [], []
imports = [helper.make_opsetid("", 20)]


def add(operator, inputs, outputs=1, **attributes):
    names = [f"t{len(nodes)}_{i}" for i in range(outputs)]
    nodes.append(helper.make_node(operator, inputs, names, name=f"{operator}_{len(nodes)}", **attributes))
    return names[0] if outputs == 1 else names


def weight(shape, scale=0.2, dtype=np.float32):
    value = shape if isinstance(shape, np.ndarray) else (random.standard_normal(shape) * scale).astype(dtype)
    weights.append(numpy_helper.from_array(value, f"w{len(weights)}"))
    return weights[-1].name


def attention(x):
    q, k, v = (add("MatMul", [x, weight((WIDTH, WIDTH))]) for _ in range(3))
    scores = add("Softmax", [add("MatMul", [q, add("Transpose", [k], perm=[0, 2, 1])])], axis=-1)
    return add("Add", [x, add("MatMul", [scores, v])])


def feed_forward(x):
    hidden = add("Gelu", [add("Add", [add("MatMul", [x, weight((WIDTH, 4 * WIDTH))]), weight((4 * WIDTH,))])])
    return add("LayerNormalization", [add("Add", [x, add("MatMul", [hidden, weight((4 * WIDTH, WIDTH))])]), weight((WIDTH,)), weight((WIDTH,))])


def unknown(x):
    imports.append(helper.make_opsetid("my.ops", 1))
    return add("Magic", [x], domain="my.ops", strength=3)


def contradiction(x):
    return add("MatMul", [x, weight((WIDTH + 1, WIDTH))])


def cancellation(x):
    far = add("Add", [add("Exp", [x]), weight(np.full(WIDTH, 1e8, np.float32))])
    return add("Sub", [far, weight(np.full(WIDTH, 1.00000008e8, np.float32))])


def twice(x):
    turned = add("Transpose", [x], perm=[0, 2, 1])
    return add("Add", [add("Transpose", [add("Abs", [turned])], perm=[0, 2, 1]), add("Transpose", [add("Neg", [turned])], perm=[0, 2, 1])])


def turned(x):
    scores = add("Softmax", [add("MatMul", [x, add("Transpose", [x], perm=[0, 2, 1])])], axis=-1)
    return add("MatMul", [add("Transpose", [scores], perm=[0, 2, 1]), x])


def convolution(x):
    image = add("Conv", [add("Unsqueeze", [x, weight(np.array([1]))]), weight((3, 1, 3, 3))], strides=[2, 2], pads=[1, 1, 1, 1])
    return add("Add", [x, add("ReduceMean", [image], keepdims=0)])


def joined(x):
    both = add("Concat", [add("Relu", [x]), add("Sigmoid", [x])], axis=2)
    return add("MatMul", [both, weight((2 * WIDTH, WIDTH))])


def loop(x):
    info = lambda name, kind, shape: helper.make_tensor_value_info(name, kind, shape)
    body = helper.make_graph(
        [
            helper.make_node("Exp", ["carried"], ["e"]), helper.make_node("Neg", ["e"], ["n"]), helper.make_node("Tanh", ["n"], ["next"]),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("carried", TensorProto.FLOAT, [2, 16, WIDTH])],
        [info("on", TensorProto.BOOL, []), info("next", TensorProto.FLOAT, [2, 16, WIDTH])],
    )
    return add("Loop", [weight(np.array(3)), "", x], body=body)


def function(x):
    imports.append(helper.make_opsetid("local", 1))
    inner = [helper.make_node("Tanh", ["a"], ["b"]), helper.make_node("Tanh", ["b"], ["c"]), helper.make_node("Add", ["a", "c"], ["d"])]
    functions.append(helper.make_function("local", "Twist", ["a"], ["d"], inner, [helper.make_opsetid("", 20)]))
    return add("Twist", [add("Twist", [x], domain="local")], domain="local")


def main():
    x = "x"
    for block in range(4):
        x = feed_forward(attention(x))
        if block == 1 and len(sys.argv) > 2:
            x = globals()[sys.argv[2]](x)
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 16, WIDTH])
    graph = helper.make_graph(nodes, "network", [info("x")], [info(x)], weights)
    onnx.save(helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10), sys.argv[1])


if __name__ == "__main__":
    main()
