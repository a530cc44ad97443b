#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands that an operator does not take: every operator, each operand in turn, of another type, rank or size, or with odd values; and
attributes of another length, or with odd numbers and words.

usage: operands.py BIN [REGEX] [--full | --run] [--jobs N] [--keep DIR]

The nodes are those of ONNX's backend tests and of test/Integration (com.microsoft), one or two for each operator. tc-compile must answer
each with 0, or with 1 or 2 and a sentence; with 1 or 2 where ONNX's schemas have no such type, where ONNX's own shape inference refuses
the sizes, for words that no operator knows, and for lists and values of WRONG_LENGTHS and WRONG_VALUES. Without --full: a few types and
ranks for each operand, odd integers in nodes of constants, and the program is compiled as far as its regions. --run: the nodes as they are, run with odd integers as inputs: sizes,
starts, indices. tc-run must take or refuse them, or lack the memory (0, 4, 5); what operators of EXACT give must be what exact integers give, of
inputs and of constants.
"""
import argparse
import contextlib
import copy
import io
import os
import re
import resource
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnx.compose
from onnx import TensorProto as T, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
FULL_TYPES = (T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16, T.INT64, T.INT32, T.INT8, T.UINT8, T.UINT64, T.BOOL, T.STRING, T.COMPLEX64, T.INT4, T.FLOAT8E4M3FN)
TYPES = (T.FLOAT, T.INT64, T.BOOL, T.STRING)
# Operators that take any float where ONNX asks for float.
ANY_FLOAT = {"NonMaxSuppression"}
# Operators whose operand 0 may hold integers that ONNX leaves out.
ANY_INTEGER = re.compile("Reduce.*|CumSum|CumProd")
# What operators that read constants may find in them.
VALUES = (-1, 0, 1, 7, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), float("nan"), float("inf"), -0.5, 1e-30, 1e30)
FEW_VALUES = (-1, -(2**63), 2**62, float("nan"))


def base_models():
    """{(domain, operator): [models]}: those with the most operands, and the fewest."""
    found = {}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        for case in collect_testcases(None):
            nodes = case.model.graph.node
            if len(nodes) == 1 and "_expanded" not in case.name and case.data_sets:
                values = [np.asarray(v) if isinstance(v, np.generic) else v for v in case.data_sets[0][0]]
                found.setdefault((nodes[0].domain or "ai.onnx", nodes[0].op_type), []).append((case.name, case.model, values))
        sys.path.insert(0, os.path.join(HERE, "..", "Integration"))
        import microsoft
        import one_node

        if not one_node.CASES:
            for add in (microsoft.quantised, microsoft.few_bits, microsoft.fused, microsoft.attention, microsoft.inverses):
                add()
        for name, case in one_node.CASES.items():
            if case[0] == "com.microsoft":
                values = [v for i, v in enumerate(case[2]) if v is not None and i not in case[5]]
                found.setdefault((case[0], case[1]), []).append((name, one_node.make_model(name, "static"), values))
    models = {}
    for key, cases in sorted(found.items()):
        cases.sort(key=lambda c: sum(bool(n) for n in c[1].graph.node[0].input))
        models[key] = [cases[-1]] + ([cases[0]] if len(cases) > 1 and cases[0][0] != cases[-1][0] else [])
    return models


def allowed_types(node, opset, index):
    """The types that some version of the operator takes there, from its own on; None where that is not known."""
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None
    operand = schema.inputs[min(index, len(schema.inputs) - 1)]
    found = set(operand.types)
    for other in onnx.defs.get_all_schemas_with_history():
        if (other.name, other.domain) == (schema.name, schema.domain) and other.since_version > schema.since_version:
            found |= {t for o in other.inputs if o.name == operand.name for t in o.types}
    if node.op_type in ANY_FLOAT and "tensor(float)" in found:
        found |= {"tensor(double)", "tensor(float16)", "tensor(bfloat16)"}
    if ANY_INTEGER.fullmatch(node.op_type) and index == 0:
        found |= {f"tensor({sign}int{bits})" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    return found


def name_of(node, opset, index):
    try:
        operands = onnx.defs.get_schema(node.op_type, opset, node.domain).inputs
    except onnx.defs.SchemaError:
        return None
    return operands[min(index, len(operands) - 1)].name


def mutants(model, values, full):
    """(what, model, whether it must be refused)."""
    graph = model.graph
    node = graph.node[0]
    opset = next((o.version for o in model.opset_import if o.domain == node.domain), 1)
    by_name = {info.name: (i, info) for i, info in enumerate(graph.input)}
    for index, name in enumerate(node.input):
        if name not in by_name:
            continue
        at, info = by_name[name]
        if not info.type.HasField("tensor_type"):
            continue
        was = info.type.tensor_type
        allowed = allowed_types(node, opset, index)

        def changed(edit):
            new = copy.deepcopy(model)
            for output in new.graph.output:
                output.ClearField("type")
            edit(new.graph.input[at].type)
            return new

        for kind in FULL_TYPES if full else TYPES:
            if kind != was.elem_type:
                text = f"tensor({T.DataType.Name(kind).lower()})"
                wrong = allowed is not None and text not in allowed and not any(t.startswith("optional") for t in allowed)
                yield f"{index}:{text}", changed(lambda t: setattr(t.tensor_type, "elem_type", kind)), wrong
        wrong = allowed is not None and not any(t.startswith(("seq", "optional")) for t in allowed)
        yield f"{index}:seq", changed(lambda t: t.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(was.elem_type, [2])))), wrong
        dims = [d.dim_value for d in was.shape.dim]
        shapes = [dims[:-1], dims + [2], [], dims + [1]] if dims else [[2], [1], [2, 3]]
        shapes += [[*dims[:d], dims[d] + by, *dims[d + 1 :]] for d in range(len(dims)) for by in ((1, -1) if full or len(dims) == 1 else (-1,))] + [[2**40] * len(dims)]
        if full:
            shapes += [[0] * len(dims), [3] * 5, [None] * len(dims)]
        for shape in shapes:
            if shape != dims:
                def reshape(t, shape=shape):
                    t.CopyFrom(helper.make_tensor_type_proto(was.elem_type, [d if d is None else max(d, 0) for d in shape]))
                new = changed(reshape)
                yield f"{index}:{shape}", new, node.domain != "com.microsoft" and node.op_type not in LAX and is_refused(new)
        if at >= len(values) or not isinstance(values[at], np.ndarray) or values[at].dtype.kind not in "iufb" or not was.elem_type in (T.FLOAT, T.INT64, T.INT32, T.BOOL, T.DOUBLE, T.UINT8, T.INT8):
            continue
        value = values[at]
        if value.size > 64:
            continue
        wrong = WRONG_VALUES.get((node.op_type, name_of(node, opset, index)), ())
        for number in dict.fromkeys([*(VALUES if full else FEW_VALUES), *wrong]):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                if value.dtype.kind in "iub" and not (isinstance(number, int) and (value.dtype.kind == "b" or np.iinfo(value.dtype).min <= number <= np.iinfo(value.dtype).max)):
                    continue
                for which in {"all", "last"} if value.size > 1 else {"all"}:
                    array = np.array(value)
                    if which == "all":
                        array[...] = number
                    else:
                        array[(-1,) * array.ndim] = number
                    new = copy.deepcopy(model)
                    del new.graph.input[at]
                    new.graph.initializer.append(numpy_helper.from_array(array, name))
                    for output in new.graph.output:
                        output.ClearField("type")
                    yield f"{index}={number} ({which})", new, number in wrong


# ONNX's inference refuses more than tc, which takes these as well: one number of any rank where a list or a scalar is asked for, a scalar
# along its only axis, one row. And it is wrong of operators with subgraphs, and of those whose bodies it expands; those that tc expands
# before it looks at sizes (LinearAttention, FlexAttention) take what their bodies take.
LAX = {"ConstantOfShape", "DFT", "Dropout", "Expand", "FlexAttention", "LinearAttention", "LogSoftmax", "Loop", "MeanVarianceNormalization", "Scan", "SequenceMap", "Softmax", "SwiGLU",
       "TreeEnsemble"}  # fmt: skip
# Attributes that have a number for each dim, or two.
WRONG_LENGTHS = {"strides", "dilations", "pads", "kernel_shape", "perm", "output_padding", "pooled_shape", "qkv_hidden_sizes"}
# Attributes that may be any text.
TEXTS = {"delimiter", "pattern", "default_string", "equation", "locale", "stopwords", "pixel_format"}
# Numbers that an operand or attribute may not have.
WRONG_VALUES = {("Resize", "scales"): (-1, 0, float("nan"), float("inf")), ("Upsample", "scales"): (-1, float("nan")), ("Range", "delta"): (0,),
                ("Slice", "steps"): (0,), ("TopK", "K"): (-1,), ("Tile", "repeats"): (-1,), ("Dropout", "ratio"): (-0.5, float("nan")), ("Split", "split"): (-1,),
                ("STFT", "frame_step"): (-1, 0), ("STFT", "frame_length"): (-1,), ("CenterCropPad", "shape"): (-1,), ("Expand", "shape"): (-(2**63),),
                ("DepthToSpace", "blocksize"): (0, -1, 2**31), ("SpaceToDepth", "blocksize"): (0, -1), ("LRN", "size"): (0, -1), ("LpNormalization", "p"): (0, 7),
                ("GroupNormalization", "num_groups"): (0, -1, 7), ("ReverseSequence", "time_axis"): (-1, 7), ("Multinomial", "sample_size"): (-1,),
                ("RoiAlign", "output_height"): (-1, 2**31), ("RoiAlign", "sampling_ratio"): (-1,), ("Attention", "num_heads"): (0, -1),
                ("MultiHeadAttention", "num_heads"): (0, -1), ("GroupQueryAttention", "kv_num_heads"): (0, -1), ("MatMulNBits", "block_size"): (0, -1, 7),
                **{(op, "group"): (0, -1, 7) for op in ("Conv", "ConvInteger", "ConvTranspose", "DeformConv", "QLinearConv", "FusedConv", "NhwcConv")},
                **{(op, name): (0, -1, 2**31) for name in ("strides", "dilations", "kernel_shape")
                   for op in ("Conv", "ConvInteger", "ConvTranspose", "DeformConv", "AveragePool", "MaxPool", "LpPool")}}  # fmt: skip
ATTRIBUTE_VALUES = (0, -1, 7, 2**31, -(2**63), 2**63 - 1)


def is_refused(model):
    """Whether ONNX's shape inference refuses the sizes of the operands."""
    try:
        onnx.shape_inference.infer_shapes(model, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        return True
    return False


def attribute_mutants(model):
    """As mutants, of attributes."""
    op = model.graph.node[0].op_type
    for i, attribute in enumerate(model.graph.node[0].attribute):

        def changed(**field):
            new = copy.deepcopy(model)
            for output in new.graph.output:
                output.ClearField("type")
            to = new.graph.node[0].attribute[i]
            for name, value in field.items():
                if name == "ints":
                    del to.ints[:]
                    to.ints.extend(value)
                else:
                    setattr(to, name, value)
            return new

        if attribute.type == attribute.STRING and attribute.name not in TEXTS:
            yield f"{attribute.name}=word", changed(s=b"word"), True
        wrong = WRONG_VALUES.get((op, attribute.name), ())
        if attribute.type == attribute.INT:
            for number in ATTRIBUTE_VALUES:
                yield f"{attribute.name}={number}", changed(i=number), number in wrong
        elif attribute.type == attribute.INTS and attribute.ints:
            ints, fixed = list(attribute.ints), attribute.name in WRONG_LENGTHS
            for name, list_ in (("longer", [*ints, ints[-1]]), ("shorter", ints[:-1]), ("none", [])):
                yield f"{attribute.name} {name}", changed(ints=list_), fixed and bool(list_)
            for number in ATTRIBUTE_VALUES:
                yield f"{attribute.name}=[.., {number}]", changed(ints=[*ints[:-1], number]), number in wrong


NUMBERS = (T.FLOAT, T.DOUBLE, T.INT64, T.INT32, T.INT8, T.UINT8, T.UINT64, T.BOOL)


def odd_values(model, values):
    """(input, number, which elements, all values) with odd integers in one input: sizes, starts, indices. Nothing where an input is no tensor
    of numbers."""
    kinds = [i.type.tensor_type.elem_type for i in model.graph.input]
    if len(values) != len(kinds) or not all(isinstance(v, np.ndarray) and k in NUMBERS for v, k in zip(values, kinds)):
        return
    for i, value in enumerate(values):
        if kinds[i] not in (T.INT64, T.INT32) or not 0 < value.size <= 64:
            continue
        info = np.iinfo(value.dtype)
        for number in (-1, 0, 1, 7, 2**30, 2**40, info.max, info.max - 1, info.max // 2, info.min + 1, info.min):
            for which in ("all", "last") if value.size > 1 else ("all",):
                if info.min <= number <= info.max:
                    array = np.array(value)
                    array[(...) if which == "all" else (-1,) * array.ndim] = number
                    yield i, number, which, [array if j == i else v for j, v in enumerate(values)]


def folded(model, values):
    """Models all of whose inputs are constants."""
    for i, number, which, every in odd_values(model, values):
        new = copy.deepcopy(model)
        for output in new.graph.output:
            output.ClearField("type")
        new.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), info.name) for v, info in zip(every, new.graph.input))
        del new.graph.input[:]
        yield f"{i}={number} ({which}), all constant", new, False


