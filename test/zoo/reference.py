#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A float64 evaluator of ONNX graphs in numpy: the reference that zoo tests compare with.

Covers the operators that the model zoo uses (opsets 17 to 20), written from the operator specification, with no regard to
speed beyond what numpy's matmul gives. Every float value is computed in float64, whatever the model says; integers, bools
and shapes keep their types. An operator or attribute that is not covered raises Unsupported and names the node.

usage: reference.py MODEL.onnx INPUTS.npz OUTPUTS.npz            writes the outputs, floats as float32
       reference.py MODEL.onnx INPUTS.npz --check EXPECTED.npz   prints max|a-b| / max|b| per output; status 3 where over 2e-6

Arrays in .npz files are named after the model's inputs or input_0, input_1, ... by position; outputs by name.
"""
import itertools
import math
import sys

import numpy as np
import onnx
from onnx import numpy_helper

HANDLERS = {}


class Unsupported(Exception):
    """A node that this evaluator does not cover."""


def op(*names):
    def register(function):
        for name in names:
            HANDLERS[name] = function
        return function
    return register


def widen(array):
    """Floats as float64, everything else as it is."""
    return array.astype(np.float64) if array.dtype.kind == "f" or array.dtype.name == "bfloat16" else array


class Node:
    """A node with its attributes decoded and its opset version at hand."""

    def __init__(self, proto, opset):
        self.proto, self.opset = proto, opset
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}

    def attribute(self, name, default=None):
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def axes(self, operands, position):
        """Axes given as attribute (older opsets) or as the operand at `position`; None where absent."""
        if "axes" in self.attributes:
            return list(self.attributes["axes"])
        if len(operands) > position and operands[position] is not None:
            return [int(a) for a in operands[position].ravel()]
        return None

    def unsupported(self, what):
        return Unsupported(f'node "{self.proto.name}": {self.proto.op_type} with {what}')


# --- pointwise ---------------------------------------------------------------------------------------------------------

def pointwise(name, function):
    HANDLERS[name] = lambda node, *x: function(*x)


def erf(x):
    return np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def divide(a, b):
    if a.dtype.kind == "f":
        return a / b
    quotient = np.abs(a) // np.abs(b)  # integers truncate toward zero
    return (quotient * np.sign(a) * np.sign(b)).astype(a.dtype)


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


for name, function in {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": divide, "And": np.logical_and, "Or": np.logical_or,
    "Not": np.logical_not, "Equal": np.equal, "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "Less": np.less,
    "LessOrEqual": np.less_equal, "Where": np.where, "Identity": lambda x: x, "Neg": np.negative, "Abs": np.abs,
    "Sqrt": np.sqrt, "Exp": np.exp, "Log": np.log, "Tanh": np.tanh, "Erf": erf, "Sigmoid": sigmoid,
    "Relu": lambda x: np.maximum(x, 0), "Reciprocal": lambda x: 1 / x, "Sin": np.sin, "Cos": np.cos,
    "Pow": lambda a, b: np.power(a, b.astype(a.dtype) if a.dtype.kind != "f" else b).astype(a.dtype),
}.items():
    pointwise(name, function)


@op("Max", "Min")
def extreme(node, *x):
    f = np.maximum if node.proto.op_type == "Max" else np.minimum
    result = x[0]
    for other in x[1:]:
        result = f(result, other)
    return result


@op("Clip")
def clip(node, x, low=None, high=None):
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


@op("Gelu")
def gelu(node, x):
    if node.attribute("approximate", "none") == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


@op("Cast")
def cast(node, x):
    dtype = onnx.helper.tensor_dtype_to_np_dtype(node.attribute("to"))
    return widen(x.astype(dtype)) if x.dtype.kind != "f" or dtype.kind != "f" else x


# --- reductions and norms ----------------------------------------------------------------------------------------------

@op("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
def reduce(node, x, *rest):
    axes = node.axes((x,) + rest, 1)
    if not axes:
        if node.attribute("noop_with_empty_axes", 0):
            return x
        axes = range(x.ndim)
    kind = node.proto.op_type[len("Reduce"):].lower()
    function = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}[kind]
    return np.asarray(function(x, axis=tuple(axes), keepdims=bool(node.attribute("keepdims", 1)))).astype(x.dtype)


@op("Softmax", "LogSoftmax")
def softmax(node, x):
    if node.opset < 13:
        raise node.unsupported(f"opset {node.opset}")
    axis = node.attribute("axis", -1)
    e = x - x.max(axis, keepdims=True)
    if node.proto.op_type == "LogSoftmax":
        return e - np.log(np.exp(e).sum(axis, keepdims=True))
    e = np.exp(e)
    return e / e.sum(axis, keepdims=True)


@op("LayerNormalization")
def layer_normalization(node, x, scale, bias=None):
    if len([o for o in node.proto.output if o]) > 1:
        raise node.unsupported("more than one output")
    axis = node.attribute("axis", -1)
    axes = tuple(range(axis % x.ndim, x.ndim))
    centred = x - x.mean(axes, keepdims=True)
    y = centred / np.sqrt((centred ** 2).mean(axes, keepdims=True) + node.attribute("epsilon", 1e-5)) * scale
    return y if bias is None else y + bias


@op("BatchNormalization")
def batch_normalization(node, x, scale, bias, mean, variance):
    if node.attribute("training_mode", 0):
        raise node.unsupported("training_mode 1")
    shape = (1, -1) + (1,) * (x.ndim - 2)
    factor = scale / np.sqrt(variance + node.attribute("epsilon", 1e-5))
    return x * factor.reshape(shape) + (bias - mean * factor).reshape(shape)


# --- shapes and data movement ------------------------------------------------------------------------------------------

@op("Constant")
def constant(node):
    for name, value in node.attributes.items():
        if name == "value":
            return widen(numpy_helper.to_array(value))
        if name in ("value_float", "value_floats"):
            return np.asarray(value, np.float64)
        if name in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
    raise node.unsupported(f"attributes {sorted(node.attributes)}")


@op("ConstantOfShape")
def constant_of_shape(node, shape):
    value = node.attribute("value")
    value = widen(numpy_helper.to_array(value)).ravel()[0] if value is not None else np.float64(0)
    return np.full(shape, value)


@op("Shape")
def shape_of(node, x):
    return np.asarray(x.shape[slice(node.attribute("start", 0), node.attribute("end"))], np.int64)


@op("Size")
def size_of(node, x):
    return np.asarray(x.size, np.int64)


@op("Reshape")
def reshape(node, x, shape):
    shape = [int(s) for s in shape]
    if not node.attribute("allowzero", 0):
        shape = [x.shape[i] if s == 0 else s for i, s in enumerate(shape)]
    return x.reshape(shape)


@op("Flatten")
def flatten(node, x):
    axis = node.attribute("axis", 1)
    return x.reshape(math.prod(x.shape[:axis % x.ndim if axis != x.ndim else axis]), -1)


@op("Transpose")
def transpose(node, x):
    return x.transpose(node.attribute("perm"))


@op("Squeeze")
def squeeze(node, x, axes=None):
    axes = node.axes((x, axes), 1)
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


@op("Unsqueeze")
def unsqueeze(node, x, axes=None):
    return np.expand_dims(x, tuple(node.axes((x, axes), 1)))


@op("Expand")
def expand(node, x, shape):
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(s) for s in shape)))


@op("Concat")
def concat(node, *x):
    return np.concatenate(x, node.attribute("axis"))


@op("Split")
def split(node, x, sizes=None):
    axis, count = node.attribute("axis", 0), len(node.proto.output)
    if sizes is None:
        part = -(-x.shape[axis] // count)
        sizes = [part] * (count - 1) + [x.shape[axis] - part * (count - 1)]
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


@op("Slice")
def slice_of(node, x, starts, ends, axes=None, steps=None):
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        n, start, end, step = x.shape[axis], int(start), int(end), int(step)
        start, end = (v + n if v < 0 else v for v in (start, end))
        if step > 0:
            index[axis] = slice(min(max(start, 0), n), min(max(end, 0), n), step)
        else:  # None stands for "before the first element", which a Python slice cannot say as a number
            start, end = min(max(start, 0), n - 1), min(max(end, -1), n - 1)
            index[axis] = slice(start, None if end < 0 else end, step)
    return x[tuple(index)]


@op("Gather")
def gather(node, x, indices):
    return np.take(x, indices, node.attribute("axis", 0))  # take counts negative indices from the end, as ONNX does


@op("GatherElements")
def gather_elements(node, x, indices):
    axis = node.attribute("axis", 0)
    return np.take_along_axis(x, np.where(indices < 0, indices + x.shape[axis], indices), axis)


@op("GatherND")
def gather_nd(node, x, indices):
    batch = node.attribute("batch_dims", 0)
    lead = x.shape[:batch]
    count = math.prod(lead)
    flat_x, flat_i = x.reshape((count,) + x.shape[batch:]), indices.reshape((count,) + indices.shape[batch:])
    rows = [a[tuple(np.moveaxis(i, -1, 0))] for a, i in zip(flat_x, flat_i)]
    return np.stack(rows).reshape(lead + rows[0].shape)


@op("Range")
def range_of(node, start, limit, delta):
    return np.arange(start.item(), limit.item(), delta.item()).astype(start.dtype)


@op("Pad")
def pad(node, x, pads, value=None, axes=None):
    if node.attribute("mode", "constant") != "constant" or (np.asarray(pads) < 0).any():
        raise node.unsupported("a mode other than constant, or negative pads")
    widths = [(0, 0)] * x.ndim
    axes = range(x.ndim) if axes is None else axes
    for i, axis in enumerate(axes):
        widths[axis] = (int(pads[i]), int(pads[len(pads) // 2 + i]))
    return np.pad(x, widths, constant_values=0 if value is None else value.item())


# --- contractions ------------------------------------------------------------------------------------------------------

pointwise("MatMul", np.matmul)


@op("Gemm")
def gemm(node, a, b, c=None):
    a = a.T if node.attribute("transA", 0) else a
    b = b.T if node.attribute("transB", 0) else b
    y = node.attribute("alpha", 1.0) * (a @ b)
    return y if c is None else y + node.attribute("beta", 1.0) * c


def window(node, x, kernel, fill):
    """Padded input and (output sizes, strides, dilations) of a convolution or pooling."""
    rank = len(kernel)
    strides = node.attribute("strides") or [1] * rank
    dilations = node.attribute("dilations") or [1] * rank
    if node.attribute("auto_pad", "NOTSET") != "NOTSET":
        raise node.unsupported(f'auto_pad {node.attribute("auto_pad")}')
    pads = node.attribute("pads") or [0] * (2 * rank)
    x = np.pad(x, [(0, 0), (0, 0)] + list(zip(pads[:rank], pads[rank:])), constant_values=fill)
    sizes = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], kernel, strides, dilations)]
    return x, sizes, strides, dilations


def taps(x, kernel, sizes, strides, dilations):
    """For each kernel position the part of the padded input that it reads, shape [N, C, sizes...]."""
    for position in itertools.product(*map(range, kernel)):
        index = tuple(slice(p * d, p * d + (n - 1) * s + 1, s) for p, d, n, s in zip(position, dilations, sizes, strides))
        yield position, x[(slice(None), slice(None)) + index]


@op("Conv")
def conv(node, x, w, bias=None):
    groups, kernel = node.attribute("group", 1), w.shape[2:]
    x, sizes, strides, dilations = window(node, x, kernel, 0.0)
    n, out, per_group = x.shape[0], w.shape[0], w.shape[1]
    y = np.zeros((n, groups, out // groups, math.prod(sizes)))
    w = w.reshape((groups, out // groups, per_group) + kernel)
    for position, part in taps(x, kernel, sizes, strides, dilations):
        part = np.ascontiguousarray(part).reshape(n, groups, per_group, -1)
        weight = np.ascontiguousarray(w[(slice(None),) * 3 + position])
        y += weight * part if per_group == 1 else weight @ part
    y = y.reshape([n, out] + sizes)
    return y if bias is None else y + bias.reshape((1, -1) + (1,) * len(kernel))


@op("MaxPool")
def max_pool(node, x):
    if node.attribute("ceil_mode", 0) or len(node.proto.output) > 1:
        raise node.unsupported("ceil_mode 1 or a second output")
    kernel = node.attribute("kernel_shape")
    x, sizes, strides, dilations = window(node, x, kernel, -np.inf)
    y = None
    for _, part in taps(x, kernel, sizes, strides, dilations):
        y = part.copy() if y is None else np.maximum(y, part, out=y)
    return y


@op("AveragePool")
def average_pool(node, x):
    if node.attribute("ceil_mode", 0):
        raise node.unsupported("ceil_mode 1")
    kernel = node.attribute("kernel_shape")
    total = sum(part for _, part in taps(*_pool(node, x, kernel)))
    if node.attribute("count_include_pad", 0):
        return total / math.prod(kernel)
    return total / sum(part for _, part in taps(*_pool(node, np.ones_like(x), kernel)))


def _pool(node, x, kernel):
    x, sizes, strides, dilations = window(node, x, kernel, 0.0)
    return x, kernel, sizes, strides, dilations


@op("GlobalAveragePool")
def global_average_pool(node, x):
    return x.mean(tuple(range(2, x.ndim)), keepdims=True)


@op("LSTM")
def lstm(node, x, w, r, bias=None, lengths=None, h0=None, c0=None, peephole=None):
    known = {"direction", "hidden_size", "layout", "input_forget"}
    if set(node.attributes) - known or node.attribute("layout", 0) or node.attribute("input_forget", 0) \
            or lengths is not None or peephole is not None:
        raise node.unsupported("attributes or operands beyond the plain form")
    steps, batch, _ = x.shape
    directions, hidden = w.shape[0], r.shape[2]
    direction = node.attribute("direction", "forward")
    y = np.zeros((steps, directions, batch, hidden))
    last_h, last_c = np.zeros((2, directions, batch, hidden))
    for d in range(directions):
        h = np.zeros((batch, hidden)) if h0 is None else h0[d]
        c = np.zeros((batch, hidden)) if c0 is None else c0[d]
        b = 0.0 if bias is None else bias[d, :4 * hidden] + bias[d, 4 * hidden:]
        backward = direction == "reverse" or d == 1
        for t in reversed(range(steps)) if backward else range(steps):
            i, o, f, g = np.split(x[t] @ w[d].T + h @ r[d].T + b, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            y[t, d] = h
        last_h[d], last_c[d] = h, c
    return y, last_h, last_c


# --- graphs ------------------------------------------------------------------------------------------------------------

def evaluate(model, inputs):
    """Outputs of `model` (a ModelProto with its weights) by name. `inputs`: arrays by name of graph input.

    A value is dropped after its last use, and weights are widened where they are used, so that memory stays near the
    size of the model."""
    graph = model.graph
    opset = {o.domain: o.version for o in model.opset_import}.get("", 1)
    weights = {t.name: t for t in graph.initializer}
    values = {}
    for value in graph.input:
        if value.name in inputs:
            values[value.name] = widen(np.asarray(inputs[value.name]))
        elif value.name not in weights:
            raise Unsupported(f'input "{value.name}" has no array; given: {", ".join(inputs) or "none"}')
    outputs = [o.name for o in graph.output]
    last_use = {name: i for i, n in enumerate(graph.node) for name in n.input}
    last_use.update((name, len(graph.node)) for name in outputs)

    def value_of(name):
        if not name:
            return None
        if name not in values:
            return widen(numpy_helper.to_array(weights[name]))
        return values[name]

    with np.errstate(all="ignore"):
        for i, proto in enumerate(graph.node):
            handler = HANDLERS.get(proto.op_type) if proto.domain in ("", "ai.onnx") else None
            if handler is None:
                raise Unsupported(f'node "{proto.name}": the reference has no {proto.domain or "ai.onnx"}.{proto.op_type}')
            results = handler(Node(proto, opset), *[value_of(name) for name in proto.input])
            results = results if isinstance(results, tuple) else (results,)
            values.update((name, np.asarray(r)) for name, r in zip(proto.output, results) if name)
            for name in set(proto.input) | set(proto.output):
                if last_use.get(name, -1) <= i:
                    values.pop(name, None)
    return {name: value_of(name) for name in outputs}


def named(arrays, values, prefix):
    """Arrays of an .npz by the names of `values`, by name or by position."""
    names = [v.name for v in values]
    return {n: arrays[n if n in arrays.files else f"{prefix}_{i}"]
            for i, n in enumerate(names) if n in arrays.files or f"{prefix}_{i}" in arrays.files}


def narrow(array):
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def main(argv):
    if len(argv) not in (4, 5) or (len(argv) == 5 and argv[3] != "--check"):
        sys.exit(__doc__.split("\n\n")[2])
    model = onnx.load(argv[1])
    got = evaluate(model, named(np.load(argv[2]), model.graph.input, "input"))
    if len(argv) == 4:
        np.savez(argv[3], **{name: narrow(array) for name, array in got.items()})
        return 0
    expected = named(np.load(argv[4]), model.graph.output, "output")
    worst = 0.0
    for name, array in got.items():
        want = expected[name].astype(np.float64)
        error = np.abs(array - want).max() / max(np.abs(want).max(), 1e-30) if array.shape == want.shape else math.inf
        print(f"{name}: shape {array.shape}, largest {np.abs(want).max():.3g}, relative error {error:.2g}")
        worst = max(worst, error)
    return 0 if worst <= 2e-6 else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv))
