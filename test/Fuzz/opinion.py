# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a node computes, and how well a machine of finite precision can be expected to compute it.

Every float is a float64 here, whatever its type in the model, and is computed RUNS times beside: in each of these runs every result that a
machine rounds is moved by a few units in the last place of its own type, and so is every operand of a sum; in the last run it is rounded to
that type instead, so that what cancels or is equal there does so here. Where the runs agree the value is well conditioned and an
implementation has to meet it; where they do not, rounding decides (a difference of nearly equal numbers, a floor at an integer, the order
of two equal maxima) and the distance of the runs says how much it decides. This is stochastic arithmetic (Vignes, "A stochastic arithmetic
for reliable scientific computation", 1993) with onnx's ReferenceEvaluator as the arithmetic of each node.
"""
import warnings
from typing import NamedTuple

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

RUNS = 24
NOISE = 4  # units of half an ulp by which a result is moved
SLACK = 4  # allowed error over distance of the runs

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# Types that are stored and converted, but not computed with: the operator that makes them rounds them itself.
NARROW_FLOATS = {np.dtype(t) for t in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz,
                                       ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn)}  # fmt: skip
# Those without NaN and infinity.
FINITE_FLOATS = {np.dtype(t) for t in (ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn)}
FLOATS = {np.dtype(t): ml_dtypes.finfo(t) for t in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16, *NARROW_FLOATS)}
STRING = np.dtype(object)

# Results are operands, chosen or compared: nothing is rounded.
EXACT = set(
    """Identity Abs Neg Ceil Floor Round Sign Max Min Relu Clip Where Reshape Flatten Squeeze Unsqueeze Transpose Expand Tile Concat Split
    Slice Pad Gather GatherElements GatherND ScatterElements ScatterND Scatter DepthToSpace SpaceToDepth Trilu ReverseSequence Compress
    CenterCropPad OneHot ConstantOfShape EyeLike MaxPool GlobalMaxPool ReduceMax ReduceMin TopK Constant Dropout NonZero Shape Size ArgMax
    ArgMin IsNaN IsInf Equal Less Greater LessOrEqual GreaterOrEqual Hardmax Unique BitCast TensorScatter MaxUnpool MaxRoiPool
    Imputer Binarizer ArrayFeatureExtractor FeatureVectorizer LabelEncoder SequenceMap OptionalGetElement
    SequenceConstruct SequenceInsert SequenceErase SequenceAt SplitToSequence ConcatFromSequence ReverseSequence""".split())  # fmt: skip
# Many roundings before one result, or a decision on a rounded number: operands are moved too.
SUMS = set(
    """ReduceSum ReduceMean ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd ReduceSumSquare MatMul Gemm Conv ConvTranspose
    CumSum CumProd Einsum AveragePool GlobalAveragePool LpPool GlobalLpPool Softmax LogSoftmax LayerNormalization BatchNormalization
    InstanceNormalization GroupNormalization RMSNormalization LpNormalization LRN MeanVarianceNormalization Resize Upsample GridSample Sum Mean Mod
    QuantizeLinear DynamicQuantizeLinear DequantizeLinear QLinearMatMul QLinearConv Gelu Mish Softplus Celu Elu Selu Sigmoid Tanh HardSwish
    HardSigmoid Det ScatterElements+ ScatterND+ SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss RNN GRU LSTM DFT STFT Col2Im
    Swish SwiGLU Attention LinearAttention CausalConvWithState RotaryEmbedding Range DeformConv RoiAlign AffineGrid BiasGelu FastGelu QuickGelu
    FusedMatMul SkipLayerNormalization SkipSimplifiedLayerNormalization QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu QLinearConcat
    QLinearGlobalAveragePool MatMulIntegerToFloat LinearRegressor Scaler Normalizer TreeEnsembleRegressor""".split())  # fmt: skip

# Magnitudes whose rounding error a result has, however small it is itself. Only what is neither an operand nor a result, and rounded all the
# same, needs one; u is the rounding error of 1, and a move of a result is at least SLACK * 0.3 * NOISE * u = 4.8 u times the magnitude.
#   ReduceLogSumExp, SoftmaxCrossEntropyLoss, and LogSoftmax in least_of: log(s) of a sum s >= 1 of exponentials. Rounding s
#     changes log(s) by u, also where that is nearly 0.
#   HannWindow, HammingWindow, BlackmanWindow: sums of constants and cosines of up to 1/2, which cancel.
#   TreeEnsembleRegressor: up to three leaves of about 1 and a base of up to 2 are added, none of which is an operand.
LEAST = {"ReduceLogSumExp": 1.0, "SoftmaxCrossEntropyLoss": 1.0, "TreeEnsembleRegressor": 4.0, "HannWindow": 1.0, "HammingWindow": 1.0,
         "BlackmanWindow": 1.0}  # fmt: skip


def largest_of_mean(node, x):
    """Along the dims whose mean a node subtracts: the largest |x|, and the standard deviation. None for other nodes."""
    attribute = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    groups = x
    if node.op_type == "InstanceNormalization":
        axes = tuple(range(2, x.ndim))
    elif node.op_type == "GroupNormalization":
        groups, axes = x.reshape(x.shape[0], attribute["num_groups"], -1), (2,)
    elif node.op_type == "LayerNormalization":
        axes = tuple(range(attribute.get("axis", -1) % max(x.ndim, 1), x.ndim))
    elif node.op_type == "MeanVarianceNormalization":
        axes = tuple(attribute.get("axes", (0, 2, 3)))
    else:
        return None
    if x.size == 0:
        return None
    largest = np.abs(groups).max(axis=axes, keepdims=True)
    deviation = np.sqrt(groups.var(axis=axes, keepdims=True) + attribute.get("epsilon", 1e-9))
    return tuple(np.broadcast_to(v, groups.shape).reshape(x.shape) for v in (largest, deviation))


def least_of(node, operands, results):
    """The magnitude of LEAST for these values, of all or of each."""
    op = node.op_type
    x = operands[0] if operands else None  # Constant has none
    if op in ("Gelu", "BiasGelu", "FastGelu"):
        # x / 2 (1 + f), f = -1 + tiny where x < 0. Rounding f, also by two units, changes the result by |x| u; it may become 0.
        return np.maximum(1.0, np.abs(x if len(operands) < 2 else x + operands[1]))
    if (means := largest_of_mean(node, x)) is not None:
        # The mean is rounded before it is subtracted: u times the largest |x|, over the deviation, times the scale.
        largest, deviation = means
        scale = np.abs(operands[1]) if len(operands) > 1 else np.ones(())
        if op in ("InstanceNormalization", "GroupNormalization"):
            scale = scale.max(initial=0)
        return np.broadcast_to(largest / deviation * scale, x.shape)
    if op == "DeformConv":
        # As for Resize: a place is computed with an error of u times itself, along each of the dims; products with the weights are summed.
        mask = np.abs(operands[4]).max(initial=0) if len(operands) > 4 and operands[4] is not None else 1.0
        weights = np.abs(operands[1]).reshape(operands[1].shape[0], -1).sum(axis=1).max(initial=0)
        return 1.25 * float(np.abs(x).max(initial=0) * max(*x.shape[2:], 1) * weights * mask)
    if op in ("Softmax", "LogSoftmax"):
        # Rounding sums of equal numbers errs in one direction: some u more for each lane's part of the sum.
        share = summands(node, operands, np.asarray(results[0])) / 20
        return np.abs(results[0]) * share if op == "Softmax" else max(1.0, share)
    if op == "GridSample":
        # As for Resize, along each of the dims; taps have no weights of their own.
        return 1.25 * float(np.abs(x).max(initial=0) * max(*x.shape[2:], 1))
    if op not in ("Resize", "Upsample", "DFT", "STFT", "RNN", "GRU", "LSTM"):
        return LEAST.get(op, 0.0)
    if op in ("RNN", "GRU", "LSTM"):
        # A new state is a sum of products of gates, which may cancel: (1 - z) n + z h. Each term is at most as large as a state, or 1, and is rounded.
        return max([1.0, *[np.abs(r).max(initial=0) for r in results]])
    largest = np.abs(x).max(initial=0)
    if op in ("Resize", "Upsample"):
        # A place between two elements is computed with an error of up to 2 u times itself, which is at most the longer side n, and a result
        # changes by at most 3 max |x| from one element to the next (cubic): 6 n u max |x|.
        return 1.25 * float(largest * max(*x.shape, *results[0].shape, 1))
    # Each of n terms is multiplied by a rounded sine: n u max |x|, times the window's largest.
    window = np.abs(operands[2]).max(initial=0) if op == "STFT" and operands[2] is not None else 1.0
    return float(largest * window * max(results[0].shape[-2], *x.shape, 1) / 4)


def summands(node, operands, result):
    """How many numbers a sum in this node has, about. Added one by one they are off by up to the square root of that times u times the sum of their
    magnitudes (Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019, theorem 3.1, of probability near 1)."""
    op, x = node.op_type, np.asarray(operands[0])
    if op.startswith(("Reduce", "Global")) or op in ("Det",):
        return x.size // max(result.size, 1)
    if op in ("Conv", "ConvTranspose") and operands[1].ndim > 2:
        return operands[1].size // max(operands[1].shape[op == "ConvTranspose"], 1)
    if op in ("InstanceNormalization", "GroupNormalization"):
        return int(np.prod(x.shape[2 if op[0] == "I" else 1 :]))
    if op in ("LayerNormalization", "RMSNormalization"):
        return operands[1].size  # the scale has the shape of what is normalised
    if op == "MeanVarianceNormalization":
        return x.size
    if op in ("Softmax", "LogSoftmax"):
        # Each sum has 1 as result. Before opset 13 it is over all dims from the axis on.
        rows = np.nansum(result if op == "Softmax" else np.exp(result))
        return x.size // max(round(float(rows)), 1)
    if op in ("MatMul", "Gemm", "Einsum", "CumSum", "CumProd", "LpNormalization", "DFT", "STFT"):
        return max(x.shape, default=1)
    return 1


_between = None


def between(array):
    """For implementations: a f32 that is rounded on the way to a result which is not itself a float, element by element."""
    return _between(array) if _between else array


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

    @property
    def size(self):
        return self.runs[0].size

    @property
    def is_storable(self):
        """Whether NumPy's files can hold the value."""
        return self.dtype.isbuiltin == 1 and self.dtype != STRING

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


class SequenceOf(NamedTuple):
    """The type of a sequence of tensors."""

    dtype: np.dtype


class Sequence:
    """A sequence of the model."""

    is_storable = False

    def __init__(self, dtype, values):
        self.dtype, self.values = dtype, values

    @property
    def runs(self):
        return [self.run(i) for i in range(max([len(v.runs) for v in self.values], default=1))]

    @property
    def size(self):
        return sum(v.size for v in self.values)

    def run(self, i):
        return [v.run(i) for v in self.values]


class Composite:
    """What a node with subgraphs computes. `function`: from the values that it reads, by name, and a generator, to the list of its results."""

    def __init__(self, function):
        self.function = function


def move(array, dtype, run, rng, least=0.0, units=NOISE):
    """`array` as a machine may have rounded it: by sign in the first two runs, at random in the others. `least` is a magnitude whose
    rounding error every element has, `units` how many halves of an ulp an element is moved by."""
    info = FLOATS[dtype]
    with np.errstate(all="ignore"):
        signs = np.ones(array.shape) if run == 1 else -np.ones(array.shape) if run == 2 else rng.choice([-1.0, 1.0], array.shape)
        # Not always as far: two steps in opposite directions must not cancel.
        signs = signs * rng.uniform(0.3, 1.0, array.shape)
        # Functions may flush what is below the normal numbers; f16 is computed in f32.
        tiny = float(info.smallest_subnormal if dtype == np.float16 else info.smallest_normal)
        step = np.maximum(np.maximum(np.abs(array), least) * (float(info.eps) / 2 * units), tiny)
        moved = np.where((array == 0) & (least == 0) | ~np.isfinite(array), array, array + signs * step)
        return np.asarray(moved)


def settle(array, dtype, run, rng):
    """A result in its own type's range; zeros of either sign."""
    with np.errstate(all="ignore"):
        if dtype in NARROW_FLOATS:
            return array.astype(dtype).astype(np.float64)
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


def opset_imports(opset):
    return [helper.make_opsetid(domain, version) for domain, version in [("", opset), ("ai.onnx.ml", 3), ("com.microsoft", 1)]]


def evaluator(node, opset, inputs, outputs):
    """onnx's evaluator of one node on float64."""
    def info(name, dtype):
        return helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE if is_float(dtype) else onnx_type(dtype), None)

    graph = helper.make_graph([in_double(node)], "node", [info(n, v.dtype) for n, v in inputs.items()], [info(n, t) for n, t in outputs])
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=opset_imports(opset)))