#===--- what odd integers give ---------------------------------------------------------------------------------------===#

MOST = 1 << 20  # elements of a result that is compared


def inside(indices, sizes):
    """Whether all of indices [.., len(sizes)] are positions."""
    return all(-s <= int(i) < s for row in indices.reshape(-1, len(sizes)) for i, s in zip(row, sizes))


def exact_slice(attrs, data, starts, ends, axes=None, steps=None):
    axes = range(len(starts)) if axes is None else [int(a) for a in axes]
    if any(not -data.ndim <= a < data.ndim for a in axes) or len({a % data.ndim for a in axes}) < len(axes):
        return None
    for i, axis in enumerate(axes):
        n, step, start, end = data.shape[axis], int(steps[i]) if steps is not None else 1, int(starts[i]), int(ends[i])
        if step == 0:
            return None
        start, end = (v + n if v < 0 else v for v in (start, end))
        low, high = (0, n) if step > 0 else (-1, n - 1)
        start, end = min(max(start, max(low, 0) if step < 0 else low), high), min(max(end, low), high)
        data = np.take(data, list(range(start, end, step)), axis)
    return data


def exact_pad(attrs, data, pads, value=None, axes=None):
    axes = range(data.ndim) if axes is None else [int(a) for a in axes]
    if attrs.get("mode", b"constant") != b"constant" or any(not -data.ndim <= a < data.ndim for a in axes) or len({a % data.ndim for a in axes}) < len(axes):
        return None
    for i, axis in enumerate(axes):
        n, low, high = data.shape[axis], int(pads[i]), int(pads[i + len(axes)])
        if not 0 <= n + low + high <= MOST // max(data.size, 1):
            return None
        places = [p - low for p in range(n + low + high)]
        shape = [1] * data.ndim
        shape[axis] = len(places)
        isInside = np.array([0 <= p < n for p in places], bool).reshape(shape)
        if n == 0:
            return None
        data = np.where(isInside, np.take(data, [min(max(p, 0), n - 1) for p in places], axis), np.asarray(0 if value is None else value, data.dtype).reshape(()))
    return data


