# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend test cases of the installed `onnx` package as folders of files, and the ways in which each is compiled.

A case is a folder CORPUS/<kind>/<name> with model.onnx, case.json ({"rtol", "atol", "sets"}) and, for each data set i, set<i>/input_<j>.pb
and set<i>/output_<j>.pb: TensorProto, SequenceProto or OptionalProto as the model's types say.

The package makes its node cases when they are imported (seconds, with warnings), so that they are written once for each version of it.
"""
import contextlib
import hashlib
import io
import json
import os
import shutil
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

KINDS = ["node", "simple", "pytorch-converted", "pytorch-operator"]
WAYS = ["static", "dynamic", "constant"]

# Inputs whose length fixes a rank, an axis list or a count of outputs: (operator, operand number).
RANK_OPERANDS = {
    ("AffineGrid", 1), ("CenterCropPad", 1), ("Col2Im", 1), ("Col2Im", 2), ("ConstantOfShape", 0), ("DFT", 2), ("Expand", 1), ("MaxUnpool", 2), ("Pad", 1), ("Pad", 3),
    ("Reshape", 1), ("Resize", 1), ("Resize", 2), ("Resize", 3), ("Slice", 1), ("Slice", 2), ("Slice", 3), ("Slice", 4), ("Split", 1),
    ("Squeeze", 1), ("Tile", 1), ("Unsqueeze", 1), ("Upsample", 1),
    *((f"Reduce{kind}", 1) for kind in ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]),
}  # fmt: skip

# Operands whose last size is a rank or a count of dims, while the other sizes may vary.
RANK_LAST_DIMS = {("GatherND", 1), ("ScatterND", 1)}


class NoMeaning(Exception):
    """A way that a case does not have, with the reason."""


def stamp():
    """What the written corpus depends on."""
    with open(__file__, "rb") as f:
        return onnx.__version__ + " " + np.__version__ + " " + hashlib.sha256(f.read()).hexdigest()


def to_proto(value, value_type):
    """A test value as the message that its type asks for."""
    if value_type.HasField("optional_type"):
        if isinstance(value, onnx.OptionalProto):
            return value
        return numpy_helper.from_optional(value)
    if value_type.HasField("sequence_type"):
        return value if isinstance(value, onnx.SequenceProto) else numpy_helper.from_list(list(value))
    return value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value))


def from_proto(data, value_type):
    """Bytes of a value file as NumPy values."""
    if value_type.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    if value_type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def write_case(folder, model, sets, rtol, atol):
    os.makedirs(folder)
    with open(os.path.join(folder, "model.onnx"), "wb") as f:
        f.write(model if isinstance(model, bytes) else model.SerializeToString())
    for i, (inputs, outputs) in enumerate(sets):
        os.mkdir(os.path.join(folder, f"set{i}"))
        for kind, values in ("input", inputs), ("output", outputs):
            for j, data in enumerate(values):
                with open(os.path.join(folder, f"set{i}", f"{kind}_{j}.pb"), "wb") as f:
                    f.write(data)
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump({"rtol": rtol, "atol": atol, "sets": len(sets)}, f)


def write_made(corpus, case):
    """A case that the package makes in memory."""
    graph = case.model.graph
    sets = [([to_proto(v, t.type).SerializeToString() for v, t in zip(inputs, graph.input)],
             [to_proto(v, t.type).SerializeToString() for v, t in zip(outputs, graph.output)])
            for inputs, outputs in case.data_sets]  # fmt: skip
    write_case(os.path.join(corpus, case.kind, case.name), case.model, sets, case.rtol, case.atol)


def write_stored(corpus, case):
    """A case that the package stores as files."""

    def read_all(folder, kind):
        count = sum(name.startswith(kind + "_") for name in os.listdir(folder))
        return [open(os.path.join(folder, f"{kind}_{i}.pb"), "rb").read() for i in range(count)]

    folders = sorted(name for name in os.listdir(case.model_dir) if name.startswith("test_data_set"))
    sets = [tuple(read_all(os.path.join(case.model_dir, name), kind) for kind in ("input", "output")) for name in folders]
    with open(os.path.join(case.model_dir, "model.onnx"), "rb") as f:
        write_case(os.path.join(corpus, case.kind, case.name), f.read(), sets, case.rtol, case.atol)


def write_corpus(corpus):
    """Write all cases unless they are there already; returns their names, "<kind>/<name>", sorted."""
    marker = os.path.join(corpus, "stamp.txt")
    if not os.path.exists(marker) or open(marker).read() != stamp():
        shutil.rmtree(corpus, ignore_errors=True)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            from onnx.backend.test.case.model import collect_testcases as collect_models
            from onnx.backend.test.loader import load_model_tests

            np.random.seed(0)
            for case in load_model_tests(kind="node"):
                write_made(corpus, case)
            stored = {case.name: case for kind in KINDS[1:] for case in load_model_tests(kind=kind)}
            for case in stored.values():
                write_stored(corpus, case)
            # The package stores most of the cases that it makes of whole models.
            for case in collect_models():
                if case.kind == "simple" and case.name not in stored:
                    write_made(corpus, case)
        with open(marker, "w") as f:
            f.write(stamp())
    return sorted(f"{kind}/{name}" for kind in KINDS for name in os.listdir(os.path.join(corpus, kind)))


def inputs_among(graph, operands):
    """Names of what the nodes take as one of these operands."""
    return {name for node in graph.node for i, name in enumerate(node.input) if (node.op_type, i) in operands}


def forget_sizes(value_type):
    """Leave the rank of a type only."""
    for kind in "optional_type", "sequence_type":
        if value_type.HasField(kind):
            return forget_sizes(getattr(value_type, kind).elem_type)
    if value_type.HasField("tensor_type"):
        for dim in value_type.tensor_type.shape.dim:
            dim.Clear()


def forget_sizes_of_graph(graph):
    for value in [*graph.output, *graph.value_info]:
        forget_sizes(value.type)
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                for value in inner.input:
                    forget_sizes(value.type)
                forget_sizes_of_graph(inner)


def make_dynamic(model, inputs, whole):
    """All sizes of all inputs unknown, each for itself, but for the lengths that fix a rank."""
    graphs = [model.graph, whole.graph] if whole else [model.graph]
    kept = set().union(*(inputs_among(graph, RANK_OPERANDS) for graph in graphs))
    kept_last = set().union(*(inputs_among(graph, RANK_LAST_DIMS) for graph in graphs))
    given = model.graph.input[: len(inputs)]
    before = [value.type.SerializeToString() for value in given]
    for value in given:
        if value.name in kept_last:
            for dim in value.type.tensor_type.shape.dim[:-1]:
                dim.Clear()
        elif value.name not in kept:
            forget_sizes(value.type)
    if before == [value.type.SerializeToString() for value in given]:
        raise NoMeaning("no input has a size that may vary")
    forget_sizes_of_graph(model.graph)


def make_constant(model, inputs):
    """What the (first) data set gives becomes initializers."""
    if not inputs:
        raise NoMeaning("the model has no inputs")
    for value, data in zip(model.graph.input, inputs):
        if not value.type.HasField("tensor_type"):
            raise NoMeaning("sequences and optionals cannot be initializers")
        tensor = onnx.TensorProto.FromString(data)
        tensor.name = value.name
        model.graph.initializer.append(tensor)
    del model.graph.input[:]
    # Initializers that are no inputs came with version 4 of the format.
    model.ir_version = max(model.ir_version, 4)


def apply_way(model, way, inputs, whole=None):
    """
    Changes `model`. `inputs` are the bytes of the first data set's values; inputs beyond have initializers as defaults.
    `whole` is the model whose operator is expanded in this one, if any: its inputs mean the same.
    """
    if way == "dynamic":
        make_dynamic(model, inputs, whole)
    elif way == "constant":
        make_constant(model, inputs)
