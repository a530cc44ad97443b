# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random valid ONNX graphs, grown node by node with their values in hand (NNSmith's idea: Liu et al., "NNSmith: Generating Diverse and Valid
Test Cases for Deep Learning Compilers", ASPLOS 2023, with concrete values in the place of its constraint solver).

A graph starts with a few tensors. Each step draws an operator of operators.py, which draws operands from the values that are there, or
makes new ones of the shape and type that it needs, adds its node, and has it evaluated at once. Nodes whose meaning ONNX leaves open
for these very values are not made.
"""
import re

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

from opinion import STRING, Sequence, SequenceOf, Undecided, Value, evaluate, is_float, onnx_type, opset_imports

MAX_ELEMENTS = 3000
SIZES = [0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17, 19, 24, 31, 33, 40]
DTYPES = {np.float32: 50, np.float64: 8, np.float16: 9, ml_dtypes.bfloat16: 5, np.int64: 10, np.int32: 9, np.bool_: 5, np.int8: 3, np.uint8: 4,
          np.int16: 2, np.uint16: 1, np.uint32: 1, np.uint64: 1, ml_dtypes.float8_e4m3fn: 1, ml_dtypes.float8_e5m2: 1,
          ml_dtypes.float8_e4m3fnuz: 0.5, ml_dtypes.float8_e5m2fnuz: 0.5, ml_dtypes.float4_e2m1fn: 0.5, ml_dtypes.int4: 1, ml_dtypes.uint4: 1,
          ml_dtypes.int2: 0.5, ml_dtypes.uint2: 0.5, ml_dtypes.float6_e2m3fn: 0.5, ml_dtypes.float6_e3m2fn: 0.5, np.complex64: 4,
          np.complex128: 2}  # fmt: skip
FIRST_OPSETS = {ml_dtypes.bfloat16: 13, ml_dtypes.float8_e4m3fn: 19, ml_dtypes.float8_e5m2: 19, ml_dtypes.float8_e4m3fnuz: 19,
                ml_dtypes.float8_e5m2fnuz: 19, ml_dtypes.float4_e2m1fn: 23, ml_dtypes.int4: 21, ml_dtypes.uint4: 21, ml_dtypes.int2: 25,
                ml_dtypes.uint2: 25, ml_dtypes.float6_e2m3fn: 28, ml_dtypes.float6_e3m2fn: 28}  # fmt: skip
OPSETS = [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28]
TYPE_NAMES = {"float": np.float32, "double": np.float64, "bool": np.bool_, "bfloat16": ml_dtypes.bfloat16, "float8e4m3fn": ml_dtypes.float8_e4m3fn,
              "float8e5m2": ml_dtypes.float8_e5m2, "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
              "float4e2m1": ml_dtypes.float4_e2m1fn, "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4, "int2": ml_dtypes.int2,
              "uint2": ml_dtypes.uint2, "float6e2m3": ml_dtypes.float6_e2m3fn, "float6e3m2": ml_dtypes.float6_e3m2fn,
              "complex64": np.complex64, "complex128": np.complex128}  # fmt: skip
COMPLEX = {np.dtype(np.complex64), np.dtype(np.complex128)}
# Operators that only move elements; what others do with complex numbers is for test/Integration/element_types.py.
MOVES_COMPLEX = {"CenterCropPad", "Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "NonZero", "Pad",
                 "Reshape", "ReverseSequence", "Shape", "Size", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze",
                 "Where"}  # fmt: skip


class NoFit(Exception):
    """An operator that cannot be added here; another one is drawn."""


def allowed_types(op, opset, operand):
    """The element types that the operator's schema allows for an operand."""
    schema = onnx.defs.get_schema(op, opset, "")
    formal = schema.inputs[min(operand, len(schema.inputs) - 1)]
    types = set()
    for text in formal.types:
        if text.startswith("tensor("):
            name = text[7:-1]
            types.add(np.dtype(TYPE_NAMES[name]) if name in TYPE_NAMES else np.dtype(name) if re.fullmatch(r"float16|u?int(8|16|32|64)", name) else None)
    return types - {None} - (set() if op in MOVES_COMPLEX else COMPLEX)


class NoEvaluation(NoFit):
    """ReferenceEvaluator failed: it lacks the node, or the node is wrong."""


