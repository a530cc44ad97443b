# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences and strings. Both are values that few operators know of: a node or two makes them, others change them, and a last one gives tensors."""
import re

import numpy as np
from onnx import helper

from generate import NoFit
from opinion import STRING, SequenceOf, onnx_type
from operators import operator, types_of

WORDS = ["", "a", "b", "tree", "Tree", "two words", " edge ", "a,b,,c", "12", "-3.5", "zażółć", "ß", "x" * 40, "日本", "a a"]


def place(g, length):
    """A position in a sequence as an operand: from the front or the back."""
    position = g.integer(-length, length - 1)
    array = np.asarray(position, g.choice([np.int32, np.int64]))
    return g.constant(array) if g.is_body or g.chance(0.5) else g.input(array)


@operator(since=11, weight=3)
def sequence(g):
    source = g.choice(["construct", "construct", "split", "empty"])
    if source == "split":
        x = g.pick(types_of(g, "Concat"), lambda v: v.is_storable and 0 < max(v.shape), least_rank=1)
        axis = g.integer(0, g[x].array.ndim - 1)
        size, element = g[x].shape[axis], g[x].dtype
        keep = g.integer(0, 1)
        if size == 0:
            raise NoFit
        if g.chance(0.5):
            step = g.integer(1, size)
            cuts = list(range(step, size, step))
            inputs, attributes = [x, g.constant(np.asarray(step, np.int64))], {"axis": axis}
        elif g.chance(0.5):
            cuts = sorted(g.integer(0, size) for _ in range(g.integer(0, 3)))
            inputs, attributes = [x, g.constant(np.diff([0, *cuts, size]).astype(np.int64))], {"axis": axis}
        else:
            cuts, inputs, attributes = list(range(1, size)), [x], {"axis": axis, "keepdims": keep}
        drop = attributes.get("keepdims") == 0

        def split(array, _=None):
            parts = np.split(array, cuts, axis)
            return [[p.squeeze(axis) if drop else p for p in parts]]

        name = g.add("SplitToSequence", inputs, [SequenceOf(element)], split, **attributes)
    elif source == "construct":
        x = g.pick(types_of(g, "Concat"), lambda v: v.is_storable and v.size < 500)
        element = g[x].dtype
        names = [x] + [g.pick({element}, lambda v: v.array.ndim == g[x].array.ndim and v.size < 500,
                              lambda: g.leaf(element, tuple(g.integer(0, 3) for _ in g[x].shape))) for _ in range(g.integer(0, 3))]  # fmt: skip
        name = g.add("SequenceConstruct", names, [SequenceOf(element)], lambda *arrays: [list(arrays)])
    else:
        element = g.dtype({np.dtype(t) for t in (np.float32, np.int64, np.bool_, np.float64)})
        name = g.add("SequenceEmpty", [], [SequenceOf(element)], lambda: [[]], dtype=onnx_type(element))
    for _ in range(g.integer(0, 3)):
        length = len(g[name].values)
        if g.chance(0.6):
            x = g.pick({element}, lambda v: v.size < 500 and (not length or v.array.ndim == g[name].values[0].array.ndim))
            if g.chance(0.5) and length:
                at = place(g, length)
                name = g.add("SequenceInsert", [name, x, at], [SequenceOf(element)], insert)
            else:
                name = g.add("SequenceInsert", [name, x], [SequenceOf(element)], lambda s, v: [[*s, v]])
        elif length:
            if g.chance(0.5):
                name = g.add("SequenceErase", [name, place(g, length)], [SequenceOf(element)], erase)
            else:
                name = g.add("SequenceErase", [name], [SequenceOf(element)], lambda s: [s[:-1]])
    finish(g, name, element)


def insert(values, value, at):
    values = list(values)
    values.insert(int(at) if at >= 0 else int(at) + len(values), value)
    return [values]


def erase(values, at):
    values = list(values)
    del values[int(at)]
    return [values]


def finish(g, name, element):
    """Tensors of a sequence."""
    values = g[name].values
    ways = ["length"] + (["at"] * 2 if values else [])
    shapes = [v.shape for v in values]
    if values and len(set(shapes)) == 1 and element in types_of(g, "Concat"):
        ways += ["stack"] * 2
    for way in dict.fromkeys(g.choice(ways) for _ in range(2)):  # a set has no order of its own
        if way == "length":
            g.add("SequenceLength", [name], [np.int64], lambda s: [np.asarray(len(s), np.int64)])
        elif way == "at":
            at = place(g, len(values))
            g.add("SequenceAt", [name, at], [element], lambda s, i: [s[int(i)]])
        else:
            rank = len(shapes[0])
            new = g.integer(0, 1) if rank else 1
            axis = g.integer(-rank - new, rank + new - 1)
            g.add("ConcatFromSequence", [name], [element], lambda s: [np.stack(s, axis) if new else np.concatenate(s, axis)], axis=axis, new_axis=new)


@operator(since=17)
def sequence_map(g):
    """SequenceMap with a body of one node, over a sequence and a tensor."""
    x = g.pick({np.dtype(np.float32)}, lambda v: v.size < 300 and v.is_finite())
    others = [g.leaf(np.float32, tuple(g.integer(1, 3) for _ in g[x].shape), "normal") for _ in range(g.integer(0, 2))]
    if not others and not g[x].size:
        raise NoFit
    sequence = g.add("SequenceConstruct", [x, *others], [SequenceOf(np.dtype(np.float32))], lambda *arrays: [list(arrays)])
    p, op = g.name("map"), g.choice(["Neg", "Abs", "Relu", "Identity"])
    info = lambda n: helper.make_tensor_value_info(n, 1, [None] * g[x].array.ndim)  # noqa: E731
    body = helper.make_graph([helper.make_node(op, [p + "_i"], [p + "_o"], name=p + "_1")], p, [info(p + "_i")], [info(p + "_o")])
    function = {"Neg": np.negative, "Abs": np.abs, "Relu": lambda v: np.maximum(v, 0), "Identity": lambda v: v}[op]
    name = g.add("SequenceMap", [sequence], [SequenceOf(np.dtype(np.float32))], lambda s: [[function(v) for v in s]], body=body)
    finish(g, name, np.dtype(np.float32))


