# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How each operator is drawn: operands that satisfy its constraints, attributes, the types of its results.

A function marked by @operator adds one node to a graph (generate.Graph), or raises NoFit. Its argument `since` is the first opset in which
it is drawn, `weight` how often. Where the meaning of a node hangs on what ONNX leaves open (an integer division by zero, the order of NaN,
a conversion out of range) the node is not drawn.
"""
import functools
import math

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from generate import FIRST_OPSETS, NoFit, allowed_types
from opinion import FINITE_FLOATS, NARROW_FLOATS, Value, is_float, onnx_type

TEMPLATES = []  # (function, first opset, last opset, weight)
REPEATABLE = set()  # functions whose nodes mean something for other operands of the same types and sizes, too
FLOAT_TYPES = {np.dtype(t) for t in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)}
INTEGER_TYPES = {np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)}
BOOL = {np.dtype(np.bool_)}


def operator(since=7, until=99, weight=1, repeatable=False):
    def mark(function):
        TEMPLATES.append((function, since, until, weight))
        if repeatable:
            REPEATABLE.add(function)
        return function

    return mark


@functools.lru_cache(None)
def enabled(opset):
    return [t for t, since, until, weight in TEMPLATES if since <= opset <= until for _ in range(weight)]


def types_of(g, op, operand=0, among=None):
    types = allowed_types(op, g.opset, operand)
    return types & among if among else types


def exists(op, opset):
    try:
        return onnx.defs.get_schema(op, opset, "").since_version <= opset
    except Exception:
        return False


def alike(g, name, kind=None):
    """Another operand of the same type whose shape broadcasts with that of `name`."""
    value = g[name]

    def broadcasts(other):
        pairs = zip(reversed(other.shape), reversed(value.shape))
        return all(a == b or a == 1 or b == 1 for a, b in pairs)

    def make():
        shape = list(value.shape)
        for i in range(len(shape)):
            if g.chance(0.25):
                shape[i] = 1
        if g.chance(0.3):
            shape = shape[g.integer(0, len(shape)):]
        elif len(shape) < 4 and value.array.size < 300 and g.chance(0.15):
            shape = [g.integer(1, 3), *shape]
        return g.leaf(value.dtype, tuple(shape), kind)

    if kind:
        return make()
    return g.pick({value.dtype}, broadcasts, make, p_new=0.4)


# --- elementwise

UNARY = [("Abs", 7), ("Neg", 7), ("Ceil", 7), ("Floor", 7), ("Sqrt", 7), ("Exp", 7), ("Log", 7), ("Reciprocal", 7), ("Sigmoid", 7), ("Tanh", 7),
         ("Sin", 7), ("Cos", 7), ("Tan", 7), ("Asin", 7), ("Acos", 7), ("Atan", 7), ("Sinh", 9), ("Cosh", 9), ("Asinh", 9), ("Acosh", 9),
         ("Atanh", 9), ("Erf", 9), ("Sign", 9), ("Round", 11), ("Softplus", 7), ("Softsign", 7), ("Relu", 7), ("Identity", 7),
         ("HardSwish", 14), ("Mish", 18)]  # fmt: skip


@operator(weight=6, repeatable=True)
def unary(g):
    op, since = g.choice(UNARY)
    if g.opset < since:
        raise NoFit
    # The body of HardSwish has constants of f32.
    x = g.pick(types_of(g, op) - ({np.dtype(np.float64)} if op == "HardSwish" else set()))
    if op == "Neg" and not is_float(g[x].dtype) and g[x].array.size and np.iinfo(g[x].dtype).min == g[x].array.min():
        raise NoFit
    # ReferenceEvaluator's Erf is a polynomial with errors of 1e-7.
    g.add(op, [x], [g[x].dtype], (lambda a: [erf(a)]) if op == "Erf" else None)


erf = np.vectorize(math.erf, otypes=[np.float64])


@operator(weight=3, repeatable=True)
def unary_with_attributes(g):
    op, names, since = g.choice([("Elu", ["alpha"], 7), ("Selu", ["alpha", "gamma"], 7), ("Celu", ["alpha"], 12), ("LeakyRelu", ["alpha"], 7),
                                 ("HardSigmoid", ["alpha", "beta"], 7), ("ThresholdedRelu", ["alpha"], 10), ("Shrink", ["bias", "lambd"], 9),
                                 ("Swish", ["alpha"], 24), ("Gelu", [], 20)])  # fmt: skip
    if g.opset < since:
        raise NoFit
    # Gelu's body has constants of f32.
    x = g.pick(types_of(g, op, among=FLOAT_TYPES - ({np.dtype(np.float64)} if op == "Gelu" else set())))
    # Defaults that f32 rounds are doubles in ReferenceEvaluator.
    rounded = op in ("LeakyRelu", "HardSigmoid", "Selu")
    attributes = {n: g.choice([0.25, 0.5, 1.0, 1.5]) for n in names if rounded or g.chance(0.6)}
    exact = op == "Gelu" and g.chance(0.5)
    if op == "Gelu":
        attributes["approximate"] = "none" if exact else "tanh"
    g.add(op, [x], [g[x].dtype], (lambda a: [0.5 * a * (1 + erf(a / math.sqrt(2)))]) if exact else None, **attributes)


@operator(since=9)
def classify_floats(g):
    op = g.choice(["IsNaN", "IsInf"]) if g.opset >= 10 else "IsNaN"
    x = g.pick(types_of(g, op, among=FLOAT_TYPES))
    attributes = {}
    if op == "IsInf" and g.chance(0.5):
        attributes = {"detect_negative": g.integer(0, 1), "detect_positive": g.integer(0, 1)}
    g.add(op, [x], [np.bool_], **attributes)


@operator(weight=6, repeatable=True)
def arithmetic(g):
    op = g.choice(["Add", "Sub", "Mul", "Div"])
    x = g.pick(types_of(g, op))
    y = alike(g, x, "positive" if op == "Div" and not is_float(g[x].dtype) else None)
    if op == "Div" and not is_float(g[x].dtype):
        return integer_division(g, x, y)
    g.add(op, g.rng.permutation([x, y]).tolist(), [g[x].dtype])


def integer_division(g, x, y):
    def divide(a, b):
        # ONNX: towards zero. ReferenceEvaluator divides in float64.
        return [(np.abs(a) // b * np.sign(a)).astype(a.dtype) if a.dtype.kind == "i" else a // b]

    if g[x].array.size and g[x].array.min() == np.iinfo(g[x].dtype).min and g[x].dtype.kind == "i":
        raise NoFit
    g.add("Div", [x, y], [g[x].dtype], divide)


@operator(since=12)
def power(g):
    x = g.pick(types_of(g, "Pow", among=FLOAT_TYPES))
    shape = g[x].shape
    y = alike(g, x, "whole") if g.chance(0.5) else g.constant(np.asarray(g.choice([0.5, 2, 3, 1, 0, -1, -2, 1.5]), g[x].dtype))
    # C's pow and a square root differ at infinities, and each is a power to somebody.
    if g[y].array.ndim > len(shape) or not g[x].is_finite():
        raise NoFit
    g.add("Pow", [x, y], [g[x].dtype])


@operator(since=10)
def modulo(g):
    x = g.pick(types_of(g, "Mod"))
    y = alike(g, x, "positive")
    floats = is_float(g[x].dtype)
    if floats and not g[x].is_finite():
        raise NoFit
    g.add("Mod", [x, y], [g[x].dtype], fmod=1 if floats else g.integer(0, 1))


@operator(since=8, weight=3, repeatable=True)
def variadic(g):
    op = g.choice(["Max", "Min", "Sum", "Mean"])
    x = g.pick(types_of(g, op))
    names = [x] + [alike(g, x) for _ in range(g.integer(0, 2))]
    try:
        shape = np.broadcast_shapes(*[g[n].shape for n in names])
    except ValueError:
        raise NoFit from None
    # Which of NaN and a number is larger is left open.
    if op in ("Max", "Min") and any(g[n].has_nan() for n in names):
        raise NoFit
    # ReferenceEvaluator adds to its first operand in place.
    names.sort(key=lambda n: g[n].shape != shape)
    if op == "Mean" and g[names[0]].shape != shape:
        raise NoFit
    g.add(op, names, [g[x].dtype])


@operator(weight=3, repeatable=True)
def compare(g):
    op = g.choice(["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"])
    if op.endswith("OrEqual") and g.opset < 12:
        raise NoFit
    x = g.pick(types_of(g, op))
    g.add(op, [x, alike(g, x)], [np.bool_])


@operator(weight=2, repeatable=True)
def logic(g):
    op = g.choice(["And", "Or", "Xor", "Not"])
    x = g.pick(BOOL)
    g.add(op, [x] if op == "Not" else [x, alike(g, x)], [np.bool_])


@operator(since=18, repeatable=True)
def bitwise(g):
    op = g.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"])
    x = g.pick(types_of(g, op))
    g.add(op, [x] if op == "BitwiseNot" else [x, alike(g, x)], [g[x].dtype])


@operator(since=11)
def shift(g):
    x = g.pick({np.dtype(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64)})
    amount = g.constant(np.asarray(g.rng.integers(0, 8 * g[x].dtype.itemsize, g[x].shape)).astype(g[x].dtype))
    g.add("BitShift", [x, amount], [g[x].dtype], direction=g.choice(["LEFT", "RIGHT"]))


@operator(since=9, weight=2, repeatable=True)
def where(g):
    x = g.pick(types_of(g, "Where", 1))
    y = alike(g, x)
    shape = np.broadcast_shapes(g[x].shape, g[y].shape)
    condition = g.pick(BOOL, lambda v: v.shape == shape, lambda: g.leaf(np.bool_, tuple(1 if g.chance(0.3) else s for s in shape)))
    g.add("Where", [condition, x, y], [g[x].dtype])


@operator(weight=2, repeatable=True)
def clip(g):
    x = g.pick(types_of(g, "Clip"))
    if g[x].has_nan():
        raise NoFit
    low, high = sorted([g.integer(0, 5) - (3 if g[x].dtype.kind != "u" else 0), g.integer(0, 5)])
    if g.opset < 11:
        attributes = {"min": float(low)} if g.chance(0.7) else {}
        g.add("Clip", [x], [g[x].dtype], **attributes, **({"max": float(high)} if g.chance(0.7) else {}))
        return
    bound = lambda b: g.constant(np.asarray(b, g[x].dtype)) if g.chance(0.7) else ""  # noqa: E731
    g.add("Clip", [x, bound(low), bound(high)], [g[x].dtype])


@operator(repeatable=True)
def prelu(g):
    x = g.pick(types_of(g, "PRelu", among=FLOAT_TYPES))
    slope = tuple(1 if g.chance(0.4) else s for s in g[x].shape)[g.integer(0, g[x].array.ndim):]
    # ReferenceEvaluator multiplies zeros, too: by an infinity, say.
    g.add("PRelu", [x, g.leaf(g[x].dtype, slope)], [g[x].dtype], lambda a, s: [np.where(a < 0, a * s, a)])


@operator(weight=5)
def cast(g):
    types = types_of(g, "Cast")
    x = g.pick(types)
    to = g.dtype(types) if g.chance(0.7) else g.choice([t for t in sorted(types, key=str) if g.opset >= FIRST_OPSETS.get(t.type, 0)])
    function, saturate = conversion(g, g[x], to)
    if is_float(to) and to in NARROW_FLOATS and g.opset >= 19 and g.chance(0.5) and to not in FINITE_FLOATS:
        saturate = False
        function, _ = conversion(g, g[x], to, False)
        g.add("Cast", [x], [to], function, to=onnx_type(to), saturate=0)
        return
    if g.opset >= 15 and g.chance(0.2) and to in types_of(g, "CastLike", 1):
        g.add("CastLike", [x, g.leaf(to, ())], [to], function)
    else:
        g.add("Cast", [x], [to], function, to=onnx_type(to))


def conversion(g, value, to, saturate=True):
    """How `value` is converted: a function, or NoFit where ONNX leaves it open."""
    if not is_float(to) and to != np.bool_:
        info = ml_dtypes.iinfo(to)
        if value.dtype != np.bool_:
            low, high = float(info.min), float(info.max)
            if any(not np.isfinite(r.astype(np.float64)).all() or r.size and (r.min() < low or r.max() > high * (1 - 2.0**-50)) for r in value.runs):
                raise NoFit
    if to in NARROW_FLOATS:
        limit = float(ml_dtypes.finfo(to).max)

        def narrow(a, _=None):
            a = np.asarray(a).astype(np.float64)
            if saturate:
                a = np.where(np.isnan(a), a, np.clip(a, -limit, limit))
            # What lies beyond the largest number rounds to it or is no number, as the type has infinities or not.
            return [np.where(np.isnan(a) & (to in FINITE_FLOATS), 0, a).astype(to)]

        # What NaN is in a type without it is open.
        if to in FINITE_FLOATS and value.has_nan():
            raise NoFit
        return narrow, saturate
    kind = np.dtype(np.float64) if is_float(to) else to
    return (lambda a, _=None: [np.asarray(a).astype(kind)]), saturate


# --- reductions

def draw_axes(g, rank, least=0):
    """Some axes, in any order, some of them negative."""
    count = g.integer(least, rank)
    axes = [int(a) for a in g.rng.permutation(rank)[:count]]
    return [a - rank if g.opset >= 11 and g.chance(0.3) else a for a in axes]


@operator(weight=6, repeatable=True)
def reduction(g):
    op = g.choice(["Sum", "Sum", "Mean", "Mean", "Max", "Min", "L1", "L2", "LogSum", "LogSumExp", "Prod", "SumSquare"])
    name = "Reduce" + op
    x = g.pick(types_of(g, name))
    value, rank = g[x], g[x].array.ndim
    if op in ("Max", "Min") and value.has_nan():
        raise NoFit
    axes = draw_axes(g, rank, 1 if rank else 0)
    reduced = axes or range(rank)
    empty = any(value.shape[a] == 0 for a in reduced)
    if empty and (g.opset < 18 or op == "Mean" or op in ("Max", "Min") and g.opset < 20):
        raise NoFit
    if empty and op in ("Max", "Min", "LogSum", "LogSumExp"):
        raise NoFit
    if not is_float(value.dtype) and op in ("Mean", "L2", "LogSum", "LogSumExp"):
        raise NoFit
    # ReferenceEvaluator computes it neither of scalars nor of infinities.
    if op == "LogSumExp" and (not value.is_finite() or rank == 0):
        raise NoFit
    attributes = {"keepdims": g.integer(0, 1)} if g.chance(0.8) else {}
    inputs = [x]
    as_input = g.opset >= (13 if op == "Sum" else 18)
    if axes and as_input:
        inputs.append(g.ints(axes))
    elif axes and not as_input:
        attributes["axes"] = axes
    elif as_input and g.chance(0.3):
        attributes["noop_with_empty_axes"] = g.integer(0, 1)
    if attributes.get("noop_with_empty_axes") and op not in ("Sum", "Mean", "Max", "Min", "Prod"):
        raise NoFit
    g.add(name, inputs, [value.dtype], **attributes)


@operator(weight=2, repeatable=True)
def arg_reduction(g):
    op = g.choice(["ArgMax", "ArgMin"])
    x = g.pick(types_of(g, op), least_rank=1)
    value = g[x]
    axis = g.integer(0, value.array.ndim - 1)
    if value.has_nan() or value.shape[axis] == 0:
        raise NoFit
    attributes = {"axis": axis - value.array.ndim if g.opset >= 11 and g.chance(0.3) else axis, "keepdims": g.integer(0, 1)}
    if g.opset >= 12 and g.chance(0.3):
        attributes["select_last_index"] = 1
    g.add(op, [x], [np.int64], **attributes)


@operator(since=11, repeatable=True)
def cumulative(g):
    op = "CumProd" if g.opset >= 26 and g.chance(0.5) else "CumSum"
    x = g.pick(types_of(g, op), least_rank=1)
    rank = g[x].array.ndim
    axis = g.integer(-rank, rank - 1)
    g.add(op, [x, g.constant(np.asarray(axis, g.choice([np.int32, np.int64])))], [g[x].dtype], exclusive=g.integer(0, 1), reverse=g.integer(0, 1))


@operator(weight=2, repeatable=True)
def top_k(g):
    types = types_of(g, "TopK") & ({np.dtype(t) for t in (np.float32, np.float64, np.float16, np.int64, np.int32)})
    x = g.pick(types, least_rank=1)
    value = g[x]
    axis = g.integer(0, value.array.ndim - 1)
    if value.has_nan():
        raise NoFit
    k = g.integer(0, value.shape[axis])
    attributes = {"axis": axis}
    inputs = [x]
    if g.opset < 10:
        if not k:
            raise NoFit
        attributes["k"] = k
    else:
        inputs.append(g.ints([k]))
    if g.opset >= 11:
        attributes.update(largest=g.integer(0, 1), sorted=1)
    largest = attributes.get("largest", 1)

    def sort(array, _=None):
        # ReferenceEvaluator leaves the order of equal elements to NumPy; ONNX says that the lower index comes first.
        order = np.argsort(array if not largest else -array, axis, kind="stable") if array.dtype.kind == "f" else stable_order(array, axis, largest)
        order = np.take(order, range(k), axis)
        return [np.take_along_axis(array, order, axis), order.astype(np.int64)]

    g.add("TopK", inputs, [value.dtype, np.int64], sort, **attributes)


def stable_order(array, axis, largest):
    if not largest:
        return np.argsort(array, axis, kind="stable")
    flipped = np.argsort(np.flip(array, axis), axis, kind="stable")
    return array.shape[axis] - 1 - np.flip(flipped, axis)


# --- movement

@operator(weight=3, repeatable=True)
def transpose(g):
    x = g.pick(types_of(g, "Transpose"))
    rank = g[x].array.ndim
    attributes = {"perm": g.rng.permutation(rank).tolist()} if rank and g.chance(0.85) else {}
    g.add("Transpose", [x], [g[x].dtype], **attributes)


@operator(weight=4, repeatable=True)
def reshape(g):
    x = g.pick(types_of(g, "Reshape"))
    shape, size = list(g[x].shape), g[x].array.size
    if g.chance(0.4):
        # Merge neighbours, or split one dim.
        target = list(shape)
        if len(target) > 1 and g.chance(0.5):
            at = g.integer(0, len(target) - 2)
            target[at : at + 2] = [target[at] * target[at + 1]]
        elif target:
            at = g.integer(0, len(target) - 1)
            divisors = [d for d in range(1, max(target[at], 1) + 1) if target[at] % d == 0]
            d = g.choice(divisors)
            target[at : at + 1] = [d, target[at] // d]
    else:
        target, rest = [], size
        for _ in range(g.integer(0, 3)):
            d = g.choice([d for d in range(1, rest + 1) if rest % d == 0] or [1]) if rest else g.integer(0, 3)
            target.append(d)
            rest = rest // d if rest and d else rest
        if rest != 1 or not target:
            target.append(rest if size else 0)
    if size:
        if target and g.chance(0.3):
            target[g.integer(0, len(target) - 1)] = -1
        for i in range(min(len(target), len(shape))):
            if target[i] == shape[i] and g.chance(0.3):
                target[i] = 0
    elif int(np.prod(target)) != 0 or any(t == 0 and (i >= len(shape) or shape[i]) for i, t in enumerate(target)):
        raise NoFit
    g.add("Reshape", [x, g.ints(target)], [g[x].dtype])


@operator(repeatable=True)
def flatten(g):
    x = g.pick(types_of(g, "Flatten"))
    rank = g[x].array.ndim
    axis = g.integer(-rank if g.opset >= 11 else 0, rank)
    rows = math.prod(g[x].shape[:axis] if axis else ())
    # ReferenceEvaluator leaves the other size to NumPy, which finds none for an empty array.
    g.add("Flatten", [x], [g[x].dtype], lambda a: [a.reshape(rows, a.size // rows if rows else math.prod(a.shape[axis:]))], axis=axis)


@operator(weight=2, repeatable=True)
def squeeze(g):
    x = g.pick(types_of(g, "Squeeze"), lambda v: 1 in v.shape)
    rank = g[x].array.ndim
    ones = [i for i, s in enumerate(g[x].shape) if s == 1]
    axes = sorted(int(a) for a in g.rng.permutation(ones)[: g.integer(1, len(ones))])
    if g.opset >= 11:
        axes = [a - rank if g.chance(0.3) else a for a in axes]
    if g.opset >= 13:
        g.add("Squeeze", [x, g.ints(axes)], [g[x].dtype])
    else:
        g.add("Squeeze", [x], [g[x].dtype], axes=axes)


@operator(weight=2, repeatable=True)
def unsqueeze(g):
    x = g.pick(types_of(g, "Unsqueeze"), lambda v: v.array.ndim < 5)
    rank = g[x].array.ndim + g.integer(1, 2)
    axes = sorted(int(a) for a in g.rng.permutation(rank)[: rank - g[x].array.ndim])
    if g.opset >= 11:
        axes = [a - rank if g.chance(0.3) else a for a in axes]
    if g.opset >= 13:
        g.add("Unsqueeze", [x, g.ints(axes)], [g[x].dtype])
    else:
        # ReferenceEvaluator inserts one dim after the other, with what negative axes are then.
        target = tuple(np.expand_dims(np.empty(g[x].shape), tuple(axes)).shape)
        g.add("Unsqueeze", [x], [g[x].dtype], lambda a: [a.reshape(target)], axes=axes)


@operator(since=8, weight=2, repeatable=True)
def expand(g):
    x = g.pick(types_of(g, "Expand"), lambda v: v.array.size < 500)
    target = [g.integer(1, 5) if s == 1 and g.chance(0.7) else (1 if g.chance(0.3) else s) for s in g[x].shape]
    if g.chance(0.4) and len(target) < 5:
        target = [g.choice([1, 2, 3, 0]), *target]
    elif target and g.chance(0.2):
        target = target[1:]
    g.add("Expand", [x, g.ints(target)], [g[x].dtype])


@operator(repeatable=True)
def tile(g):
    x = g.pick(types_of(g, "Tile"), lambda v: v.array.size < 500)
    g.add("Tile", [x, g.ints([g.choice([0, 1, 1, 2, 2, 3]) for _ in g[x].shape])], [g[x].dtype])


@operator(weight=4, repeatable=True)
def concat(g):
    x = g.pick(types_of(g, "Concat"), least_rank=1)
    shape, axis = g[x].shape, g.integer(0, g[x].array.ndim - 1)

    def fits(v):
        return v.array.ndim == len(shape) and all(a == b or i == axis for i, (a, b) in enumerate(zip(v.shape, shape)))

    names = [x] + [g.pick({g[x].dtype}, fits, lambda: g.leaf(g[x].dtype, (*shape[:axis], g.choice([0, 1, 2, 3, 5]), *shape[axis + 1 :])))
                   for _ in range(g.integer(0, 3))]  # fmt: skip
    names = [names[i] for i in g.rng.permutation(len(names))]
    g.add("Concat", names, [g[x].dtype], axis=axis - len(shape) if g.opset >= 11 and g.chance(0.3) else axis)


@operator(weight=3, repeatable=True)
def split(g):
    x = g.pick(types_of(g, "Split"), least_rank=1)
    axis = g.integer(0, g[x].array.ndim - 1)
    size, count = g[x].shape[axis], g.integer(1, 4)
    cuts = sorted(g.integer(0, size) for _ in range(count - 1))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, size])]
    attributes, inputs = {"axis": axis}, [x]
    even = size % count == 0 and g.chance(0.3)
    if even and g.opset < 18:
        pass
    elif g.opset >= 18 and g.chance(0.4):
        block = -(-size // count)
        if block * (count - 1) >= size and count > 1:
            raise NoFit
        attributes["num_outputs"] = count
    elif g.opset >= 13:
        inputs.append(g.ints(sizes))
    else:
        attributes["split"] = sizes
    g.add("Split", inputs, [g[x].dtype] * count, **attributes)


@operator(weight=5, repeatable=True)
def slice_(g):
    x = g.pick(types_of(g, "Slice"), least_rank=1)
    shape, rank = g[x].shape, g[x].array.ndim
    axes = sorted(int(a) for a in g.rng.permutation(rank)[: g.integer(1, rank)])
    starts, ends, steps = [], [], []
    for a in axes:
        n = shape[a]
        step = g.choice([1, 1, 1, 2, 3, -1, -1, -2, -3]) if g.opset >= 10 else 1
        low, high = sorted([g.integer(-1, n + 1), g.integer(-1, n + 1)])
        start, end = (low, high) if step > 0 else (high, low)
        if g.chance(0.2):
            start, end = (0, 2**31 - 1) if step > 0 else (n - 1 if n else 0, -(2**31) + 1)
        starts.append(start)
        ends.append(end)
        steps.append(step)
    if g.opset < 10:
        g.add("Slice", [x], [g[x].dtype], starts=starts, ends=ends, axes=axes)
        return
    axes = [a - rank if g.chance(0.3) else a for a in axes]
    g.add("Slice", [x, g.ints(starts), g.ints(ends), g.ints(axes, 0), g.ints(steps, 0)], [g[x].dtype])


@operator(weight=3, repeatable=True)
def pad(g):
    mode = g.choice(["constant"] * 3 + ["reflect", "edge"] + (["wrap"] if g.opset >= 19 else []))
    types = types_of(g, "Pad") if g.opset >= 11 else FLOAT_TYPES & types_of(g, "Pad")
    x = g.pick(types - BOOL, lambda v: mode == "constant" or 0 not in v.shape, least_rank=1)
    shape, rank = g[x].shape, g[x].array.ndim
    if mode == "constant":
        pads = [g.choice([0, 0, 1, 2, 3]) for _ in range(2 * rank)]
        if g.opset < 11 and g.chance(0.1):
            pads = [-min(1, shape[i % rank] // 3) if g.chance(0.5) else p for i, p in enumerate(pads)]
    elif mode == "edge":
        pads = [g.choice([0, 0, 1, 2, 3]) for _ in range(2 * rank)]
    else:
        pads = [g.integer(0, min(2, shape[i % rank] - 1)) if g.chance(0.7) else 0 for i in range(2 * rank)]
    if g.opset < 11:
        g.add("Pad", [x], [g[x].dtype], pads=pads, mode=mode, **({"value": 1.5} if mode == "constant" and g.chance(0.5) else {}))
        return
    inputs = [x, g.ints(pads)]
    if mode == "constant" and g.chance(0.6):
        inputs.append(g.constant(np.asarray(g.integer(0, 3), g[x].dtype)))
    g.add("Pad", inputs, [g[x].dtype], mode=mode)


def indices(g, size, shape, negative=True):
    if size == 0 and int(np.prod(shape)):
        raise NoFit
    low = -size if negative and g.opset >= 11 and g.chance(0.4) else 0
    array = np.asarray(g.rng.integers(low, max(size, low + 1), shape)).astype(g.choice([np.int32, np.int64]))
    if g.is_body or g.chance(0.5):
        return g.constant(array)
    name = g.name("x")
    g.values[name] = Value.leaf(array)
    g.hidden.add(name)  # values of its own: another reader might need others
    g.inputs.append(name)
    return name


@operator(weight=4, repeatable=True)
def gather(g):
    x = g.pick(types_of(g, "Gather"), least_rank=1)
    rank = g[x].array.ndim
    axis = g.integer(0, rank - 1)
    i = indices(g, g[x].shape[axis], g.shape(g.integer(0, 2), most=30))
    g.add("Gather", [x, i], [g[x].dtype], axis=axis - rank if g.opset >= 11 and g.chance(0.3) else axis)


@operator(since=11, weight=2, repeatable=True)
def gather_elements(g):
    x = g.pick(types_of(g, "GatherElements"), least_rank=1)
    axis = g.integer(0, g[x].array.ndim - 1)
    shape = tuple(g.integer(0 if s == 0 else 1, s) if i != axis else g.integer(0, 4) for i, s in enumerate(g[x].shape))

    def take(array, i):
        # ReferenceEvaluator asks for equal sizes in the other dims, ONNX for sizes that are not larger.
        i = np.where(i < 0, i + array.shape[axis], i)
        inner = tuple(slice(s) if a != axis else slice(None) for a, s in enumerate(i.shape))
        return [np.take_along_axis(array[inner], i, axis)]

    g.add("GatherElements", [x, indices(g, g[x].shape[axis], shape)], [g[x].dtype], take, axis=axis)


@operator(since=11, weight=2, repeatable=True)
def gather_nd(g):
    x = g.pick(types_of(g, "GatherND"), lambda v: 0 not in v.shape, least_rank=1)
    shape = g[x].shape
    batch = g.integer(0, min(1, len(shape) - 1)) if g.opset >= 12 else 0
    depth = g.integer(1, len(shape) - batch)
    outer = (*shape[:batch], *g.shape(g.integer(0, 1), most=20))
    if not outer and g.opset < 13:
        outer = (2,)
    columns = [g.rng.integers(-n if g.chance(0.3) else 0, n, outer) for n in shape[batch : batch + depth]]
    i = g.constant(np.asarray(np.stack(columns, -1), np.int64))
    g.add("GatherND", [x, i], [g[x].dtype], **({"batch_dims": batch} if g.opset >= 12 else {}))


def reduction_mode(g, dtype):
    modes = ["none"] * 2 + (["add", "mul"] if g.opset >= 16 else []) + (["max", "min"] if g.opset >= 18 else [])
    return g.choice(modes if dtype != np.bool_ else ["none"])


@operator(since=11, weight=2, repeatable=True)
def scatter_elements(g):
    x = g.pick(types_of(g, "ScatterElements"), least_rank=1)
    value = g[x]
    axis = g.integer(0, value.array.ndim - 1)
    mode = reduction_mode(g, value.dtype)
    n = value.shape[axis]
    count = g.integer(0, n if mode == "none" else min(5, n and 5))
    shape = tuple(g.integer(0 if s == 0 else 1, s) if i != axis else count for i, s in enumerate(value.shape))
    if not int(np.prod(shape)):
        raise NoFit
    if mode == "none":
        # No index twice: which update wins is open.
        array = np.argsort(g.rng.random((*shape[:axis], n, *shape[axis + 1 :])), axis=axis)
        array = np.take(array, range(count), axis)
        i = g.constant(array.astype(np.int64))
    else:
        i = indices(g, n, shape)
    updates = g.leaf(value.dtype, shape, "normal")
    if value.has_nan() and mode in ("max", "min"):
        raise NoFit
    g.add("ScatterElements", [x, i, updates], [value.dtype], axis=axis, **({"reduction": mode} if mode != "none" or g.opset >= 16 and g.chance(0.5) else {}))


@operator(since=11, weight=2, repeatable=True)
def scatter_nd(g):
    x = g.pick(types_of(g, "ScatterND"), lambda v: 0 not in v.shape, least_rank=1)
    value = g[x]
    depth = g.integer(1, value.array.ndim)
    mode = reduction_mode(g, value.dtype)
    places = int(np.prod(value.shape[:depth]))
    count = g.integer(1, min(places, 6))
    flat = g.rng.choice(places, count, replace=mode != "none")
    array = np.stack(np.unravel_index(flat, value.shape[:depth]), -1).astype(np.int64)
    updates = g.leaf(value.dtype, (count, *value.shape[depth:]), "normal")
    if value.has_nan() and mode in ("max", "min"):
        raise NoFit
    g.add("ScatterND", [x, g.constant(array), updates], [value.dtype], **({"reduction": mode} if mode != "none" or g.opset >= 16 and g.chance(0.5) else {}))


@operator()
def space_and_depth(g):
    block = g.integer(1, 3)
    if g.chance(0.5):
        x = g.pick(types_of(g, "DepthToSpace"), lambda v: v.shape[1] % block**2 == 0, lambda: g.leaf(np.float32, (g.integer(1, 2), 2 * block**2, 2, 3)), rank=4)
        g.add("DepthToSpace", [x], [g[x].dtype], blocksize=block, **({"mode": g.choice(["DCR", "CRD"])} if g.opset >= 11 else {}))
    else:
        x = g.pick(types_of(g, "SpaceToDepth"), lambda v: v.shape[2] % block == 0 and v.shape[3] % block == 0,
                   lambda: g.leaf(np.float32, (g.integer(1, 2), 3, 2 * block, block)), rank=4)  # fmt: skip
        g.add("SpaceToDepth", [x], [g[x].dtype], blocksize=block)


@operator(since=14, repeatable=True)
def trilu(g):
    x = g.pick(types_of(g, "Trilu"), least_rank=2)
    inputs = [x] + ([g.constant(np.asarray(g.integer(-3, 3), np.int64))] if g.chance(0.7) else [])
    g.add("Trilu", inputs, [g[x].dtype], upper=g.integer(0, 1))


@operator(since=10)
def reverse_sequence(g):
    x = g.pick(types_of(g, "ReverseSequence"), lambda v: 0 not in v.shape, least_rank=2)
    batch = g.integer(0, 1)
    shape = g[x].shape
    lengths = g.constant(np.asarray(g.rng.integers(1, shape[1 - batch] + 1, shape[batch]), np.int64))
    g.add("ReverseSequence", [x, lengths], [g[x].dtype], batch_axis=batch, time_axis=1 - batch)


@operator(since=9)
def compress(g):
    x = g.pick(types_of(g, "Compress"), least_rank=1)
    axis = g.integer(0, g[x].array.ndim - 1)
    flat = g.chance(0.3)
    length = g[x].array.size if flat else g[x].shape[axis]
    if length > 200:
        raise NoFit
    condition = g.leaf(np.bool_, (length,))
    g.hidden.add(condition)
    g.add("Compress", [x, condition], [g[x].dtype], **({} if flat else {"axis": axis}))


@operator(since=9)
def non_zero(g):
    x = g.pick(types_of(g, "NonZero"), lambda v: v.array.size < 300, least_rank=1)
    if g[x].has_nan():
        raise NoFit
    g.add("NonZero", [x], [np.int64])


@operator(since=11)
def unique(g):
    x = g.pick(types_of(g, "Unique") - {np.dtype(ml_dtypes.bfloat16)}, lambda v: 0 < v.array.size < 300 and not v.has_nan(), least_rank=1)
    attributes = {"sorted": g.integer(0, 1)}
    axis = g.integer(0, g[x].array.ndim - 1) if g.chance(0.4) else None
    if axis is not None:
        attributes["axis"] = axis
    # In order of occurrence, ReferenceEvaluator mixes up the axes, and the indices.
    def collect(array):
        values, first, inverse, counts = np.unique(array, True, True, True, axis=axis)
        order = np.arange(len(first)) if attributes["sorted"] else np.argsort(first)
        places = np.argsort(order)
        return [np.take(values, order, axis or 0), first[order], places[inverse.reshape(-1)], counts[order]]

    g.add("Unique", [x], [g[x].dtype, np.int64, np.int64, np.int64], collect, **attributes)


@operator(repeatable=True)
def shape_(g):
    op = g.choice(["Shape", "Shape", "Size"])
    x = g.pick(types_of(g, op))
    rank = g[x].array.ndim
    attributes = {}
    if op == "Shape" and g.opset >= 15 and g.chance(0.5):
        attributes = {"start": g.integer(-rank - 1, rank), "end": g.integer(-rank, rank + 1)}
    g.add(op, [x], [np.int64], **attributes)


@operator(repeatable=True)
def shape_arithmetic(g):
    """Reshape or Expand to a shape that is computed from the shape of another value, as exporters write it."""
    x = g.pick(None, lambda v: v.array.ndim >= 2 and 0 not in v.shape)
    if g.opset < 13 or g[x].dtype not in types_of(g, "Reshape"):
        raise NoFit
    shape = g.add("Shape", [x], [np.int64])
    rank = g[x].array.ndim
    head = g.add("Gather", [shape, g.constant(np.asarray([0], np.int64))], [np.int64], axis=0)
    if g.chance(0.5):
        target = g.add("Concat", [head, g.constant(np.asarray([-1], np.int64))], [np.int64], axis=0)
        g.add("Reshape", [x, target], [g[x].dtype])
    else:
        zero = g.add("ConstantOfShape", [shape], [g[x].dtype],
                     value=numpy_helper.from_array(np.asarray([2], g[x].dtype)))  # fmt: skip
        op = g.choice(["Add", "Mul"])
        if rank and g[x].dtype in types_of(g, op):
            g.add(op, [x, zero], [g[x].dtype])


@operator(since=9)
def constant_of_shape(g):
    target = g.ints([g.choice([0, 1, 2, 3, 5]) for _ in range(g.integer(0, 3))])
    if g[target].array.size == 0 and g.chance(0.7):
        raise NoFit
    dtype = g.dtype({np.dtype(t) for t in (np.float32, np.float64, np.int64, np.int32, np.bool_, np.float16, np.uint8)})
    g.add("ConstantOfShape", [target], [dtype], value=numpy_helper.from_array(np.asarray([g.integer(0, 3)], dtype)))


@operator(since=9)
def eye_like(g):
    x = g.pick(types_of(g, "EyeLike"), rank=2)
    if g.chance(0.5):
        dtype = g.dtype({np.dtype(t) for t in (np.float32, np.float64, np.int64, np.int32)})
        g.add("EyeLike", [x], [dtype], k=g.integer(-2, 2), dtype=onnx_type(dtype))
    else:
        g.add("EyeLike", [x], [g[x].dtype], k=g.integer(-2, 2))


@operator(since=11)
def range_(g):
    dtype = g.dtype({np.dtype(t) for t in (np.float32, np.int64, np.int32, np.float64)})
    start, step, count = g.integer(-5, 5), g.choice([1, 1, 2, -1, -3]), g.integer(0, 20)
    g.add("Range", [g.constant(np.asarray(v, dtype)) for v in (start, start + step * count, step)], [dtype])


@operator(since=11)
def one_hot(g):
    depth = g.integer(1, 7)
    i = indices(g, depth, g.shape(g.integer(1, 2), most=40))
    dtype = g.dtype({np.dtype(t) for t in (np.float32, np.int64, np.int32, np.float16, np.bool_)})
    values = g.constant(np.asarray([0, 1] if dtype == np.bool_ else [g.integer(0, 2), g.integer(3, 5)], dtype))
    if int(np.prod(g[i].shape)) == 0:
        raise NoFit
    g.add("OneHot", [i, g.constant(np.asarray(depth, np.int64)), values], [dtype], axis=g.integer(-1, g[i].array.ndim))


@operator(since=18)
def center_crop_pad(g):
    x = g.pick(types_of(g, "CenterCropPad") - BOOL, least_rank=1)
    rank = g[x].array.ndim
    axes = sorted(int(a) for a in g.rng.permutation(rank)[: g.integer(1, rank)])
    g.add("CenterCropPad", [x, g.constant(np.asarray([g.integer(0, 7) for _ in axes], np.int64))], [g[x].dtype], axes=axes)


# --- products

@operator(weight=5, repeatable=True)
def mat_mul(g):
    types = types_of(g, "MatMul", among=FLOAT_TYPES | {np.dtype(np.int32), np.dtype(np.int64)})
    x = g.pick(types, least_rank=1)
    shape = g[x].shape
    k, n = shape[-1], g.choice(SMALL)

    def fits(v):
        if v.array.ndim == 0:
            return False
        try:
            np.broadcast_shapes(shape[:-2], v.shape[:-2])
        except ValueError:
            return False
        return v.shape[-2 if v.array.ndim > 1 else -1] == k

    def make():
        batch = tuple(1 if g.chance(0.3) else s for s in shape[:-2])[g.integer(0, max(len(shape) - 2, 0)):] if len(shape) > 2 else ()
        return g.leaf(g[x].dtype, (*batch, k, n) if g.chance(0.85) else (k,))

    y = g.pick({g[x].dtype}, fits, make, p_new=0.6)
    g.add("MatMul", [x, y], [g[x].dtype])


SMALL = [0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33]


@operator(weight=3, repeatable=True)
def gemm(g):
    x = g.pick(types_of(g, "Gemm", among=FLOAT_TYPES), rank=2)
    ta, tb = g.integer(0, 1), g.integer(0, 1)
    m, k = g[x].shape[::-1] if ta else g[x].shape
    n = g.choice(SMALL)
    inputs = [x, g.leaf(g[x].dtype, (n, k) if tb else (k, n))]
    if g.opset < 11 or g.chance(0.7):
        inputs.append(g.leaf(g[x].dtype, g.choice([(n,), (m, n), (1, n), (m, 1), (1,), ()])))
    attributes = {"transA": ta, "transB": tb}
    for name in "alpha", "beta":
        if g.chance(0.4):
            attributes[name] = g.choice([0.5, 2.0, -1.0, 1.0])
    g.add("Gemm", inputs, [g[x].dtype], **attributes)


@operator(since=10, repeatable=True)
def mat_mul_integer(g):
    x = g.pick({np.dtype(np.uint8), np.dtype(np.int8)}, least_rank=2)
    k, n = g[x].shape[-1], g.choice(SMALL)
    dtype = g.choice([np.dtype(np.int8), np.dtype(np.uint8)])
    inputs = [x, g.leaf(dtype, (k, n))]
    if g.chance(0.6):
        inputs += [g.constant(np.asarray(3, g[x].dtype)), g.constant(np.asarray(2, dtype))]
    g.add("MatMulInteger", inputs, [np.int32])


def window(g, spatial):
    """Kernel, strides, dilations and pads that give at least one place in each dim."""
    kernel = [g.integer(1, min(3, s)) for s in spatial]
    dilations = [g.choice([1, 1, 2]) if (k - 1) * 2 + 1 <= s else 1 for k, s in zip(kernel, spatial)]
    pads = [g.integer(0, min(1, k - 1)) for k in kernel * 2]
    strides = [g.choice([1, 1, 2, 3]) for _ in spatial]
    return kernel, strides, dilations, pads


def transposed_convolution(groups, strides, dilations, pads, output_padding):
    """ConvTranspose. ReferenceEvaluator adds the first group's bias to all groups, and takes one spatial dim for two."""
    def compute(array, weights, bias=None):
        n, rank = array.shape[0], array.ndim - 2
        kernel, per_group = weights.shape[2:], weights.shape[1]
        full = [(s - 1) * t + (k - 1) * d + 1 + o for s, t, k, d, o in zip(array.shape[2:], strides, kernel, dilations, output_padding)]
        result = np.zeros((n, groups * per_group, *full))
        channels = array.shape[1] // groups
        for at in np.ndindex(*kernel):
            to = tuple(slice(a * d, a * d + (s - 1) * t + 1, t) for a, d, s, t in zip(at, dilations, array.shape[2:], strides))
            for i in range(groups):
                part = np.einsum("nc...,cf->nf...", array[:, i * channels : (i + 1) * channels], weights[(slice(i * channels, (i + 1) * channels), slice(None), *at)])
                result[(slice(None), slice(i * per_group, (i + 1) * per_group), *to)] += part
        result = result[(..., *(slice(pads[i], f - pads[i + rank]) for i, f in enumerate(full)))]
        return [result if bias is None else result + bias.reshape(1, -1, *[1] * rank)]

    return compute


