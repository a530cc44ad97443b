# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""If, Loop and Scan, with bodies that are random graphs themselves and read values from outside."""
import copy

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import operators
from generate import Graph, NoEvaluation, NoFit, keep_needed, reevaluate, untyped
from opinion import Composite, Sequence, Undecided, Value, onnx_type
from operators import operator

MAX_DEPTH = 2


class Body:
    """A graph within a node. Its values are those from outside, `arguments` (name to value) and what its nodes make."""

    def __init__(self, outer, arguments, count, repeated):
        depth = getattr(outer, "depth", 0) + 1
        if depth > MAX_DEPTH:
            raise NoFit
        self.name = outer.name("body")
        graph = self.graph = Graph(outer.rng, outer.opset, self.name + "_")
        graph.depth, graph.is_body = depth, True
        graph.values, graph.hidden = {**outer.values, **arguments}, set(outer.hidden)
        self.outside = {n: v for n, v in outer.values.items()}
        self.arguments = list(arguments)
        templates = operators.enabled(outer.opset)
        if repeated:
            templates = [t for t in templates if t in operators.REPEATABLE]
        tries = 0
        while len(graph.nodes) < count and tries < 20:
            tries += 1
            before = len(graph.nodes)
            try:
                graph.choice(templates)(graph)
            except NoFit as reason:
                if isinstance(reason, NoEvaluation):
                    outer.unevaluated.append(str(reason))
                for node in graph.nodes[before:]:
                    graph.hidden |= set(node.output)

    def made(self, fits=lambda v: True):
        """The results of the body's nodes that fit, the last first."""
        graph = self.graph
        names = [n for node in graph.nodes for n in node.output if n and n not in graph.hidden and not isinstance(graph.values[n], Sequence)]
        return [n for n in reversed(names) if graph.values[n].is_storable and fits(graph.values[n])]

    def close(self, outputs):
        """Drop what the outputs, names of made values, do not need; the GraphProto. An output is the result of a node of the body."""
        graph = self.graph
        needed = keep_needed(graph, outputs)
        self.captured = [n for n in self.outside if n in needed]

        def info(name):
            value = graph.values[name]
            return helper.make_tensor_value_info(name, onnx_type(value.dtype), [None] * value.array.ndim)

        return helper.make_graph(graph.nodes, self.name, [info(n) for n in self.arguments], [info(n) for n in outputs],
                                 [numpy_helper.from_array(graph.values[n].stored(), n) for n in graph.initializers],
                                 value_info=[i for i in untyped(graph) if i.name not in outputs])  # fmt: skip

    def run(self, outside, arguments, outputs, rng):
        """The values of the outputs for these values from outside and arguments."""
        graph = copy.copy(self.graph)
        graph.values = {**{n: self.graph.values[n] for n in graph.initializers}, **outside, **arguments}
        reevaluate(graph, rng)
        if self.arguments:
            # The nodes were drawn for other values; they mean something for all but NaN.
            for node in graph.nodes:
                for name in node.output:
                    if name and not graph.values[name].is_finite():
                        raise Undecided("a NaN or an infinity in a later iteration")
        return [graph.values[n] for n in outputs]

    def identity(self, name):
        """A result of the body that is this value."""
        return self.graph.add("Identity", [name], [self.graph.values[name].dtype])


@operator(since=11, weight=2)
def branch(g):
    condition = g.leaf(np.bool_, g.choice([(), (1,)]))
    taken = bool(g[condition].array.reshape(-1)[0])
    first = Body(g, {}, g.integer(1, 4), False)
    names = first.made()
    if not names:
        raise NoFit
    names = names[: g.integer(1, 2)]
    like = [first.graph.values[n] for n in names]
    second = Body(g, {}, g.integer(0, 3), False)
    others = []
    for value in like:
        def fits(v, value=value):
            return v.dtype == value.dtype and v.array.ndim == value.array.ndim

        found = [n for n in second.made(fits) if n not in others]
        others.append(found[0] if found else second.identity(second.graph.pick({value.dtype}, fits, lambda v=value: second.graph.leaf(v.dtype, v.shape))))
    made = {"then_branch" if taken else "else_branch": first.close(names), "else_branch" if taken else "then_branch": second.close(others)}
    captured = [n for n in g.values if n in first.captured or n in second.captured]
    composite = Composite(lambda values, rng: first.run({n: values[n] for n in first.captured}, {}, names, rng))
    g.add("If", [condition], [v.dtype for v in like], composite, subgraph_inputs=captured, **made)


def stacked(values, like, axis=0, reverse=False):
    """Values of equal shape, one after the other; none of them: like `like`."""
    if not values:
        return Value.leaf(np.zeros((0, *like.shape), like.dtype))
    if any(v.shape != like.shape for v in values):
        raise Undecided("results of iterations differ in shape")
    runs = max(len(v.runs) for v in values)
    return Value(like.dtype, [np.stack([v.run(i) for v in (reversed(values) if reverse else values)], axis) for i in range(runs)])