@operator(since=16)
def optional(g):
    """What an optional holds: a tensor."""
    x = g.pick(types_of(g, "Concat"), lambda v: v.is_storable)
    if g.opset < 18:
        raise NoFit
    # From opset 18 on these take a tensor as it is.
    if g.chance(0.5):
        g.add("OptionalHasElement", [x], [np.bool_], lambda v: [np.asarray(True)])
    else:
        g.add("OptionalGetElement", [x], [g[x].dtype], lambda v: [v])


# --- strings

def words(g, shape):
    """A tensor of strings that only the run knows: gathered from constant ones."""
    table = g.constant(np.array(WORDS, object))
    g.hidden.add(table)
    i = np.asarray(g.rng.integers(0, len(WORDS), shape)).astype(np.int64)
    name = g.constant(i) if g.is_body or g.chance(0.2) else g.input(i)
    return g.add("Gather", [table, name], [STRING], lambda t, i: [np.asarray(t[i], object)])


def array_of(function, *arrays):
    """A tensor of what the function makes of strings."""
    arrays = np.broadcast_arrays(*arrays)
    result = np.empty(arrays[0].shape, object)
    for at in np.ndindex(*result.shape):
        result[at] = function(*[a[at] for a in arrays])
    return result


@operator(since=20, weight=2)
def strings(g):
    if g.is_body:
        raise NoFit
    shape = tuple(g.choice([0, 1, 2, 3]) for _ in range(g.integer(0, 2)))
    x = words(g, shape)
    for _ in range(g.integer(1, 3)):
        op = g.choice(["StringConcat", "StringSplit", "RegexFullMatch", "StringNormalizer", "Equal", "Reshape", "Concat", "LabelEncoder"])
        rank = g[x].array.ndim
        if op == "StringConcat":
            other = words(g, tuple(1 if g.chance(0.3) else s for s in g[x].shape))
            x = g.add(op, [x, other], [STRING], lambda a, b: [array_of(lambda s, t: s + t, a, b)])
        elif op == "Equal":
            other = words(g, tuple(1 if g.chance(0.3) else s for s in g[x].shape))
            g.add(op, [x, other], [np.bool_], lambda a, b: [np.asarray(array_of(lambda s, t: s == t, a, b).astype(bool))])
        elif op == "RegexFullMatch":
            pattern = g.choice(["a.*", "[a-z ]+", "(tree|Tree)", "", "-?[0-9]+(\\.[0-9]+)?", ".*"])
            g.add(op, [x], [np.bool_], lambda a: [np.asarray(array_of(lambda s: bool(re.fullmatch(pattern, s)), a).astype(bool))], pattern=pattern)
        elif op == "Reshape" and g[x].size:
            x = g.add(op, [x, g.constant(np.asarray([g[x].size, 1], np.int64))], [STRING], lambda a, s: [a.reshape(s)])
        elif op == "Concat" and rank:
            other = words(g, g[x].shape)
            axis = g.integer(0, rank - 1)
            x = g.add(op, [x, other], [STRING], lambda a, b: [np.concatenate([a, b], axis)], axis=axis)
        elif op == "StringNormalizer" and rank == 1 and g[x].size:
            action, stops, sensitive = g.choice(["NONE", "LOWER", "UPPER"]), g.choice([[], ["tree"], ["A", ""]]), g.integer(0, 1)
            if any(ord(c) > 127 for s in g[x].array for c in s) or any(c == "ß" for s in g[x].array for c in s):
                continue  # the case of other letters depends on the locale
            attributes = {"case_change_action": action, "is_case_sensitive": sensitive}

            def normalize(a):
                fold = (lambda s: s) if sensitive else str.lower
                kept = [s for s in a if fold(s) not in {fold(t) for t in stops}]
                change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[action]
                return [np.array([change(s) for s in kept] or [""], object)]

            x = g.add(op, [x], [STRING], normalize, **attributes, **({"stopwords": stops} if stops else {}))
        elif op == "StringSplit":
            delimiter = g.choice([None, ",", " ", "a"])
            most = g.choice([None, 1, 2])
            attributes = {} if delimiter is None else {"delimiter": delimiter}
            if most:
                attributes["maxsplit"] = most

            def split(a):
                lists = array_of(lambda s: s.split(delimiter, -1 if most is None else most), a)
                counts = np.asarray(array_of(len, lists).astype(np.int64))
                longest = int(counts.max(initial=0))
                result = np.full((*a.shape, longest), "", object)
                for at in np.ndindex(*a.shape):
                    result[(*at, slice(counts[at]))] = lists[at]
                return [result, counts]

            x = g.add(op, [x], [STRING, np.int64], split, **attributes)
        elif op == "LabelEncoder":
            keys, values = ["a", "tree", ""], [3, -7, 11]
            g.add(op, [x], [np.int64], lambda a: [np.asarray(array_of(lambda s: dict(zip(keys, values)).get(s, 99), a).astype(np.int64))], domain="ai.onnx.ml",
                  keys_strings=keys, values_int64s=values, default_int64=99)  # fmt: skip