def exact_range(attrs, start, limit, delta):
    dtype, start, limit, delta = start.dtype, *(v.item() for v in (start, limit, delta))
    if not isinstance(delta, int) or delta == 0:
        return None
    count = max(0, -((start - limit) // delta))
    return np.array([start + i * delta for i in range(count)], dtype) if count <= MOST else None


def exact_gather(attrs, data, indices):
    axis = attrs.get("axis", 0)
    return np.take(data, indices, axis) if inside(indices.reshape(-1, 1), data.shape[axis : axis + 1 or None]) else None


def exact_gather_elements(attrs, data, indices):
    axis = attrs.get("axis", 0)
    if not inside(indices.reshape(-1, 1), [data.shape[axis]]):
        return None
    return np.take_along_axis(data[tuple(slice(n) if i != axis % data.ndim else slice(None) for i, n in enumerate(indices.shape))], indices, axis)


def exact_gather_nd(attrs, data, indices):
    batch, depth = attrs.get("batch_dims", 0), indices.shape[-1]
    if not inside(indices, data.shape[batch : batch + depth]):
        return None
    result = np.zeros((*indices.shape[:-1], *data.shape[batch + depth :]), data.dtype)
    for at in np.ndindex(*indices.shape[:-1]):
        result[at] = data[(*at[:batch], *indices[at])]
    return result


REDUCTIONS = {b"none": lambda old, new: new, b"add": np.add, b"mul": np.multiply, b"max": np.maximum, b"min": np.minimum}


def exact_scatter_nd(attrs, data, indices, updates):
    if not inside(indices, data.shape[: indices.shape[-1]]):
        return None
    reduction, result, seen = attrs.get("reduction", b"none"), data.copy(), set()
    for at in np.ndindex(*indices.shape[:-1]):
        place = tuple(int(i) % n for i, n in zip(indices[at], data.shape))
        if reduction == b"none" and place in seen:
            return None  # which one wins is left open
        seen.add(place)
        result[place] = REDUCTIONS[reduction](result[place], updates[at])
    return result


def exact_trilu(attrs, data, k=None):
    k = 0 if k is None else min(max(int(k), -data.shape[-2] - data.shape[-1]), data.shape[-2] + data.shape[-1])
    return np.triu(data, k) if attrs.get("upper", 1) else np.tril(data, k)


EXACT = {"Gather": exact_gather, "GatherElements": exact_gather_elements, "GatherND": exact_gather_nd, "Pad": exact_pad, "Range": exact_range,
         "ScatterND": exact_scatter_nd, "Slice": exact_slice, "Trilu": exact_trilu}  # fmt: skip


def more_models():
    """Forms that ONNX's cases leave out: (name, model, values) by operator."""

    def one(op, values, opset=18, **attributes):
        names = [f"x{i}" for i in range(len(values))]
        graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], op,
                                  [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in zip(names, values)],
                                  [onnx.ValueInfoProto(name="y")])  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9), values

    x, row = np.arange(24, dtype=np.float32).reshape(2, 3, 4), lambda *v: np.array(v, np.int64)
    return {"Range": [("range_int64", *one("Range", [np.array(v, np.int64) for v in (2, 9, 3)]))],
            "Pad": [("pad_constant", *one("Pad", [x, row(1, 0, 2, 0, -1, 1), np.array(7, np.float32)])),
                    ("pad_axes", *one("Pad", [x, row(1, 2, 0, -1), np.array(7, np.float32), row(2, 0)]))],
            "GatherND": [("gather_nd_rows", *one("GatherND", [x, row(1, 0, -1).reshape(3, 1)]))],
            "ScatterND": [("scatter_nd_add", *one("ScatterND", [x, row(1, 2, 0, 0).reshape(2, 2), x[0, :2] + 50], reduction="add"))]}  # fmt: skip