class Graph:
    """A graph and its values. Names are unique within it; `prefix` makes them so within a model of several graphs."""

    def __init__(self, rng, opset, prefix):
        self.rng, self.opset, self.prefix = rng, opset, prefix
        self.values, self.nodes = {}, []
        self.calls = {}  # node name to the arguments of evaluate
        self.inputs, self.initializers, self.outputs = [], [], []
        self.dynamic = set()  # names of the inputs whose sizes the model leaves open
        self.model = None  # the model of a graph that was read from a file
        self.hidden = set()  # values that are no operands of further nodes
        self.unevaluated = []  # why ReferenceEvaluator failed
        self.is_body = False  # of an If, Loop or Scan: it has no inputs of its own
        self.declares_sizes = self.chance(0.5)  # whether the model says what sizes its outputs have
        self.count = 0

    # --- drawing

    def chance(self, p):
        return self.rng.random() < p

    def choice(self, items):
        return items[int(self.rng.integers(len(items)))]

    def integer(self, low, high):
        """In [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def dtype(self, among=None):
        types = [np.dtype(t) for t in DTYPES if self.opset >= FIRST_OPSETS.get(t, 0)]
        weights = np.array([DTYPES[t.type] if among is None or t in among else 0 for t in types], float)
        if not weights.sum():
            raise NoFit
        return types[int(self.rng.choice(len(types), p=weights / weights.sum()))]

    def shape(self, rank=None, least=0, most=MAX_ELEMENTS):
        rank = self.choice([0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5]) if rank is None else rank
        shape = []
        for _ in range(rank):
            fits = [s for s in SIZES if s >= least and s * int(np.prod(shape or [1])) <= most and (s or self.chance(0.3))]
            shape.append(self.choice(fits or [1]))
        return tuple(int(shape[i]) for i in self.rng.permutation(rank))

    def numbers(self, dtype, shape, kind=None):
        """Values of a leaf."""
        dtype, rng = np.dtype(dtype), self.rng
        if dtype == np.bool_:
            return rng.random(shape) < 0.5
        if dtype in COMPLEX:
            real = np.float32 if dtype == np.complex64 else np.float64
            return np.stack([self.numbers(real, shape, kind), self.numbers(real, shape, kind)], -1).view(dtype)[..., 0]
        if not is_float(dtype):
            info = ml_dtypes.iinfo(dtype)
            if dtype.isbuiltin != 1:
                return rng.integers(int(info.min) if kind != "positive" else 1, int(info.max), shape, endpoint=True).astype(dtype)
            low = 0 if info.min == 0 else -9
            if kind == "positive":
                low = 1
            if kind is None and self.chance(0.1):
                return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
            return np.asarray(rng.integers(low, 10, shape)).astype(dtype)
        kind = kind or self.choice(["normal"] * 8 + ["whole"] * 3 + ["unit", "large", "special", "halves"])
        if kind == "normal":
            array = rng.standard_normal(shape)
        elif kind == "whole":
            array = rng.integers(-5, 6, shape).astype(np.float64)
        elif kind == "halves":
            array = rng.integers(-9, 10, shape) / 2
        elif kind in ("unit", "positive"):
            array = rng.random(shape) + (0.125 if kind == "positive" else 0)
        elif kind == "large":
            array = rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 4 if dtype == np.float16 else 12, shape)
        else:
            array = np.asarray(rng.standard_normal(shape))
            special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, float(ml_dtypes.finfo(dtype).max),
                                float(ml_dtypes.finfo(dtype).smallest_normal)])  # fmt: skip
            array = np.where(rng.random(shape) < 0.3, special[rng.integers(len(special), size=shape)], array)
        with np.errstate(all="ignore"):
            return np.asarray(array).astype(dtype)

    # --- building

    def name(self, kind):
        self.count += 1
        return f"{self.prefix}{kind}{self.count}"

    def constant(self, array):
        """An initializer."""
        name = self.name("c")
        self.values[name] = Value.leaf(np.asarray(array))
        self.initializers.append(name)
        return name

    def leaf(self, dtype, shape, kind=None, constant=None):
        """A new graph input, or an initializer."""
        array = np.asarray(self.numbers(dtype, shape, kind))
        if self.is_body or (self.chance(0.4) if constant is None else constant):
            return self.constant(array)
        if array.dtype.isbuiltin != 1:
            # NumPy's files have no such type: the model's input is wider, and exact.
            wide = np.float32 if is_float(array.dtype) else np.int32
            return self.add("Cast", [self.input(array.astype(wide))], [array.dtype], lambda a: [a.astype(array.dtype)], to=onnx_type(array.dtype))
        name = self.name("x")
        self.values[name] = Value.leaf(array)
        self.inputs.append(name)
        return name

    def input(self, array):
        """A graph input of a value of its own, that no other node reads."""
        name = self.name("x")
        self.values[name] = Value.leaf(np.asarray(array))
        self.hidden.add(name)
        self.inputs.append(name)
        return name

    def ints(self, numbers, p_input=0.15):
        """Sizes, axes and the like as an operand: an initializer, sometimes a graph input or a node's result."""
        array = np.asarray(numbers, np.int64)
        if self.chance(p_input) and array.size and not self.is_body:
            name = self.name("x")
            self.values[name] = Value.leaf(array)
            self.inputs.append(name)
            return name
        if self.opset >= 9 and self.chance(0.1):
            return self.add("Constant", [], [np.int64], value=numpy_helper.from_array(array))
        return self.constant(array)

    def pick(self, types=None, fits=lambda v: True, make=None, rank=None, least_rank=0, kind=None, p_new=0.2):
        """The name of a value that fits, or of a new one."""
        names = [n for n, v in self.values.items() if n not in self.hidden and (types is None or v.dtype in types)
                 and v.array.ndim >= least_rank and (rank is None or v.array.ndim == rank) and fits(v)]  # fmt: skip
        if names and not self.chance(p_new):
            # Later values more often: graphs become deep.
            weights = np.arange(1, len(names) + 1, dtype=float)
            return names[int(self.rng.choice(len(names), p=weights / weights.sum()))]
        if make:
            return make()
        for _ in range(8):
            name = self.leaf(self.dtype(types), self.shape(rank if rank is not None else max(least_rank, self.integer(0, 4))), kind)
            if fits(self.values[name]):
                return name
            self.forget(name)
        raise NoFit

    def forget(self, name):
        """A leaf that does not fit after all stays unused and is dropped at the end."""
        self.hidden.add(name)

    def __getitem__(self, name):
        return self.values[name]

    def add(self, op, inputs, dtypes, implementation=None, outputs=None, check=None, subgraph_inputs=(), **attributes):
        """Add a node and evaluate it; the name of its first output. `outputs`: which results it has, of all that `dtypes` lists."""
        names = [self.name("v") if outputs is None or outputs[i] else "" for i in range(len(dtypes))]
        while names and not names[-1]:
            names.pop()
        node = helper.make_node(op, list(inputs), names, name=self.name(op), **attributes)
        present = {n: self.values[n] for n in [*inputs, *subgraph_inputs] if n}
        if sum(v.size for v in present.values()) > 20 * MAX_ELEMENTS:
            raise NoFit
        kept = [t if isinstance(t, SequenceOf) else np.dtype(t) for name, t in zip(names, dtypes) if name]
        try:
            values = evaluate(node, self.opset, present, kept, self.rng, implementation)
        except Undecided:
            raise NoFit from None
        except Exception as error:
            raise NoEvaluation(f"{op}: {type(error).__name__}: {error}") from error
        if any(v.size > MAX_ELEMENTS for v in values) or check and not check(values):
            raise NoFit
        self.nodes.append(node)
        self.calls[node.name] = (present.keys(), kept, implementation)
        for name, value in zip([n for n in names if n], values):
            self.values[name] = value
            if isinstance(value, Sequence) or value.dtype == STRING:
                self.hidden.add(name)  # for the few operators that know of them
        return names[0]

    def finish(self):
        """Choose outputs and drop what none of them needs."""
        made = [n for node in self.nodes for n in node.output if n]
        used = {n for node in self.nodes for n in node_reads(node)}
        chosen = [n for n in made if n not in used or self.chance(0.15)]
        for name in chosen:
            value = self.values[name]
            if value.is_storable:
                self.outputs.append(name)
            elif value.dtype == STRING and self.opset >= 19:
                self.outputs.append(self.add("Equal", [name, self.constant(value.array)], [np.bool_]))
            elif not isinstance(value, Sequence) and value.dtype != STRING:
                wide = np.dtype(np.float32 if is_float(value.dtype) else np.int32)
                self.outputs.append(self.add("Cast", [name], [wide], lambda a: [a.astype(np.float64 if wide.kind == "f" else wide)], to=onnx_type(wide)))
        prune(self)
        if self.chance(0.25):
            self.declares_sizes = False
            self.dynamic = {n for n in self.inputs if self.values[n].array.ndim and self.chance(0.7) and not self.fixes_rank(n)}

    def fixes_rank(self, name):
        """Whether the length of this input may be a rank: its size stays."""
        return self.values[name].dtype == np.int64 and self.values[name].array.ndim == 1


