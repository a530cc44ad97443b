"""Makes the models behind the artifacts of this folder, their inputs and expected outputs, and compiles them.

usage: make.py TC_COMPILE FOLDER

The artifacts here are what tc-compile wrote while TCRT_ABI_VERSION was 1; a newer one writes artifacts of its own version,
so they are kept and not made again. Expected outputs come from NumPy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model(path, nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, path.stem, inputs, outputs,
                              [numpy_helper.from_array(value, name) for name, value in initializers])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


def value(name, dtype, dims):
    return helper.make_tensor_value_info(name, dtype, dims)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def static(path, random):
    """Fixed sizes, an input with a default, weights."""
    w0, w1 = (random.standard_normal(s).astype(np.float32) for s in ((16, 24), (24, 5)))
    b = np.linspace(-1, 1, 5, dtype=np.float32)
    model(path, [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["r"]),
                 helper.make_node("MatMul", ["r", "w1"], ["c"]), helper.make_node("Add", ["c", "b"], ["d"]),
                 helper.make_node("Softmax", ["d"], ["y"])],
          [value("x", TensorProto.FLOAT, [3, 16]), value("b", TensorProto.FLOAT, [5])],
          [value("y", TensorProto.FLOAT, [3, 5])], [("w0", w0), ("w1", w1), ("b", b)])
    x = random.standard_normal((3, 16)).astype(np.float32)
    return {"x": x}, {"y": softmax(np.maximum(x @ w0, 0) @ w1 + b)}, []


def dynamic(path, random):
    """Symbolic sizes, one of them derived, an output of a size that the data decide, weights in a file of their own."""
    w = random.standard_normal((64, 6)).astype(np.float32)
    model(path, [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Concat", ["a", "z"], ["c"], axis=0),
                 helper.make_node("ReduceSum", ["c", "axes"], ["y"], keepdims=0),
                 helper.make_node("NonZero", ["mask"], ["where"])],
          [value("x", TensorProto.FLOAT, ["n", 64]), value("z", TensorProto.FLOAT, ["m", 6]),
           value("mask", TensorProto.BOOL, ["n"])],
          [value("c", TensorProto.FLOAT, ["k", 6]), value("y", TensorProto.FLOAT, ["k"]),
           value("where", TensorProto.INT64, [1, "found"])],
          [("w", w), ("axes", np.array([1], np.int64))])
    x, z = (random.standard_normal(s).astype(np.float32) for s in ((7, 64), (4, 6)))
    mask = np.array([1, 0, 0, 1, 1, 0, 1], bool)
    c = np.concatenate([x @ w, z])
    return ({"x": x, "z": z, "mask": mask}, {"c": c, "y": c.sum(1), "where": np.stack(np.nonzero(mask)).astype(np.int64)},
            ["--dim", "n=1..64", "--external-weights"])


def strings(path, random):
    """Strings made and compared inside, constant ones among them, by host functions, and a sequence."""
    words = np.array(["zero", "one", "two", "three"], object)
    model(path, [helper.make_node("Gather", ["words", "i"], ["picked"]),
                 helper.make_node("StringConcat", ["picked", "picked"], ["twice"]),
                 helper.make_node("StringNormalizer", ["twice"], ["upper"], case_change_action="UPPER"),
                 helper.make_node("Equal", ["upper", "target"], ["hit"]),
                 helper.make_node("SequenceConstruct", ["i", "i"], ["pair"]),
                 helper.make_node("ConcatFromSequence", ["pair"], ["both"], axis=0)],
          [value("i", TensorProto.INT64, ["n"])],
          [value("hit", TensorProto.BOOL, ["n"]), value("both", TensorProto.INT64, ["m"])],
          [("words", words), ("target", np.array(["TWOTWO"], object))])
    i = np.array([2, 0, 3, 2, 1], np.int64)
    return {"i": i}, {"hit": i == 2, "both": np.concatenate([i, i])}, []


def main():
    compiler, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    for make in (static, dynamic, strings):
        name = make.__name__
        path = folder / (name + ".onnx")
        inputs, outputs, flags = make(path, np.random.default_rng(1))
        np.savez(folder / (name + ".in.npz"), **inputs)
        np.savez(folder / (name + ".out.npz"), **outputs)
        subprocess.run([compiler, str(path), "-o", str(folder / (name + ".bin")), "--cpu", "x86-64-v3", *flags], check=True)
        path.unlink()


if __name__ == "__main__":
    main()