def small_enough(array, dtype):
    """Whether products and sums of such numbers stay in the range of their type, whatever the result."""
    finite = np.abs(array[np.isfinite(array)])
    return finite.size == 0 or finite.max() <= float(FLOATS[dtype].max) ** 0.4


def may_overflow(value):
    return not isinstance(value, Sequence) and is_float(value.dtype) and value.dtype not in NARROW_FLOATS and not small_enough(value.array, value.dtype)


def evaluate(node, opset, inputs, dtypes, rng, implementation=None):
    """The values of the node's outputs. `inputs`: name to Value (also of what its subgraphs read), `dtypes`: of the outputs.
    `implementation` replaces onnx's where that one is wrong or absent: a function of the float64 operands that returns a list, of lists for
    sequences."""
    global _between
    if isinstance(implementation, Composite):
        return implementation.function(inputs, rng)
    moves_operands = node.op_type in SUMS or node.op_type + "+" in SUMS and any(a.name == "reduction" and a.s != b"none" for a in node.attribute)
    rounds = moves_operands or node.op_type not in EXACT
    makes_floats = any(is_float(element_type(t)) for t in dtypes)
    reads_floats = any(is_float(v.dtype) for v in inputs.values())
    exact = all(len(v.runs) == 1 for v in inputs.values()) and not (rounds and (makes_floats or reads_floats)) and not makes_floats
    if moves_operands and any(may_overflow(v) for v in inputs.values()):
        raise Undecided("a sum may overflow on the way")
    names = [name for name in node.output if name]
    if not implementation:
        onnx_evaluator = evaluator(node, opset, inputs, list(zip(names, dtypes)))
    results, units = [], NOISE
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run in range(1 if exact else RUNS + 1):
            operands = {}
            for name, value in inputs.items():
                array = value.run(run)
                moves = 0 < run < RUNS and moves_operands and is_float(value.dtype) and value.dtype not in NARROW_FLOATS
                dtype = value.dtype
                if dtype == np.float64 and node.op_type == "Attention" and name == node.input[0]:
                    dtype = np.dtype(np.float32)  # ONNX's definition computes the scale of queries in f32
                operands[name] = move(array, dtype, run, rng, units=units) if moves else array
            listed = [operands[n] if n else None for n in node.input]
            _between = (lambda array, run=run: move(array, np.dtype(np.float32), run, rng)) if 0 < run < RUNS else None
            outputs = implementation(*listed) if implementation else onnx_evaluator.run(names, operands)
            if run == 0 and node.op_type in ("ReduceProd", "CumProd") and is_float(dtypes[0]):
                largest = np.abs(listed[0][np.isfinite(listed[0])]).max(initial=1)
                if np.log(max(largest, 1)) * summands(node, listed, np.asarray(outputs[0])) > np.log(float(FLOATS[dtypes[0]].max)):
                    raise Undecided("a product may overflow on the way")
            if run == 0 and node.op_type in ("RNN", "GRU", "LSTM") and any(not small_enough(o, t) for o, t in zip(outputs, dtypes)):
                raise Undecided("a state may overflow on the way")
            if run == 0 and moves_operands:
                units = max(NOISE, summands(node, listed, np.asarray(outputs[0])) ** 0.5)
            least = least_of(node, listed, outputs)
            arrays = []
            for array, dtype in zip(outputs, dtypes):
                if isinstance(dtype, SequenceOf):
                    arrays.append([result_of(node, a, dtype.dtype, run, rng, rounds, least) for a in array])
                else:
                    arrays.append(result_of(node, array, dtype, run, rng, rounds, least))
            results.append(arrays)
    values = []
    for i, dtype in enumerate(dtypes):
        runs = [arrays[i] for arrays in results]
        if not isinstance(dtype, SequenceOf):
            values.append(value_of(dtype, runs))
        elif any(len(r) != len(runs[0]) for r in runs):
            raise Undecided("the length depends on rounding")
        else:
            values.append(Sequence(dtype.dtype, [value_of(dtype.dtype, list(elements)) for elements in zip(*runs)]))
    return values


def element_type(kind):
    return kind.dtype if isinstance(kind, SequenceOf) else kind


def result_of(node, array, dtype, run, rng, rounds, least):
    """A result of the node in one run, as a machine may have rounded it."""
    array = np.asarray(array)
    if not is_float(dtype):
        if dtype == STRING:
            return array.astype(object)
        if array.dtype != dtype:
            raise Undecided(f"{node.op_type} gives {array.dtype} in ReferenceEvaluator, expected {dtype}")
        return array
    array = array.astype(np.float64)
    if run == RUNS:
        return array.astype(dtype).astype(np.float64)
    if run and rounds and dtype not in NARROW_FLOATS:
        # Magnitudes of each element are those of the first result.
        array = move(array, dtype, run, rng, least if np.ndim(least) == 0 or np.shape(least) == array.shape else 0.0)
    return settle(array, dtype, run, rng)


def value_of(dtype, runs):
    if any(r.shape != runs[0].shape for r in runs):
        raise Undecided("the shape depends on rounding")
    return Value(dtype, runs)