def node_reads(node):
    """Names that a node reads, those of its subgraphs included."""
    names = [n for n in node.input if n]
    for attribute in node.attribute:
        if attribute.HasField("g"):
            inner = {n for sub in attribute.g.node for n in node_reads(sub)} | {o.name for o in attribute.g.output}
            made = {n for sub in attribute.g.node for n in sub.output} | {i.name for i in attribute.g.input} | {t.name for t in attribute.g.initializer}
            names += sorted(inner - made)
    return names


def reevaluate(graph, rng):
    """Compute all values again from those of the inputs and initializers."""
    for node in graph.nodes:
        reads, dtypes, implementation = graph.calls[node.name]
        values = evaluate(node, graph.opset, {n: graph.values[n] for n in reads}, dtypes, rng, implementation)
        for name, value in zip([n for n in node.output if n], values):
            graph.values[name] = value


def domains(node):
    """The domains of a node and of those within it."""
    yield node.domain
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from domains(inner)


def keep_needed(graph, outputs):
    """Drop the nodes and initializers that these outputs do not need; the names of the needed values."""
    needed, kept = set(outputs), []
    for node in reversed(graph.nodes):
        if any(n in needed for n in node.output):
            needed |= set(node_reads(node))
            kept.append(node)
    graph.nodes = kept[::-1]
    graph.initializers = [n for n in graph.initializers if n in needed]
    return needed