@operator(weight=3, repeatable=True)
def conv(g):
    op = g.choice(["Conv", "Conv", "ConvTranspose"])
    types = types_of(g, op, among=FLOAT_TYPES)
    rank = g.choice([3, 4, 4, 4, 5])
    x = g.pick(types, lambda v: 3 <= v.array.ndim <= 5 and 0 not in v.shape and v.is_finite(),
               lambda: g.leaf(g.dtype(types), (g.integer(1, 2), g.choice([1, 2, 3, 4, 8]), *[g.integer(1, 9) for _ in range(rank - 2)]), "normal"), p_new=0.5)  # fmt: skip
    channels, spatial = g[x].shape[1], g[x].shape[2:]
    kernel, strides, dilations, pads = window(g, spatial)
    groups = g.choice([d for d in range(1, channels + 1) if channels % d == 0]) if g.chance(0.4) else 1
    filters = groups * g.choice([1, 1, 2, 3, 5]) if groups > 1 else g.choice([1, 2, 3, 5, 16, 17])
    attributes = {"group": groups, "strides": strides, "dilations": dilations}
    if g.chance(0.15):
        attributes["auto_pad"] = g.choice(["VALID", "SAME_UPPER", "SAME_LOWER"])
        attributes["dilations"] = [1] * len(kernel)
    else:
        attributes["pads"] = pads
    if g.chance(0.5):
        attributes["kernel_shape"] = kernel
    if op == "Conv":
        w = g.leaf(g[x].dtype, (filters, channels // groups, *kernel), "normal")
    else:
        w = g.leaf(g[x].dtype, (channels, max(filters // groups, 1), *kernel), "normal")
        filters = max(filters // groups, 1) * groups
        if "auto_pad" in attributes:
            raise NoFit
        if g.chance(0.3):
            attributes["output_padding"] = [g.integer(0, max(s, d) - 1) for s, d in zip(strides, dilations)]
    inputs = [x, w] + ([g.leaf(g[x].dtype, (filters,), "normal")] if g.chance(0.6) else [])
    function = None
    if op == "ConvTranspose":
        function = transposed_convolution(groups, strides, dilations, pads, attributes.get("output_padding", [0] * len(kernel)))
    g.add(op, inputs, [g[x].dtype], function, **attributes)


@operator(weight=2, repeatable=True)
def pool(g):
    op = g.choice(["MaxPool", "AveragePool", "LpPool"])
    types = types_of(g, op, among=FLOAT_TYPES)
    rank = g.choice([3, 4, 4, 5])
    x = g.pick(types, lambda v: 3 <= v.array.ndim <= 5 and 0 not in v.shape and v.is_finite(),
               lambda: g.leaf(g.dtype(types), (g.integer(1, 2), g.choice([1, 2, 3]), *[g.integer(1, 9) for _ in range(rank - 2)]), "normal"), p_new=0.5)  # fmt: skip
    kernel, strides, dilations, pads = window(g, g[x].shape[2:])
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    if g.opset >= (10 if op == "MaxPool" else 19 if op == "AveragePool" else 18):
        attributes["dilations"] = dilations
    if op == "AveragePool" and g.chance(0.4):
        attributes["count_include_pad"] = 1
    if op == "LpPool":
        attributes["p"] = g.integer(1, 2)
    count_pads, p = attributes.get("count_include_pad"), attributes.get("p")
    dilations = attributes.get("dilations", [1] * len(kernel))

    def reduce_windows(array):
        n = len(kernel)
        around = [(0, 0), (0, 0), *zip(pads[:n], pads[n:])]
        sizes = [(s + pads[i] + pads[n + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i, s in enumerate(array.shape[2:])]

        def windows(padded):
            for at in np.ndindex(*kernel):
                yield padded[(slice(None), slice(None), *(slice(a * d, a * d + (s - 1) * t + 1, t) for a, d, s, t in zip(at, dilations, sizes, strides)))]

        if op == "MaxPool":
            return [functools.reduce(np.maximum, windows(np.pad(array, around, constant_values=-np.inf)))]
        if op == "LpPool":
            return [sum(np.abs(w) ** p for w in windows(np.pad(array, around))) ** (1 / p)]
        counts = sum(windows(np.pad(np.ones_like(array), around, constant_values=1 if count_pads else 0)))
        return [sum(windows(np.pad(array, around))) / counts]

    g.add(op, [x], [g[x].dtype], reduce_windows, **attributes)


@operator(repeatable=True)
def global_pool(g):
    op = g.choice(["GlobalMaxPool", "GlobalAveragePool"])
    x = g.pick(types_of(g, op, among=FLOAT_TYPES), lambda v: v.array.ndim >= 3 and 0 not in v.shape and not v.has_nan(),
               lambda: g.leaf(np.float32, g.shape(4, 1)))  # fmt: skip
    reduce = np.max if op == "GlobalMaxPool" else np.mean
    g.add(op, [x], [g[x].dtype], lambda a: [reduce(a, axis=tuple(range(2, a.ndim)), keepdims=True)])


EQUATIONS = ["ij,jk->ik", "bij,bjk->bik", "ij->ji", "ij->i", "i,i->", "i,j->ij", "bij,bkj->bik", "...ij,...jk->...ik", "ijk->kj", "ij,ij->ij", "ii->i", "bhqd,bhkd->bhqk"]


@operator(since=12)
def einsum(g):
    equation = g.choice(EQUATIONS)
    dtype = g.dtype({np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)})
    sizes = {c: g.integer(1, 5) for c in "ijkbhqd"}
    terms = [t.replace("...", "b") for t in equation.split("->")[0].split(",")]
    shapes = [tuple(sizes[c] for c in t) for t in terms]
    names = [g.pick({dtype}, lambda v, s=s: v.shape == s, lambda s=s: g.leaf(dtype, s)) for s in shapes]
    g.add("Einsum", names, [dtype], equation=equation)


# --- norms

@operator(weight=3, repeatable=True)
def softmax(g):
    op = g.choice(["Softmax", "Softmax", "LogSoftmax", "Hardmax"])
    x = g.pick(types_of(g, op, among=FLOAT_TYPES), lambda v: v.is_finite() and 0 not in v.shape, least_rank=1)
    rank = g[x].array.ndim
    axis = g.integer(-rank if g.opset >= 11 else 0, rank - 1)
    if op == "Hardmax" and g.opset < 13:
        raise NoFit

    def normalize_rows(array):
        # Up to opset 12 all dims from the axis on are one. ReferenceEvaluator's LogSoftmax is the logarithm of what may be 0.
        at = axis % rank
        rows = np.moveaxis(array, at, -1) if g.opset >= 13 else array.reshape(int(np.prod(array.shape[:at])), -1)
        shifted = rows - rows.max(-1, keepdims=True)
        sums = np.exp(shifted).sum(-1, keepdims=True)
        result = np.exp(shifted) / sums if op == "Softmax" else shifted - np.log(sums)
        return [np.moveaxis(result, -1, at) if g.opset >= 13 else result.reshape(array.shape)]

    g.add(op, [x], [g[x].dtype], None if op == "Hardmax" else normalize_rows, axis=axis)


def normalize(array, axes, epsilon, center=True):
    if center:
        array = array - array.mean(axes, keepdims=True)
    return array / np.sqrt((array * array).mean(axes, keepdims=True) + epsilon)


@operator(since=17, weight=3, repeatable=True)
def layer_normalization(g):
    op = g.choice(["LayerNormalization", "RMSNormalization"]) if g.opset >= 23 else "LayerNormalization"
    x = g.pick(types_of(g, op, among=FLOAT_TYPES), lambda v: v.is_finite() and 0 not in v.shape, least_rank=1)
    rank = g[x].array.ndim
    axis = g.integer(-rank, -1)
    inner = g[x].shape[axis:]
    center = op[0] == "L"
    inputs = [x, g.leaf(g[x].dtype, inner, "normal")] + ([g.leaf(g[x].dtype, inner, "normal")] if center and g.chance(0.6) else [])
    epsilon = float(np.float32(g.choice([1e-5, 1e-3, 1.0])))

    def norm(array, scale, bias=0.0):
        return [normalize(array, tuple(range(axis, 0)), epsilon, center) * scale + bias]

    # In 16-bit types the normalised value is rounded before it is scaled: that noise is that of one more operand.
    g.add(op, inputs, [g[x].dtype], norm, axis=axis, epsilon=epsilon)


@operator(weight=2)
def channel_normalization(g):
    op = g.choice(["BatchNormalization", "InstanceNormalization"] + (["GroupNormalization"] if g.opset >= 21 else []))
    types = types_of(g, op, among=FLOAT_TYPES)
    x = g.pick(types, lambda v: v.is_finite() and 3 <= v.array.ndim <= 5 and 0 not in v.shape, lambda: g.leaf(g.dtype(types), g.shape(4, 1), "normal"))
    channels, dtype = g[x].shape[1], g[x].dtype
    epsilon = float(np.float32(g.choice([1e-5, 1e-3])))
    column = (1, channels) + (1,) * (g[x].array.ndim - 2)
    if op == "BatchNormalization":
        inputs = [x, g.leaf(dtype, (channels,), "normal"), g.leaf(dtype, (channels,), "normal"), g.leaf(dtype, (channels,), "normal"),
                  g.leaf(dtype, (channels,), "positive")]  # fmt: skip

        def norm(array, scale, bias, mean, variance):
            return [(array - mean.reshape(column)) / np.sqrt(variance.reshape(column) + epsilon) * scale.reshape(column) + bias.reshape(column)]

        g.add(op, inputs, [dtype], norm, epsilon=epsilon)
        return
    inputs = [x, g.leaf(dtype, (channels,), "normal"), g.leaf(dtype, (channels,), "normal")]
    groups = g.choice([d for d in range(1, channels + 1) if channels % d == 0]) if op[0] == "G" else channels

    def group_norm(array, scale, bias):
        rows = array.reshape(array.shape[0], groups, -1)
        return [normalize(rows, (2,), epsilon).reshape(array.shape) * scale.reshape(column) + bias.reshape(column)]

    g.add(op, inputs, [dtype], group_norm, epsilon=epsilon, **({"num_groups": groups} if op[0] == "G" else {}))


@operator()
def lp_normalization(g):
    x = g.pick(types_of(g, "LpNormalization", among=FLOAT_TYPES), lambda v: v.is_finite() and 0 not in v.shape, least_rank=1)
    axis, p = g.integer(0, g[x].array.ndim - 1), g.integer(1, 2)

    def norm(array):
        length = np.abs(array).sum(axis, keepdims=True) if p == 1 else np.sqrt((array * array).sum(axis, keepdims=True))
        return [np.where(length == 0, 0, array / np.where(length == 0, 1, length))]

    g.add("LpNormalization", [x], [g[x].dtype], norm, axis=axis, p=p)


@operator()
def lrn(g):
    x = g.pick(types_of(g, "LRN", among=FLOAT_TYPES), lambda v: v.array.ndim == 4 and v.is_finite() and 0 not in v.shape, lambda: g.leaf(np.float32, g.shape(4, 1), "normal"))
    size = g.choice([1, 2, 3, 5])

    def norm(array):
        # ReferenceEvaluator takes the batch for the channels.
        squares = np.pad(array * array, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
        sums = sum(squares[:, i : i + array.shape[1]] for i in range(size))
        return [array / (1.5 + 0.5 / size * sums) ** 0.75]

    g.add("LRN", [x], [g[x].dtype], norm, size=size, alpha=0.5, beta=0.75, bias=1.5)


# --- quantisation, resizing

@operator(since=10, weight=2)
def quantize(g):
    x = g.pick({np.dtype(np.float32)}, lambda v: v.is_finite())
    dtype = g.choice([np.dtype(np.uint8), np.dtype(np.int8)])
    info = np.iinfo(dtype)
    scale = np.float32(g.choice([0.05, 0.1, 0.5, 1.0]))
    zero = g.integer(0, 9)
    inputs = [x, g.constant(np.asarray(scale)), g.constant(np.asarray(zero, dtype))]

    def round_and_clip(array, s, z):
        return [np.clip(np.rint(array / s) + z, info.min, info.max).astype(dtype)]

    q = g.add("QuantizeLinear", inputs, [dtype], round_and_clip)
    if g.chance(0.5):
        g.add("DequantizeLinear", [q, *inputs[1:]], [np.float32], lambda a, s, z: [(a.astype(np.float64) - float(z)) * s])


@operator(since=10)
def dequantize(g):
    x = g.pick({np.dtype(np.uint8), np.dtype(np.int8)}, least_rank=1)
    axis = g.integer(0, g[x].array.ndim - 1)
    per_axis = g.opset >= 13 and g.chance(0.5)
    shape = (g[x].shape[axis],) if per_axis else ()
    scale = g.leaf(np.float32, shape, "positive", True)
    zero = g.leaf(g[x].dtype, shape, None, True)
    column = [1] * g[x].array.ndim
    if per_axis:
        column[axis] = -1

    def scale_up(a, s, z):
        return [(a.astype(np.float64) - z.astype(np.float64).reshape(column)) * s.reshape(column)] if per_axis else [(a.astype(np.float64) - float(z)) * s]

    g.add("DequantizeLinear", [x, scale, zero], [np.float32], scale_up, **({"axis": axis} if per_axis else {}))


def resize_function(mode, transform, target, scales, axes, a=-0.75, exclude_outside=0, antialias=0):
    """Resize with linear or cubic weights, one axis after the other. ReferenceEvaluator's cubic weights are f32 and do not add up to 1."""
    def kernel(x):
        x = np.abs(x)
        if mode == "linear":
            return np.maximum(1 - x, 0)
        return np.where(x < 1, ((a + 2) * x - (a + 3)) * x * x + 1, np.where(x < 2, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a, 0))

    def weights(n, count, scale):
        """A matrix from n elements to `count`."""
        i = np.arange(count)
        if transform == "align_corners":
            x = i * (n - 1) / (count - 1) if count > 1 else i * 0.0
        elif transform == "asymmetric":
            x = i / scale
        else:
            x = (i + 0.5) / scale - 0.5
            if transform == "pytorch_half_pixel" and count == 1:
                x = i * 0.0
            if transform == "half_pixel_symmetric":
                x = x + n / 2 * (1 - count / (scale * n))
        stretch = min(scale, 1.0) if antialias else 1.0
        reach = (1 if mode == "linear" else 2) / stretch
        result = np.zeros((count, n))
        for row, center in enumerate(x):
            for tap in range(int(np.floor(center - reach)), int(np.ceil(center + reach)) + 1):
                if not exclude_outside or 0 <= tap < n:
                    result[row, min(max(tap, 0), n - 1)] += kernel((tap - center) * stretch)
        if exclude_outside or antialias:
            result /= result.sum(1, keepdims=True)
        return result

    def compute(array, *_):
        for axis, count, scale in zip(axes, target, scales):
            if scale != 1 or count != array.shape[axis]:
                array = np.moveaxis(np.tensordot(weights(array.shape[axis], count, scale), array, (1, axis)), 0, axis)
        return [array]

    return compute


@operator(since=13)
def resize(g):
    # Numbers of one magnitude: the weights have rounding errors, too, those of f32 whatever the type.
    x = g.leaf(np.float32, g.shape(4, 1, 400), "normal")
    shape = g[x].shape
    mode = g.choice(["nearest", "linear", "cubic"])
    target = [shape[0], shape[1], g.integer(1, 9), g.integer(1, 9)]
    attributes = {"mode": mode, "coordinate_transformation_mode": g.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])}
    if mode == "nearest":
        attributes["nearest_mode"] = g.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
        # The place of a source element is computed in f32 by most: only such as hit no boundary.
        target = [shape[0], shape[1], shape[2] * g.choice([1, 2, 4]), shape[3] * g.choice([1, 2, 4])]
        attributes["coordinate_transformation_mode"] = "asymmetric"
        if attributes["nearest_mode"].startswith("round"):
            attributes["nearest_mode"] = "floor"
        function = None
    else:
        function = resize_function(mode, attributes["coordinate_transformation_mode"], target, [t / s for t, s in zip(target, shape)], range(4))
    g.add("Resize", [x, "", "", g.ints(target, 0)], [g[x].dtype], function, **attributes)
