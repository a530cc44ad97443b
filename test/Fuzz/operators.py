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
from onnx import numpy_helper

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