def draw_repeated(g, x, arguments, carried):
    """A body that computes from the argument `carried` another value of its type and shape, and values to stack."""
    body = Body(g, arguments, g.integer(1, 4), True)
    value = arguments[carried]
    state = body.made(lambda v: v.dtype == value.dtype and v.shape == value.shape)
    state = state[0] if state else body.identity(carried)
    stacks = [n for n in body.made() if n != state and body.graph.values[n].size < 300][: g.integer(0, 2)]
    return body, state, stacks


@operator(since=11, weight=2)
def loop(g):
    """A loop that carries one value, stacks others and may end early."""
    x = g.pick(None, lambda v: v.array.size < 300 and v.is_finite() and v.is_storable)
    value, trips, early = g[x], g.integer(0, 4), g.chance(0.4)
    last = g.integer(0, 3)
    p = g.name("loop")
    index, condition, carried = p + "_i", p + "_c", p + "_x"
    zero = Value.leaf(np.asarray(0, np.int64))
    body, state, stacks = draw_repeated(g, x, {index: zero, condition: Value.leaf(np.asarray(True)), carried: value}, carried)
    if trips == 0:  # ONNX does not say which sizes a result has whose elements were never computed
        stacks = [n for n in stacks if body.graph.values[n].shape == ()]
    if early:
        goes_on = body.graph.add("Less", [index, body.graph.constant(np.asarray(last, np.int64))], [np.bool_])
    else:
        goes_on = body.identity(condition)
    outputs = [goes_on, state, *stacks]
    proto = body.close(outputs)
    likes = [body.graph.values[n] for n in stacks]

    def iterate(values, rng):
        current, rows = values[x], [[] for _ in stacks]
        outside = {n: values[n] for n in body.captured}
        for i in range(trips):
            arguments = {index: Value.leaf(np.asarray(i, np.int64)), condition: Value.leaf(np.asarray(True)), carried: current}
            more, current, *results = body.run(outside, arguments, outputs, rng)
            if current.shape != value.shape:
                raise Undecided("a carried value changes its shape")
            for row, result in zip(rows, results):
                row.append(result)
            if not more.array:
                break
        return [current, *[stacked(row, like) for row, like in zip(rows, likes)]]

    count = g.constant(np.asarray(trips, np.int64)) if g.chance(0.5) or g.is_body else g.input(np.asarray(trips, np.int64))
    g.add("Loop", [count, g.constant(np.asarray(True)), x], [value.dtype, *[v.dtype for v in likes]], Composite(iterate), body=proto,
          subgraph_inputs=body.captured)  # fmt: skip


@operator(since=9, weight=2)
def scan(g):
    """A scan over one axis of a value, with a state."""
    source = g.pick(None, lambda v: v.array.size < 500 and v.is_finite() and v.is_storable and max(v.shape) <= 6 and 0 not in v.shape, least_rank=1)
    x = g.pick(None, lambda v: v.array.size < 100 and v.is_finite() and v.is_storable)
    axis = g.integer(0, g[source].array.ndim - 1)
    backward, reverse = g.integer(0, 1), g.integer(0, 1)
    p = g.name("scan")
    carried, element = p + "_x", p + "_e"

    def slice_of(whole, i):
        return Value(whole.dtype, [np.take(r, i, axis) for r in whole.runs])

    body, state, stacks = draw_repeated(g, x, {carried: g[x], element: slice_of(g[source], 0)}, carried)
    if not stacks:
        stacks = [body.identity(element)]
    # A state that is no result of its own would be one name twice.
    outputs = [state, *stacks]
    proto = body.close(outputs)
    likes, length, shape = [body.graph.values[n] for n in stacks], g[source].shape[axis], g[x].shape

    def iterate(values, rng):
        current, rows = values[x], [[] for _ in stacks]
        outside = {n: values[n] for n in body.captured}
        for i in range(length):
            arguments = {carried: current, element: slice_of(values[source], length - 1 - i if backward else i)}
            current, *results = body.run(outside, arguments, outputs, rng)
            if current.shape != shape:
                raise Undecided("a state changes its shape")
            for row, result in zip(rows, results):
                row.append(result)
        return [current, *[stacked(row, like, 0, reverse) for row, like in zip(rows, likes)]]

    g.add("Scan", [x, source], [g[x].dtype, *[v.dtype for v in likes]], Composite(iterate), body=proto, subgraph_inputs=body.captured, num_scan_inputs=1,
          scan_input_axes=[axis], scan_input_directions=[backward], scan_output_directions=[reverse] * len(stacks))  # fmt: skip