def exact_result(model, values):
    """What the node gives; None where that is left open, or where it is not computed here."""
    node = model.graph.node[0]
    if node.op_type not in EXACT:
        return None
    attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    by_name = {info.name: v for info, v in zip(model.graph.input, values)}
    return EXACT[node.op_type](attrs, *(by_name[n] if n else None for n in node.input))


def merge(group):
    """One model of many; the names of the i-th begin with m<i>_."""
    nodes, inputs, outputs, initializers, opsets, functions = [], [], [], [], {}, {}
    for i, (_, model, _) in group:
        model = onnx.compose.add_prefix(model, f"m{i}_")
        model.graph.node[0].name = f"m{i}_node"
        nodes += model.graph.node
        inputs += model.graph.input
        outputs += model.graph.output
        initializers += model.graph.initializer
        opsets.update({o.domain: o.version for o in model.opset_import})
        functions.update({(f.domain, f.name): f for f in model.functions})
    graph = helper.make_graph(nodes, "operands", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets.items()], ir_version=13)


class Tool:
    def __init__(self, binary, full, keep):
        self.binary, self.full, self.keep, self.runs = binary, full, keep, 0

    def compile(self, model):
        self.runs += 1
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/model.onnx", "wb") as f:
                f.write(model.SerializeToString())
            flags = ["-o", "model.bin", "--cpu", "x86-64-v3", "--jobs", "1"] if self.full else ["--compile-to=schedule", "-o", "model.mlir"]
            try:
                made = subprocess.run([self.binary, "model.onnx", *flags], cwd=folder, capture_output=True, timeout=20)
                return made.returncode, made.stderr.decode(errors="replace")
            except subprocess.TimeoutExpired:
                return None, ""

    def single(self, what, model, wrong):
        code, text = self.compile(model)
        reason = None
        if code not in (0, 1, 2):
            reason = f"exit code {code}: {text.strip()[-300:]}"
        elif code and not re.search(r"^model\.onnx: error: ", text, re.M):
            reason = f"no sentence: {text.strip()[:300]!r}"
        elif wrong and code == 0:
            reason = "taken, which ONNX's schemas do not allow"
        return code, reason

    def group(self, group):
        """Yields (mutant, exit code, what is wrong with it) of all: [(number, mutant)]."""
        while len(group) > 1:
            code, text = self.compile(merge(group))
            if code not in (1, 2):
                break
            named = {int(n) for n in re.findall(r'"m(\d+)_', "".join(re.findall(r"^model\.onnx: error: .*", text, re.M)))}
            if not named & {i for i, _ in group}:
                break
            for i, mutant in group:
                if i in named:
                    yield mutant, code, None
            group = [(i, mutant) for i, mutant in group if i not in named]
        if len(group) > 1 and code == 0:
            for _, mutant in group:
                yield mutant, 0, "taken, which ONNX's schemas do not allow" if mutant[2] else None
        elif len(group) == 1:
            yield group[0][1], *self.single(*group[0][1])
        elif group:
            yield from self.group(group[: len(group) // 2])
            yield from self.group(group[len(group) // 2 :])


def wrong_rules():
    """Lines of OperandRules.def whose operands or attributes are not those that ONNX's schemas name, in their order."""
    with open(os.path.join(HERE, "..", "..", "lib", "Conversion", "GraphToPrim", "OperandRules.def")) as f:
        text = f.read()
    macros = {name: body for name, body in re.findall(r"#define (\w+)(?:\(\w+\))?((?:.*\\\n)*.*)\n", text)}

    def expand(rules):
        parts = re.findall(r'"([^"]*)"|([A-Z]+)(?:\("?\w+"?\))?', rules)
        return "".join(expand(macros[macro]) if macro in macros else literal for literal, macro in parts)

    schemas = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        schemas.setdefault((schema.domain or "ai.onnx", schema.name), []).append(schema)
    lines = re.findall(r'^OPERANDS\("([\w.]+)", ([\w.]+), (\d+),\s*((?:[^"]|"[^"]*")*?)\)\n', text, re.M)
    for domain, op, since, rules in lines:
        known = schemas.get((domain, op))
        if not known:
            continue
        names = re.findall(r"(@?)([A-Za-z]\w*)(?=[\[{ ]|$)", re.sub(r"\[[^\]]*\]|\{[^}]*\}|\|", "", expand(rules)))
        operands = [name for at, name in names if not at]
        newer = [s for s in known if s.since_version >= int(since)] or [max(known, key=lambda s: s.since_version)]
        if not any([o.name for o in s.inputs][: len(operands)] == operands for s in newer):
            yield f"{op}: operands {operands} are not those of ONNX"
        unknown = {name for at, name in names if at} - {a for s in known for a in s.attributes}
        if op == "MaxUnpool":  # reads its window as pools do
            unknown.discard("dilations")
        if unknown:
            yield f"{op}: attributes {sorted(unknown)} are not those of ONNX"
    if len(lines) < 100:
        yield f"only {len(lines)} lines were read"


def check(tool, key, name, model, values):
    """(exit codes, failures) of one operator's mutants."""
    codes, failures = {}, []
    for mutant, code, reason in tool.group(list(enumerate([*mutants(model, values, tool.full), *attribute_mutants(model), *folded(model, values)]))):
        codes[code] = codes.get(code, 0) + 1
        if reason:
            failures.append(f"{key[0]}.{key[1]} {name} {mutant[0]}: {reason}")
            if tool.keep:
                with open(os.path.join(tool.keep, re.sub(r"\W+", "_", f"{key[1]}_{name}_{mutant[0]}") + ".onnx"), "wb") as f:
                    f.write(mutant[1].SerializeToString())
    return codes, failures


def run_values(tool, key, name, model, values):
    """As check, of runs with odd integers; what operators of EXACT give is compared, also that of constants."""
    codes, failures = {}, []
    model = copy.deepcopy(model)
    for output in model.graph.output:  # sizes are others than those of the case
        output.ClearField("type")
    odd = list(odd_values(model, values))
    with tempfile.TemporaryDirectory() as folder:

        def compile(model):
            with open(f"{folder}/model.onnx", "wb") as f:
                f.write(model.SerializeToString())
            return subprocess.run([tool.binary, f"{folder}/model.onnx", "-o", f"{folder}/m.bin", "--cpu", "x86-64-v3", "--jobs", "1"], capture_output=True).returncode

        def run(what, every, exact):
            command = [os.path.join(os.path.dirname(tool.binary), "tc-run"), f"{folder}/m.bin", "--threads", "1"]
            if every is not None:
                np.savez(f"{folder}/in.npz", **{f"input_{j}": v for j, v in enumerate(every)})
                command += ["--inputs", f"{folder}/in.npz"]
            if exact is not None:
                np.savez(f"{folder}/expected.npz", **{model.graph.output[0].name: exact})
                command += ["--expect", f"{folder}/expected.npz"]
            tool.runs += 1
            try:
                done = subprocess.run(command, capture_output=True, timeout=20, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30,) * 2))
                code, text = done.returncode, (done.stdout + done.stderr).decode(errors="replace")
            except subprocess.TimeoutExpired:
                code, text = None, ""
            codes[code] = codes.get(code, 0) + 1
            if code != 0 if exact is not None else code not in (0, 4, 5) or code and ": error: " not in text:
                failures.append(f"{key[0]}.{key[1]} {name} {what}: tc-run gives {code}: {text.strip()[-200:]}")

        if not odd or compile(model):
            return codes, failures
        for i, number, which, every in odd:
            run(f"{i}={number} ({which})", every, exact_result(model, every))
        if key[1] in EXACT:
            for (i, number, which, every), (what, constant, _) in zip(odd, folded(model, values)):
                exact = exact_result(model, every)
                if exact is None:
                    continue
                if compile(constant):
                    failures.append(f"{key[0]}.{key[1]} {name} {what}: not compiled")
                else:
                    run(what, None, exact)
    return codes, failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries")
    parser.add_argument("regex", nargs="?", default="")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep")
    options = parser.parse_args()
    tool = Tool(os.path.join(os.path.abspath(options.binaries), "tc-compile"), options.full, options.keep)
    counts, failed = {}, 0
    for wrong in wrong_rules():
        failed += 1
        print(f"OperandRules.def: {wrong}", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = []
        models = base_models()
        for op, cases in more_models().items() if options.run else ():
            models["ai.onnx", op] = [*models["ai.onnx", op], *cases]
        for key, cases in models.items():
            if re.search(options.regex, ".".join(key)):
                function = run_values if options.run else check
                jobs += [pool.submit(function, tool, key, *case) for case in (cases if options.full or options.run else cases[:1])]
        for job in jobs:
            codes, failures = job.result()
            for code, count in codes.items():
                counts[code] = counts.get(code, 0) + count
            failed += len(failures)
            for failure in failures:
                print(failure, flush=True)
    print(f"operands: {sum(counts.values())} models in {tool.runs} runs, exit codes {dict(sorted(counts.items(), key=str))}, {failed} failures")
    return 1 if failed or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
