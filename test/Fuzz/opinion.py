# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a node computes, and how well a machine of finite precision can be expected to compute it.

Every float is a float64 here, whatever its type in the model, and is computed RUNS times beside: in each of these runs every result that a
machine rounds is moved by a few units in the last place of its own type, and so is every operand of a sum. Where the runs agree the
value is well conditioned and an implementation has to meet it; where they do not, rounding decides (a difference of nearly equal
numbers, a floor at an integer, the order of two equal maxima) and the distance of the runs says how much it decides. This is
stochastic arithmetic (Vignes, "A stochastic arithmetic for reliable scientific computation", 1993) with onnx's ReferenceEvaluator as the
arithmetic of each node.
"""
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

RUNS = 12
NOISE = 4  # units of half an ulp by which a result is moved
SLACK = 4  # allowed error over distance of the runs

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = {np.dtype(t): ml_dtypes.finfo(t) for t in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)}

# Results are operands, chosen or compared: nothing is rounded.
EXACT = set(
    """Identity Abs Neg Ceil Floor Round Sign Max Min Relu Clip Where Reshape Flatten Squeeze Unsqueeze Transpose Expand Tile Concat Split
    Slice Pad Gather GatherElements GatherND ScatterElements ScatterND Scatter DepthToSpace SpaceToDepth Trilu ReverseSequence Compress
    CenterCropPad OneHot ConstantOfShape EyeLike MaxPool GlobalMaxPool ReduceMax ReduceMin TopK Constant Dropout NonZero Shape Size ArgMax
    ArgMin IsNaN IsInf Equal Less Greater LessOrEqual GreaterOrEqual Hardmax If Loop Unique Upsample""".split())  # fmt: skip
# Many roundings before one result, or a decision on a rounded number: operands are moved too.
SUMS = set(
    """ReduceSum ReduceMean ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd ReduceSumSquare MatMul Gemm Conv ConvTranspose
    CumSum CumProd Einsum AveragePool GlobalAveragePool LpPool GlobalLpPool Softmax LogSoftmax LayerNormalization BatchNormalization
    InstanceNormalization GroupNormalization RMSNormalization LpNormalization LRN MeanVarianceNormalization Resize GridSample Sum Mean Mod
    QuantizeLinear DynamicQuantizeLinear DequantizeLinear QLinearMatMul QLinearConv Gelu Mish Softplus Celu Elu Selu Sigmoid Tanh HardSwish
    HardSigmoid Det ScatterElements+ ScatterND+ SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss RNN GRU LSTM DFT STFT Col2Im
    Swish Attention RotaryEmbedding Range""".split())  # fmt: skip

# Differences of numbers of this size, with their error.
LEAST = {"LogSoftmax": 1.0, "ReduceLogSumExp": 1.0, "SoftmaxCrossEntropyLoss": 1.0, "Gelu": 1.0, "Resize": 4.0, "LayerNormalization": 8.0, "LpNormalization": 4.0,
         "RMSNormalization": 8.0, "BatchNormalization": 8.0, "InstanceNormalization": 8.0, "GroupNormalization": 8.0}  # fmt: skip


class Undecided(Exception):
    """A node whose result, or whose shape, the specification or the rounding of its operands leaves open."""


def is_float(dtype):
    return dtype in FLOATS


def onnx_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


class Value:
    """A tensor of the model. `runs[0]` is its value, the others the values of the runs; one entry only where it is exact."""

    def __init__(self, dtype, runs):
        self.dtype, self.runs = np.dtype(dtype), runs

    @staticmethod
    def leaf(array):
        return Value(array.dtype, [array.astype(np.float64) if is_float(array.dtype) else array])

    @property
    def array(self):
        return self.runs[0]

    @property
    def shape(self):
        return self.runs[0].shape

    def run(self, i):
        return self.runs[i if len(self.runs) > 1 else 0]

    def has_nan(self):
        return is_float(self.dtype) and any(np.isnan(r).any() for r in self.runs)

    def is_finite(self):
        return not is_float(self.dtype) or all(np.isfinite(r).all() for r in self.runs)

    def stored(self):
        """The value in its own type."""
        with np.errstate(all="ignore"):
            return self.array.astype(self.dtype)

    def error(self, actual):
        """Why `actual` is not this value, or None."""
        if actual.dtype != self.dtype:
            return f"element type {actual.dtype}, expected {self.dtype}"
        if actual.shape != self.shape:
            return f"shape {list(actual.shape)}, expected {list(self.shape)}"
        expected = self.array
        if not is_float(self.dtype):
            decided = np.logical_and.reduce([r == expected for r in self.runs])
            wrong = decided & (actual != expected)
        else:
            with np.errstate(all="ignore"):
                actual = actual.astype(np.float64)
                info = FLOATS[self.dtype]
                rounded = self.stored().astype(np.float64)
                decided, spread = np.ones(self.shape, bool), np.zeros(self.shape)
                for run in self.runs[1:]:
                    same = (run == expected) | (np.isnan(run) & np.isnan(expected))
                    finite = np.isfinite(run) & np.isfinite(expected)
                    decided &= same | finite
                    spread = np.maximum(spread, np.where(finite, np.abs(run - expected), 0))
                allowed = SLACK * spread + float(info.eps) * np.abs(expected) + 2 * float(info.smallest_subnormal if self.dtype == np.float16 else info.smallest_normal)
                # Where rounding decides most of the value there is nothing to compare.
                decided &= ~(SLACK * spread > 0.25 * np.abs(expected)) | ~np.isfinite(expected) | (spread < 1e-3)
                # What may round to an infinity is no finite expectation.
                decided &= ~(np.abs(expected) + allowed > float(info.max)) | ~np.isfinite(expected)
                right = (np.abs(actual - expected) <= allowed) | (actual == rounded) | (np.isnan(actual) & np.isnan(rounded))
                wrong = decided & ~right
        if not wrong.any():
            return None
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        got, want = actual[where] if self.shape else actual[()], expected[where] if self.shape else expected[()]
        detail = "" if not is_float(self.dtype) else f" (allowed {allowed[where] if self.shape else allowed[()]:.3g})"
        return f"{int(wrong.sum())} of {wrong.size} elements, first at {list(where)}: {got!r}, expected {want!r}{detail}"


def move(array, dtype, run, rng, least=0.0):
    """`array` as a machine may have rounded it: by sign in the first two runs, at random in the others. `least` is a magnitude whose
    rounding error every element has."""
    info = FLOATS[dtype]
    with np.errstate(all="ignore"):
        signs = np.ones(array.shape) if run == 1 else -np.ones(array.shape) if run == 2 else rng.choice([-1.0, 1.0], array.shape)
        # Not always as far: two steps in opposite directions must not cancel.
        signs = signs * rng.uniform(0.3, 1.0, array.shape)
        # Functions may flush what is below the normal numbers; f16 is computed in f32.
        tiny = float(info.smallest_subnormal if dtype == np.float16 else info.smallest_normal)
        step = np.maximum(np.maximum(np.abs(array), least) * (float(info.eps) / 2 * NOISE), tiny)
        moved = np.where((array == 0) | ~np.isfinite(array), array, array + signs * step)
        return np.asarray(moved)


def settle(array, dtype, run, rng):
    """A result in its own type's range; zeros of either sign."""
    with np.errstate(all="ignore"):
        limit = float(FLOATS[dtype].max) * (1 + float(FLOATS[dtype].eps) / 4)
        array = np.where(np.abs(array) > limit, np.copysign(np.inf, array), array)
        if run:
            array = np.where(array == 0, np.copysign(0.0, rng.choice([-1.0, 1.0], array.shape)), array)
        return np.asarray(array)