def prune(graph):
    """Drop the nodes and leaves that no output needs."""
    needed = keep_needed(graph, graph.outputs)
    graph.inputs = [n for n in graph.inputs if n in needed]
    graph.dynamic &= set(graph.inputs)


def make_graph(seed, opset, prefix):
    """A graph of a few nodes, the same for the same arguments."""
    import families

    rng = np.random.default_rng(seed)
    graph = Graph(rng, opset, prefix)
    for _ in range(graph.integer(1, 3)):
        graph.leaf(graph.dtype(), graph.shape(), constant=False)
    wanted, tries = graph.integer(1, 9), 0
    while sum(n.op_type != "Constant" for n in graph.nodes) < wanted and tries < 60:
        tries += 1
        before = len(graph.nodes)
        try:
            graph.choice(families.enabled(opset))(graph)
        except NoFit as reason:
            if isinstance(reason, NoEvaluation):
                graph.unevaluated.append(str(reason))
            # What was made on the way stays: it is valid, and pruned if nothing reads it.
            for node in graph.nodes[before:]:
                graph.hidden |= set(node.output)
    graph.finish()
    return graph


def type_of(graph, name, sizes=True):
    value = graph.values[name]
    shape = list(value.shape) if sizes and name not in graph.dynamic else [None] * value.array.ndim
    return helper.make_tensor_value_info(name, onnx_type(value.dtype), shape)


def untyped(graph):
    """The types of what nodes of other domains give, which onnx does not infer: its EyeLike and others fall over what they do not know."""
    names = [n for node in graph.nodes if node.domain for n in node.output if n and n not in graph.outputs]
    return [type_of(graph, n, False) for n in names if isinstance(graph.values[n], Value)]


def make_model(graphs, opset):
    """One model of several graphs, none of which knows of the others."""
    if graphs[0].model:
        return graphs[0].model
    nodes = [n for g in graphs for n in g.nodes]
    proto = helper.make_graph(
        nodes, "fuzz", [type_of(g, n) for g in graphs for n in g.inputs],
        [type_of(g, n, g.declares_sizes) for g in graphs for n in g.outputs],
        [numpy_helper.from_array(g.values[n].stored(), n) for g in graphs for n in g.initializers],
        value_info=[info for g in graphs for info in untyped(g)])  # fmt: skip
    used = {d for n in nodes for d in domains(n)} | {""}
    model = helper.make_model(proto, opset_imports=[o for o in opset_imports(opset) if o.domain in used])
    model.ir_version = 10 if opset < 25 else 14
    return model



def read_graph(path):
    """A graph in onnx's text form. Initializers with the name of an input are its value."""
    with open(path) as f:
        model = onnx.parser.parse_model(f.read())
    opset = model.opset_import[0].version
    graph = Graph(np.random.default_rng(0), opset, "")
    names = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:
        graph.values[tensor.name] = Value.leaf(numpy_helper.to_array(tensor))
        (graph.inputs if tensor.name in names else graph.initializers).append(tensor.name)
    kept = [tensor for tensor in model.graph.initializer if tensor.name not in names]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    types = {v.name: helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type) for v in [*inferred.value_info, *inferred.output]}
    for node in model.graph.node:
        present = {n: graph.values[n] for n in node_reads(node)}
        made = [n for n in node.output if n]
        for name, value in zip(made, evaluate(node, opset, present, [np.dtype(types[n]) for n in made], graph.rng)):
            graph.values[name] = value
    graph.nodes, graph.outputs, graph.model = list(model.graph.node), [o.name for o in model.graph.output], model
    return graph