def in_double(node):
    """The node with every float type that it names replaced by float64."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    floats = {onnx_type(t) for t in FLOATS}
    for attribute in copy.attribute:
        if attribute.name in ("to", "dtype", "stash_type", "output_dtype") and attribute.i in floats:
            attribute.i = onnx.TensorProto.DOUBLE
        elif attribute.HasField("t") and attribute.t.data_type in floats:
            attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float64)))
        elif attribute.HasField("g"):
            nodes = [in_double(n) for n in attribute.g.node]
            del attribute.g.node[:]
            attribute.g.node.extend(nodes)
            for tensor in attribute.g.initializer:
                if tensor.data_type in floats:
                    name = tensor.name
                    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), name))
    return copy


def evaluator(node, opset, inputs, outputs):
    """onnx's evaluator of one node on float64."""
    def info(name, dtype):
        return helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE if is_float(dtype) else onnx_type(dtype), None)

    graph = helper.make_graph([in_double(node)], "node", [info(n, v.dtype) for n, v in inputs.items()], [info(n, t) for n, t in outputs])
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))


def may_overflow(value):
    """Whether products and sums of such numbers may leave the range of their type, whatever the result."""
    if not is_float(value.dtype):
        return False
    finite = np.abs(value.array[np.isfinite(value.array)])
    return finite.size > 0 and finite.max() > float(FLOATS[value.dtype].max) ** 0.4


def evaluate(node, opset, inputs, dtypes, rng, implementation=None):
    """The values of the node's outputs. `inputs`: name to Value (also of what its subgraphs read), `dtypes`: of the outputs.
    `implementation` replaces onnx's where that one is wrong or absent: a function of the float64 operands that returns a list."""
    moves_operands = node.op_type in SUMS or node.op_type + "+" in SUMS and any(a.name == "reduction" and a.s != b"none" for a in node.attribute)
    rounds = moves_operands or node.op_type not in EXACT
    makes_floats = any(is_float(t) for t in dtypes)
    reads_floats = any(is_float(v.dtype) for v in inputs.values())
    exact = all(len(v.runs) == 1 for v in inputs.values()) and not (rounds and (makes_floats or reads_floats)) and not makes_floats
    if moves_operands and any(may_overflow(v) for v in inputs.values()):
        raise Undecided("a sum may overflow on the way")
    names = [name for name in node.output if name]
    if not implementation:
        onnx_evaluator = evaluator(node, opset, inputs, list(zip(names, dtypes)))
    results = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run in range(1 if exact else RUNS + 1):
            operands = {}
            for name, value in inputs.items():
                array = value.run(run)
                operands[name] = move(array, value.dtype, run, rng) if run and moves_operands and is_float(value.dtype) else array
            if implementation:
                outputs = implementation(*[operands[n] if n else None for n in node.input])
            else:
                outputs = onnx_evaluator.run(names, operands)
            arrays = []
            for array, dtype in zip(outputs, dtypes):
                array = np.asarray(array)
                if is_float(dtype):
                    array = array.astype(np.float64)
                    if run and rounds:
                        array = move(array, dtype, run, rng, LEAST.get(node.op_type, 0.0))
                    array = settle(array, dtype, run, rng)
                elif array.dtype != dtype:
                    raise Undecided(f"{node.op_type} gives {array.dtype} in ReferenceEvaluator, expected {dtype}")
                arrays.append(array)
            results.append(arrays)
    values = []
    for i, dtype in enumerate(dtypes):
        runs = [arrays[i] for arrays in results]
        if any(r.shape != runs[0].shape for r in runs):
            raise Undecided("the shape depends on rounding")
        values.append(Value(dtype, runs))
    return values
